# SPDX-License-Identifier: Apache-2.0
# Bash's completion of troupe(1). The command itself knows what may come next (`troupe complete`); this passes it the line.

_troupe() {
        local program=${1/#\~\//$HOME/} rest=${COMP_LINE:0:COMP_POINT} words=() word blank kind reply i

        # Bash breaks words at colons too ("actor:..." is three): what nothing blank is between is one.
        for ((i = 0; i <= COMP_CWORD; i++)); do
                blank=${rest%%[![:space:]]*}
                rest=${rest#"$blank"}
                word=${COMP_WORDS[i]}
                ((i < COMP_CWORD)) || word=$rest
                rest=${rest#"$word"}
                if [[ -n $blank || $i -eq 0 ]]; then
                        words+=("$word")
                else
                        words[-1]+=$word
                fi
        done
        word=${words[-1]}

        # quotes and a leading ~, as far as names and paths have them
        words=("${words[@]//[\"\'\\]/}")
        words=("${words[@]/#\~\//$HOME/}")
        COMPREPLY=()
        {
                read -r kind
                mapfile -t reply
        } < <("$program" complete -- "${words[@]:1}" 2>/dev/null)
        if [[ $kind == files ]]; then
                compopt -o default
        elif ((${#reply[@]})); then
                # readline replaces only what stands behind the last colon
                COMPREPLY=("${reply[@]#"${word%"$2"}"}")
        fi
}

complete -F _troupe troupe

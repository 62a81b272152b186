# SPDX-License-Identifier: Apache-2.0
# fish's completion of troupe(1). The command itself knows what may come next (`troupe complete`); this passes it the line.

function __troupe_complete
        set -l words (commandline -opc)
        set -l reply ($words[1] complete -- $words[2..] (commandline -ct) 2>/dev/null)
        if test "$reply[1]" = files
                __fish_complete_path (commandline -ct)
        else
                string split -- \n $reply[2..]
        end
end

complete -c troupe -f -k -a '(__troupe_complete)'

" SPDX-License-Identifier: Apache-2.0
" Neovim as a client, with its own functions only. TROUPE_SOCKET names the socket:  nvim -S editor.vim
let s:daemon = sockconnect('pipe', $TROUPE_SOCKET, #{rpc: v:true})
let s:counter = rpcrequest(s:daemon, 'spawn', 'counter', [])

" :Bump 2 tells the counter.
command! -nargs=? Bump call rpcnotify(s:daemon, 'send', s:counter, 'bump', [<args>])

" :Total asks it and does not wait: the answer calls OnTotal.
command! Total call rpcrequest(s:daemon, 'ask', s:counter, 'total', [], #{reply: s:calling('OnTotal')})

function! OnTotal(error, total)
  echomsg a:error is v:null ? a:total : a:error[1]
endfunction

" Whoever knows the name `editor` may ask this one for the text in front of the user, or say something to them.
function! OnAsked(handler, ...)
  if a:handler ==# 'text'
    return getline(1, '$')
  elseif a:handler ==# 'say'
    echomsg a:1
  else
    throw 'there is no handler ' . a:handler
  endif
endfunction

" The method that the daemon is to call: one of Neovim's own, which calls a function.
function! s:calling(name)
  return #{method: 'nvim_call_function', params: [a:name]}
endfunction

call rpcrequest(s:daemon, 'publish', 'editor', rpcrequest(s:daemon, 'listen', s:calling('OnAsked')))

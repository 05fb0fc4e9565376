#compdef mam
# zsh completion for mam: every answer comes from mam itself.
_mam() {
    local line name
    local -a answers described
    answers=("${(@f)$(command mam completion words -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    for line in "${answers[@]}"; do
        if [[ $line == :files ]]; then
            _files
            return
        fi
        [[ -n $line ]] || continue
        name=${line%%$'\t'*}
        described+=("${name//:/\\:}:${line#*$'\t'}")
    done
    (( $#described )) && _describe -V mam described
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _mam "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -D; }
    compdef _mam mam
fi

# bash completion for mam: every answer comes from mam itself.
_mam() {
    local line=${COMP_LINE:0:COMP_POINT} word prefix candidate
    local -a words
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    word=${words[${#words[@]} - 1]}
    # bash replaces only what stands behind the last colon or equals sign of a word.
    prefix=${word%"${word##*[:=]}"}
    COMPREPLY=()
    while IFS= read -r candidate; do
        if [[ $candidate == :files ]]; then
            compopt -o default -o filenames
            COMPREPLY=()
            return
        fi
        candidate=${candidate%%$'\t'*}
        # Labels are anybody's text: quoted, they can be nothing else on this line.
        printf -v candidate %q "${candidate#"$prefix"}"
        COMPREPLY+=("$candidate")
    done < <(command mam completion words -- "${words[@]:1}" 2>/dev/null)
}
complete -o nosort -F _mam mam 2>/dev/null || complete -F _mam mam

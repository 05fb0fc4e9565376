# fish completion for mam: every answer comes from mam itself.
function __mam_answers
    set -l words (commandline -opc) (commandline -ct)
    for line in (command mam completion words -- $words[2..-1] 2>/dev/null)
        if test "$line" = ":files"
            __fish_complete_path (commandline -ct)
            return
        end
        echo $line
    end
end
complete -c mam -f -k -a '(__mam_answers)'

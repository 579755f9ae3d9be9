# SPDX-License-Identifier: MIT
# fish completion for troupectl(1), which knows what to offer itself.

function __troupectl_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in (troupectl complete -- $words[2..] 2>/dev/null)
        if test "$line" = \tfiles
            __fish_complete_path (string replace -r -- '^--[^=]*=' '' $words[-1])
        else
            echo $line
        end
    end
end

complete -c troupectl -f -a '(__troupectl_complete)'

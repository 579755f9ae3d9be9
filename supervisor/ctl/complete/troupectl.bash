# SPDX-License-Identifier: MIT
# bash completion for troupectl(1), which knows what to offer itself.

_troupectl() {
    local words=() word previous='' before='' candidates=() i
    # bash splits words at "=" and ":" and completes the last part only.
    for ((i = 1; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ ${#words[@]} -gt 0 && ($word =~ ^[=:]+$ || $previous =~ ^[=:]+$) ]]; then
            before=${words[-1]}
            [[ $word =~ ^[=:]+$ ]] && before+=$word
            words[-1]+=$word
        else
            before=''
            words+=("$word")
        fi
        previous=$word
    done
    # As it would be without quotes.
    words=("${words[@]//[\\\"\']/}")

    COMPREPLY=()
    while IFS= read -r word; do
        if [[ $word == $'\tfiles' ]]; then
            compopt -o filenames 2>/dev/null
            mapfile -t candidates < <(compgen -f -- "${words[-1]#"$before"}")
            COMPREPLY+=("${candidates[@]}")
            continue
        fi
        word=${word%%$'\t'*}
        printf -v word %q "${word#"$before"}"
        COMPREPLY+=("$word")
    done < <(troupectl complete -- "${words[@]}" 2>/dev/null)
}

complete -F _troupectl troupectl

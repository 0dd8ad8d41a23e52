#!/usr/bin/env bash
# A completion from a program's own tables: the options (--list-options), and those of each command that its help names.
# For bash they go in front of the functions of scripts/completion.bash; for zsh each option is a word of _arguments, for
# fish a line. Usage: scripts/make_completion.sh bash|zsh|fish PROGRAM
set -euo pipefail
shell=${1:-} program=${2:?usage: scripts/make_completion.sh bash|zsh|fish PROGRAM}
here=$(dirname "${BASH_SOURCE[0]}")
name=${program##*/}
id=${name//-/_} # as a part of a function's name
help=$("$program" --help)
mapfile -t commands < <(sed -n "s/^  $name \([a-z][a-z]*\)  *[A-Za-z].*/\1/p" <<<"$help" | sort -u)
alone='' list="$name --list-devices"
if [[ $help == "usage: $name COMMAND"* ]]; then alone=yes list="$name measure --list-devices"; fi # a command comes first
# The names in that list, and two that stand for some of them: a function's body that all three shells read alike.
devices="echo auto; echo all; $list 2>/dev/null | grep -v -e available: -e class | cut -d\\  -f1"

options_of() { # [COMMAND]   one line an option: the command, name, letter, argument, choices
    local line
    "$program" "$@" --list-options | while IFS= read -r line; do printf '%s\t%s\n' "${1:-}" "$line"; done
}
options() {
    local command
    options_of
    for command in "${commands[@]}"; do if [[ $command != help ]]; then options_of "$command"; fi; done
}
fields() { options | tr '\t' '\037'; } # so that an empty one is one
sort_of() { # OPTION ARGUMENT CHOICES   what stands behind an option
    if [[ -z $2 ]]; then
        echo nothing
    elif [[ $1 == --device ]]; then
        echo devices
    elif [[ -n $3 ]]; then
        if [[ $2 == LIST ]]; then echo list; else echo words; fi
    elif [[ $2 == *FILE* || $2 == *DIR* || $2 == *.json ]]; then
        echo files
    else
        echo text
    fi
}

for_bash() {
    echo "# Completion of $name for bash, made from the program's own list of options by scripts/make_completion.sh."
    printf '_%s_commands=%q\n' "$id" "${commands[*]}"
    printf '_%s_alone=%q\n' "$id" "$alone"
    printf '_%s_options=%q\n' "$id" "$(options)"
    printf '_%s_devices() { %s; }\n\n' "$id" "$devices"
    sed -e '1,/^$/d' -e "s/PROGRAM/$id/g" "$here/completion.bash"
    printf 'complete -F _%s %s\n' "$id" "$name"
}

zsh_options() { # COMMAND
    local of option letter argument choices behind
    fields | while IFS=$'\x1f' read -r of option letter argument choices; do
        if [[ $of != "$1" ]]; then continue; fi
        behind=":$argument:"
        case $(sort_of "$option" "$argument" "$choices") in
        nothing) behind='' ;;
        devices) behind+="{compadd -- \$(_${id}_devices)}" ;;
        list) behind+="_values -s , $argument $choices" ;;
        words) behind+="($choices)" ;;
        files) behind+=_files ;;
        text) behind+=' ' ;;
        esac
        printf '    %q \\\n' "*$option${argument:+=}$behind"
        if [[ -n $letter ]]; then printf '    %q \\\n' "*$letter${argument:++}$behind"; fi
    done
}
zsh_arguments() { # COMMAND
    printf '_arguments -S \\\n%s\n    "*:file:_files"' "$(zsh_options "$1")"
}
for_zsh() {
    local command
    printf '#compdef %s\n_%s_devices() { %s }\n' "$name" "$id" "$devices"
    if ((${#commands[@]} > 0)); then
        printf 'if (( CURRENT == 2 )); then\n  compadd -- %s\n%sfi\n' "${commands[*]}" "${alone:+  return$'\n'}"
        echo "case \$words[2] in"
        for command in "${commands[@]}"; do
            if [[ $command == help ]]; then
                printf 'help) compadd -- %s; return ;;\n' "${commands[*]}"
            else
                printf '%s)\n  shift words; (( CURRENT-- ))\n  %s; return ;;\n' "$command" "$(zsh_arguments "$command")"
            fi
        done
        echo 'esac'
    fi
    printf '%s\n' "$(zsh_arguments '')"
}

for_fish() {
    local of option letter argument choices where behind
    echo "# Completion of $name for fish, made from the program's own list of options by scripts/make_completion.sh."
    printf 'function __%s_devices\n    %s\nend\n' "$id" "$devices"
    if ((${#commands[@]} > 0)); then
        printf "complete -c %s -n __fish_use_subcommand %s-a '%s'\n" "$name" "${alone:+-f }" "${commands[*]}"
    fi
    if [[ " ${commands[*]} " == *' help '* ]]; then
        printf "complete -c %s -n '__fish_seen_subcommand_from help' -f -a '%s'\n" "$name" "${commands[*]}"
    fi
    fields | while IFS=$'\x1f' read -r of option letter argument choices; do
        where='' behind=''
        if [[ -n $of ]]; then
            where=" -n '__fish_seen_subcommand_from $of'"
        elif ((${#commands[@]} > 0)); then
            where=" -n 'not __fish_seen_subcommand_from ${commands[*]}'"
        fi
        case $(sort_of "$option" "$argument" "$choices") in
        nothing) ;;
        devices) behind=" -x -a '(__${id}_devices)'" ;;
        list) behind=" -x -a '(__fish_append , $choices)'" ;;
        words) behind=" -x -a '$choices'" ;;
        files) behind=' -r -F' ;;
        text) behind=' -x' ;;
        esac
        printf 'complete -c %s%s -l %s%s%s\n' "$name" "$where" "${option#--}" "${letter:+ -s ${letter#-}}" "$behind"
    done
}

case $shell in
bash | zsh | fish) "for_$shell" ;;
*)
    echo "make_completion: '$shell' is none of: bash, zsh, fish" >&2
    exit 2
    ;;
esac

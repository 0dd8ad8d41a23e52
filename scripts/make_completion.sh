#!/usr/bin/env bash
# A completion for bash from a program's own tables: the options (--list-options), those of each command that its help
# names, and the functions of scripts/completion.bash. Usage: scripts/make_completion.sh PROGRAM >completions/PROGRAM
set -euo pipefail
program=${1:?usage: scripts/make_completion.sh PROGRAM}
here=$(dirname "${BASH_SOURCE[0]}")
name=${program##*/}
mapfile -t commands < <("$program" --help | sed -n "s/^  $name \([a-z][a-z]*\) [A-Z].*/\1/p" | sort -u)

options_of() { # [COMMAND]   one line an option: name, letter, argument, choices, and the command in front
    local line
    "$program" "$@" --list-options | while IFS= read -r line; do printf '%s\t%s\n' "${1:-}" "$line"; done
}

echo "# Completion of $name for bash, made from the program's own list of options by scripts/make_completion.sh."
printf '_%s_commands=%q\n' "$name" "${commands[*]}"
printf '_%s_options=%q\n' "$name" "$(options_of && for command in "${commands[@]}"; do options_of "$command"; done)"
echo
sed -e '1,/^$/d' -e "s/PROGRAM/$name/g" "$here/completion.bash"

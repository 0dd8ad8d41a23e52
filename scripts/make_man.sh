#!/usr/bin/env bash
# A manual page from what a program says of itself: --version, --help, and the --help of each command that the
# help names. So it tells what the program does today. Usage: scripts/make_man.sh PROGRAM >PROGRAM.1
set -euo pipefail
program=${1:?usage: scripts/make_man.sh PROGRAM}
here=$(dirname "${BASH_SOURCE[0]}")
name=${program##*/}
read -r _ version _ < <("$program" --version)
date=$(date -u -d "@${SOURCE_DATE_EPOCH:-$(stat -L -c %Y "$program")}" +%Y-%m-%d)
mapfile -t named < <("$program" --help | sed -n "s/^  $name \([a-z][a-z]*\)  *[A-Za-z].*/\1/p" | sort -u)
commands=()
for command in "${named[@]}"; do # what another program does has a page of its own
    if [[ $("$program" "$command" --help) == "usage: $name $command "* ]]; then commands+=("$command"); fi
done

help_of() { # HOW WORD…   one help text as the parts of a page; HOW: page or section
    local how=$1
    shift
    "$program" "$@" --help | awk -v how="$how" -v title="$*" -v name="$name" -f "$here/make_man.awk"
}

printf '.TH %s 1 %s "ceiling-scout %s" "Ceiling Scout"\n' "${name^^}" "$date" "$version"
help_of page
if ((${#commands[@]} > 0)); then
    echo '.SH COMMANDS'
    for command in "${commands[@]}"; do help_of section "$command"; done
fi
echo '.SH SEE ALSO'
others=()
for other in ceiling-scout extract_ops scout_batch analyze; do if [[ $other != "$name" ]]; then others+=("$other"); fi; done
printf '.BR %s (1),\n.BR %s (1)\n' "${others[@]//_/\\_}" | sed 's/\\_/_/g'

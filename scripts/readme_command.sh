#!/usr/bin/env bash
# Prints the README's Nth quick-start command: a line that begins with "$ scripts/setup.sh". What CI and the fresh-root proof
# run is thereby what the README says, and not a copy of it. Usage: scripts/readme_command.sh 1|2
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
number=${1:?usage: scripts/readme_command.sh 1|2}
# shellcheck disable=SC2016 # the dollar is the README's prompt
command=$(sed -n 's/^ *\$ \(scripts\/setup\.sh.*\)$/\1/p' README.md | sed -n "${number}p")
if [[ -z $command ]]; then
    echo "README.md has no quick-start command number $number" >&2
    exit 2
fi
printf '%s\n' "$command"

#!/usr/bin/env bash
# Runs every unit test program of a build folder and adds up what they say. Usage: tests/unit/run.sh FOLDER [PART]
# PART: only programs with this in their name.
set -euo pipefail
folder=${1:?usage: tests/unit/run.sh FOLDER [PART]} part=${2:-}
passed=0 failed=0
said=$(mktemp)
trap 'rm -f "$said"' EXIT

for program in "$folder"/test_*"$part"*; do
    if [[ ! -x $program || -d $program ]]; then continue; fi
    code=0
    output=$(timeout 300 "$program" 2>"$said" </dev/null) || code=$?
    if [[ $output =~ ([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        passed=$((passed + BASH_REMATCH[1]))
        failed=$((failed + BASH_REMATCH[2]))
        if ((code != 0 && BASH_REMATCH[2] == 0)); then failed=$((failed + 1)); fi
    else
        failed=$((failed + 1))
    fi
    if ((code != 0)); then
        printf '%s: exit %d\n%s\n' "${program##*/}" "$code" "$output"
        tail -n 30 "$said"
    fi
done
echo "$passed passed, $failed failed"
((failed == 0))

#!/usr/bin/env bash
# Runs the test scripts of a folder (FOLDER/test_*.sh), each in a process and a scratch folder of its own, and adds up.
# What the scripts need is in the environment, set by the folder's own run.sh.
# Usage: tests/scripts.sh FOLDER [NAME]…   NAME: only FOLDER/test_NAME.sh
set -euo pipefail
folder=$(realpath "${1:?usage: tests/scripts.sh FOLDER [NAME]...}")
shift
passed=0 failed=0 skipped=0

for script in "$folder"/test_*.sh; do
    name=${script##*/test_}
    if (($# > 0)) && [[ " $* " != *" ${name%.sh} "* ]]; then continue; fi
    scratch=$(mktemp -d)
    code=0
    output=$(cd "$scratch" && bash "$script" 2>&1 </dev/null) || code=$?
    rm -rf "$scratch"
    last=${output##*$'\n'}
    if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
        passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
        skipped=$((skipped + ${BASH_REMATCH[4]:-0}))
        if ((code != 0 && BASH_REMATCH[2] == 0)); then failed=$((failed + 1)); fi
    else
        failed=$((failed + 1))
    fi
    printf '%s\n' "$output" | sed "s|^|${name%.sh}: |"
done
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))

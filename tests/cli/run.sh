#!/usr/bin/env bash
# Runs the command line's tests, each file in a process and a scratch folder of its own, and adds up.
# Usage: tests/cli/run.sh EXTRACT_OPS [NAME]…   NAME: only tests/cli/test_NAME.sh
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
EXTRACT_OPS=$(realpath "${1:?usage: tests/cli/run.sh EXTRACT_OPS [NAME]...}")
shift
ROOT=$(cd "$here/../.." && pwd)
export EXTRACT_OPS ROOT
passed=0 failed=0 skipped=0

for script in "$here"/test_*.sh; do
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

#!/usr/bin/env bash
# The excerpts in docs/reading.md are what the programs print: every line of them, in that order.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/analyze.sh"

check_excerpt() { # PROGRAM ITS-PATH
    local position=0 found line command arguments output
    # shellcheck disable=SC2016 # the dollar is the prompt
    sed -n '/^    \$ bin\/'"$1"' /,/^[^ ]/p' "$ROOT/docs/reading.md" | sed -n 's/^    //p' >excerpt.txt
    command=$(sed -n '1s/^\$ bin\/'"$1"' //p' excerpt.txt)
    read -r -a arguments <<<"$command"
    output=$(cd "$ROOT" && "$2" "${arguments[@]}" </dev/null)
    printf '%s\n' "$output" >output.txt
    EXIT=0 STDOUT=$output STDERR=
    check "docs/reading.md has an excerpt of $1" test "$(wc -l <excerpt.txt)" -gt 10
    while IFS= read -r line; do
        if [[ $line == … || -z $line ]]; then continue; fi
        found=$(grep -nxF -- "$line" output.txt | cut -d: -f1 | awk -v after="$position" '$1 > after {print; exit}' || true)
        check "docs/reading.md: $line" test -n "$found"
        position=${found:-$position}
    done < <(sed 1d excerpt.txt)
}
check_excerpt extract_ops "$EXTRACT_OPS"
check_excerpt analyze "$ANALYZE"
finish

#!/usr/bin/env bash
# The README's excerpt of what extract_ops prints is what it prints: every line of it, in that order.
source "${ROOT:?}/tests/cli/lib.sh"

# shellcheck disable=SC2016 # the dollar is the README's prompt
sed -n '/^    \$ bin\/extract_ops /,/^[^ ]/p' "$ROOT/README.md" | sed -n 's/^    //p' >excerpt.txt
command=$(sed -n '1s/^\$ bin\/extract_ops //p' excerpt.txt)
read -r -a arguments <<<"$command"
cd "$ROOT"
output=$("$EXTRACT_OPS" "${arguments[@]}" </dev/null)
cd - >/dev/null
printf '%s\n' "$output" >output.txt
EXIT=0 STDOUT=$output STDERR=
check "the README has an excerpt" test "$(wc -l <excerpt.txt)" -gt 10
position=0
while IFS= read -r line; do
    if [[ $line == … || -z $line ]]; then continue; fi
    found=$(grep -nxF -- "$line" output.txt | cut -d: -f1 | awk -v after="$position" '$1 > after {print; exit}' || true)
    check "README: $line" test -n "$found"
    position=${found:-$position}
done < <(sed 1d excerpt.txt)
finish

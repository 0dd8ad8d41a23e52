#!/usr/bin/env bash
# The summary as Markdown, CSV and JUnit XML, read by others: python's csv and xml.etree; of hostile reports too, the
# same bytes every time.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/analyze.sh"

python3 "$MADE" plain
python3 "$MADE" nasty hostile

for folder in plain nasty; do
    for format in md csv junit; do
        analyze $folder --format $format --top 0
        cp stdout.txt $folder.$format
        check "$folder $format: exit 1, for something has no baseline" exits 1
        analyze $folder --format $format --top 0
        check "$folder $format: the same bytes again" same stdout.txt $folder.$format
        run python3 "$ROOT/tests/cli/analyze_formats.py" $format $folder/reports $folder.$format
        check "$folder $format: what others read of it" exits 0
    done
done
analyze nasty --format json --top 0
check "nasty json: it is written whole" python3 -c 'import json; json.load(open("stdout.txt", encoding="utf-8"))'
check "nothing that was named like a command ran" absent pwned

analyze plain --format md
check "md: what to do first" prints "1. **MEDIUM** \`gemm_proven\`: Use lib algo=7: proven to take 10.0 % less time than lib."
check "md: the next one" prints "2. **MEDIUM** \`attention_open\`"
check "md: low ones are left to the table" prints "more in the table below."
check "md: what is missing" prints "| \`UNSUPPORTED\` | \`type\`: no library here does that | 1 | 2 | \`conv_missing\` |"
check "md: fusions" prints "| \`norm_residual\` | norm+residual | 4 | 22.00 us | 14.00 us | 1.57 x ± 0.4 % | 2 to 1 | 32.00 us |"
check "md: the device" prints "| device | Test GPU |"
check "md: the regime" prints "| regime | sustained-model-graph |"
analyze plain --format md --top 2
check "md --top 2: says what it leaves out" prints "6 more are in summary.csv and summary.json."
analyze nasty --format md
check "md: a file that is no report is named" prints "nasty/reports/broken.json"

# A row that failed and does not say what it is of: what else it says is told.
cp -r plain nameless
python3 - nameless/reports <<'EOF'
import json, pathlib, sys

for path in sorted(pathlib.Path(sys.argv[1]).glob("*.json")):
    report = json.loads(path.read_text())
    report["candidates"] = [{"status": "WRONG"}, *report.get("candidates", [])]
    path.write_text(json.dumps(report))
EOF
for format in text json md csv junit; do
    analyze nameless --format $format --top 0
    check "$format: a failed row without a name: exit 1" exits 1
done
analyze nameless --format junit
check "junit: a failed row without a name" prints "WRONG"

IFS=, read -r -a columns < <(head -n 1 plain.csv | tr -d '\r')
for column in "${columns[@]}"; do
    check "csv: $column is documented" contains "$ROOT/docs/formats.md" "\`$column\`"
done

# What is measured and not proven counts nowhere as something that can be had.
for margin in 0.02 0.2; do
    analyze plain --margin $margin -o margin
    time=$(sed -n 's/^\(.*\) with what is proven.*/\1/p' margin/summary.txt)
    check "a margin of $margin: text says what is left" test "$time" = "$([[ $margin == 0.2 ]] && echo '4.911 ms' || echo '4.811 ms')"
    check "a margin of $margin: the page says the same" contains <(tr -d '\n' <margin/report.html | sed 's/.*with what is proven<//; s/<span.*//') ">$time "
    check "a margin of $margin: so does md" contains margin/summary.md "| with what is proven | $time |"
    check "a margin of $margin: what is chosen" test "$(grep -c 'the fastest</strong>, but not by enough to be proven' margin/report.html)" = \
        "$([[ $margin == 0.2 ]] && echo 1 || echo 0)"
done

analyze plain -o written
check "-o writes all three" test -s written/summary.md -a -s written/summary.csv -a -s written/junit.xml
check "-o: the same as printed" same written/summary.csv plain.csv
for format in md csv junit; do
    run bash -c '"$0" plain --format "$1" >/dev/full' "$ANALYZE" $format
    check "$format: a full disk is an error" exits 4
done
finish

#!/usr/bin/env bash
# How long an operation is measured: --target-ci, --min-time and --quick are numbers of the rule that holds without them.
source "$ROOT/tests/scout/lib.sh"
write_few_ops ops.json
field() { python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"; } # FILE EXPRESSION
timed() { field "$1" 'r["spent_s"]["timing"] >= float("'"$2"'")'; }                                          # FILE SECONDS
warm_up scripted:2

# addresses move every time by some percent: an interval narrows as passes are added
export CEILING_SCOUT_SCRIPTED_ADDRESSES=0.12
for target in 40 1; do
    scout ops.json -o "to$target" --device scripted:2 --no-cache --target-ci "$target%"
    check "--target-ci $target%: exit 0" exits 0
    check "--target-ci $target%: the report tells it" test "$(field "to$target/reports/square.json" 'r["target_ci"] * 100')" = "$target.0"
done
check "--target-ci: a wide one needs fewer passes" test "$(field to40/reports/square.json 'r["passes"]')" -lt "$(field to1/reports/square.json 'r["passes"]')"
check "--target-ci: what is known so well is good" test "$(field to40/reports/square.json 'r["candidates"][0]["quality"]')" = good
check "--target-ci: its interval is wider than is usual" test "$(field to40/reports/square.json 'r["candidates"][0]["time_us"]["rel_ci95"] > 0.01')" = True
check "--target-ci: nothing is open" test "$(field to40/reports/square.json 'r["undecided"]')" = "[]"
scout ops.json -o strict --device scripted:2 --no-cache --target-ci 40% --strict
check "--target-ci with --strict: good is what it says" exits 0
scout ops.json -o usual --device scripted:2 --no-cache
check "without --target-ci: the report has none" test "$(field usual/reports/square.json '"target_ci" in r')" = False
scout --device scripted:2 --ceilings --cache-dir fresh
scout ops.json -o again --device scripted:2 --cache-dir fresh --target-ci 40%
scout ops.json -o served --device scripted:2 --cache-dir fresh --target-ci 40%
check "what was measured to 40 % serves a run that wants no more" test "$(field served/run.json 'r["sources"]["cached"]')" = 2
cp -r fresh beside
scout ops.json -o other --device scripted:2 --cache-dir beside
check "it serves none that wants the usual" test "$(field other/run.json 'r["sources"]["measured"]')" = 2
scout ops.json -o anew --device scripted:2 --cache-dir fresh --target-ci 2%
check "and is gone on with for one that wants more" test "$(field anew/run.json 'r["sources"]["measured"]')" = 2
check "and is gone on with: no pass is lost" python3 "$ROOT/tests/scout/reports.py" went_on again anew
unset CEILING_SCOUT_SCRIPTED_ADDRESSES

scout ops.json -o plain --device scripted:2 --no-cache
check "--min-time: less without it" test "$(timed plain/reports/row.json 1.5)" = False
scout ops.json -o least --device scripted:2 --no-cache --min-time 1.5
check "--min-time: exit 0" exits 0
for name in square row; do
    check "--min-time: $name ran so long" test "$(timed "least/reports/$name.json" 1.5)" = True
    check "--min-time: $name: more blocks, as many passes" test \
        "$(field "least/reports/$name.json" 'r["candidates"][0]["time_us"]["batches"]')" -gt \
        "$(field "plain/reports/$name.json" 'r["candidates"][0]["time_us"]["batches"]')"
done

scout ops.json -o quick --device scripted:2 --no-cache --quick
check "--quick: exit 0" exits 0
check "--quick: its budget" test "$(field quick/run.json 'r["options"]["budget_s"]')" = 20.0
check "--quick: its target" test "$(field quick/reports/square.json 'r["target_ci"]')" = 0.05
scout ops.json -o quick --device scripted:2 --no-cache --quick --budget 9 --target-ci 0.1
check "--quick: what is given beside it counts: the budget" test "$(field quick/run.json 'r["options"]["budget_s"]')" = 9.0
check "--quick: what is given beside it counts: the target" test "$(field quick/reports/square.json 'r["target_ci"]')" = 0.1

for wrong in "--target-ci soon" "--target-ci 0" "--target-ci 60%" "--target-ci 2%%" "--min-time -1" "--min-time long"; do
    read -r -a words <<<"$wrong"
    scout ops.json -o wrong --device scripted:2 "${words[@]}"
    check "$wrong: exit 2" exits 2
    check "$wrong: nothing is made" test ! -e wrong
done
finish

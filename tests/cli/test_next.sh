#!/usr/bin/env bash
# Beneath every summary stands what to type next: text, Markdown and the page say the same, and a shell takes it as it is.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
source "$ROOT/tests/cli/analyze.sh"

mkdir runs
cp -r "$ROOT/tests/golden/reports/bert_base@b8_s128" runs/monday
cp -r runs/monday "runs/it's tuesday"
set_run() { python3 -c 'import json, sys
run = json.load(open(sys.argv[1] + "/run.json")); exec(sys.argv[2]); json.dump(run, open(sys.argv[1] + "/run.json", "w"))' "$1" "$2"; }
told() { STDOUT=$(sed -n '/^next:$/,$p' stdout.txt | sed 's/ \\$//' | tr -s ' \n' ' '); }

analyze runs/monday
told
check "whole: the first is explained" test "$STDOUT" = \
    "next: ceiling-scout explain runs/monday elementwise_8x128x768_fp16_74e81efc2b why this comes first, and what would change it "
set_run runs/monday 'run["state"] = "interrupted"'
rm runs/monday/reports/gemm_1024x768x768_*
analyze runs/monday
told
check "interrupted: --resume, with its device and libraries" prints \
    "ceiling-scout measure runs/monday/ops.json -o runs/monday --device cuda:3 --library-path /opt/torch/"
check "interrupted: what it is for" prints "/cusparselt/lib --resume measures what was not reached"
set_run runs/monday 'run["options"].update(library_path="/opt/my libraries", plugins=["./mine.so", "./a b.so"], fusions=False, exhaustive=True,
    target_ci=0.025, min_time_s=2, early_exit=0.9)'
analyze runs/monday --high-proven 0.02 --margin 0.1
told
check "as it was measured: libraries, plugins, figures" prints "--device cuda:3 --library-path '/opt/my libraries' --custom-kernel ./mine.so \
--custom-kernel './a b.so' --no-fusions --exhaustive --target-ci 2.5% --min-time 2s --early-exit 0.9 --resume measures"
check "as it is judged: the thresholds that were given" prints "ceiling-scout explain runs/monday elementwise_8x128x768_fp16_74e81efc2b \
--high-proven 0.02 --margin 0.1 why"
sed -n '/^     ceiling-scout measure/{p;:a;/\\$/{n;p;ba}}' stdout.txt >typed.sh
run env PATH="$(dirname "$ANALYZE"):$PATH" bash typed.sh
check "as it was measured: its options are known, and the plugin is looked for" says "./mine.so: No such file"
set_run runs/monday 'run["options"].update(library_path=None, plugins=[], fusions=True, exhaustive=False, target_ci=None, min_time_s=None, early_exit=0.97)'
analyze runs/monday/reports
told
check "a folder of reports: the model's folder" prints "ceiling-scout measure runs/monday/ops.json -o runs/monday --device"
cd runs
analyze monday
told
check "from elsewhere: as it is named there" prints "ceiling-scout measure monday/ops.json -o monday --device"
cd monday
analyze .
told
check "from within" prints "ceiling-scout measure ./ops.json -o . --device"
rm -f stdout.txt stderr.txt ../stdout.txt ../stderr.txt
cd ../..

day="runs/it's tuesday"
set_run "$day" 'run["wide"] = 3; run["started"] = "2026-11-23T08:00:00Z"'
cp -r "$day" runs/wednesday
sed -i 's/sustained-model-graph/burst-cold-direct/' runs/wednesday/*.json runs/wednesday/*/*.json
analyze runs/wednesday
told
check "wide: twice the budget" prints "--regime burst --cache cold --launch direct --budget 200 narrows the intervals of 3 operations"
check "another regime before: not compared" test "$(grep -c 'ceiling-scout compare' stdout.txt)" = 0
analyze "$day"
told
check "one before: compare" prints "ceiling-scout compare runs/monday 'runs/it'\''s tuesday' what became slower or faster since the run before"
sed -n '/^     ceiling-scout [ec]/{p;:a;/\\$/{n;p;ba}}' stdout.txt >typed.sh
check "two of analyze" test "$(grep -c '^     ceiling-scout' typed.sh)" = 2
run env PATH="$(dirname "$ANALYZE"):$PATH" bash -e typed.sh
check "a shell takes them" test "$EXIT" = 0 -a -n "$STDOUT"
analyze "$day" -o written
for file in summary.txt summary.md report.html; do
    check "$file has it" test "$(sed "s/&#39;/'/g" "written/$file" | grep -c "ceiling-scout compare runs/monday 'runs/it'")" = 1
done
long="runs/it's a name with more words than a line has room for: it's kept whole, or else a shell finds another folder"
cp -r "$day" "$long"
analyze "$long"
sed -n '/^     ceiling-scout explain/{p;:a;/\\$/{n;p;ba}}' stdout.txt >typed.sh
run env PATH="$(dirname "$ANALYZE"):$PATH" bash -e typed.sh
check "a long name with an apostrophe: a shell takes it" test "$EXIT" = 0 -a -n "$STDOUT"
rm -r "$long"
analyze runs/monday
check "not with a later one" test "$(grep -c 'ceiling-scout compare' stdout.txt)" = 0
analyze runs/monday "$day"
told
check "two folders: only what is of one operation" prints "next: ceiling-scout explain runs/monday elementwise_"
check "two folders: no run" test "$(grep -c "ceiling-scout measure" stdout.txt)" = 0

# ---- whatever files say, no shell does more than what stands there ----

python3 "$MADE" nasty hostile
rm -f nasty/reports/g*.json nasty/reports/a*.json
# shellcheck disable=SC2016 # nothing of it is to run
set_run nasty 'run.update(state="interrupted", options={"operations": "$(touch pwned); x", "device": "`touch pwned`;touch pwned", "only": "--no-cache"})'
# shellcheck disable=SC2016
: >'$(touch pwned); x'
analyze nasty
sed -n '/^next:$/,$p' stdout.txt | sed -n '/^     [^ ]/{p;:a;/\\$/{n;p;ba}}' >typed.sh
check "hostile: no operation of a name that cannot be typed" test "$(grep -c '^     [^ ]' typed.sh)" = 1
# shellcheck disable=SC2016
printf '#!/bin/sh\nfor word; do printf "[%%s]" "$word"; done\n' >ceiling-scout
chmod +x ceiling-scout
run env PATH="$PWD:$PATH" bash typed.sh
# shellcheck disable=SC2016
check "hostile: words are words" prints '[measure][$(touch pwned); x][-o][nasty][--device][`touch pwned`;touch pwned][--resume]'
check "hostile: nothing ran" absent pwned
finish

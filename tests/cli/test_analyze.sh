#!/usr/bin/env bash
# analyze: the summary of reports from the scripted device, whose figures are the same every time; what is refused.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
source "$ROOT/tests/cli/analyze.sh"
cat >block.json <<'END'
{"qkv": {"op": "gemm", "shape": [64, 96, 96]},
 "up": {"op": "gemm", "shape": [64, 96, 32]},
 "out": {"op": "gemm", "shape": [4, 64, 64]},
 "norm": {"op": "layernorm", "shape": [64]}}
END
scripted block.json --precision fp32 -o block -q
check "measured: exit 1, for one kind has no candidates" exits 1
cp -r block kept

# ---- the summary ----

analyze block
check "text: exit 1, for one has no baseline" exits 1
check "text: whose it is" prints "block · Scripted One · sustained-model-graph"
check "text: the model's time" prints "with what is proven"
check "text: what to do first" prints "   1 qkv"
check "text: a sentence of advice" prints "Use scripted_blas algo=1: proven to take"
check "text: what is not in it" prints "1 SKIPPED (no_candidate): norm"
check "text: nothing is said elsewhere" test -z "$STDERR"
cp stdout.txt first.txt
analyze block/
check "again: the same bytes" same stdout.txt first.txt
check "the reports stay as they are" diff -r block kept
analyze block --top 1
check "--top: the rest is counted" prints "2 more"
analyze block/reports
check "a folder of reports: the same" same stdout.txt first.txt
(cd block && "$ANALYZE" . >../here.txt) || true
sed -i 's/explain \. /explain block /' here.txt
check "the folder one is in: the same, but for what to type" same here.txt first.txt

# ---- files ----

analyze block -o block
check "-o: exit 1" exits 1
check "-o: nothing is printed" silent
for file in summary.txt summary.json; do check "-o: $file" present "block/$file"; done
check "-o: the text is the one that is printed" same block/summary.txt first.txt
check "-o: fits" fits_schema block/summary.json
cp block/summary.json first.json
analyze block -o block --format json
check "-o --format json: the same bytes" same block/summary.json first.json
analyze block --format json
check "--format json: the same bytes" same stdout.txt first.json
analyze block -o new/folder --format text
check "-o: makes the folder" present new/folder/summary.txt
check "-o --format text: only that" test "$(find new -type f | wc -l)" = 1
if command -v python3 >/dev/null; then
    check "shares add up" test "$(field first.json 'abs(sum(o["share"] for o in r["groups"][0]["outcomes"].values()) - 1) < 1e-9')" = True
    check "the model's time is run.json's" test "$(python3 -c 'import json
t = json.load(open("block/run.json"))["totals"]; g = json.load(open("first.json"))["groups"][0]["totals"]
print(abs(t["model_us"] / g["model_us"] - 1) < 1e-12, t["missing"] == g["without_baseline"])')" = "True True"
    check "verdicts are the reports'" test "$(python3 -c 'import json
rows = json.load(open("first.json"))["groups"][0]["operations"]
reports = [json.load(open("block/reports/" + row["operation"] + ".json")) for row in rows]
print(all(row[k] == report[k] for row, report in zip(rows, reports) for k in ("priority", "approach", "borderline", "recommendation")))')" = True
    check "what the issue reads" test "$(python3 -c 'import glob, json
for path in glob.glob("block/reports/*.json"):
    r = json.load(open(path))
    print(r["priority"] == "HIGH", r["approach"] == "NONE", r["operation"], r["shape"], r["baseline_tflops"], r["ceiling_tflops"])' | wc -l)" = 4
fi

# ---- thresholds ----

analyze block --high-proven 1 --high-potential 1 --format json
check "thresholds: nothing is HIGH" test "$(grep -c '"priority": "HIGH"' stdout.txt)" = 0
check "thresholds: the reports say otherwise" test "$(grep -c '"HIGH"' block/reports/qkv.json)" = 1
analyze block --ceiling 0.1 --margin 0.5
check "thresholds: reports that judge otherwise are counted" prints "hold another verdict"
analyze_refused "a percentage" 2 block --ceiling 90
analyze_refused "not a number" 2 block --margin nan
analyze_refused "HIGH below MEDIUM" 2 block --high-proven 0.001
check "HIGH below MEDIUM: is told" says "--medium-proven 0.01"

# ---- what cannot be ----

analyze_refused "no folder" 2
analyze_refused "a folder that is not there" 3 nothing
analyze_refused "a file" 3 block.json
analyze_refused "an unknown format" 2 block --format yaml
check "an unknown format: those that are known" says "text, json"
analyze_refused "several formats and no folder" 2 block --format text,json
analyze_refused "the same folder twice" 2 block ./block
mkdir empty
analyze_refused "an empty folder" 3 empty
check "an empty folder: what to do" says "measure first: ceiling-scout measure OPS.json -o empty"
analyze_refused "a folder that cannot be made" 4 block -o block.json/x
analyze block -o /dev/null
check "a device as the folder: exit 4" exits 4
if [[ -e /dev/full ]]; then
    run bash -c '"$1" block >/dev/full' - "$ANALYZE"
    check "a full disk: exit 4" exits 4
    check "a full disk: one line" one_line
fi
run bash -c 'ulimit -f 8; exec "$1" block -o limited' - "$ANALYZE"
check "a limit on the size of files: exit 4" exits 4
check "a limit on the size of files: one line" one_line
check "a limit on the size of files: which file" says "limited/"
check "a limit on the size of files: nothing half written" test -z "$(find limited -name '*.part')"
analyze --help
check "--help: exit 0" exits 0
check "--help: the commands" prints "analyze compare"
check "--help: exit codes" prints "exit codes"

# ---- what stands beside reports ----

cp -r block odd
echo '{"schema": "ceiling-scout/report/1", "opera' >odd/reports/half.json
echo '{"hello": 1}' >odd/reports/foreign.json
mkfifo odd/reports/pipe.json
ln -s /etc/passwd odd/reports/link.json
sed 's/"count": 1,/"count": NaN,/' block/reports/qkv.json >odd/reports/nan.json
sed 's/"baseline_time_us": /&-/' block/reports/qkv.json >odd/reports/negative.json
cp block/reports/qkv.json odd/reports/twice.json
analyze odd
check "odd files: exit 1" exits 1
check "odd files: named" prints "7 files left out"
for name in half foreign pipe link nan negative twice; do check "odd files: $name" prints "odd/reports/$name.json: "; done
check "odd files: the rest is as before" test "$(grep -c 'a run (3 operations' stdout.txt)" = 1
analyze odd --format json
check "odd files: said elsewhere where text is not printed" test "$(grep -c 'left out: ' stderr.txt)" = 7
cp stdout.txt odd.json
check "odd files: in the file too" fits_schema odd.json

mkdir -p broken/reports
for k in a b c d e f g h i j k l; do echo "{" >"broken/reports/$k.json"; done
for command in "" dispatch explain compare; do
    case $command in
        '') analyze broken ;;
        dispatch) analyze dispatch broken -o broken.json ;;
        explain) analyze explain broken gemm ;;
        compare) analyze compare block broken ;;
    esac
    check "nothing can be read $command: exit 3" exits 3
    check "nothing can be read $command: nothing on stdout" test -z "$STDOUT"
    check "nothing can be read $command: the first ten are named" test "$(grep -c '^analyze: left out: broken/reports/[a-j].json: line 2' stderr.txt)" = 10
    check "nothing can be read $command: how many more" says "left out: 2 more files"
    check "nothing can be read $command: the last line" test "$(tail -n 1 stderr.txt)" = \
        "analyze: broken: no report can be read, 12 files were left out; measure again: ceiling-scout measure OPS.json -o broken"
done
check "nothing can be read: no table" absent broken.json

# ---- several ----

scripted block.json --precision fp32 -o burst -q --regime burst
analyze_refused "two regimes" 3 block burst
check "two regimes: which" says "burst"
check "two regimes: what to do" says "--group"
analyze block burst --group --format json
check "--group: both" test "$(grep -c '"regime": ' stdout.txt)" = 2
cp stdout.txt grouped.json
check "--group: fits" fits_schema grouped.json
analyze block burst --each --format json
check "--each: a group for each folder" test "$(grep -c '"regime": ' stdout.txt)" = 2
cp -r block other
analyze block other --format json
check "two folders: one model" test "$(grep -c '"regime": ' stdout.txt)" = 1
analyze block other --each --format json
check "two folders, --each: two models" test "$(grep -c '"model": "\(block\|other\)"' stdout.txt)" = 2
rm -r other
cp -r kept other
analyze block other
check "two models of one device: as one" prints "block + other"
check "two models of one device: every operation as often as in both" prints "(3 operations in 6 places)"
finish

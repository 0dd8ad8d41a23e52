#!/usr/bin/env bash
# analyze explain: the whole reasoning, of whatever a folder holds; ids that are unknown or not unique.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/analyze.sh"

python3 "$MADE" plain
python3 "$MADE" nasty hostile

explain() { # what it says without its line breaks
    analyze explain "$@"
    STDOUT=$(tr -s ' \n' ' ' <stdout.txt)
}

explain --help
check "--help: exit 0" exits 0
check "--help: the usage" prints "analyze explain DIR ID"
analyze_refused "no folder" 2 explain
analyze_refused "no id" 2 explain plain
analyze_refused "unknown option" 2 explain plain gemm_proven --frobnicate
analyze_refused "thresholds that contradict each other" 2 explain plain gemm_proven --high-proven 0.001
analyze_refused "no such folder" 3 explain nowhere gemm_proven
analyze_refused "no such operation" 2 explain plain gemm_prooven
check "the nearest is named" says "gemm_proven"
analyze_refused "several" 2 explain plain gemm
check "they are counted" says "6 operations begin with 'gemm'"
analyze_refused "an id of controls" 2 explain plain $'\033[2J\nx'

explain plain gemm_prov
check "a unique start: exit 0" exits 0
check "the verdict" prints "MEDIUM · LIBRARY_TUNE"
check "the ceiling's shape and clock" prints "at 8192x8192x16384, at 1432 MHz"
check "the pair that decided" prints "so it saves 10.0 ± 0.5 %"
check "why not another" prints "SKIPPED outraced: 1"
check "the rule" prints "yes proven the best saves"
check "what would change it: HIGH" prints "would be a proven"
check "until when it is proven" prints "its gain would not be proven: 90.00 us now"

explain plain gemm_near
check "near: borderline" prints "borderline"
check "near: the rule" prints "yes at the ceiling"
check "near: how near" prints "0.30 points below: open, between "
check "near: what would flip it" prints "That takes a ceiling below 90.00 us"
explain plain gemm_near --ceiling 0.8
check "a threshold of one's own" prints "the whole interval must reach 80.0 %"
explain plain gemm_rival
check "a rival: how far it is" prints "other v=1, would need 0.5 % less time"
explain plain move_launch
check "launch: no kernel helps" prints "a faster kernel changes no priority"
explain plain norm_residual
check "a fusion" prints "fusion norm+residual: 2 kernels become 1"
explain plain conv_missing
check "no baseline: exit 0" exits 0
check "no baseline: why" prints "no library here does that"
explain plain/reports conv_skipped
check "a folder of reports does" exits 0
python3 - <<'END'
import glob, json
for name in glob.glob("plain/reports/gemm_near.json"):
    report = json.load(open(name))
    report["regime"] = "burst-cold-graph"
    json.dump(report, open("plain/reports/burst.json", "w"))
END
explain plain gemm_near
check "two regimes: the one" prints "sustained-model-graph"
check "two regimes: and the other" prints "burst-cold-graph"
rm plain/run.json
explain plain gemm_proven
check "without run.json: said" prints "There is no run.json"

# Every one of them, hostile or not: it ends well, and nothing reaches a terminal that could drive it.
count=0
while IFS= read -r -d '' id; do
    explain --top 1 -- nasty "$id"
    check "explain of $(printf %q "${id:0:60}")" exits 1
    check "a file was left out, it says" says "1 file was left out of the model's time; analyze nasty names them"
    if LC_ALL=C grep -q $'[\x01-\x09\x0b-\x1f\x7f]' stdout.txt; then check "controls in explain of $(printf %q "${id:0:40}")" false; fi
    count=$((count + 1))
done < <(python3 -c '
import glob, json, sys
for name in sorted(glob.glob("nasty/*/*.json")):
    if not name.endswith("broken.json"):
        sys.stdout.write(json.load(open(name, encoding="utf-8"))["operation"] + "\0")')
explain "$ROOT/tests/golden/reports/mlp_sparse" gemm_4096x1024x1024_fp16_ae44557e79_block64_3
check "sparse: faster than the ceiling by right" prints "of its ceiling, which counts the zeros that the best skips."

check "all were asked" test $count -gt 50
check "nothing that was named like a command ran" absent pwned
explain "$ROOT/tests/golden/reports/bert_base@b8_s128" attention
check "an attention: what a head takes" prints "per head 0.083 us of 96 heads"
finish

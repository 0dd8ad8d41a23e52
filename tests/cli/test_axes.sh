#!/usr/bin/env bash
# Several shapes at once: ranges in --shape, and --axis. A report for each, a table with bars, CSV, and the page.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
ANALYZE=${ANALYZE:-$(dirname "$EXTRACT_OPS")/analyze}

scripted --op gemm --shape 1..64:x4,32,48 --axis K=32,48,64 -o sweep
check "12 shapes: exit 0" exits 0
check "12 shapes: a report for each" test "$(find sweep/reports -name '*.json' | wc -l)" = 12
check "12 shapes: a line for each, in their order" test "$(grep -oE '^ *[0-9]+ +[0-9]+ ' stdout.txt | tr -s ' \n' ' ')" = \
    " 1 32 1 48 1 64 4 32 4 48 4 64 16 32 16 48 16 64 64 32 64 48 64 64 "
check "12 shapes: the axes are the head" grep -qE '^ *M +K +time, us +TFLOP/s +TB/s +best +of its ceiling$' stdout.txt
check "12 shapes: bars, as long as the percent beside them" python3 - stdout.txt <<'END'
import re, sys
rows = re.findall(r"([0-9.]+) %  ([█▏▎▍▌▋▊▉]+)$", open(sys.argv[1]).read(), re.M)
length = lambda bar: sum(1 if c == "█" else "▏▎▍▌▋▊▉".index(c) / 8 + 0.125 for c in bar)
sys.exit(not (len(rows) == 12 and all(abs(length(bar) * 5 - min(float(share), 100)) < 0.4 for share, bar in rows)))
END
check "12 shapes: run.json has them" test "$(field sweep/run.json '[p["at"] for p in r["along"]["points"]][4]')" = "['4', '48']"
check "12 shapes: and what is told of them is in their reports" python3 - sweep <<'END'
import json, sys
along = json.load(open(sys.argv[1] + "/run.json"))["along"]
for p in along["points"]:
    r = json.load(open(f"{sys.argv[1]}/reports/{p['operation']}.json"))
    assert along["axes"] == ["M", "K"] and [str(r["shape"][0]), str(r["shape"][2])] == p["at"], p
    assert r["baseline_time_us"] == p["baseline_time_us"] and r["name"] == "gemm M=%s K=%s" % tuple(p["at"]), p
    assert abs(r["efficiency"] - p["efficiency"]) < 1e-9, p
END
check "12 shapes: the options too" test "$(field sweep/run.json 'r["options"]["shape"], r["options"]["axes"]')" = "('1..64:x4,32,48', ['K=32,48,64'])"
check "12 shapes: schemas" fits_schema sweep/run.json sweep/reports/*.json
run "$ANALYZE" sweep -o sweep
check "12 shapes: CSV has a row for each" test "$(grep -c '^[0-9]*,gemm_' sweep/summary.csv)" = 12
check "12 shapes: the page has a picture for each K" test "$(grep -o '<h3>over M, K = [0-9]*' sweep/report.html | wc -l)" = 3

scripted --op gemm --shape 8,32,48 -o alone
check "one shape: nothing of axes" test "$(field alone/run.json '"along" in r')" = False
scripted --op gemm --shape 8,32,48 --axis M=8 -o one
check "an axis of one value: the same operation" test "$(ls alone/reports)" = "$(ls one/reports)"
scripted --op gemm --shape 8,32,48 --axis precision=fp32,tf32 --axis batch=1,2 -o members
check "members of the short form are axes" test "$(find members/reports -name '*.json' | wc -l)" = 4
check "members of the short form: what they say" test "$(field members/run.json 'sorted(set(tuple(p["at"]) for p in r["along"]["points"]))[0]')" = "('fp32', '1')"
run "$SCOUT" --op attention --shape 1,2,256,64 --axis 'block_mask=local,0.25;global,0.5' --device cpu --budget 30 --no-cache -o masks
check "values with commas: semicolons between them" test "$(field masks/run.json '[p["at"][0] for p in r["along"]["points"]]')" = "['local,0.25', 'global,0.5']"
run "$ANALYZE" masks -o masks
check "block masks in the table" test "$(python3 -c 'import csv; print(sorted((r["block_mask"], float(r["block_density"]) > 0.2) for r in csv.DictReader(open("masks/summary.csv"))))')" = \
    "[('global,0.5,64', True), ('local,0.25,64', True)]"
check "block masks in summary.json" test "$(field masks/summary.json 'all(0.2 < o["block_density"] < 1 for o in r["groups"][0]["operations"])')" = True
scripted --op elementwise --shape 8,64 --axis what=relu,gelu -o whats
check "what a kind cannot be without is an axis" test "$(find whats/reports -name '*.json' | wc -l)" = 2
scripted --op conv --set input=1,4,8,8 --shape 1,4,6,6 --axis 'kernel=3,3;4,4' -o kernels
check "so are lists" test "$(find kernels/reports -name '*.json' | wc -l)" = 2
scripted --op gemm --shape 64..192:+64,32,48 -o steps
check "a step that adds" test "$(field steps/run.json '[p["at"][0] for p in r["along"]["points"]]')" = "['64', '128', '192']"
scripted --op gemm --shape 1..10,32,48 -o twice
check "twice as much each time, where no step is given" test "$(field twice/run.json '[p["at"][0] for p in r["along"]["points"]]')" = "['1', '2', '4', '8']"

for wrong in "1..4,8,8|M=1" "8,8,8|M=x" "8,8,8|Q=1" "8,8,8|M" "8,8,8|M=" "8,8,8|=1" "8,8,8|M=1,,2" "8,8,8|M=0,1" "1..9:+0,8,8|" \
    "1..9:x1,8,8|" "9..1,8,8|" "1..,8,8|" "0..8,8,8|" "1..9:2,8,8|" "1..1000:+1,8,8|" "1..200:+1,1..200:+1,8|" \
    "8,8,8|kv_len=8"; do
    words=(--op gemm --shape "${wrong%|*}")
    if [[ $wrong != *'|' ]]; then words+=(--axis "${wrong#*|}"); fi
    scout_refused "--shape ${wrong/|/ --axis }" 2 "${words[@]}" -o refused
done
scout_refused "a range in a short shape" 2 --op gemm --shape 1..4:x2 -o refused
check "a range in a short shape: named as typed" contains stderr.txt "--shape 1..4:x2: shape has 1 dimensions, but gemm has 3: M, N, K"
scout_refused "a step of once" 2 --op gemm --shape 1..64:x1,8,8 -o refused
check "a step of once: what it may be" contains stderr.txt "'1..64:x1': a step of :x is 2 or more"
scout_refused "a shape as an axis" 2 --op gemm --shape 8,8,8 --axis 'shape=8,8,8;16,16,16' -o refused
check "a shape as an axis: what to give" says "1..4096:x2 may stand in --shape"
scout_refused "no first value" 2 --op gemm --shape 8,8,8 --axis precision=,fp32 -o refused
check "no first value: what is wrong" says "a value is missing"
scout_refused "another case" 2 --op gemm --shape 8,8,8 --axis m=1,2 -o refused
check "another case: the names that there are" contains stderr.txt '"m" is not known; known are M, N, K, op'
scout_refused "a value twice" 2 --op gemm --shape 8,8,8 --axis M=8,4,08 -o refused
check "a value twice: which" contains stderr.txt "M has 08 twice"
scout_refused "axes into one report" 2 --op gemm --shape 1..4,8,8 -o refused.json
scout_refused "axes of a sparsity sweep" 2 --op gemm --shape 1..4,8,8 --sparsity-sweep -o refused
scout_refused "axes of a K sweep" 2 --op gemm --shape 1..4,8,8 --k-sweep -o refused
echo '{"a": {"op": "gemm", "shape": [8, 8, 8], "precision": "fp32"}}' >ops.json
scout_refused "axes of a file" 2 ops.json --axis M=1 -o refused
finish

#!/usr/bin/env bash
# scripts/profile_ncu.sh with an ncu that is made up: it runs the program as the real one would and writes a stored table.
source "$ROOT/tests/scout/lib.sh"
warm_up scripted:0
write_few_ops ops.json
scout ops.json -o out --device scripted:0
check "a measured folder: exit 0" exits 0
cat >ncu <<'END'
#!/usr/bin/env bash
# Knows all metrics but one; else the options up to the program, whose arguments follow.
if [[ $1 == --query-metrics ]]; then
    printf 'Device Scripted One\n%s   a metric\n' gpu__time_duration sm__warps_active sm__pipe_tensor_cycles_active \
        dram__throughput lts__throughput smsp__average_warps_issue_stalled_barrier_per_issue_active
    exit 0
fi
echo "$*" >>ncu_arguments.txt
while [[ $1 == --* ]]; do
    case $1 in
    --log-file) log=$2; shift 2 ;;
    --target-processes | --profile-from-start | --page | --print-units | --metrics) shift 2 ;;
    *) shift ;;
    esac
done
"$@" || exit
cp "$TABLE" "$log"
END
chmod +x ncu
export SCOUT NCU=$PWD/ncu TABLE=$ROOT/tests/counters/memory_raw.csv CEILING_SCOUT_SCRIPTED_PROFILE=$PWD/seen.txt
profile() { # ARGUMENTS…
    rm -f ncu_arguments.txt seen.txt
    run "$ROOT/scripts/profile_ncu.sh" "$@"
}
field() { python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"; }
counters='[(c["name"], c["variant"], c["counters"]["bottleneck"]) for c in r["candidates"] if "counters" in c]'
prints() { [[ $STDOUT == *"$1"* ]]; }

cp -r out before
profile ops.json row out "${DEVICE[@]}"
check "baseline and best: exit 0" exits 0
check "baseline and best: both were launched, and nothing else was seen" test "$(grep -cE '^3 launches, ' seen.txt)/$(wc -l <seen.txt)" = 2/2
check "baseline and best: two different ones" test "$(sort -u seen.txt | wc -l)" = 2
check "baseline and best: in the report" test "$(field out/reports/row.json "$counters")" = \
    "[('scripted_blas', 'algo=0', 'memory'), ('scripted_stream', '', 'memory')]"
check "baseline and best: a line each" test "$(grep -c ': memory: DRAM works at 75 % of its peak$' stdout.txt)" = 2
check "only metrics that this ncu has are asked for" grep -qE -- '--metrics [a-z_.,]*lts__throughput[a-z_.,]*barrier_per_issue_active.ratio ' ncu_arguments.txt
check "and no others" test -z "$(grep gmma ncu_arguments.txt)"
check "the rest of the report is as it was" test "$(field before/reports/row.json 'json.dumps(r)')" = \
    "$(field out/reports/row.json '[c.pop("counters", 0) for c in r["candidates"]] and json.dumps(r)')"
if [[ -x $ROOT/out/venv/bin/python ]]; then
    check "the report fits its schema" "$ROOT/out/venv/bin/python" -B "$ROOT/tests/cli/schema.py" "$ROOT/docs/schema" out/reports/row.json
else
    skip "schemas: $ROOT/out/venv/bin/python is not there"
fi
scout ops.json -o out --device scripted:0 --resume
check "a later run keeps the counters: exit 0" exits 0
check "a later run keeps the counters" test "$(field out/reports/row.json "len($counters)")" = 2
check "a later run shows nothing of another operation" test "$(field out/reports/square.json "len($counters)")" = 0

check "what ncu wrote is kept" cmp -s out/counters/row.best.csv "$TABLE"

# ---- the longest ----
cp ops.json before/ && rm -rf longest && cp -r before longest
profile --top 1 longest "${DEVICE[@]}"
check "--top 1: exit 0" exits 0
check "--top 1: the longest has counters" test "$(field longest/reports/square.json "len($counters)")" -gt 0
check "--top 1: no other one" test "$(field longest/reports/row.json "len($counters)")" = 0
check "--top 1: what ncu wrote is kept" test "$(find longest -name '*.csv' -path '*/counters/square.*' | wc -l)" = "$(find longest/counters -type f | wc -l)"
run "$(dirname "$SCOUT")/analyze" explain longest square
check "explain shows them" test "$(tr -s ' \n' ' ' <stdout.txt | grep -cE 'Nsight Compute on the baseline, scripted_blas algo=[0-9]+: memory: DRAM works at 75 % of its peak; .*DRAM 75 %')" = 1
profile --top 9 longest "${DEVICE[@]}"
check "--top 9: exit 0" exits 0
check "--top 9: what has counters is left" prints 'square: has its counters'
check "--top 9: the others get theirs" test "$(field longest/reports/row.json "len($counters)")" = 2
for top in 0 -1 x 100 ''; do
    profile --top "$top" longest
    check "--top ${top@Q}: exit 2" exits 2
done
profile --top 3 elsewhere
check "--top of no results: exit 3" exits 3
check "--top of no results: what to do" says 'measure it first'
rm -rf longest/counters && ln -s "$PWD/outside" longest/counters && mkdir outside
profile ops.json row longest "${DEVICE[@]}"
check "a link in the counters' place: exit 4" exits 4
check "a link in the counters' place: nothing is written through it" test -z "$(ls outside)"

# ---- a profile of a model, with its longest ----
bin=$(dirname "$SCOUT")
mkdir -p house/bin house/lib/ceiling-scout && cp "$bin"/{ceiling-scout,extract_ops,analyze} house/bin/
cp "$ROOT"/scripts/{profile,profile_ncu}.sh house/lib/ceiling-scout/
printf '#!/bin/sh\nexec %q --custom-kernel %q "$@"\n' "$SCOUT" "$SCRIPTED/device.so" >house/bin/scout_batch && chmod +x house/bin/scout_batch
model() { run house/bin/ceiling-scout profile "$ROOT/models/transformer_block.onnx" --seq 8 --device scripted:0 -o o "$@"; }
model --counters 2
folder=o/transformer_block@s8_scripted:0
check "--counters 2: as without" test "$EXIT" -le 1
check "--counters 2: two reports have them" test "$(grep -l '"counters": {' "$folder"/reports/*.json | wc -l)" = 2
check "--counters 2: the summary is behind them" test "$folder/summary.json" -nt "$(grep -l '"counters": {' "$folder"/reports/*.json | sed -n 1p)"
check "--counters 2: the page shows them" grep -q 'DRAM works at' "$folder/report.html"
model --counters 2
check "again: nothing is counted" test "$(grep -c 'has its counters' stdout.txt)" = 2
check "again: nothing is measured" prints 'reports is up to date'
NCU=$PWD/nothing model --counters 3
check "no ncu: exit 4" exits 4
check "no ncu: is said" says 'Nsight Compute (ncu) is not here'
check "no ncu: there is a summary" prints ' a run ('
run env PROFILE_MODEL=m.onnx PROFILE_COUNTERS=three house/lib/ceiling-scout/profile.sh house/bin/extract_ops
check "PROFILE=three: exit 2" exits 2
check "PROFILE=three: is refused" says 'say PROFILE=top3, or another number below 100; not three'

scout ops.json -o alone --device scripted:0 --only row --candidate scripted_blas --exhaustive
cp ops.json alone/ops.json
python3 - <<'END'
import json
r = json.load(open("alone/reports/row.json"))
r["best"], r["best_variant"] = r["baseline"], r["baseline_variant"]
json.dump(r, open("alone/reports/row.json", "w"), indent=2)
END
profile alone/ops.json row alone "${DEVICE[@]}"
check "no candidate beats the baseline: exit 0" exits 0
check "no candidate beats the baseline: it is launched alone" test "$(grep -c . seen.txt)" = 1

# ---- what goes wrong ----
NCU=$PWD/nothing profile ops.json row out "${DEVICE[@]}"
check "no ncu: exit 4" exits 4
check "no ncu: said" says "Nsight Compute (ncu) is not here"
TABLE=$ROOT/tests/counters/refused.txt profile ops.json row out "${DEVICE[@]}"
check "not permitted: exit 4" exits 4
check "not permitted: said" says "ERR_NVGPUCTRPERM"
echo "==WARNING== No kernels were profiled." >empty.txt
TABLE=$PWD/empty.txt profile ops.json row out "${DEVICE[@]}"
check "no kernel: exit 4" exits 4
check "no kernel: said" says "saw no kernel of the baseline"
profile ops.json row elsewhere "${DEVICE[@]}"
check "not measured: exit 3" exits 3
check "not measured: says how" says "measure it first"
profile ops.json
check "too few words: exit 2" exits 2
profile ops.json row out
check "without the plugin of its device: not 0" test "$EXIT" != 0
printf '"ID","Kernel Name","other"\n"0","k","1"\n' >other.csv
TABLE=$PWD/other.csv profile ops.json row out "${DEVICE[@]}"
check "other counters: exit 3" exits 3
check "other counters: said" says "none of the counters"
check "other counters: the report stays" test "$(field out/reports/row.json "len($counters)")" = 2

# ---- the program's own half ----
scout ops.json -o out --only row --run-once scripted_blas:algo=2
check "any variant can be launched: exit 0" exits 0
scout ops.json -o out --only row --run-once scripted_blas:algo=9
check "a variant that is not there: exit 2" exits 2
scout ops.json -o out --only row --run-once scripted_absent
check "one that does not do it: exit 1" exits 1
CEILING_SCOUT_FAULTS=crash scout "${FAULTS[@]}" ops.json -o out --only row --run-once fault_crash
check "one that crashes: exit 1" exits 1
check "one that crashes: said" says "CRASHED"
scout ops.json -o out --run-once best
check "--run-once of no operation: exit 2" exits 2
scout ops.json -o out --only row --counters best
check "--counters of no file: exit 2" exits 2
scout ops.json -o out --only row --counters best=nowhere.csv
check "--counters of a missing file: exit 3" exits 3
scout ops.json -o out --only row --counters "nobody=$TABLE"
check "--counters of an unknown candidate: exit 2" exits 2
scout ops.json -o out --only gemm --counters "best=$TABLE"
check "--counters of a kind: exit 2" exits 2
finish

#!/usr/bin/env bash
# Fusions in a whole run: measured after the operations, kept, cached, left out, interrupted, and told.
source "$ROOT/tests/scout/lib.sh"

# Two products that read the same rows, one that was recognised from two, and what cannot be told as one operation.
cat >ops.json <<'END'
{"schema": "ceiling-scout/ops/1", "model": {"name": "m"}, "ops": [
 {"id": "q", "op": "gemm", "shape": [32, 64, 48], "layout": "nn", "dtype": "fp32", "weight_dtype": "fp32",
  "weight_side": "b", "count": 2, "macs": 98304, "flops": 196608, "bytes_read": 18432, "bytes_written": 8192},
 {"id": "big", "op": "gemm", "shape": [32, 96, 80], "layout": "nn", "dtype": "fp32", "count": 1, "macs": 245760,
  "flops": 491520, "bytes_read": 40960, "bytes_written": 12288, "parts": ["left", "right"]},
 {"id": "left", "op": "gemm", "shape": [32, 80, 80], "layout": "nn", "dtype": "fp32", "count": 0, "macs": 204800,
  "flops": 409600, "bytes_read": 35840, "bytes_written": 10240},
 {"id": "right", "op": "gemm", "shape": [32, 96, 80], "layout": "tn", "dtype": "fp32", "count": 0, "macs": 245760,
  "flops": 491520, "bytes_read": 40960, "bytes_written": 12288}],
 "fusions": [
 {"pattern": "gemm+gemm shared input", "ops": ["q", "q", "q"], "count": 2, "selected": 2, "saved_bytes": 12288},
 {"pattern": "attention", "ops": ["left", "right"], "count": 1, "selected": 1, "saved_bytes": 100},
 {"pattern": "gemm+relu", "ops": ["q", "big"], "count": 1, "selected": 0, "saved_bytes": 100}]}
END
says_of() { # DIR PATTERN EXPRESSION   of the fusion's report r and its member f
    python3 -c '
import json, pathlib, sys
folder, pattern, expression = sys.argv[1:]
for path in pathlib.Path(folder, "fusions").glob("*.json"):
    r = json.loads(path.read_text())
    f = r["fusion"]
    if f["pattern"] == pattern:
        sys.exit(0 if eval(expression) else print(json.dumps(f)) or 1)
sys.exit("no fusion of this pattern")' "$@"
}
count_fusions() { find "$1/fusions" -name '*.json' 2>/dev/null | wc -l; }
wide="gemm+gemm shared input"

scout ops.json -o whole --device scripted:0
check "a run with fusions: exit 0" exits 0
check "every fusion has a report" test "$(count_fusions whole)" = 3
check "reports are operations' alone" test "$(report_count whole)" = 4
check "parts are the baseline" says_of whole "$wide" 'r["baseline"] == "parts" and (r["shape"], r["batch"]) == ([32, 64, 48], 3) and f["how"] == "sequence"'
check "the parts run as they were found to be best" says_of whole "$wide" \
    '[p["variant"] for p in [c for c in r["candidates"] if c["name"] == "parts"][0]["config"]["parts"]] == ["algo=1"] * 3'
check "a faster one is worth it" says_of whole "$wide" \
    'f["worth"] == "yes" and r["approach"] == "FUSION" and f["speedup"] > 1.2 and abs(f["saved_us"] / (2 * f["parts_time_us"] * (1 - 1 / f["speedup"])) - 1) < 1e-6'
check "kernels are counted" says_of whole "$wide" 'f["kernels_parts"] == 3 and f["kernels_fused"] == 1'
check "a recognised one is held against the sum of its parts" says_of whole attention \
    'f["how"] == "sum" and f["recognised"] == "big" and f["worth"] == "yes" and 1.7 < f["speedup"] < 2.1'
passes_of() { python3 -c 'import json, sys; print(*(json.load(open(p))["passes"] for p in sys.argv[1:]))' "$@"; }
check "parts of a sum that is decided have no further pass" test "$(passes_of whole/reports/right.json)" = 1
check "what cannot be told says why" says_of whole gemm+relu 'r["status"] == "SKIPPED" and f["why"]["code"] == "epilogue"'
check "the table shows them" grep -qE 'gemm\+gemm shared input 32x64x48 +2 .* 3 > 1 yes' stdout.txt
check "it says what a sum is" grep -qF 'each measured alone' stdout.txt
check "and what is not compared" grep -qE '1 gemm\+relu not compared \(epilogue\)' stdout.txt
check "run.json lists them" python3 -c '
import json
run = json.load(open("whole/run.json"))
assert [f["source"] for f in run["fusions"]] == ["measured", "measured", "skipped"], run["fusions"]
assert run["options"]["fusions"] is True and run["totals"]["missing"] == 0'

# ---- a disturbed device ----
touch noise
CEILING_SCOUT_SCRIPTED_DISTURBED=$PWD/noise scout ops.json -o restless --device scripted:0 --no-cache --budget 60
rm noise
check "a restless machine: fusions have figures too" says_of restless "$wide" 'r["baseline"] == "parts" and r["baseline_time_us"] > 0'
check "a restless machine: fusions do not go on for their times" says_of restless "$wide" \
    '"time" in r["undecided"] and r["passes"] <= 13'
check "a restless machine: exit 0" exits 0

# ---- what is known already ----
scout ops.json -o whole --device scripted:0 --resume --no-cache
check "--resume keeps them" python3 -c '
import json
assert [f["source"] for f in json.load(open("whole/run.json"))["fusions"]] == ["kept", "kept", "skipped"]'
scout ops.json -o again --device scripted:0
check "the cache knows them" python3 -c '
import json
assert [f["source"] for f in json.load(open("again/run.json"))["fusions"]] == ["cached", "cached", "skipped"]'

# ---- what is asked for ----
scout ops.json -o none --device scripted:0 --no-fusions
check "--no-fusions: there are none" test "$(count_fusions none)" = 0
check "--no-fusions: nothing is said" test "$(grep -c 'gemm+gemm' stdout.txt)" = 0
check "--no-fusions: parts are not measured" grep -q '"not_asked"' none/reports/left.json
scout ops.json -o whole --device scripted:0 --no-fusions
check "--no-fusions leaves those that are there" test "$(count_fusions whole)" = 3
scout ops.json -o only --device scripted:0 --only "$wide" --no-cache
check "--only PATTERN: exit 0" exits 0
check "--only PATTERN: that one alone" test "$(count_fusions only)" = 1
check "--only PATTERN: parts that were not measured run by default" says_of only "$wide" \
    '[c for c in r["candidates"] if c["name"] == "parts"][0]["config"]["parts"][0]["variant"] == "algo=0"'
scout ops.json -o only --device scripted:0 --only fusion
check "--only fusion: all of them" test "$(count_fusions only)" = 3
scout ops.json -o one.json --device scripted:0 --only "$wide"
check "--only PATTERN -o FILE: the one report" grep -q '"worth"' one.json
scout ops.json -o only --device scripted:0 --only q
check "--only OPERATION: no fusions" test "$(grep -c '"source": "left"' only/run.json)" = 6
scout ops.json -o only --device scripted:0 --only nonsense
check "--only of nothing: usage" exits 2
scout --op gemm --shape 16,16,16 --precision fp32 --no-fusions
check "--no-fusions needs operations" exits 2

# ---- what is gone ----
sed 's/"count": 2, "selected": 2/"count": 1, "selected": 1/; /"pattern": "attention"/d' ops.json >fewer.json
scout fewer.json -o whole --device scripted:0
check "reports of fusions that are gone are removed" test "$(count_fusions whole)" = 2

# ---- stopped, and gone on with ----
export CEILING_SCOUT_SCRIPTED_SLOW_US=1000
"$SCOUT" "${DEVICE[@]}" ops.json -o cut --device scripted:0 --no-cache >cut.txt 2>&1 </dev/null &
pid=$!
wait_for_report cut
kill -TERM "$pid"
code=0
wait "$pid" || code=$?
unset CEILING_SCOUT_SCRIPTED_SLOW_US
check "interrupted: exit 1" test "$code" = 1
scout ops.json -o cut --device scripted:0 --no-cache --resume
check "resumed: exit 0" exits 0
check "resumed: as uninterrupted" says_of cut "$wide" 'f["worth"] == "yes" and f["kernels_parts"] == 3'
check "resumed: all of them" test "$(count_fusions cut)" = 3

# ---- little time ----
export CEILING_SCOUT_SCRIPTED_SLOW_US=20000
scout ops.json -o short --device scripted:0 --no-cache --budget 0.5
unset CEILING_SCOUT_SCRIPTED_SLOW_US
check "no time is left for them: parts that only they need are as they were" grep -q '"not_asked"' short/reports/left.json
check "no time is left for them: they say so" says_of short attention 'f["why"]["code"] in ("budget", "not_asked")'

# ---- a file that is wrong ----
sed 's/"ops": \["left", "right"\]/"ops": ["left", "absent"]/' ops.json >wrong.json
scout wrong.json -o wrong --device scripted:0
check "an operation that is not there: exit 3" exits 3
check "an operation that is not there: it is named" says "absent"
finish

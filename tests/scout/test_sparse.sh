#!/usr/bin/env bash
# A model whose one product stands for four weights that are not alike: each becomes a report of its own, recognised from
# the model's numbers, and every candidate that can leave the zeros out is checked and measured, on this machine's CPU.
source "$ROOT/tests/scout/lib.sh"

# ---- made-up weights on the scripted device, whose sparse product is worth it from three quarters of zeros on ----
says_out() { grep -qE "$1" stdout.txt; }
sparse() { scout --device scripted:0 --op gemm --shape 64,256,256 --precision fp32 --no-cache "$@"; }
sparse --sparsity 0.6 -o behind.json
check "behind the dense one: both rates are told" grep -qE '^  sparse +scripted_sparse .* real, .* as if dense$' stdout.txt
check "behind the dense one: its row has its time and its ratio" python3 -c '
import json
row, = [r for r in json.load(open("behind.json"))["candidates"] if r["name"] == "scripted_sparse"]
raise SystemExit(not (row["status"] == "OK" and row["time_us"]["median"] > 0 and row["ratio"] > 0.99 and
          0 < 3.9 * row["tflops"] < row["dense_equivalent_tflops"]))'
sparse --sparsity 0.9 -o ahead.json
check "ahead of the ceiling of dense work: no ceiling is doubted for it" test "$(grep -c 'once more' stderr.txt)" = 0
check "ahead of the ceiling of dense work: it says why" says_out 'it counts the zeros that the best skips'
check "ahead of the ceiling of dense work: it is no fault" grep -qF '"above_ceiling": false' ahead.json
printf '{"one": {"op": "gemm", "shape": [64, 256, 256], "dtype": "fp32", "sparsity": 0.9}}\n' >one.json
scout --device scripted:0 one.json --no-cache -o one
check "ahead of the ceiling of dense work: so says the table" says_out 'at the ceilings .*, which count the skipped zeros'

# ---- a model ----
model=$(realpath -m "${MODELS_DIR:-$ROOT/../shared/models}")/mlp_sparse.onnx
extract=$(dirname "$SCOUT")/extract_ops
if [[ ! -e $model || ! -x $extract ]]; then
    skip "$model or $extract is not there"
    finish
    exit
fi
run "$extract" "$model" --batch 16 -o ops.json
check "the model is read" exits 0

run "$SCOUT" ops.json --device cpu --only gemm --no-cache --budget 15 --weight-threshold 0.01 -o out
check "measured: done, or some would not settle on a busy machine" test "$EXIT" -le 1
tells() { [[ $STDOUT == *"$1"* ]]; }
check "measured: a person is told how the zeros lie" tells "2:4 along "
check "measured: and what blocks would save and lose" tells "values below 0.01 in magnitude"
check "measured: four reports" test "$(find out/reports -name 'gemm_*.json' | wc -l)" = 4
run python3 - out/reports <<'PYTHON'
import glob, json, sys

SPARSE = {"UNSTRUCTURED": {"cpu_csr"}, "STRUCTURED_24": {"cpu_csr"}, "BLOCK_SPARSE": {"cpu_csr", "cpu_bsr"}, "DENSE": set()}
found = {}
for path in glob.glob(sys.argv[1] + "/gemm_*.json"):
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    found[report["pattern"]] = report
assert set(found) == set(SPARSE), f"patterns {sorted(found)}"
for pattern, report in found.items():
    rows = report["candidates"]
    assert report["count"] == 1, f"{pattern}: count {report['count']}"
    bad = [(row["name"], row["status"]) for row in rows if row["status"] in ("WRONG", "CRASHED", "ERROR", "TIMEOUT")]
    assert not bad, f"{pattern}: {bad}"
    weight = report["weight"]
    assert weight["source"] == "file" and weight["convert_to_bsr"]["threshold"] == 0.01, f"{pattern}: {weight}"
    assert weight["pattern"] == pattern, f"{pattern}: its weight is {weight['pattern']}"
    able = {row["name"] for row in rows if row["status"] != "UNSUPPORTED" and row["name"] in ("cpu_csr", "cpu_bsr")}
    assert able == SPARSE[pattern], f"{pattern}: {able} can leave its zeros out"
    checked = [row for row in rows if row["name"] in able and "error" in row]
    assert checked or pattern == "DENSE", f"{pattern}: none of {able} was checked and measured"
assert 0.89 < found["UNSTRUCTURED"]["sparsity"] < 0.91 and found["STRUCTURED_24"]["sparsity"] == 0.5
assert found["BLOCK_SPARSE"]["weight"]["block"] == 64 and found["DENSE"]["sparsity"] == 0
PYTHON
check "four reports: recognised, and each measured with what can leave its zeros out" exits 0
finish

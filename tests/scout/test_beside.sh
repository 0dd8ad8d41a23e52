#!/usr/bin/env bash
# A short budget on this machine's CPU, and what a run says of other programs that keep it busy.
source "$ROOT/tests/scout/lib.sh"

# ---- a budget ----
CEILING_SCOUT_PATIENCE=1 run "$SCOUT" --device cpu --op gemm --shape 64,256,256 --precision fp32 --budget 6 -o cpu \
    --cache-dir cpu-cache
check "6 s with nothing cached: ceilings leave time for the operation" test "$(grep -c '"measured": 1' cpu/run.json)" = 1

# ---- beside other work ----
(while :; do :; done) &
loop=$!
run "$SCOUT" --device cpu --op gemm --shape 64,256,260 --precision fp32 --budget 6 -o beside --cache-dir cpu-cache
kill "$loop"
check "other work: said at the start, by name" grep -qE '[0-9.]+ of [0-9]+ cores? (is|are) busy: .*bash' stderr.txt
dropped=$(python3 -c 'import json; r = json.load(open("beside/run.json")); print(r["blocks"]["dropped"] if "bash" in r["beside"]["programs"] else -1)')
check "other work: in run.json" test "$dropped" -ge 0
check "other work: dropped blocks are told at the end" test "$(grep -cE "^$dropped of [0-9]+ blocks .* dropped$" stdout.txt)" = "$((dropped > 0))"

# ---- without a budget ----
cat >two.json <<'END'
{"relu": {"op": "elementwise", "what": "relu", "shape": [1, 4096], "dtype": "fp32"},
 "norm": {"op": "layernorm", "shape": [16, 256], "dtype": "fp32"}}
END
run "$SCOUT" --device cpu two.json -o two --cache-dir cpu-cache
check "what is decided after few passes goes on: 13 at least" python3 "$ROOT/tests/scout/reports.py" passes two 13 26
check "small work has one thread" \
    test "$(grep -l '"baseline_variant": "threads=one' two/reports/*.json | wc -l)" = "$(($(nproc) > 1 ? 2 : 0))"
finish

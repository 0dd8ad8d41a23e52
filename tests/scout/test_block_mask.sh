#!/usr/bin/env bash
# Attention under block masks on this machine's CPU: the dense baseline beside the kernel that leaves blocks out, each
# checked, counted by the blocks that are seen, and never taken for an attention without such a mask.
source "$ROOT/tests/scout/lib.sh"

analyze=$(dirname "$SCOUT")/analyze
cat >ops.json <<'END'
{"dense": {"op": "attention", "shape": [1, 2, 1024, 64]},
 "local": {"op": "attention", "shape": [1, 2, 1024, 64], "block_mask": "local,0.25"},
 "sparse": {"op": "attention", "shape": [1, 2, 1024, 64], "block_mask": "random,0.1,64,3", "kv_heads": 1},
 "dense_causal": {"op": "attention", "shape": [1, 2, 1024, 64], "causal": true},
 "causal": {"op": "attention", "shape": [1, 2, 1024, 64], "causal": true, "block_mask": "global,0.3,128"}}
END
run "$SCOUT" ops.json --device cpu --budget 20 -o out
check "measured: done, or some would not settle on a busy machine" test "$EXIT" -le 1
run python3 - out/reports <<'PYTHON'
import json, sys

def read(name):
    with open(f"{sys.argv[1]}/{name}.json", encoding="utf-8") as file:
        return json.load(file)

dense, dense_causal = read("dense"), read("dense_causal")
assert dense["mask"] == "none" and "block_mask" not in dense, dense["mask"]
for name, mask, text, least, most in (("local", "blocks", "local,0.25,64", 0.15, 0.35), ("sparse", "blocks", "random,0.1,64,3", 0.09, 0.13),
                                      ("causal", "causal+blocks", "global,0.3,128", 0.2, 0.7)):
    report = read(name)
    rows = {row["name"]: row for row in report["candidates"] if row["status"] == "OK"}
    bad = [(row["name"], row["status"]) for row in report["candidates"] if row["status"] in ("WRONG", "CRASHED", "ERROR", "TIMEOUT")]
    assert not bad, f"{name}: {bad}"
    assert report["mask"] == mask and report["block_mask"] == text and f"block_mask={text}" in report["key"], report["key"]
    assert least < report["block_density"] < most, f"{name}: {report['block_density']}"
    whole = dense_causal if name == "causal" else dense
    assert report["flops"] < 0.75 * whole["flops"] and report["key"] != whole["key"], f"{name}: {report['flops']}"
    assert "attention_tiled" in rows and "error" in rows["attention_tiled"], f"{name}: {list(rows)}"
local = read("local")
dense_ran = any(row["name"] == "onednn_composed" and row["status"] == "OK" for row in local["candidates"])
assert not dense_ran or local["baseline"] == "onednn_composed", local["baseline"]
PYTHON
check "reports: dense beside block-sparse, both right, counted by their blocks" exits 0
run "$SCOUT" --device cpu --op attention --shape 1,2,1024,64 --set block_mask=local,0.25 --budget 10 -o one.json
check "a person is told the pattern and its density" grep -qE 'attention 1 x 2 x 1024 x 64 blocks, local blocks of 64: [0-9.]+ % of them seen' stdout.txt
run "$analyze" explain out local
check "explain tells it too" grep -qE '% of its blocks are seen' stdout.txt
run "$analyze" out --format html
check "and so does the page" grep -qE 'local,0.25,64: [0-9.]+ % of the blocks are seen' stdout.txt
run "$analyze" dispatch out -o table.json
check "a table has an entry for each of them" test "$(grep -o '"key": "attention' table.json | wc -l)" = 5
finish

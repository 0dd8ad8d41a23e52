#!/usr/bin/env bash
# Files beyond 2 GiB: read in full, their weights located and left alone. The files are holes and take no disk.
source "${ROOT:?}/tests/cli/lib.sh"

if ! command -v python3 >/dev/null; then
    skip "python3 is not installed: nothing to make the files with"
    finish
    exit
fi
python3 -B -c 'import sys
sys.path.insert(0, sys.argv[1])
import bench_models
bench_models.MADE["made_3gb"]("big.onnx")' "$ROOT/tests/bench"
# 400 MB of address space beyond the file's own: a program that loads it does not fit
run bash -c 'ulimit -v 3600000; exec "$@"' limited "$EXTRACT_OPS" big.onnx -o ops.json --batch 4 --quiet
check "3 GB: exit 0" exits 0
check "3 GB: ops.json" present ops.json
check "3 GB: the last weight's bytes lie where the file has them" python3 -c 'import json, os
weights = [w for op in json.load(open("ops.json"))["ops"] for w in op["weights"]]
assert len(weights) == 12, len(weights)
assert all(w["length"] == 8192 * 8192 * 4 for w in weights)
with open("big.onnx", "rb") as file:
    for w in weights:
        file.seek(w["offset"] - 16 - len(w["name"]))
        assert w["name"].encode() in file.read(16 + len(w["name"])), w
assert max(w["offset"] + w["length"] for w in weights) <= os.path.getsize("big.onnx")'
finish

#!/usr/bin/env bash
# Quantised sums and average pools on the CPU: each has a baseline, and every candidate that runs is right. How fast
# they are is not asked: the machine that runs this may be busy.
source "$ROOT/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"

cat >bytes.json <<'END'
{"sum": {"op": "elementwise", "what": "add", "shape": [1, 64, 56, 56], "dtype": "int8", "inputs": "tensor,tensor", "quant": "qdq"},
 "clipped": {"op": "elementwise", "what": "add", "shape": [1, 65, 7, 7], "dtype": "uint8", "inputs": "tensor,1x65x1x1", "quant": "qdq", "activation": "relu"},
 "product": {"op": "elementwise", "what": "mul", "shape": [17, 1001], "dtype": "uint8", "inputs": "tensor,vector", "quant": "qdq"},
 "global": {"op": "pool", "what": "average", "shape": [1, 512, 1, 1], "layout": "nchw", "input": [1, 512, 7, 7], "global": 1, "dtype": "int8", "quant": "qdq"},
 "windows": {"op": "pool", "what": "average", "shape": [2, 8, 8, 33], "layout": "nhwc", "input": [2, 15, 15, 33], "kernel": [3, 3], "stride": [2, 2], "pads": [1, 1, 1, 1], "dtype": "uint8", "quant": "qdq"}}
END

# At least that many quantised reports; what the budget left out says so, all else was verified.
judge() { # DIR LEAST
    python3 - "$@" <<'PYTHON'
import json, pathlib, sys
bad, seen = [], 0
for path in sorted(pathlib.Path(sys.argv[1], "reports").glob("*.json")):
    report = json.loads(path.read_text())
    if not report["key"].count("quant=qdq") or report["op"] not in ("elementwise", "pool"):
        continue
    seen += 1
    told = (report["reason"] or {}).get("code")
    rows = [row for row in report["candidates"] if row.get("error")]
    right = all(row["error"]["worst"] <= row["error"]["tolerance"] for row in rows)
    if told != "budget" and (report["baseline"] is None or not rows or not right or told in ("feature", "type")):
        bad.append(f"{path.name}: {report['baseline']} {report['reason']}")
print("\n".join(bad) or f"{seen} quantised")
sys.exit(bool(bad) or seen < int(sys.argv[2]))
PYTHON
}

scout bytes.json -o bytes --device cpu --regime burst --budget 12
check "by hand: done" test "$EXIT" -le 1
check "by hand: each has a baseline, and all are right" judge bytes 5
check "by hand: reports fit their schemas" fits_schema bytes/reports/*.json

real=$ROOT/../shared/models/resnet18_qdq.onnx
if [[ -e $real ]]; then
    run "$EXTRACT_OPS" "$real" -q -o model.json
    for kind in "elementwise 4" "pool 2"; do
        read -r name least <<<"$kind"
        scout model.json -o "$name" --device cpu --regime burst --only "$name" --no-fusions --budget 12
        check "resnet18_qdq, $name: done" test "$EXIT" -le 1
        check "resnet18_qdq, $name: each has a baseline, and all are right" judge "$name" "$least"
    done
else
    skip "resnet18_qdq is not there"
fi
finish

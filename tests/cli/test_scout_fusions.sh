#!/usr/bin/env bash
# Fusions of real models on the CPU: whatever the patterns, the parts in sequence and what does them at once are both
# right. How fast they are is not asked: the machine that runs this may be busy.
source "$ROOT/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"

models=("$ROOT/models/transformer_block.onnx" "$ROOT/models/small_conv.onnx")
real=$ROOT/../shared/models/bert_tiny_w.onnx
if [[ -e $real ]]; then models+=("$real"); else skip "bert_tiny_w is not there"; fi

# Every row that ran is right, and everything else says why.
judge() { # DIR
    python3 - "$1" <<'PYTHON'
import json, pathlib, sys
patterns, sequences, bad = set(), 0, []
for path in sorted(pathlib.Path(sys.argv[1], "fusions").glob("*.json")):
    report = json.loads(path.read_text())
    told = report["fusion"]
    for row in report["candidates"]:
        if row["status"] in ("WRONG", "CRASHED", "TIMEOUT"):
            bad.append(f"{path.name}: {row['name']} {row['variant']} {row['status']} {row['reason']['text']}")
        if row["name"] == "parts" and row.get("error"):
            sequences += 1
            patterns.add(told["pattern"])
    if "worth" not in told and not told["why"]["text"]:
        bad.append(f"{path.name}: neither worth nor why")
print("\n".join(bad) or f"{sequences} sequences of {sorted(patterns)}")
sys.exit(bool(bad) or sequences < 3)
PYTHON
}

for model in "${models[@]}"; do
    name=$(basename "$model" .onnx)
    run "$EXTRACT_OPS" "$model" --batch 1 --seq 32 -q -o "$name.json"
    if ((EXIT > 1)); then run "$EXTRACT_OPS" "$model" -q -o "$name.json"; fi
    scout "$name.json" -o "$name" --device cpu --only fusion --budget 6
    check "$name: done" test "$EXIT" -le 1
    check "$name: all are right or say why" judge "$name"
    check "$name: files fit their schemas" fits_schema "$name"/fusions/*.json "$name/run.json"
    check "$name: they are told" grep -qE '(gemm|conv)\+[a-z]' stdout.txt
done
finish

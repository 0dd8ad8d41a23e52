#!/usr/bin/env bash
# Binding of symbolic dimensions: by custom, by name, by default with a warning; fixed ones stay.
source "${ROOT:?}/tests/cli/lib.sh"
PYTHON=$ROOT/out/venv/bin/python

shape_of() { # TENSOR FILE
    python3 -c 'import json, sys
print(next((t["shape"] for t in json.load(open(sys.argv[2]))["tensors"] if t["name"] == sys.argv[1]), None))' "$@"
}

extract "$MODEL" --tensors t.json --batch 3 --seq 7 --quiet
check "batch and seq bind the customary names" test "$(shape_of hidden t.json)" = "[3, 7, 32]"
check "and nothing is to be warned of" silent
extract "$MODEL" --tensors t.json --dim batch_size=2 --dim sequence_length=9 --quiet
check "dim binds any name" test "$(shape_of hidden t.json)" = "[2, 9, 32]"
extract "$MODEL" --tensors t.json --batch 3 --seq 7 --dim sequence_length=9 --quiet
check "dim is stronger than seq" test "$(shape_of hidden t.json)" = "[3, 9, 32]"
extract "$MODEL" --tensors t.json --quiet
check "unbound: exit 0" exits 0
check "unbound: 1" test "$(shape_of hidden t.json)" = "[1, 1, 32]"
check "unbound: a warning names the first" says batch_size
check "unbound: a warning names the second" says sequence_length
extract "$ROOT/models/control_flow.onnx" --tensors t.json --dim T=5 --batch 2 --quiet
check "control flow: exit 0" exits 0
check "control flow: the result's shape" test "$(shape_of gated t.json)" = "[5, 2, 32]"
check "a condition that is not known: what to give" says "--dim INPUT=0 or 1"
branch_of() { # CHOICE   which products have their condition's branch in the totals
    extract "$ROOT/models/control_flow.onnx" -o ops.json --dim T=5 --batch 2 --dim "choose=$1" --quiet
    python3 -c 'import json; r = json.load(open("ops.json")); print(r["dims"]["choose"], sum(o["count"] for o in r["ops"] if o["op"] == "gemm"))'
}
check "a condition that is given: the branch that it chooses" test "$(branch_of 1) $(branch_of 0)" = "1 5 0 4"
extract "$ROOT/models/control_flow.onnx" --dim T=5 --dim choose=1 --quiet
check "a condition that is given: nothing to warn of but the batch" test "$(grep -c condition stderr.txt)" = 0
extract "$MODEL" --batch 1 --seq 4 --dim tokens=3 --quiet
check "a value of many: exit 2" exits 2
check "a value of many: what can be given" says "only a single whole number or condition can be given"
"$PYTHON" - <<'CODE' || skip "python onnx is not installed"
import onnx
from onnx import helper as h
x = [h.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["x", 4]) for name in "xy"]
onnx.save(h.make_model(h.make_graph([h.make_node("Relu", ["x"], ["y"])], "g", x[:1], x[1:]), opset_imports=[h.make_opsetid("", 17)], ir_version=8), "named.onnx")
CODE
if [[ -e named.onnx ]]; then
    extract named.onnx --tensors t.json --dim x=3 --quiet
    check "an input that is called after its dimension: the dimension" test "$EXIT $(shape_of y t.json)" = "0 [3, 4]"
fi
extract "$MODEL" --tensors t.json --batch 1 --seq 4 --dim no_such_symbol=3 --quiet
check "a name that the model does not have is said" says no_such_symbol
finish

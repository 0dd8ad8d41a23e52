#!/usr/bin/env bash
# Regions of a model that run with their channels last, on this machine's CPU: planned, replayed, given back, refused. What
# a report says is set here, so that a busy machine changes nothing.
source "$ROOT/tests/scout/lib.sh"

export CEILING_SCOUT_PATIENCE=1
extract=$(dirname "$SCOUT")/extract_ops
mkdir model
run "$extract" "$ROOT/models/small_conv.onnx" -q -o model/ops.json
run "$SCOUT" model/ops.json -o model --device cpu --no-cache --budget 20
check "what regions need is measured: exit 0" exits 0
check "turned operations have reports" python3 - <<'END'
import json, pathlib
reports = [json.loads(p.read_text()) for p in pathlib.Path("model/reports").glob("*.json")]
turned = [r for r in reports if r["op"] == "conv" and r["layout"] == "nhwc"]
assert len(turned) >= 4 and all(r["count"] == 0 and r["baseline_time_us"] > 0 for r in turned), [r["operation"] for r in turned]
END
# By chance one pass shows too little: a third one of anything comes behind the second one of all that the plan takes.
check "what the plan takes is measured as often as others" python3 - <<'END'
import json, pathlib
plan = json.load(open("model/plan.json"))
reports = [json.loads(p.read_text()) for p in pathlib.Path("model/reports").glob("*.json")]
most = max(r["passes"] for r in reports if r["count"] > 0 and r.get("passes"))
turned = [r["passes"] for r in reports if r["count"] == 0 and r.get("layout") == "nhwc" and r.get("passes")]
assert "turned" not in plan or most < 3 or max(turned) > 1, (most, turned)
END
check "they are in no table of the model's operations" bash -c '! grep -q nhwc stdout.txt'

# What stands in no run of the file takes FACTOR times as long.
turned_take() { # FACTOR [STATEMENT on the report r [FOLDER]]
    python3 - "$1" "${2:-pass}" "${3:-model}" <<'END'
import json, pathlib, sys
for path in pathlib.Path(sys.argv[3], "reports").glob("*.json"):
    r = json.loads(path.read_text())
    if r["count"] or r.get("status") == "SKIPPED":
        continue
    factor = float(sys.argv[1])
    for row in r["candidates"]:
        for one in row.get("passes", []):
            one["time_us"] *= factor
        if "time_us" in row:
            row["time_us"] = {k: v * factor if isinstance(v, float) and k != "rel_ci95" else v for k, v in row["time_us"].items()}
    for name in ("baseline_time_us", "best_time_us"):
        r[name] *= factor
    exec(sys.argv[2])
    path.write_text(json.dumps(r))
END
}
turned_take 1e-3
run "$SCOUT" --replay model
check "a replay with turned regions: exit 0" exits 0
check "it says so" grep -Eq 'turned +[0-9]+ operations run with their channels last, behind [0-9]+ conversion' stdout.txt
check "the plan has them" field model/plan.json "len(r['turned']) == 1 and len(r['turned'][0]) == 17 and [c['to'] for c in r['conversions']] == ['nhwc']"
check "it ends in what the defaults end in" field model/model.json "r['ends']['compared'] == 1 and r['ends']['error'] < 1e-4"
check "what is turned is told beside the groups" field model/model.json "r['groups']['turned'] == 17 and r['groups']['conversions'] == 1"
run "$(dirname "$SCOUT")/analyze" model
check "a summary says it" grep -q ' 17 with their channels last; both measured as a whole' stdout.txt
check "nothing failed" field model/model.json "r['left_out'] == r['as_default'] == r['apart'] == []"
check "occurrences and conversions stand once each" python3 - <<'END'
import json
plan, ops = json.load(open("model/plan.json")), json.load(open("model/ops.json"))
count = len(ops["graph"]["occurrences"])
met = sorted(k for group in plan["groups"] for k in group[1:])
assert met == list(range(count + len(plan["conversions"]))), met
assert sorted(c["occurrence"] for c in plan["conversions"]) == list(range(count, len(met)))
names = [i.get("operation", "") for i in plan["implementations"]]
order = {k: n for n, group in enumerate(plan["groups"]) for k in group[1:]}
turned = {k for region in plan["turned"] for k in region}
for k in turned:  # what is told of a region is what runs
    of = plan["implementations"][plan["groups"][order[k]][0]]
    assert of.get("fusion") or of["operation"] != ops["ops"][ops["graph"]["occurrences"][k][0]]["id"] or "elementwise" in of["operation"], (k, of)
for c in plan["conversions"]:
    assert names[plan["groups"][order[c["occurrence"]]][0]].startswith("move_"), c
END
if [[ -x $ROOT/out/venv/bin/python ]]; then
    for file in plan model; do
        check "$file.json fits its schema" "$ROOT/out/venv/bin/python" -B "$ROOT/tests/cli/schema.py" "$ROOT/docs/schema" model/$file.json
    done
else
    skip "schemas: $ROOT/out/venv/bin/python is not there"
fi

# Exporters make equal constants one tensor: a batch norm then names one for its scale and variance, and one for its bias
# and mean. Each has one content, whichever way its occurrence runs.
cp -r model shared && rm shared/model.json
python3 - <<'END'
import json
d = json.load(open("shared/ops.json"))
for at in d["graph"]["occurrences"]:
    if d["ops"][at[0]]["id"].startswith("norm_"):
        for t in at[4][3:]:
            d["graph"]["tensors"][t][6:8] = [-1, 0]
        del at[4][3:]
        at[6][4:] = at[6][3], at[6][2]
json.dump(d, open("shared/ops.json", "w"))
END
run "$SCOUT" --replay shared
check "norms of fewer tensors: exit 0" exits 0
check "norms of fewer tensors: what is turned ends in what the defaults end in" field shared/model.json \
    "r['ends']['compared'] == 1 and r['ends']['error'] < 1e-4 and r['groups']['turned'] > 8"

cp model/plan.json given.json
cp model/model.json before.json
turned_reports() { grep -lE '"count": ?0,' model/reports/*.json | xargs md5sum; }
turned_reports >listed.txt
run "$SCOUT" model/ops.json -o model --device cpu --only pool --resume --budget 5
check "a run of some operations leaves those of regions there" cmp <(turned_reports) listed.txt
run "$SCOUT" --replay model --plan given.json
check "given: exit 0" exits 0
check "given: it is what runs" field model/model.json "r['plan'] == json.load(open('before.json'))['plan']"
check "given: it is written as it was" field model/plan.json \
    "[r[k] for k in ('groups', 'turned', 'conversions')] == [json.load(open('given.json'))[k] for k in ('groups', 'turned', 'conversions')]"

refused() { # WORDS STATEMENT on p
    python3 - "$2" <<'END'
import json, sys
p = json.load(open("given.json"))
exec(sys.argv[1])
json.dump(p, open("changed.json", "w"))
END
    run "$SCOUT" --replay model --plan changed.json
    check "$1: exit 3" exits 3
    check "$1: it is said" says "$1"
}
refused "are no region of this model" 'p["turned"][0].pop()'
refused "are no region of this model" 'p["turned"][0] = []'
refused "are no region of this model" 'p["turned"][0][0] = 100000'
refused "are no region of this model" 'p["turned"][0][0] = "x"'
refused "are no region of this model" 'p["turned"].append(p["turned"][0])'
refused "are no region of this model" 'p["turned"] = [7]'
refused "its conversions are not those" 'p["turned"].pop()'
refused "its conversions are not those" 'p["conversions"][0]["to"] = "nchw"'
refused "its conversions are not those" 'del p["conversions"]'
refused "its conversions are not those" 'p["conversions"][0]["tensor"] += 1'
refused "needs what occurrence" 'p["groups"].sort(key=lambda g: g[1] in {c["occurrence"] for c in p["conversions"]})'

cp -r model without
rm without/reports/pool_*x16_fp32_*
run "$SCOUT" --replay without --plan given.json
check "without its figures: exit 3" exits 3
check "without its figures: it is said" says "of a region that it turns has no figure here"

# One that cannot run here spoils its region: the model is planned again as the file has it.
cp -r model broken
turned_take 1 'for row in r["candidates"] if r["op"] == "conv" else []: row["name"] = "nothing_of_this_name"
if r["op"] == "conv": r.update(baseline="nothing_of_this_name", best="nothing_of_this_name")'
run "$SCOUT" --replay model
check "what is not here: exit 0" exits 0
check "what is not here: it is said" says "so no region has its channels last"
check "what is not here: no region is turned" field model/plan.json "'turned' not in r and 'conversions' not in r"
check "what is not here: the rest is measured" field model/model.json "r['default']['time_us'] > 0"

# Longer than as the file has it: nothing is turned.
rm -r model
mv broken model
turned_take 1e6
run "$SCOUT" --replay model
check "what takes longer is not turned" field model/plan.json "'turned' not in r"
# Several regions, and transpositions of the file that do nothing beside them.
if "$ROOT/out/venv/bin/python" -c 'import onnx' 2>/dev/null; then
    mkdir blocks
    "$ROOT/out/venv/bin/python" - <<'END'
import onnx
from onnx import TensorProto, helper
names, nodes, weights = iter(range(100)), [], []
def weight(*dims):
    name = f"w{next(names)}"
    size = 1
    for d in dims: size *= d
    weights.append(helper.make_tensor(name, TensorProto.FLOAT, dims, [0.01 * (k % 7 - 3) for k in range(size)]))
    return name
def node(kind, *inputs, **attributes):
    name = f"t{next(names)}"
    nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
    return name
def conv(x, out, channels): return node("Conv", x, weight(out, channels, 3, 3), pads=[1, 1, 1, 1])
x = conv("x", 16, 8)
for _ in range(2):  # as in ConvNeXt: a norm and a product of channels, between transpositions
    y = node("Transpose", conv(x, 16, 16), perm=[0, 2, 3, 1])
    y = node("LayerNormalization", y, weight(16), weight(16), axis=-1)
    y = node("Transpose", node("MatMul", y, weight(16, 16)), perm=[0, 3, 1, 2])
    x = node("Add", x, y)
x = conv(node("Softmax", x, axis=-1), 8, 16)  # of space: in the file's order
out = helper.make_tensor_value_info(x, TensorProto.FLOAT, [1, 8, 16, 16])
graph = helper.make_graph(nodes, "blocks", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, 16, 16])], [out], weights)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), "blocks.onnx")
END
    run "$extract" blocks.onnx -q -o blocks/ops.json
    run "$SCOUT" blocks/ops.json -o blocks --device cpu --no-cache --budget 15
    turned_take 1e-3 pass blocks
    run "$SCOUT" --replay blocks
    check "blocks: exit 0" exits 0
    check "blocks: several regions" field blocks/plan.json "len(r['turned']) == 2 and [c['to'] for c in r['conversions']] == ['nhwc', 'nchw', 'nhwc', 'nchw']"
    check "blocks: no transposition has anything to do" python3 - <<'END'
import json
plan, ops = json.load(open("blocks/plan.json")), json.load(open("blocks/ops.json"))
idle = [g[1] for g in plan["groups"] if g[0] == -1]
what = [ops["ops"][ops["graph"]["occurrences"][k][0]].get("what") for k in idle]
assert what == ["transpose"] * 4, what
END
    check "blocks: it ends in what the defaults end in" field blocks/model.json "r['ends']['compared'] == 1 and r['ends']['error'] < 1e-4"
    cp blocks/plan.json given.json
    cp blocks/model.json before.json
    run "$SCOUT" --replay blocks --plan given.json
    check "blocks, given: exit 0" exits 0
    check "blocks, given: it is what runs" field blocks/model.json "r['plan'] == json.load(open('before.json'))['plan']"
    check "blocks, given: it is written as it was" field blocks/plan.json \
        "[r[k] for k in ('groups', 'turned', 'conversions')] == [json.load(open('given.json'))[k] for k in ('groups', 'turned', 'conversions')]"
    python3 -c 'import json; p = json.load(open("given.json")); p["turned"].pop(); json.dump(p, open("changed.json", "w"))'
    run "$SCOUT" --replay blocks --plan changed.json
    check "blocks, one region less: exit 3" exits 3
else
    skip "several regions: there is no onnx in $ROOT/out/venv"
fi
finish

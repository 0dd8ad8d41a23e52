#!/usr/bin/env bash
# The plan of a model on this machine's CPU: groups by what fusions' reports prove, written and replayed, given back and
# refused. What a report says is set here, so that a busy machine changes nothing.
source "$ROOT/tests/scout/lib.sh"

export CEILING_SCOUT_PATIENCE=1
extract=$(dirname "$SCOUT")/extract_ops
mkdir model
run "$extract" "$ROOT/models/small_resnet.onnx" -q -o model/ops.json
run "$SCOUT" model/ops.json -o model --device cpu --no-replay --no-cache --no-fusions --budget 8
for pattern in "elementwise chain" "conv+bn+activation"; do
    run "$SCOUT" model/ops.json -o model --device cpu --only "$pattern" --resume --budget 5
done

# In every pass fusions of these patterns were twice as fast as their parts, and all others slower.
prove() { # PATTERN…
    python3 - "$@" <<'END'
import json, pathlib, sys
for path in pathlib.Path("model/fusions").glob("*.json"):
    report = json.loads(path.read_text())
    worth = any(report["fusion"]["pattern"].startswith(pattern) for pattern in sys.argv[1:])
    rows = [row for row in report["candidates"] if row["status"] == "OK"]
    parts = next((row["passes"][0]["time_us"] for row in rows if row["name"] == "parts"), None)
    if parts is None:
        continue
    for k, row in enumerate(rows):
        factor = 1 if row["name"] == "parts" else (0.5 if worth else 1.5) + 0.01 * k
        first = row["passes"][0]
        row["passes"] = [{**first, "pass": n, "time_us": parts * factor * (1 + 0.001 * (n % 2))} for n in range(1, 5)]
    report["passes"] = 4
    path.write_text(json.dumps(report))
END
}
# ---- one pass proves nothing: what is far ahead in it is replayed, and what is near is not ----
cp -r model once
one_pass() { # RATIO FOLDER [PATTERN]   of what does all at once over the parts, in the only pass; others are slower
    python3 - "$@" <<'END'
import json, pathlib, sys
asked = 0
for path in pathlib.Path(sys.argv[2], "fusions").glob("*.json"):
    report = json.loads(path.read_text())
    rows = [row for row in report["candidates"] if row["status"] == "OK" and row["name"] != "parts"]
    if report["baseline"] != "parts" or not rows:
        continue
    asked += 1
    ratio = float(sys.argv[1]) if report["fusion"]["pattern"].startswith(sys.argv[3:] and sys.argv[3] or "") else 1.5
    report.update(passes=1, best="parts", best_variant=report["baseline_variant"], best_time_us=report["baseline_time_us"],
                  rival={"name": rows[0]["name"], "variant": rows[0]["variant"], "ratio": ratio, "ratio_ci": 0.9})
    for name in ("ratio", "ratio_ci"):
        report.pop(name, None)
    path.write_text(json.dumps(report))
assert asked, "no fusion was measured"
END
}
one_pass 0.95 once
run "$SCOUT" --replay once
check "one pass, a little ahead: no fusion is in the plan" field once/plan.json "r['fused'] == 0"
one_pass 0.6 once
run "$SCOUT" --replay once
check "one pass, far ahead: fusions are in it, without a proof" field once/plan.json \
    "r['fused'] > 0 and all('ratio_ci' not in i['proof'] for i in r['implementations'] if 'fusion' in i)"

prove "elementwise chain" "conv+bn"
run "$SCOUT" --replay model
check "a replay with groups: exit 0" exits 0
check "a replay with groups: it is told" grep -q 'operations in .* groups' stdout.txt
check "groups of several are in it" field model/model.json "0 < r['groups']['fused'] and r['groups']['groups'] < r['groups']['operations'] == r['launches']"
check "a plan needs fewer launches" field model/model.json "r['groups']['launches'] == r['groups']['groups']"
check "each was held against its parts" field model/model.json "r['check']['error'] <= r['check']['tolerance'] and r['apart'] == []"
check "a replay alone asks for fp32" field model/model.json "r['exact'] == {'not': 'it computes in fp32 itself'}"
check "the plan takes every occurrence once" field model/plan.json \
    "sorted(k for g in r['groups'] for k in g[1:]) == list(range(len(json.load(open('model/ops.json'))['graph']['occurrences'])))"
check "its groups are sites" python3 - <<'END'
import json
plan, ops = json.load(open("model/plan.json")), json.load(open("model/ops.json"))
sites = [site for fusion in ops["fusions"] for site in fusion["sites"]]
assert all(group[1:] in sites for group in plan["groups"] if len(group) > 2)
END
check "it costs no more than each by itself" field model/plan.json "r['bound_us'] <= r['cost_us'] < r['alone_us']"
check "what it gains is proven" field model/plan.json "all('proof' in i for i in r['implementations'] if 'fusion' in i)"
if [[ -x $ROOT/out/venv/bin/python ]]; then
    check "plan.json fits its schema" "$ROOT/out/venv/bin/python" -B "$ROOT/tests/cli/schema.py" "$ROOT/docs/schema" model/plan.json
    check "model.json fits its schema" "$ROOT/out/venv/bin/python" -B "$ROOT/tests/cli/schema.py" "$ROOT/docs/schema" model/model.json
else
    skip "schemas: $ROOT/out/venv/bin/python is not there"
fi

check "a group is expected to take what was measured of what does all at once" python3 - <<'END'
import json, pathlib
plan, told = json.load(open("model/plan.json")), json.load(open("model/model.json"))
reports = [json.loads(path.read_text()) for path in pathlib.Path("model/fusions").glob("*.json")]
several = [plan["implementations"][group[0]] for group in plan["groups"] if len(group) > 2]
for is_of in {i["fusion"]: i for i in several}.values():
    rows = next(r for r in reports if r["operation"] == is_of["fusion"])["candidates"]
    us, = [row["time_us"]["median"] + max(row.get("fetch_us", 0), 0) for row in rows
           if (row["name"], row["variant"]) == (is_of["candidate"], is_of["variant"])]
    times = sum(i["fusion"] == is_of["fusion"] for i in several)
    expected = next(o for o in told["operations"] if o["operation"] == is_of["fusion"])["best_sum_us"]
    assert abs(expected / (times * us) - 1) < 1e-6, (expected, times, us)
END

# Groups were timed at twice the clock that the model holds: there they take twice as long, and only they.
cp -r model clocked
python3 - <<'END'
import json, pathlib
mhz = json.loads(pathlib.Path("clocked/model.json").read_text()).get("clock_mhz", 1000)
for path in pathlib.Path("clocked/fusions").glob("*.json"):
    report = json.loads(path.read_text())
    report.update(clock_mhz=2 * mhz, clock_slope=1)
    for row in report["candidates"]:
        row.pop("fetch_us", None)
    path.write_text(json.dumps(report))
END
run "$SCOUT" --replay clocked
if field clocked/model.json "'clock_mhz' in r"; then
    check "groups count at the model's clock" python3 - <<'END'
import json, pathlib
told, before = (json.loads(pathlib.Path(f"{folder}/model.json").read_text()) for folder in ("clocked", "model"))
fused = {json.loads(path.read_text())["operation"] for path in pathlib.Path("clocked/fusions").glob("*.json")}
by = 2 * before["clock_mhz"] / told["clock_mhz"]
groups = sum(o["best_sum_us"] for o in told["operations"] if o["operation"] in fused)
more = told["best"]["at_clock_us"] - told["best"]["sum_us"]
assert groups > 0 and abs(more / ((by - 1) * groups) - 1) < 0.05, (more, groups, by)
END
else
    skip "this machine tells no clock"
fi

# the same plan, given
cp model/model.json before.json
cp model/plan.json given.json
run "$SCOUT" --replay model --plan given.json
check "a given plan: exit 0" exits 0
check "a given plan is what runs" field model/model.json "r['plan'] == json.load(open('before.json'))['plan']"
check "a given plan is written as it was" field model/plan.json \
    "[r[k] for k in ('groups', 'implementations')] == [json.load(open('given.json'))[k] for k in ('groups', 'implementations')]"

# what a model adds to a launch is in what a plan costs: once for each launch, whatever it does
cp -r model fetched
fetch() { # US US   of each operation, and of each fusion
    python3 - "$@" <<'END'
import json, pathlib, sys
for folder, us in zip(("reports", "fusions"), map(float, sys.argv[1:])):
    for path in pathlib.Path("fetched", folder).glob("*.json"):
        report = json.loads(path.read_text())
        for row in report["candidates"]:
            row["passes"] = [{**p, "fetch_us": us} for p in row.get("passes", [])]
            row["fetch_us"] = us
        path.write_text(json.dumps(report))
END
}
fetch 0 0
run "$SCOUT" --replay fetched --plan given.json
check "fetching nothing: exit 0" exits 0
cp fetched/plan.json fetched/before.json
fetch 900 400
run "$SCOUT" --replay fetched --plan given.json
check "fetching: exit 0" exits 0
check "fetching: every occurrence by itself has its own" field fetched/plan.json \
    "abs(r['alone_us'] - json.load(open('fetched/before.json'))['alone_us'] - 900 * sum(len(g) - 1 for g in r['groups'])) < 0.01"
check "fetching: a group has that of what does all at once" field fetched/plan.json \
    "abs(r['cost_us'] - json.load(open('fetched/before.json'))['cost_us'] - sum(900 if len(g) == 2 else 400 for g in r['groups'])) < 0.01"
check "fetching: it is in the sum of the parts" field fetched/model.json \
    "abs(r['default']['fetch_us'] - 900 * r['launches']) < 0.01 and r['default']['sum_us'] > r['default']['fetch_us']"

# one that has no groups: the defaults alone
change() { # STATEMENTS on p   makes changed.json of the given plan
    python3 - "$1" <<'END'
import json, sys
p = json.load(open("given.json"))
several = next(k for k, group in enumerate(p["groups"]) if len(group) > 2)
fused = p["groups"][several][0]
single, other = [k for k, group in enumerate(p["groups"]) if len(group) == 2 and group[0] >= 0][:2]
exec(sys.argv[1])
json.dump(p, open("changed.json", "w"))
END
}
change 'p["groups"] = [[-1, k] for k in range(sum(len(g) - 1 for g in p["groups"]))]
p["implementations"] = []'
run "$SCOUT" --replay model --plan changed.json
check "a plan of defaults: exit 0" exits 0
check "a given plan is said to be one" field model/model.json "r['given'] is True"
check "a given plan is said to be one in plan.json too" field model/plan.json "r['given'] is True"
check "a plan of defaults costs what each costs by itself" field model/plan.json "r['cost_us'] == r['alone_us'] >= r['bound_us'] > 0 and r['fused'] == 0"
check "a plan of defaults is one lane" field model/model.json "r['best'] is None and 'groups' not in r"

# what contradicts the model is refused, with what is wrong
refused() { # WORDS STATEMENTS
    change "$2"
    run "$SCOUT" --replay model --plan changed.json
    check "$1: exit 3" exits 3
    check "$1: it is said" says "$1"
}
refused "stands in group" 'p["groups"][other] = p["groups"][single]'
refused "its groups have" 'p["groups"].pop()'
refused "are no site of" 'p["groups"][several][1:] = p["groups"][several][:0:-1]'
refused "is no occurrence of the model" 'p["groups"][0][1] = 100000'
refused "is no occurrence of the model" 'p["groups"][0][1] = -1'
refused "names no implementation" 'p["groups"][0][0] = len(p["implementations"])'
refused "names no implementation" 'p["groups"][0] = "all"'
refused "is not of" 'p["groups"][single][0] = next(k for k, i in enumerate(p["implementations"]) if "operation" in i and k != p["groups"][single][0])'
refused "needs what occurrence" 'p["groups"].reverse()'
refused "is of no operation and no fusion" 'p["implementations"][fused]["fusion"] = "another"'
refused "is of no operation and no fusion" 'p["implementations"][fused]["operation"] = p["implementations"][0]["operation"]'
refused "is of what another one is of" 'p["implementations"][1] = p["implementations"][0]'
refused "names no candidate" 'del p["implementations"][fused]["candidate"]'
refused "names no candidate" 'p["implementations"][fused]["variant"] = "x" * 10000'
refused "a proof whose ratio is no number" 'p["implementations"][fused]["proof"]["ratio"] = 1e308'
refused "a proof whose ratio is no number" 'p["implementations"][fused]["proof"] = {"ratio": -1}'
refused "a plan of the model \"another\", and this one is" 'p["model"] = "another"'
refused "a plan for the device \"another\", and this one is" 'p["device"]["class"] = "another"'
refused "a plan under the regime \"burst-hot-direct\", and this one is" 'p["regime"] = "burst-hot-direct"'
refused "more implementations than" 'p["implementations"] *= 50'
refused "no lists of implementations and groups" 'p["groups"] = 3'
refused "plan/1" 'p["schema"] = "ceiling-scout/plan/2"'
printf '{"schema": "ceiling-scout/plan/1", "groups": [[' >changed.json
run "$SCOUT" --replay model --plan changed.json
check "a plan that is cut off: exit 3" exits 3
run "$SCOUT" model/ops.json -o model --device cpu --plan given.json
check "--plan without --replay: exit 2" exits 2

# a group whose implementation is not here is named, and its parts run
change 'p["implementations"][fused]["candidate"] = "nothing_of_this_name"'
run "$SCOUT" --replay model --plan changed.json
check "an implementation that is not here: exit 0" exits 0
check "it is named" field model/model.json "[o['code'] for o in r['apart']] == ['feature'] and 'nothing_of_this_name' in r['apart'][0]['text']"
check "it is told" grep -q 'by its parts: .*nothing_of_this_name' stdout.txt
check "so is what stays out" grep -q 'not in the plan: ' stdout.txt
check "the plan without it is counted anew" field model/plan.json \
    "r['fused'] == sum(len(g) > 2 for g in r['groups']) and r['bound_us'] <= r['cost_us'] <= r['alone_us']"
check "it is in no plan" field model/plan.json "not any('nothing' in i['candidate'] for i in r['implementations']) and len(r['left_out']) >= 1"

# sites that contradict the dataflow
for wrong in 'f["sites"][0][0] += 1' 'f["sites"][0].pop()' 'f["sites"][0][0] = -1' 'f["sites"][0][0] = "x"' 'f["sites"] *= 9' 'f["sites"] = 1'; do
    rm -rf bad
    mkdir bad
    python3 - "$wrong" <<'END'
import json, sys
r = json.load(open("model/ops.json"))
f = next(f for f in r["fusions"] if f["sites"])
exec(sys.argv[1])
json.dump(r, open("bad/ops.json", "w"))
END
    run "$SCOUT" bad/ops.json -o bad/out --device cpu
    check "$wrong: exit 3" exits 3
    check "$wrong: names the fusion" says "fusion"
done

# half precision: both lanes are held against fp32
mkdir half
run "$extract" "$ROOT/models/small_resnet.onnx" --precision fp16 -q -o half/ops.json
run "$SCOUT" half/ops.json -o half --device cpu --no-replay --no-cache --budget 8
run "$SCOUT" --replay half --budget 5
check "half precision: exit 0" exits 0
check "half precision: rounding is told of both" field half/model.json \
    "all(2**-14 < r['exact'][lane] < 2**-8 for lane in ('default', 'best')) and r['exact']['worse'] is False"
check "half precision: and shown" grep -q '^  fp32 .*the plan is off by 0.000.* the defaults by 0.000' stdout.txt

# Of two products of the same rows the first one's result is read at once, the other's when all else is done.
products_apart() { # FILE
    python3 - "$1" <<'END'
import json, sys
n = 128
mine = {"shape": [n, n], "dtype": "fp32", "flops": n * n, "bytes_read": 4 * n * n, "bytes_written": 4 * n * n}
ops = [{"id": "product", "op": "gemm", "shape": [n, n, n], "layout": "nn", "dtype": "fp32", "weight_dtype": "fp32", "weight_side": "b",
        "count": 3, "macs": n**3, "flops": 2 * n**3, "bytes_read": 8 * n * n, "bytes_written": 4 * n * n},
       {**mine, "id": "relu", "op": "elementwise", "what": "relu", "count": 2},
       {**mine, "id": "sum", "op": "elementwise", "what": "add", "inputs": "tensor,tensor", "count": 1, "bytes_read": 8 * n * n}]
names = ["x", "w0", "w1", "w2", "q", "k", "a", "b", "c", "d"]
kinds = ["input"] + ["weight"] * 3 + ["activation"] * 5 + ["output"]
made = {"q": 0, "k": 1, "a": 2, "b": 3, "c": 4, "d": 5}
steps = [(0, 0, "x w0", "q"), (0, 1, "x w1", "k"), (1, 0, "q", "a"), (0, 2, "a w2", "b"), (1, 1, "b", "c"), (2, 0, "c k", "d")]
at = names.index
uses = {name: [k for k, s in enumerate(steps) if name in s[2].split()] for name in names}
tensors = [[name, kind, "fp32", [n, n], made.get(name, -1), made.get(name, 0), max(uses[name], default=5), len(uses[name])]
           for name, kind in zip(names, kinds)]
occurrences = [[op, place, place, 1, [at(x) for x in reads.split()], [at(makes)], [at(x) for x in (reads + " " + makes).split()]]
               for op, place, reads, makes in steps]
for op in ops:
    op.update(occurrences=op["count"], nodes=[f"{op['id']}/{k}" for k in range(op["count"])])
site = {"pattern": "gemm+gemm shared input", "ops": ["product"] * 2, "count": 1, "selected": 1, "saved_bytes": 4 * n * n, "sites": [[0, 1]]}
graph = {"memory": {"weights": 12 * n * n, "activations": 12 * n * n, "at": 1, "unsized": 0}, "tensors": tensors, "occurrences": occurrences,
         "cuts": []}
json.dump({"schema": "ceiling-scout/ops/1", "model": {"name": "apart"}, "ops": ops, "fusions": [site], "graph": graph}, open(sys.argv[1], "w"))
END
}
rm -rf model
mkdir model
products_apart model/ops.json
measure_shared() { # PATTERN   the operations, and then its fusions with a time of their own
    run "$SCOUT" model/ops.json -o model --device cpu --no-replay --no-cache --no-fusions --budget 8
    run "$SCOUT" model/ops.json -o model --device cpu --only "$1" --resume --budget 5
}
measure_shared "gemm+gemm shared input"
one_pass 0.6 model
run "$SCOUT" --replay model --budget 4
check "what a batch makes is there as long as the last of it is read" field model/model.json \
    "r['groups']['fused'] == 1 and r['apart'] == r['as_default'] == [] and r['ends']['error'] < 1e-6"
# x is no activation here; q, k, a and b in both lanes, though by the defaults q could make room for b
check "so it is in both lanes" field model/model.json \
    "(r['memory']['activation_bytes'], r['memory']['activation_least_bytes']) == (4 * 65536, 3 * 65536)"

# Products that read the same rows as a batch: what they make lies behind one another in both lanes. Their biases are one
# tensor of the file, which is copied for each of them.
model=$(realpath -m "${MODELS_DIR:-$ROOT/../shared/models}")/bert_tiny_w.onnx
if [[ -f $model ]]; then
    for precision in fp32 fp16; do
        rm -rf model
        mkdir model
        run "$extract" "$model" --batch 2 --seq 16 --precision "$precision" -q -o model/ops.json
        measure_shared "gemm+gemm shared input+bias"
        one_pass 0.6 model "gemm+gemm shared input+bias"
        run "$SCOUT" --replay model --budget 8
        check "$precision: products of the same rows are in the plan" field model/plan.json \
            "sum(len(g) == 7 and 'shared_input_bias' in r['implementations'][g[0]]['fusion'] for g in r['groups']) == 2"
        check "$precision: as a batch they make what each makes" field model/model.json \
            "r['apart'] == [] and r['check']['error'] <= r['check']['tolerance'] and r['ends']['error'] < (1e-6 if '$precision' == 'fp32' else 1e-3)"
    done
else
    skip "no bert_tiny_w.onnx in MODELS_DIR"
fi
finish

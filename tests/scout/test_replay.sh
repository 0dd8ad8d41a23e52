#!/usr/bin/env bash
# The model as a whole on the scripted device, at the end of a run and alone: what model.json says, what is left out,
# named and survived; and on this machine's CPU a real model, once.
source "$ROOT/tests/scout/lib.sh"

# Three products in a row, of two operations.
write_graph() { # FILE
    python3 - "$1" <<'END'
import json, sys

def product(name, m, n, k, count):
    return {"id": name, "op": "gemm", "shape": [m, n, k], "layout": "nn", "dtype": "fp32", "weight_side": "b", "count": count,
            "occurrences": count, "macs": m * n * k, "flops": 2 * m * n * k, "bytes_read": 4 * (m * k + k * n),
            "bytes_written": 4 * m * n, "nodes": [f"{name}/{k}" for k in range(count)]}

tensors = [["x", "input", "fp32", [64, 64], -1, 0, 0, 1]]
tensors += [[f"w{k}", "weight", "fp32", [64, 64], -1, 0, k, 1] for k in range(2)] + [["w2", "weight", "fp32", [64, 96], -1, 0, 2, 1]]
tensors += [["y0", "activation", "fp32", [64, 64], 0, 0, 1, 1], ["y1", "activation", "fp32", [64, 64], 1, 1, 2, 1],
            ["y2", "output", "fp32", [64, 96], 2, 2, 2, 0]]
occurrences = [[0, 0, 0, 1, [0, 1], [4], [0, 1, 4]], [0, 1, 1, 1, [4, 2], [5], [4, 2, 5]], [1, 0, 0, 1, [5, 3], [6], [5, 3, 6]]]
ops = [product("square", 64, 64, 64, 2), product("wide", 64, 96, 64, 1)]
memory = {"weights": 4 * (2 * 64 * 64 + 64 * 96), "activations": 4 * (64 * 64 + 64 * 96), "at": 2, "unsized": 0}
graph = {"memory": memory, "tensors": tensors, "occurrences": occurrences, "cuts": []}
json.dump({"schema": "ceiling-scout/ops/1", "model": {"name": "three"}, "ops": ops, "fusions": [], "graph": graph}, open(sys.argv[1], "w"))
END
}

mkdir -p model
write_graph model/ops.json
warm_up scripted:0
scout model/ops.json -o model --device scripted:0
check "a run ends with the model as a whole: exit 0" exits 0
check "it is told" test "$(grep -c 'measured as a whole' stdout.txt)" = 1
check "both lanes have times" field model/model.json "r['default']['time_us'] > r['best']['time_us'] > 0"
check "the ratio is that of the parts" field model/model.json "abs(r['ratio'] / (r['best']['sum_us'] / r['default']['sum_us']) - 1) < 0.02"
check "a replay is the sum of its parts here" field model/model.json "abs(r['default']['over_sum'] - 1) < 0.02"
check "all tensors are found" field model/model.json "r['bound'] == {'found': 9, 'of': 9}"
check "activations lie as the dataflow says" field model/model.json "r['memory']['activation_least_bytes'] == 4 * (64 * 64 + 64 * 96)"
check "nothing is left out" field model/model.json "r['left_out'] == [] and r['as_default'] == [] and r['launches'] == 3"
check "occurrences were compared" field model/model.json "r['check']['compared'] == 3 and r['check']['error'] <= r['check']['tolerance']"
check "what its passes took is told by what for" field model/model.json "set(r['spent_s']) == {'preparing', 'filling', 'checking', 'timing'} and r['spent_s']['timing'] > 0"
check "four passes at least" field model/model.json "len(r['passes']) >= 4"
check "each operation's time in place is told" field model/model.json "[o['operation'] for o in r['operations']] == ['square', 'wide']"
check "in place all of them are the run" field model/model.json \
    "abs(sum(o['default_us'] for o in r['operations']) / r['default']['time_us'] - 1) < 0.001"
check "what lies between is a launch's own time" field model/model.json "abs(r['between_us'] - 20) < 0.5 and 'untraced' not in r"
check "the trace has both runs, kernel by kernel" field model/trace.json \
    "[(e['name'], e['tid']) for e in r['traceEvents'] if e['ph'] == 'X'] == [(n, t) for t in (1, 2) for n in ('square', 'square', 'wide')]"
check "and one kernel after another" field model/trace.json \
    "all(a['ts'] + a['dur'] <= b['ts'] for a, b in zip(r['traceEvents'][3:], r['traceEvents'][4:]) if b['ph'] == 'X' and a['ph'] == 'X' and a['tid'] == b['tid'])"
if [[ -x $ROOT/out/venv/bin/python ]]; then
    check "it fits its schema" "$ROOT/out/venv/bin/python" -B "$ROOT/tests/cli/schema.py" "$ROOT/docs/schema" model/model.json model/trace.json
else
    skip "schemas: $ROOT/out/venv/bin/python is not there"
fi

# ---- plans are prepared beside each other ----
write_chain() { # FILE: eight products in a row, each an operation of its own
    python3 - "$1" <<'END'
import json, sys

wide = [64 + 8 * k for k in range(9)]
ops, tensors, occurrences = [], [["x", "input", "fp32", [64, wide[0]], -1, 0, 0, 1]], []
for at, (k, n) in enumerate(zip(wide, wide[1:])):
    ops.append({"id": f"op{at}", "op": "gemm", "shape": [64, n, k], "layout": "nn", "dtype": "fp32", "weight_side": "b",
                "count": 1, "occurrences": 1, "macs": 64 * n * k, "flops": 2 * 64 * n * k,
                "bytes_read": 4 * (64 * k + k * n), "bytes_written": 4 * 64 * n, "nodes": [f"op{at}/0"]})
    last = at == len(wide) - 2
    tensors.append([f"w{at}", "weight", "fp32", [k, n], -1, 0, at, 1])
    tensors.append([f"y{at}", "output" if last else "activation", "fp32", [64, n], at, at, at if last else at + 1, int(not last)])
    occurrences.append([at, 0, 0, 1, [2 * at, 2 * at + 1], [2 * at + 2], [2 * at, 2 * at + 1, 2 * at + 2]])
memory = {"weights": sum(4 * k * n for k, n in zip(wide, wide[1:])), "activations": 4 * 64 * (wide[-1] + wide[-2]), "at": 7, "unsized": 0}
graph = {"memory": memory, "tensors": tensors, "occurrences": occurrences, "cuts": []}
json.dump({"schema": "ceiling-scout/ops/1", "model": {"name": "chain"}, "ops": ops, "fusions": [], "graph": graph}, open(sys.argv[1], "w"))
END
}
mkdir -p chain
write_chain chain/ops.json
scout chain/ops.json -o chain --device scripted:0
check "eight products: exit 0" exits 0
cp -r chain together
rm together/model.json
CEILING_SCOUT_SCRIPTED_BESIDE=$PWD/prepared CEILING_SCOUT_SCRIPTED_SLOW_PLANS=100000 scout --replay together --device scripted:0
check "plans beside each other: exit 0" exits 0
check "plans beside each other: other threads prepare some" test -s prepared
check "plans beside each other: nothing is left out" field together/model.json "r['left_out'] == [] and r['as_default'] == [] and r['launches'] == 8"
alike() { # the times of both lanes, and what each operation takes in its place
    python3 - <<'END'
import json, sys
a, b = (json.load(open(f"{d}/model.json")) for d in ("chain", "together"))
pairs = [(a[lane]["time_us"], b[lane]["time_us"]) for lane in ("default", "best")]
times = [{o["operation"]: (o["default_us"], o["best_us"]) for o in m["operations"]} for m in (a, b)]
assert len(times[0]) == 8 and times[0].keys() == times[1].keys() and len({x for x, _ in times[0].values()}) == 8
pairs += [both for name in times[0] for both in zip(times[0][name], times[1][name])]
sys.exit(any(abs(x / y - 1) > 0.02 for x, y in pairs))
END
}
check "plans beside each other: everything takes as long as without" alike
rm -f together/model.json prepared
CEILING_SCOUT_PATIENCE=0.05 CEILING_SCOUT_SCRIPTED_BESIDE=$PWD/prepared CEILING_SCOUT_SCRIPTED_SLOW_PLANS=50000 \
    CEILING_SCOUT_SCRIPTED_SLOW_BESIDE=64:30000000 scout --replay together --device scripted:0
check "one hangs beside: exit 0" exits 0
check "one hangs beside: it is done again alone" says "repeated alone"
check "one hangs beside: nothing is left out" field together/model.json "r['left_out'] == [] and r['as_default'] == [] and r['launches'] == 8"

# ---- what is opened once is no part of what the next pass takes ----
cp -r model slow
rm slow/model.json
CEILING_SCOUT_SCRIPTED_SLOW_PLANS=1500000 scout slow/ops.json -o slow --device scripted:0 --resume --budget 11
check "plans that take most of what is left: four passes" field slow/model.json "len(r['passes']) >= 4 and r['ratio_ci'] > 0"

# ---- one pass proves nothing: what is far ahead in it is replayed, and what is near is not ----
cp -r model once
one_pass() { # RATIO   of the winner over the default, in the only pass
    python3 - "$1" <<'END'
import json, pathlib, sys
for path in pathlib.Path("once/reports").glob("*.json"):
    report = json.loads(path.read_text())
    rows = [row for row in report["candidates"] if row["status"] == "OK"]
    for row in rows:
        base = row["name"] == "scripted_blas" and row["variant"] == "algo=0"
        row["ratio"] = 1 if base else float(sys.argv[1]) if row["variant"] == "algo=1" else 1.5
        row["passes"] = row["passes"][:1]
        row.pop("ratio_ci", None)
    report.update(passes=1, best=report["baseline"], best_variant=report["baseline_variant"], best_time_us=report["baseline_time_us"])
    for name in ("ratio", "ratio_ci", "rival"):
        report.pop(name, None)
    path.write_text(json.dumps(report))
END
}
one_pass 0.8
scout --replay once
check "one pass, far ahead: it is replayed" field once/model.json "0.7 < r['ratio'] < 0.9"
check "one pass, far ahead: the plan says that it is no proof" field once/plan.json \
    "all(i['variant'] == 'algo=1' and abs(i['proof']['ratio'] - 0.8) < 1e-3 and 'ratio_ci' not in i['proof'] for i in r['implementations'])"
one_pass 0.95
scout --replay once
check "one pass, a little ahead: the default stays" field once/plan.json "all(i.get('default') for i in r['implementations'])"

# ---- parts were timed at clocks of their own; this device tells 1,000 MHz of the model ----
cp -r model clocked
python3 - <<'END'
import json, pathlib
for path in pathlib.Path("clocked/reports").glob("*.json"):
    report = json.loads(path.read_text())
    report.update({"clock_mhz": 1500, "clock_slope": 1} if path.stem == "square" else {"clock_mhz": 2000, "clock_slope": 0.5})
    path.write_text(json.dumps(report))
END
scout --replay clocked
for lane in default best; do
    check "$lane: the sum is told at the model's clock as well" field clocked/model.json \
        "(lambda parts, lane: abs(1.5 * parts['square'] + 2 ** 0.5 * parts['wide'] - lane['at_clock_us']) < 0.001 * lane['sum_us'])(
            {o['operation']: o['${lane}_sum_us'] for o in r['operations']}, r['$lane'])"
done
check "the difference at the model's clock is shown of both" test "$(grep -c "at the model's 1000 MHz they take" stdout.txt)" = 2

cp model/model.json before.json
scout model/ops.json -o model --device scripted:0 --resume
check "with everything kept it is not done again" cmp -s before.json model/model.json
check "and told nevertheless" test "$(grep -c 'measured as a whole' stdout.txt)" = 1
scout --replay model
check "--replay: exit 0" exits 0
check "--replay measures again, and writes the same plan" field model/model.json \
    "r['plan'] == json.load(open('before.json'))['plan'] and r['taken'] >= json.load(open('before.json'))['taken']"
python3 - <<'END'
import json
plan = json.load(open("model/plan.json"))
plan["groups"], plan["implementations"] = [[-1, *group[1:]] for group in plan["groups"]], []
json.dump(plan, open("defaults.json", "w"))
END
scout --replay model --plan defaults.json
check "where both run alike, each operation takes the same in both" field model/model.json \
    "r['best'] is None and len(r['operations']) == 2 and all(o['best_us'] == o['default_us'] for o in r['operations'])"
check "a plan that was given is said to be one" field model/model.json "r['given'] is True"
CEILING_SCOUT_SCRIPTED_UNTRACED=1 scout --replay model
check "without a tracer: exit 0" exits 0
check "without a tracer it is said, and no operation is told of" field model/model.json \
    "r['untraced'] == 'it has no tracer' and r['operations'] == [] and r['default']['time_us'] > 0"
check "without a tracer: no trace of before" test ! -e model/trace.json
mv model/ops.json elsewhere.json
scout --replay model
check "--replay without operations: exit 3" exits 3
check "--replay without operations: says what is missing" says "has no ops.json"
mv elsewhere.json model/ops.json
scout model/ops.json -o model --device scripted:0 --resume --no-replay
check "--no-replay: what was said before is gone" test ! -e model/model.json -a ! -e model/trace.json
printf '{"schema": "ceiling-scout/trace/1", "traceEvents": [' >model/trace.json
scout model/ops.json -o model --device scripted:0 --resume --no-replay
check "a trace of before that is cut off: it is said" says "of an earlier run, so remove it"
rm model/trace.json
scout --replay model --only square
check "--replay takes no operation: exit 2" exits 2
mkdir nothing
cp model/ops.json nothing
scout --replay nothing --device scripted:0
check "--replay of what was not measured: exit 3" exits 3
check "--replay of what was not measured: says so" says "no operation has a report"

# a dataflow that a plan does not survive is refused, as everywhere
python3 -c 'import json; r = json.load(open("model/ops.json")); r["graph"]["occurrences"].reverse(); json.dump(r, open("nothing/ops.json", "w"))'
scout --replay nothing --device scripted:0
check "a dataflow that contradicts the operations: exit 3" exits 3

# what was said of the model as a whole is gone before a new report is there
cp before.json model/model.json
scout model/ops.json -o model --device scripted:0 --only wide --no-cache
check "one operation measured again: what was said before is gone" test ! -e model/model.json

# no time is left for it
scout model/ops.json -o model --device scripted:0 --resume --budget 0.001
check "no time for the whole: exit 0" exits 0
check "no time for the whole: it is said" says "its budget has no time left"
check "no time for the whole: run.json says so" field model/run.json \
    "r['state'] == 'complete' and 'no time' in r['no_whole'] and 'stopped' not in r"

# what has no report is left out, and said
cp -r model part
rm -f part/model.json part/reports/wide.json
scout --replay part
check "an operation without a report: exit 0" exits 0
check "an operation without a report is named, with what it takes at least" field part/model.json \
    "[(o['operation'], o['count'], o['least_us'] > 0) for o in r['left_out']] == [('wide', 1, True)] and r['launches'] == 2"
check "it is told" grep -q 'left out: wide, ' stdout.txt

# a report that proves what is wrong: the replay finds it, names it, and runs the default
crowned() { # CANDIDATE   in the report of `wide` it is the best, proven
    rm -rf crowned
    cp -r model crowned
    rm -f crowned/model.json
    python3 - crowned "$1" <<'END'
import json, pathlib, sys
path = pathlib.Path(sys.argv[1], "reports", "wide.json")
report = json.loads(path.read_text())
row = next(r for r in report["candidates"] if r["name"] == report["best"] and r["variant"] == report["best_variant"])
row["name"], row["variant"] = sys.argv[2], ""
report["best"], report["best_variant"] = sys.argv[2], ""
path.write_text(json.dumps(report))
END
    scout "${FAULTS[@]}" --replay crowned
}
export CEILING_SCOUT_FAULTS=wrong
scout "${FAULTS[@]}" model/ops.json -o model --device scripted:0 --no-replay --no-cache
crowned fault_wrong
check "a wrong one: exit 1" exits 1
check "a wrong one: it is said" says "wide failed in it"
check "a wrong one is named" field crowned/model.json \
    "[(o['operation'], o['code']) for o in r['as_default']] == [('wide', 'samples')] and r['check']['worst'] == 'wide'"
check "the rest stands" field crowned/model.json "r['best']['time_us'] < r['default']['time_us'] and r['left_out'] == []"
export CEILING_SCOUT_FAULTS=crash
scout "${FAULTS[@]}" model/ops.json -o model --device scripted:0 --no-replay --no-cache
crowned fault_crash
check "one that crashes: exit 1" exits 1
check "one that crashes is named" field crowned/model.json \
    "[(o['operation'], o['code']) for o in r['as_default']] == [('wide', 'signal')]"

# one that fails in a later pass: all passes are of what runs without it
export CEILING_SCOUT_FAULTS=moved
crowned fault_moved
check "one that fails in a later pass is named" field crowned/model.json \
    "[(o['operation'], o['code']) for o in r['as_default']] == [('wide', 'error')]"
check "the passes before it are done again" field crowned/model.json \
    "len(r['passes']) >= 4 and max(p['best_us'] for p in r['passes']) < 1.02 * min(p['best_us'] for p in r['passes'])"

# stopped in the middle of it: --resume does it
export CEILING_SCOUT_FAULTS=hang
scout "${FAULTS[@]}" model/ops.json -o model --device scripted:0 --no-replay --no-cache
crowned fault_hang
check "one that hangs is named" field crowned/model.json "[o['operation'] for o in r['as_default']] == ['wide']"
rm -f crowned/model.json crowned/run.json
CEILING_SCOUT_PATIENCE=5 "$SCOUT" "${DEVICE[@]}" "${FAULTS[@]}" crowned/ops.json -o crowned --device scripted:0 --resume \
    >stdout.txt 2>stderr.txt </dev/null &
pid=$!
for ((k = 0; k < 600; k++)); do
    if grep -qs '"state": "complete"' crowned/run.json; then break; fi
    sleep 0.1
done
sleep 1
kill -TERM "$pid"
EXIT=0
wait "$pid" || EXIT=$?
STDOUT=$(<stdout.txt) STDERR=$(<stderr.txt)
check "stopped in the middle of it: exit 1" exits 1
check "stopped in the middle of it: says how it goes on" says "stopped while the model was measured as a whole"
check "stopped in the middle of it: run.json says so" field crowned/run.json \
    "r['state'] == 'complete' and r['stopped'] and r['no_whole'] and r['sources']['kept'] == 2"
check "stopped in the middle of it: there is no model.json" test ! -e crowned/model.json
scout "${FAULTS[@]}" crowned/ops.json -o crowned --device scripted:0 --resume
check "and --resume does it" test -e crowned/model.json
check "and run.json says nothing of it" field crowned/run.json "'stopped' not in r and 'no_whole' not in r"
unset CEILING_SCOUT_FAULTS

# this machine's CPU
mkdir block
extract=$(dirname "$SCOUT")/extract_ops
run "$extract" "$ROOT/models/transformer_block.onnx" --batch 1 --seq 32 -o block/ops.json
CEILING_SCOUT_PATIENCE=1 run "$SCOUT" block/ops.json -o block --device cpu --no-fusions --no-replay --budget 10
CEILING_SCOUT_PATIENCE=1 run "$SCOUT" --replay block
check "a model on the CPU: exit 0" exits 0
check "its replay has a time, and nothing failed in it" field block/model.json \
    "r['default']['time_us'] > 0 and r['launches'] > 20 and {o['code'] for o in r['left_out']} <= {'budget'}"
check "nearly all tensors are found" field block/model.json "r['bound']['found'] > 0.9 * r['bound']['of']"
timed_in_place() { # in whole launches, which other work may disturb where the model's pieces are not
    local k
    for ((k = 0; k < 3; k++)); do
        if field block/model.json "0.5 < sum(o['default_us'] for o in r['operations']) / r['default']['time_us'] < 2"; then
            return
        fi
        CEILING_SCOUT_PATIENCE=1 run "$SCOUT" --replay block
    done
    return 1
}
check "each operation is timed in place" timed_in_place

# 120 batch norms in a row: each would multiply what it is given by several, were its scale as large as others
mkdir norms
python3 - norms/ops.json <<'END_OF_NORMS'
import json, sys

COUNT = 120
norm = {"id": "norm", "op": "norm", "what": "batch", "shape": [16, 64], "dtype": "fp32", "weight_dtype": "fp32", "bias": 1,
        "channels": 16, "count": COUNT, "occurrences": COUNT, "macs": 0, "flops": 2048, "bytes_read": 4352,
        "bytes_written": 4096, "nodes": [f"norm/{k}" for k in range(COUNT)]}
tensors, occurrences = [["x", "input", "fp32", [1, 16, 64], -1, 0, 0, 1]], []
for k in range(COUNT):
    at, last = len(tensors), k == COUNT - 1
    tensors += [[f"{side}{k}", "weight", "fp32", [16], -1, 0, k, 1] for side in ("scale", "bias", "mean", "variance")]
    tensors.append([f"y{k}", "output" if last else "activation", "fp32", [1, 16, 64], k, k, k if last else k + 1, 0 if last else 1])
    x, sides, y = max(at - 1, 0), [at, at + 1, at + 2, at + 3], at + 4
    occurrences.append([0, k, 0, 1, [x, *sides], [y], [x, y, *sides]])
graph = {"memory": {"weights": COUNT * 256, "activations": 8192, "at": 0, "unsized": 0}, "tensors": tensors,
         "occurrences": occurrences, "cuts": []}
json.dump({"schema": "ceiling-scout/ops/1", "model": {"name": "norms"}, "ops": [norm], "fusions": [], "graph": graph}, open(sys.argv[1], "w"))
END_OF_NORMS
CEILING_SCOUT_PATIENCE=1 run "$SCOUT" norms/ops.json -o norms --device cpu --no-replay --budget 5
CEILING_SCOUT_PATIENCE=1 run "$SCOUT" --replay norms
check "a deep model of batch norms: exit 0" exits 0
check "it ends in no infinities" field norms/model.json "r['launches'] == 120 and 'nonfinite' not in r"
finish

"""Runs whole models, and single nodes of random graphs, by libscout_run's plans on the CPU, with the models' own
weights and random inputs, and holds all outputs against onnxruntime's. Usage: check_plans.py EXTRACT_OPS [PART OF A NAME]…
LIBRARY names libscout_run.so, GRAPHS how many random graphs."""

import collections
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

import dequantised
import experts
import numpy as np
import onnx
import onnx.printer
import onnxruntime
import oracle
import pattern_attention
import pattern_false
import pattern_formulas
import pattern_graph
import pattern_layouts
import pattern_masks
import plan_masks
import plan_parts
import plan_run
import random_graphs

LIBRARY = os.environ.get("LIBRARY", "out/build/release-gcc/lib/libscout_run.so")
RUNS = {"transformer_block", "small_conv", "small_resnet", "pruned_mlp", "decoder_step", "bert_tiny_w", "mlp_sparse", "bert_base_ts",
        "gpt2_ts", "llama_decode_kv", "resnet50_ts", "swin_t", "vit_base_ts"}
BATCH, SEQ = 2, 16
MOST_BYTES = 150 << 20  # of weights that are made here


# Of the size of an output, by the type that is coarsest in the model.
CLOSE = {np.dtype(np.float16): 1e-2}
INDEXED = {"Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "Scatter", "OneHot", "RoiAlign"}


def close_of(values, launches=1):
    """Of halves, roundings add up with each operation."""
    close = max(CLOSE.get(v.dtype, 2e-4) for v in values.values())
    return max(close, close / 5 * launches**0.5) if close > 2e-4 else close


def with_weights(path, folder, rng):
    """The model as a file of its own, with random numbers for weights that are not here; None: they are too many."""
    model = onnx.load(path, load_external_data=False)
    apart = [i for i in model.graph.initializer if i.data_location == onnx.TensorProto.EXTERNAL]
    places = {e.value for i in apart for e in i.external_data if e.key == "location"}
    if all(os.path.exists(os.path.join(os.path.dirname(path), p)) for p in places):
        return path
    for i in apart:
        kind = onnx.helper.tensor_dtype_to_np_dtype(i.data_type)
        each = np.prod(i.dims[1:]) if len(i.dims) > 2 else max(i.dims, default=1)  # so many are added up, or so
        values = (rng.standard_normal(i.dims) * (1.4 / each**0.5 if len(i.dims) > 1 else 0.1)).astype(kind) if kind.kind == "f" else np.zeros(i.dims, kind)
        if "var" in i.name or "norm" in i.name:
            values = abs(values) + kind.type(0.5)
        i.ClearField("external_data")
        i.ClearField("data_location")
        i.raw_data = values.tobytes()
        if model.ByteSize() > MOST_BYTES:
            return None
    onnx.save(model, folder + "/model.onnx")
    return folder + "/model.onnx"


def feeds_of(session, ops, rng):
    """Random inputs of the sizes that ops.json has."""
    feeds = {}
    rows = {row[0]: row for row in ops["graph"]["tensors"] if row[1] == "input"}
    for i in session.get_inputs():
        dims = rows[i.name][3] if i.name in rows else [d if isinstance(d, int) else 1 for d in i.shape]
        if "float" in i.type:
            feeds[i.name] = rng.standard_normal(dims).astype(np.float16 if "16" in i.type else np.float32)
        elif "bool" in i.type:
            feeds[i.name] = rng.random(dims) < 0.5
        else:
            feeds[i.name] = rng.integers(0, 2 if "mask" in i.name or "type" in i.name else 30, dims).astype(
                np.int32 if "int32" in i.type else np.int64)
            if "mask" in i.name and dims:
                feeds[i.name][..., 0] = 1  # each query sees a key
    return feeds


def check_model(tally, library, program, path, rng):
    name = os.path.basename(path).removesuffix(".onnx")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([program, path, "--batch", str(BATCH), "--seq", str(SEQ), "-q", "-o", folder + "/ops.json"],
                              capture_output=True, text=True)
        if not tally.check(done.returncode <= 1, f"{name}: no ops.json: {done.stderr}"):
            return
        with open(folder + "/ops.json") as file:
            ops = json.load(file)
        try:
            plan = plan_run.Plan(library, folder)
        except plan_run.Refused as why:
            tally.check(name not in RUNS, f"{name}: refused: {why}")
            print(f"{name}: refused: {why}")
            return
        whole = with_weights(path, folder, rng)
        if whole:
            hold(tally, library, plan, whole, ops, rng, name)
        else:
            print(f"{name}: its weights are not here, and too large to make")
        plan.close()


def hold(tally, library, plan, path, ops, rng, name):
    """Its outputs against onnxruntime's, on the model's own weights and random inputs."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except onnxruntime.capi.onnxruntime_pybind11_state.Fail as why:  # an opset that it does not know
        print(f"{name}: {str(why)[:100]}")
        return
    feeds = feeds_of(session, ops, rng)
    feeds |= plan_run.constants_of(plan, path, feeds)
    before = library.launches()
    got = plan_run.outputs(plan, onnx.load(path), feeds, os.path.dirname(path))
    want = dict(zip([o.name for o in session.get_outputs()], session.run(None, {i.name: feeds[i.name] for i in session.get_inputs()})))
    worst = max(plan_run.distance(got[o], want[o]) for o in want)
    launches = (library.launches() - before) // 2
    tally.check(set(got) == set(want) and worst < close_of(want, launches), f"{name}: outputs are off by {worst:.2g} of their size")
    print(f"{name}: {len(want)} outputs by {launches} launches, off by {worst:.2g} of their size")
    return launches


def run_made(tally, library, program, name, model, must, run):
    """One model of a check's own: `run` gives what its plan made and what it should be. Whether it ran: others are refused,
    which those that must run may not be."""
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, folder + "/model.onnx")
        subprocess.run([program, folder + "/model.onnx", "-q", "-o", folder + "/ops.json"], capture_output=True)
        try:
            plan = plan_run.Plan(library, folder)
        except plan_run.Refused as why:
            tally.check(not must, f"{name}: refused: {why}")
            return False
        got, want = run(plan, folder)
        worst = plan_run.distance(got, want.astype(got.dtype))
        tally.check(worst < 2e-4, f"{name}: off by {worst:.2g}")
        plan.close()
    return True


def check_dequantised(tally, library, program, rng):
    """Against numpy: onnxruntime takes the input of such a product as bytes."""
    ran = [run_made(tally, library, program, name, model, must, lambda plan, _, m=model, x=x, want=want: (plan_run.outputs(plan, m, {"x": x})["y"], want))
           for name, model, x, want, must in dequantised.models(rng)]
    ran, refused = sum(ran), len(ran) - sum(ran)
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(dequantised.dynamic_convolution(False), folder + "/model.onnx")
        subprocess.run([program, folder + "/model.onnx", "-q", "-o", folder + "/ops.json"], capture_output=True)
        try:
            plan_run.Plan(library, folder).close()
            tally.check(False, "a dynamically quantised convolution is not refused")
        except plan_run.Refused as why:
            tally.check("come at run time" in str(why), f"a dynamically quantised convolution is refused: {why}")
    tally.check(ran > 0 and refused > 0, f"{ran} dequantised weights ran, {refused} did not")
    print(f"{ran} products of dequantised weights run, {refused} refused")


def device_class(scout):
    said = subprocess.run([scout, "--list-devices"], capture_output=True, text=True).stdout
    return next(line.split(" class ", 1)[1].strip() for line in said.splitlines() if " class " in line)


def fuse_all(ops, folder):
    """A plan of all fusions that scout_batch has reports of, whether they are faster or not, each by the default."""
    ids, taken, groups, names = {}, set(), [], []
    for report in glob.glob(folder + "/fusions/*.json"):
        with open(report) as file:
            of = json.load(file)["fusion"]
        ids[of["pattern"], *of["ops"]] = os.path.basename(report).removesuffix(".json")
    for fusion in ops["fusions"]:
        name = ids.get((fusion["pattern"], *fusion["ops"]))
        for site in fusion.get("sites", []) if name else []:
            if not taken & set(site):
                taken |= set(site)
                names.append(name)
                groups.append([len(names) - 1, *site])
    return {"groups": groups, "implementations": [{"fusion": n, "candidate": "none", "variant": ""} for n in names]}


def check_fused(tally, library, program, rng):
    scout = os.environ.get("SCOUT", "bin/scout_batch")
    for name in ("transformer_block", "pruned_mlp"):
        path = f"models/{name}.onnx"
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([program, path, "--batch", str(BATCH), "--seq", str(SEQ), "-q", "-o", folder + "/ops.json"], capture_output=True)
            subprocess.run([scout, folder + "/ops.json", "-o", folder, "--device", "cpu", "--budget", "3", "--no-replay", "-q"],
                           capture_output=True)
            with open(folder + "/ops.json") as file:
                ops = json.load(file)
            said = {"schema": "ceiling-scout/plan/1", "device": {"class": device_class(scout)}, **fuse_all(ops, folder)}
            with open(folder + "/plan.json", "w") as file:
                json.dump(said, file)
            plan = plan_run.Plan(library, folder)
            launches = hold(tally, library, plan, path, ops, rng, f"{name} in {len(said['groups'])} groups")
            tally.check(launches < len(ops["graph"]["occurrences"]) - len(said["groups"]) // 2, f"{name}: {launches} launches")
            plan.close()


def check_node(tally, library, program, g, node, counts):
    """One node of a random graph as a model of its own."""
    model = g.model([node])
    feeds = {i.name: g.values[i.name] for i in model.graph.input}
    if any(isinstance(g.values.get(n), list) or g.values[n].dtype.kind in "OUTV" for n in [*node.input, *node.output] if n):
        return
    if node.op_type in INDEXED and any(np.any(feeds[n] < 0) for n in node.input if n in feeds and feeds[n].dtype.kind == "i"):
        return  # of those that come with a run no plan knows
    if node.op_type in ("BitShift", "LpNormalization"):
        return  # shifts by all bits and lengths of 0, of which ONNX says nothing
    if node.op_type == "SoftmaxCrossEntropyLoss" and g.values[node.input[0]].shape[1] == 1:
        return  # of one class there is nothing but what rounding leaves
    if any(v.dtype.kind == "f" and not np.isfinite(v).all() for v in feeds.values()):
        return  # what is no number may become any
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, folder + "/model.onnx")
        done = subprocess.run([program, folder + "/model.onnx", "-q", "-o", folder + "/ops.json"], capture_output=True, text=True)
        if done.returncode > 1:
            return
        try:
            plan = plan_run.Plan(library, folder)
        except plan_run.Refused as why:
            counts["refused"][re.sub("[0-9]+", "_", str(why).split(": ", 1)[-1])[:90]] += 1
            return
        try:
            feeds |= plan_run.constants_of(plan, folder + "/model.onnx", feeds)
            got = plan_run.outputs(plan, model, feeds)
        except (plan_run.Refused, KeyError, StopIteration, TypeError) as why:
            refused = "expected indices from 0" in str(why)
            counts["refused"]["constant indices that count from the end"] += refused
            tally.check(refused, f"{node.op_type}: {why!r}")
            return
        counts["run"][node.op_type] += 1
        want = {name: g.values[name] for name in got}
        worst = max((plan_run.distance(got[o], want[o]) for o in want), default=0)
        if not tally.check(worst < close_of({**feeds, **want}), f"{node.op_type}: off by {worst:.2g}"):
            del model.graph.initializer[:]
            print(onnx.printer.to_text(model.graph))
        plan.close()


def pattern_models(rng):
    """Every model that the checks of patterns make, with weights that are not 0."""
    models, found = {}, pattern_graph.Found.__init__

    def keep(self, graph, *options):
        models.setdefault(graph.model().SerializeToString())
        found(self, graph, *options)

    pattern_graph.Graph.weight = lambda self, *shape, dtype=np.float32: self.const((rng.standard_normal(shape) * 0.3).astype(dtype))
    pattern_graph.Found.__init__ = keep
    quiet = oracle.Tally()
    quiet.check = lambda good, what: good
    for module in (pattern_attention, pattern_masks, pattern_formulas, pattern_layouts, pattern_false):
        module.check(quiet)
    pattern_graph.Found.__init__ = found
    return [onnx.load_from_string(m) for m in models]


def value_for(info, rng):
    dims = [d.dim_value for d in info.type.tensor_type.shape.dim]
    kind = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
    if np.issubdtype(kind, np.floating):
        return rng.standard_normal(dims).astype(kind)
    value = (rng.random(dims) < 0.7).astype(kind)
    if dims:
        value[..., 0] = 1  # each query sees a key
    return value


def check_patterns(tally, library, program, rng):
    ran = refused = 0
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    for model in pattern_models(rng):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/model.onnx"
            onnx.save(model, path)
            done = subprocess.run([program, path, "-q", "-o", folder + "/ops.json"], capture_output=True)
            try:
                plan = plan_run.Plan(library, folder)
            except plan_run.Refused:
                refused += 1
                continue
            try:
                session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
                feeds = {i.name: value_for(i, rng) for i in model.graph.input}
                want = dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))
            except Exception:  # an operator that it has no kernel for
                plan.close()
                continue
            if done.returncode <= 1 and all(np.isfinite(w).all() for w in want.values()):
                got = plan_run.outputs(plan, model, feeds | plan_run.constants_of(plan, path, feeds))
                worst = max(plan_run.distance(got[o], want[o]) for o in want)
                if not tally.check(worst < 2 * close_of({**feeds, **want}), f"a pattern is off by {worst:.2g}"):
                    del model.graph.initializer[:]
                    print(onnx.printer.to_text(model.graph))
                ran += 1
            plan.close()
    tally.check(ran > 400, f"of all patterns {ran} ran")
    print(f"{ran} patterns run, {refused} refused")


def check_masks(tally, library, program, rng):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4

    def run(plan, folder):
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        feeds = {i.name: inputs[i.name] if i.name in inputs else value_for(i, rng) for i in model.graph.input}
        got = plan_run.outputs(plan, model, feeds | plan_run.constants_of(plan, folder + "/model.onnx", feeds))["o"]
        return got, session.run(None, feeds)[0]

    ran = []
    for name, model, inputs, must in plan_masks.models(rng):
        ran.append(run_made(tally, library, program, name, model, must, run))
    tally.check(0 < sum(ran) < len(ran), f"{sum(ran)} masks of {len(ran)} ran")
    print(f"{sum(ran)} masks run, {len(ran) - sum(ran)} refused")


def check_random(tally, library, program, graphs):
    counts = {"run": collections.Counter(), "refused": collections.Counter()}
    for k in range(graphs):
        g = random_graphs.grown([5, k])
        for node in g.nodes:
            if node.domain == "":
                if os.environ.get("VERBOSE"):
                    print(k, node.op_type, node.name, flush=True)
                check_node(tally, library, program, g, node, counts)
    print(f"{sum(counts['run'].values())} nodes of {len(counts['run'])} operators run: {' '.join(sorted(counts['run']))}")
    print(f"{sum(counts['refused'].values())} refused: {counts['refused'].most_common(25)}")


def check_experts(tally, library, program, rng):
    """As they are they are refused. Where the routing is as it is assumed, and told, the parts make what the whole does."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    for name, tokens, k, attributes, bias, beside, deep in experts.FORMS:
        model, shape, values = experts.model(tokens, k, attributes, bias, beside, deep, rng)
        with tempfile.TemporaryDirectory() as folder:
            onnx.save(model, folder + "/model.onnx")
            subprocess.run([program, folder + "/model.onnx", "-q", "-o", folder + "/ops.json"], capture_output=True)
            try:
                plan_run.Plan(library, folder).close()
                tally.check(False, f"experts, {name}: assumed, and not refused")
            except plan_run.Refused as why:
                tally.check("moe/" in str(why) and "only data decide" in str(why), f"experts, {name}: refused: {why}")
            with open(folder + "/ops.json") as file:
                told = file.read().replace('"assumed"', '"input"')
            with open(folder + "/ops.json", "w") as file:
                file.write(told)
            mixes = "use_sparse_mixer" in attributes
            feeds = experts.feeds(tokens, k, shape, rng, 0.1 if mixes else 1.0)
            plan = plan_run.Plan(library, folder)
            got = plan_run.outputs(plan, model, feeds)["y"]
            turned, others = experts.by_turns(values, attributes)
            if mixes:  # which onnxruntime does not have on a CPU: one expert after the other
                others = {key: x for key, x in others.items() if key != "use_sparse_mixer"}
            whole = experts.of_weights(turned, shape, 1 if mixes else k, others).SerializeToString()
            session = onnxruntime.InferenceSession(whole, options, providers=["CPUExecutionProvider"])
            rounds = experts.mixed(feeds["router"]) if mixes else [(0, 1)]
            want = sum(session.run(None, {"x": feeds["x"], "router": feeds["router"] + alone})[0] * share for alone, share in rounds)
            want = np.asarray(want, np.float32)
            worst = plan_run.distance(got, want)
            tally.check(worst < 2e-4, f"experts, {name}: off by {worst:.2g}")
            plan.close()
    print(f"{len(experts.FORMS)} mixtures of experts run as their parts")


def check_parts(tally, library, program, rng):
    """Every one is taken apart, and all its parts run where plans run such work."""
    ran = listed = refused = 0
    for name, model, feeds, *more in plan_parts.models(rng):
        with tempfile.TemporaryDirectory() as folder:
            onnx.save(model, folder + "/model.onnx")
            subprocess.run([program, folder + "/model.onnx", "-q", "-o", folder + "/ops.json"], capture_output=True)
            if len(more) > 1 and isinstance(more[0], str):
                said = "it runs"
                try:
                    plan_run.Plan(library, folder).close()
                except plan_run.Refused as why:
                    said = str(why)
                tally.check(more[0] in said, f"{name}: is not refused with '{more[0]}': {said}")
                refused += 1
                continue
            if len(more) > 1:
                with open(folder + "/ops.json") as file:
                    ops = json.load(file)["ops"]
                parts = [":".join(filter(None, (o["op"], o.get("what"), o.get("mask")))) for o in ops for _ in range(o["count"])
                         if o.get("what") not in ("view", "folded")]
                tally.check(sorted(parts) == sorted(more[0]), f"{name}: taken apart into {parts}")
                listed += 1
                continue
            inputs = feeds | {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
            want = ({f"out{k}": x for k, x in enumerate(more[0](*(inputs.get(n) for n in model.graph.node[0].input)))}
                    if more else plan_parts.expected(model, feeds))
            try:
                plan = plan_run.Plan(library, folder)
            except plan_run.Refused as why:
                tally.check(False, f"{name}: refused: {why}")
                continue
            got = plan_run.outputs(plan, model, feeds | plan_run.constants_of(plan, folder + "/model.onnx", feeds))
            worst = max(plan_run.distance(got[o], want[o]) for o in want)
            tally.check(worst < close_of({**feeds, **want}), f"{name}: off by {worst:.2g}")
            ran += 1
            plan.close()
    print(f"{ran} operators run as their parts, {listed} are taken apart, {refused} refused")


def main():
    tally = oracle.Tally()
    if not os.path.exists(LIBRARY):
        tally.skip(f"{LIBRARY} is not there")
        tally.end()
    library = plan_run.Library(LIBRARY)
    rng = np.random.default_rng(7)
    only = sys.argv[2:]
    for path in sorted(glob.glob("models/*.onnx")) + oracle.models():
        if os.path.getsize(path) < 1 << 30 and (not only or any(o in path for o in only)):
            check_model(tally, library, oracle.program(), path, rng)
    if not only or "fused" in only:
        check_fused(tally, library, oracle.program(), rng)
    if not only or "experts" in only:
        check_experts(tally, library, oracle.program(), rng)
    if not only or "parts" in only:
        check_parts(tally, library, oracle.program(), rng)
    if not only or "random" in only:
        check_random(tally, library, oracle.program(), int(os.environ.get("GRAPHS", 150)))
    if not only or "dequantised" in only:
        check_dequantised(tally, library, oracle.program(), rng)
    if not only or "masks" in only:
        check_masks(tally, library, oracle.program(), rng)
    if not only or "patterns" in only:
        check_patterns(tally, library, oracle.program(), rng)
    library.close()
    tally.end()


main()

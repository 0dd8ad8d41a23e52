"""Random graphs, read by extract_ops and run by onnxruntime: every tensor's type and shape must agree, where extract_ops says
that a shape is exact; be no larger than it says, where it says a bound; and be unknown only behind data. What ops.json tells
as a view must be, by its strides over its source, what onnxruntime makes of it; and what an occurrence reads and makes must be
of its nodes. With --chains most of each graph is behind data, and those of the first graphs are the known traps
(random_chains.py). With --moves nothing is computed.

usage: random_graphs.py [PROGRAM] [--chains | --moves] [--graphs N] [--seed S] [--keep FOLDER]"""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.printer

import operands
import oracle
import random_chains
import random_nodes
from random_graph import LOCAL, Graph, Refused, dtype_of, free_names, run

OPSETS = (9, 11, 13, 17, 18, 21, 21, 23, 24, 26)
MOVES = "Expand Flatten Gather Identity Reshape Slice Split Squeeze Tile Transpose Transpose Unsqueeze".split()
# What differs by intent: class -> why.
INTENDED = {}


def grown(seed):
    """A graph of any operators; of a seed of three numbers a chain behind data, of four one of moves."""
    rng = np.random.default_rng(seed)
    g = Graph(rng, int(rng.choice(OPSETS)))
    if len(seed) == 4:
        for _ in range(2):
            g.input(random_nodes.numbers(g, random_nodes.random_shape(g, random_nodes.some(g, 1, 4)), np.float32))
        random_nodes.grow(g, random_nodes.some(g, 4, 14), MOVES)
        return g
    if len(seed) == 3:
        if not random_chains.directed(g, seed[1]):
            random_chains.chain(g, random_nodes.some(g, 4, 14))
        return g
    for _ in range(random_nodes.some(g, 1, 3)):
        random_nodes.fresh(g, random_nodes.random_shape(g, random_nodes.some(g, 1, 4)))
    random_nodes.grow(g, random_nodes.some(g, 3, 14), list(random_nodes.MAKERS))
    return g


def differs(value, got, by_data):
    """None, or in one word how what is said of a tensor is wrong."""
    like = value[0] if isinstance(value, list) and value else value
    if got is None:
        return "not listed"
    if isinstance(value, list):
        if got.get("form") != "sequence" and not by_data:
            return "no sequence"
        if got.get("exact", True) and got.get("length", len(value) if by_data else -1) != len(value):
            return "wrong length"
        if not value:
            return None
    if "shape" not in got:
        return None if by_data else "unknown"
    if "dtype" in got and got["dtype"] != oracle.DTYPES[dtype_of(like)]:
        return "wrong type"
    said, is_so = got["shape"], list(like.shape)
    if got.get("exact", True):
        return None if said == is_so else "wrong"
    if len(said) != len(is_so) or any(a < b for a, b in zip(said, is_so)):
        return "above the bound"
    return None if by_data else "only a bound"


def strided(row, rows, values):
    """A view by its strides over the source's elements as they lie; without strides these themselves."""
    source = np.ascontiguousarray(values[rows[row[8]][0]]).reshape(-1)
    if len(row) == 9:
        return source.reshape(row[3])
    at = np.full(row[3], row[9])
    for axis, stride in enumerate(row[10]):
        at += stride * np.arange(row[3][axis]).reshape([-1] + [1] * (len(row[3]) - axis - 1))
    return source[at]


def held(names, makers, values):
    """These, and what sequences among them were made of."""
    more = {i for name in names if isinstance(values.get(name), list) and name in makers for i in makers[name].input}
    return names | held(more, makers, values) if more else names


def flows(ops, g, nodes, said):
    """None, or (class, node, details) of the first tensor or occurrence of the dataflow that is not so."""
    rows, entries = ops["graph"]["tensors"], ops["ops"]
    by_name = {n.name: n for n in nodes}
    makers = {o: n for n in nodes for o in n.output}
    for row in rows:
        value = g.values.get(row[0])
        if len(row) < 9 or not isinstance(value, np.ndarray) or list(value.shape) != row[3]:
            continue
        source = g.values.get(rows[row[8]][0])
        if not isinstance(source, np.ndarray) or list(source.shape) != rows[row[8]][3]:
            continue
        if said is not None:
            said["free view" if len(row) == 9 else "view of a move"] += 1
        if strided(row, rows, g.values).tobytes() != value.tobytes():
            return "another view", None, f"{row[0]} is no view {row[8:]} of {rows[row[8]][0]}"
    for at, (op, _, first, count, reads, makes, _) in enumerate(ops["graph"]["occurrences"]):
        its = [by_name.get(name) for name in entries[op]["nodes"][first:first + count]]
        if None in its or any(a.type == onnx.AttributeProto.GRAPH for n in its for a in n.attribute):
            continue  # of a body or a function; of what reads around its body
        if any("/" in rows[r][0] for r in (*reads, *makes)):
            continue  # of a part: what it reads or makes is named after its node
        given, made = held({i for n in its for i in n.input}, makers, g.values), {o for n in its for o in n.output}
        parts = {rows[t][0] for t in (*reads, *makes) if rows[t][0].startswith(f"{its[0].name}/")}
        if parts:
            continue  # of a node that is taken apart
        read = {rows[r][0] for r in reads if rows[r][1] not in ("weight", "constant")}
        if any(name.startswith(n.name + "/") for n in its for name in read):
            continue  # the last part of what is taken apart: it reads what the others make
        if not read <= given or not {rows[m][0] for m in makes} <= made:
            return "another occurrence", its[0].name, f"occurrence {at}, {its[0].name}, reads {read} and makes {makes}"
        why = operands.wrong(ops, at, its[0], makers) if count == 1 else None
        if why:
            return "another operand", its[0].name, why
    return None


def judge(program, g, nodes, said=None):
    """(class, node, details) of the first difference that extract_ops shows on these nodes; None. said counts what is said of
    tensors."""
    model = g.model(nodes)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        onnx.save(model, path)
        done = oracle.Run(program, path)
    if done.code not in (0, 1):
        said = done.last_line()
        op = re.search(r"node '([^']*)' \((\w+)\)", said)
        plain = re.sub(r"'[^']*'|\[[^]]*\]|-?\d+", "_", said.split(".onnx: ", 1)[-1]).split(";")[0]
        return f"refused: {plain}" if done.code == 3 else f"exit {done.code}", op.group(1) if op else None, said
    for node in nodes:
        for name in node.output:
            got = done.tensors.get(name)
            how = differs(g.values[name], got, name in g.by_data)
            if said is not None and got:
                said["unknown" if "shape" not in got else "exact" if got.get("exact", True) else "bounded"] += 1
            if how:
                value = g.values[name]
                is_so = [v.shape for v in value] if isinstance(value, list) else f"{value.dtype}{list(value.shape)}"
                return f"{how}: {node.op_type}", node.name, f"{name} is {is_so}, said is {done.tensors.get(name)}"
    return flows(done.ops, g, nodes, said)


def needed(nodes, last):
    """The nodes up to one that it depends on."""
    wanted, kept = set(), []
    for node in reversed(nodes):
        if node.name == last or wanted & set(node.output):
            kept.insert(0, node)
            wanted |= set(free_names([node]))
    return kept


def reduced(program, g, nodes, found):
    """The fewest nodes found that still differ in the same way."""
    if found[1]:
        fewer = needed(nodes, found[1])
        again = judge(program, g, fewer)
        if again and again[0] == found[0]:
            nodes, found = fewer, again
    for node in list(nodes):
        if len(nodes) == 1:
            break
        fewer = [n for n in nodes if n is not node]
        again = judge(program, g, fewer)
        if again and again[0] == found[0]:
            nodes, found = fewer, again
    return nodes, found


def runs_whole(g):
    """Whether onnxruntime runs the graph as a whole too, with the same shapes."""
    model = g.model()
    inputs = {i.name: g.values[i.name] for i in model.graph.input}
    constants = {i.name: g.values[i.name] for i in model.graph.initializer}
    try:
        names = [o for n in g.nodes for o in n.output]
        results = run(g.nodes, inputs | constants, names, g.opset, g.functions)
    except Refused as problem:
        return str(problem)
    for name, result in zip(names, results):
        parts = [(v if isinstance(v, list) else [v]) for v in (result, g.values[name])]
        if name not in g.by_data and [p.shape for p in parts[0]] != [p.shape for p in parts[1]]:
            return f"{name} differs between the node and the whole"
    return None


def explain(program, seed, keep):
    """Prints the reduced graph of a mismatch, and keeps it as a file."""
    g = grown(seed)
    found = judge(program, g, g.nodes)
    if not found:
        print("no difference")
        return
    kept, found = reduced(program, g, g.nodes, found)
    model = g.model(kept)
    if keep:
        os.makedirs(keep, exist_ok=True)
        onnx.save(model, os.path.join(keep, re.sub(r"\W+", "_", found[0])[:60] + ".onnx"))
    del model.graph.initializer[:]
    print(f"graph {seed[1]}: {found[0]}: {found[2]}\n{onnx.printer.to_text(model.graph)}")


def look(program, seed):
    """(class or None, operators, why onnxruntime does not run it whole, what is said of tensors)"""
    g = grown(seed)
    said = collections.Counter()
    found = judge(program, g, g.nodes, said) if g.nodes else None
    whole = runs_whole(g) if seed[1] % 20 == 0 and g.nodes else None
    return found and found[0], [n.op_type for n in g.nodes if n.domain != LOCAL], whole, said


def again(options):
    return [sys.executable, __file__, options.program, "--seed", str(options.seed)] + [["--chains"], ["--moves"]][len(options.chain) - 1] * bool(options.chain)


def results(options, lane, lanes):
    """The number of every lanes-th graph and what look gives of it, from a process of its own; None of one at which that died or
    hung, as onnxruntime does on some nodes."""
    at, found = lane, []
    while at < options.graphs:
        command = again(options) + ["--graphs", str(options.graphs), "--from", str(at), "--step", str(lanes)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
            for line in child.stdout:
                found.append((at, json.loads(line)))
                at += lanes
        if child.returncode > 0:
            raise RuntimeError(f"at graph {at}: {' '.join(command)} ended with {child.returncode}")
        if at < options.graphs:
            found.append((at, None))
            at += lanes
    return found


def summarize(options):
    tally, classes, operators, first = oracle.Tally(), collections.Counter(), collections.Counter(), {}
    died, apart, said = [], collections.Counter(), collections.Counter()
    lanes = int(os.environ.get("JOBS") or len(os.sched_getaffinity(0)))
    with concurrent.futures.ThreadPoolExecutor(lanes) as pool:
        parts = pool.map(lambda lane: results(options, lane, lanes), range(lanes))
    for k, result in sorted((found for part in parts for found in part), key=lambda found: found[0]):
        if result is None:
            died.append(k)
            continue
        what, made, whole, counts = result
        operators.update(made)
        said.update(counts)
        if whole:
            apart[whole] += 1
        if what:
            classes[what] += 1
            first.setdefault(what, k)
        tally.passed += not what or what in INTENDED
        tally.failed += bool(what) and what not in INTENDED
    for what, times in classes.most_common():
        print(f"{times} x {what}" + (f" (intended: {INTENDED[what]})" if what in INTENDED else ""), flush=True)
        if what not in INTENDED:
            command = again(options) + ["--explain", str(first[what])]
            subprocess.run(command + (["--keep", options.keep] if options.keep else []), stderr=subprocess.DEVNULL, check=False)
    for why, times in apart.most_common(5):
        print(f"run whole {times} x {why[:200]}")
    tables = (random_nodes.MAKERS, random_chains.SOURCES | random_chains.USES, dict.fromkeys(MOVES))[len(options.chain)]
    never = sorted(set(tables) - set(operators) - {"Function", "Optional", "Sequence", "SplitSizes", "SqueezeAxes"})
    print(f"{options.graphs} {('graphs', 'chains behind data', 'graphs of moves')[len(options.chain)]}, {sum(operators.values())} nodes, "
          f"{len(operators)} operator types; tensors: {dict(said)}; onnxruntime died at {died or 'none'}; "
          f"never made: {' '.join(never) or 'none'}")
    tally.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?", default="bin/extract_ops")
    parser.add_argument("--graphs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--chains", dest="chain", action="store_const", const=[1], default=[], help="chains behind data")
    parser.add_argument("--moves", dest="chain", action="store_const", const=[1, 1], help="nothing but moves")
    parser.add_argument("--keep", help="folder for one reduced model of each class")
    parser.add_argument("--explain", type=int, help="reduces this graph of the seed, and prints what differs")
    parser.add_argument("--from", type=int, dest="first", help=argparse.SUPPRESS)
    parser.add_argument("--step", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.program = os.path.abspath(options.program)
    if options.explain is not None:
        explain(options.program, [options.seed, options.explain, *options.chain], options.keep)
    elif options.first is not None:
        for k in range(options.first, options.graphs, options.step):
            signal.alarm(30)
            print(json.dumps(look(options.program, [options.seed, k, *options.chain])), flush=True)
    else:
        summarize(options)


if __name__ == "__main__":
    main()

"""Holds the operands of ops.json against the graphs of the project's models and of the real ones: of each occurrence that is
one node the input at the right place, of attentions what both products read."""

import glob
import os
import tempfile

import dequantised
import numpy as np
import onnx
import operands
import oracle

MOST_STEPS = 12
SIDES = {"Transpose", "Reshape", "Unsqueeze", "Squeeze", "Slice", "Split", "Identity", "Cast", "Expand", "Gather", "Concat"}


def nodes_of(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from nodes_of(attribute.g)


def above(name, makers):
    """What an operand of a product may be read from: itself, and what lies above moves, views and scales."""
    names, left = set(), [name]
    for _ in range(MOST_STEPS):
        names |= set(left)
        nodes = [makers[n] for n in left if n in makers]
        left = [i for n in nodes if n.op_type in SIDES for i in n.input[:1]]
        left += [i for n in nodes if n.op_type in ("Mul", "Div") for i in n.input]
    return names


def products(its, makers):
    """(first, last) product of an attention that is spelled out; None."""
    of = [n for n in its if n.op_type == "MatMul"]
    if len(of) != 2:
        return None
    made = {o for n in its for o in n.output}
    softmax = next((n for n in its if n.op_type == "Softmax"), None)
    last = [n for n in of if softmax and set(n.input) & {o for o in made if reaches(o, softmax.output[0], makers)}]
    return (of[1 - of.index(last[0])], last[0]) if len(last) == 1 else None


def reaches(name, goal, makers):
    for _ in range(MOST_STEPS):
        if name == goal:
            return True
        if name not in makers or not makers[name].input:
            return False
        name = makers[name].input[-1 if makers[name].op_type == "Where" else 0]
    return False


def check_attention(ops, at, its, makers):
    rows, said = ops["graph"]["tensors"], ops["graph"]["occurrences"][at][6]
    both = products(its, makers)
    if both is None or min(said[:4], default=-1) < 0:
        return None
    first, last = both
    softmax = next(n for n in its if n.op_type == "Softmax")
    value = next(i for i in last.input if not reaches(i, softmax.output[0], makers))
    for name, tensor, of in (("q", said[0], first.input[0]), ("k", said[1], first.input[1]), ("v", said[2], value)):
        if rows[tensor][0] not in above(of, makers):
            return f"{name} is {rows[tensor][0]}, which {of} is not made of"
    return None


def check_model(tally, path):
    model = onnx.load(path, load_external_data=False)
    run = oracle.Run(oracle.program(), path, "--batch", 2, "--seq", 64)
    name = os.path.basename(path)
    if not tally.check(run.ops is not None, f"{name}: no ops.json: {run.last_line()}"):
        return
    told, known = check_occurrences(tally, run, model, name)
    tally.check(told == 0 or known > 0.7 * told, f"{name}: of {told} operands {known} are known")
    print(f"{name}: {known} of {told} operands known")


def check_occurrences(tally, run, model, name):
    """(how many operands are told, how many of them are a tensor of the model)."""
    nodes = list(nodes_of(model.graph))
    by_name, makers = {n.name: n for n in nodes}, {o: n for n in nodes for o in n.output}
    known = told = 0
    for at, (op, _, first, count, _, _, said) in enumerate(run.ops["graph"]["occurrences"]):
        entry = run.ops["ops"][op]
        its = [by_name.get(n) for n in entry["nodes"][first:first + count]]
        if None in its:
            continue
        told += len(said)
        known += sum(t >= 0 for t in said)
        why = operands.wrong(run.ops, at, its[0], makers) if count == 1 else None
        if entry["op"] == "attention" and count > 1:
            why = check_attention(run.ops, at, its, makers)
        if why:
            tally.check(False, f"{name}: {entry['id']} at {its[0].name}: {why}")
    return told, known


def check_dequantised(tally):
    for name, model, _, _, must in dequantised.models(np.random.default_rng(5)):
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            onnx.save(model, file.name)
            told, known = check_occurrences(tally, oracle.Run(oracle.program(), file.name), model, name)
            tally.check(told > 0 and (known == told or not must), f"{name}: of {told} operands {known} are known")


def check_dynamic(tally):
    """Its scales and zero points are numbers of the operation, and no operands."""
    for channels in (False, True):
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            onnx.save(dequantised.dynamic_convolution(channels), file.name)
            graph, ops = (run := oracle.Run(oracle.program(), file.name)).ops["graph"], run.ops["ops"]
            said = [[graph["tensors"][t][0] for t in o[6]] for o in graph["occurrences"] if ops[o[0]]["op"] == "conv"]
            tally.check(said == [["bytes", "w", "y"]], f"a dynamically quantised convolution has the operands {said}")


def main():
    tally = oracle.Tally()
    for path in sorted(glob.glob("models/*.onnx")) + oracle.models():
        check_model(tally, path)
    check_dequantised(tally)
    check_dynamic(tally)
    tally.end()


main()

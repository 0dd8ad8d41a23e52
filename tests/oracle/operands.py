"""Which input of a node each of an operation's own tensors must be, told apart from extract_ops: by operator, in the order of
docs/kinds_tensors.md."""

# Inputs by slot, outputs behind a slash. Operators that are not here have their inputs in order and then their output.
SLOTS = {
    "MatMul": "0 1 /0", "Gemm": "0 1 /0 2", "Conv": "0 1 /0 2", "ConvTranspose": "0 1 /0 2", "FusedConv": "0 1 /0 2 3",
    "FusedMatMul": "0 1 /0", "LayerNormalization": "0 /0 1 2", "RMSNormalization": "0 /0 1", "BatchNormalization": "0 /0 1 2 3 4",
    "InstanceNormalization": "0 /0 1 2", "GroupNormalization": "0 /0 1 2", "SimplifiedLayerNormalization": "0 /0 1",
    "SkipLayerNormalization": "0 /0 2 3 1 4", "Softmax": "0 /0", "LogSoftmax": "0 /0", "Gather": "0 1 /0", "GatherElements": "0 1 /0",
    "GatherND": "0 1 /0", "ScatterND": "0 1 2 /0", "ScatterElements": "0 1 2 /0", "Transpose": "0 /0", "Slice": "0 /0", "Pad": "0 /0",
    "Expand": "0 /0", "Tile": "0 /0", "Cast": "0 /0", "ReduceMean": "0 /0", "ReduceSum": "0 /0", "ReduceMax": "0 /0", "TopK": "0 /0 /1",
    "ArgMax": "0 /0", "CumSum": "0 /0", "MaxPool": "0 /0 /1", "AveragePool": "0 /0", "GlobalAveragePool": "0 /0", "Clip": "0 /0",
    "LSTM": "0 1 2 3 4 5 6 7 /0 /1 /2", "GRU": "0 1 2 3 4 5 /0 /1", "QuantizeLinear": "0 1 2 /0", "DequantizeLinear": "0 1 2 /0",
    "QLinearConv": "0 3 /0 8", "QLinearMatMul": "0 3 /0", "MatMulNBits": "0 1 /0 5 2 3", "Resize": "0 /0", "Trilu": "0 /0",
}
INPUTS_THEN_OUTPUT = {
    "Sub", "Div", "Where", "Mod", "PRelu", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "BitShift", "Relu", "Sigmoid",
    "Tanh", "Erf", "Exp", "Log", "Sqrt", "Neg", "Abs", "Not", "Gelu", "Reciprocal", "Sin", "Cos",
}
EITHER_WAY = {"Add", "Mul", "Max", "Min", "And", "Or", "Xor", "Equal", "Sum", "Mean"}
RENAMES = {"Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Cast", "CastLike", "DequantizeLinear",
           "Constant"}


def stored(name, makers):
    """The names under which a constant may stand: its own, and of what it is another view."""
    names = [name]
    while name in makers and makers[name].op_type in RENAMES and makers[name].input:
        name = makers[name].input[0]
        names.append(name)
    return names


def attribute(node, name, otherwise):
    return next((a.i for a in node.attribute if a.name == name), otherwise)


def dequantised(node, entry, makers):
    """The DequantizeLinear of a product's weight, and whether the product reads what it makes as [N, K]; None: there is none."""
    if node.op_type not in ("MatMul", "Gemm") or entry.get("weight_side") != "b":
        return None, False
    name, turned = node.input[1], attribute(node, "transB", 0) != 0
    while name in makers and makers[name].op_type in RENAMES and makers[name].input:
        if makers[name].op_type == "DequantizeLinear":
            return makers[name], turned
        turned ^= makers[name].op_type == "Transpose"
        name = makers[name].input[0]
    return None, False


def lies(node, turned, rank, dims):
    """Scales (or zero points) of such a weight: as [N, K/block], or one for each column."""
    axis = attribute(node, "axis", 1)
    from_end = rank - axis if axis >= 0 else -axis
    if all(d == 1 for d in dims):
        return True
    if not attribute(node, "block_size", 0):
        return from_end == (2 if turned else 1)
    return from_end == (1 if turned else 2) and (turned or 1 in dims[-2:])


def wanted(node):
    """Names of the model's tensors, None where the node does without; None: not known here."""
    if node.op_type == "Concat":
        return [*node.input, node.output[0]]
    if node.op_type in INPUTS_THEN_OUTPUT or node.op_type in EITHER_WAY:
        return [*dict.fromkeys(node.input), node.output[0]]
    if node.op_type not in SLOTS or node.domain not in ("", "ai.onnx", "com.microsoft"):
        return None
    names = []
    for slot in SLOTS[node.op_type].split():
        of, at = (node.output, int(slot[1:])) if slot[0] == "/" else (node.input, int(slot))
        names.append(of[at] if at < len(of) and of[at] else None)
    return names


def wrong(ops, at, node, makers):
    """What is wrong with the operands of an occurrence that is this node alone; None: nothing."""
    entry, rows = ops["ops"][ops["graph"]["occurrences"][at][0]], ops["graph"]["tensors"]
    said = ops["graph"]["occurrences"][at][6]
    names = wanted(node)
    if not said and "shape" not in entry:
        return None
    if names is None or entry.get("quant") or (node.op_type == "Pow" and "exponent" in entry):
        return None
    if node.op_type in ("TopK", "LSTM", "GRU", "MaxPool"):  # what nothing reads need not be there
        names = [n for n in names if n and (n in node.input or any(n == rows[t][0] for t in said))]
        said = [t for t in said if t >= 0]
    names = [n for n in names if n]
    scaled, turned = dequantised(node, entry, makers)
    if scaled:
        names += scaled.input[1:3 if entry.get("zero_points") else 2]
    if len(said) != len(names):
        return f"{node.op_type} has {len(said)} operands, not {len(names)}"
    either = {n for name in names[:-1] for n in stored(name, makers)} if node.op_type in EITHER_WAY else ()
    for tensor, name in zip(said, names):
        is_input = name not in node.output
        if tensor >= 0 and rows[tensor][0] not in (either if is_input and either else stored(name, makers)):
            return f"{node.op_type}: {rows[tensor][0]} stands for {name}"
        if tensor >= 0 and (tensor in ops["graph"]["occurrences"][at][4 if is_input else 5]) is False:
            return f"{node.op_type}: {rows[tensor][0]} is no {'input' if is_input else 'output'}"
        if scaled and tensor >= 0 and name in scaled.input[1:] and not lies(scaled, turned, len(rows[said[1]][3]), rows[tensor][3]):
            return f"{node.op_type}: {name} lies along another axis"
    if node.op_type in EITHER_WAY and len(set(said[:-1]) - {-1}) < len([t for t in said[:-1] if t >= 0]):
        return f"{node.op_type}: one tensor stands for both operands"
    return None

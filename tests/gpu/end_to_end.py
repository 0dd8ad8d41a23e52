"""Runs the dataflow of an ops.json with PyTorch and holds it against scout_batch's replay by the defaults:

    end_to_end.py OPS.json MODEL.json RESULT.json
    end_to_end.py --shapes OPS.json...    runs them on tensors without memory: which operations it has a call for

Every occurrence of a run is one call of PyTorch, in the order of `graph`, with the tensors that are named there; all of a run
is one CUDA graph. The kernels of one replay under load are named by the profiler and given to the operations in the order
of their calls. Where both sides run the same kernel of a library, for a product, a convolution or attention, its times are
held against each other. All else, as kernels of PyTorch's own, stands beside what scout_batch runs there. How long the
replay takes is measured as agree_common.py does, over whole seconds.

Convolutions lie as the file has them. MODEL.json is what scout_batch wrote of the same list as a whole, and its trace.json
lies beside it.
"""
import functools
import json
import math
import re
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

DTYPES = {"fp32": torch.float, "fp16": torch.half, "bf16": torch.bfloat16, "fp64": torch.double, "bool": torch.bool,
          "int64": torch.int64, "int32": torch.int32, "int16": torch.int16, "int8": torch.int8, "uint8": torch.uint8}
NAME, KIND, DTYPE, DIMS, PRODUCER, SOURCE, OFFSET, STRIDES = 0, 1, 2, 3, 4, 8, 9, 10
LIBRARY_KINDS = ("gemm", "conv", "attention")


class NoCall(Exception):
    """PyTorch is not asked for this operation here."""


def pick(tensors, wanted):
    """Of the tensors that an occurrence reads one for each of the wanted dimensions, in their order: the first that is as
    large and was not taken. An operand that an operation reads twice stands there once."""
    left, found = list(tensors), []
    for dims in wanted:
        size = math.prod(dims)
        at = next((k for k, tensor in enumerate(left) if tensor.numel() == size), None)
        if at is not None:
            found.append(left.pop(at))
        else:
            again = next((tensor for tensor in found if tensor.numel() == size), None)
            if again is None:
                raise NoCall(f"nothing that it reads has {size} elements")
            found.append(again)
    return found


def gemm(op, read):
    rows, cols, inner = op["shape"]
    if op.get("what") or op.get("block_size") or op.get("batch_a") or op.get("batch_inside") or op.get("quant"):
        raise NoCall("a product of another form")
    batch, layout = op.get("batch", 1), op.get("layout", "nn")
    a_batch = 1 if op.get("batch_stride_a") == 0 else batch
    b_batch = 1 if op.get("batch_stride_b") == 0 else batch
    first, second = pick(read, [[a_batch, rows, inner], [b_batch, inner, cols]])
    if op.get("weight_side") != "a" and first.dim() == 2 and second.dim() > 2 and first is not second:
        first, second = pick(reversed(read), [[a_batch, rows, inner], [b_batch, inner, cols]])
    turn = lambda x, count, height, width, how: (x.reshape(count, height, width) if how == "n"
                                                 else x.reshape(count, width, height).transpose(1, 2))
    a, b = turn(first, a_batch, rows, inner, layout[0]), turn(second, b_batch, inner, cols, layout[1])
    if a_batch == b_batch == 1:
        a, b = a[0], b[0]
    bias = {"n": [cols], "scalar": [1], "full": [batch, rows, cols]}.get(op.get("bias"))
    if op.get("bias") and not bias:
        raise NoCall(f"a bias as {op['bias']}")
    more = pick([x for x in read if x is not first and x is not second], [bias]) if bias else []
    if more and a.dim() == 2:
        out = torch.addmm(more[0].reshape(-1, cols) if op["bias"] == "full" else more[0], a, b)
    else:
        out = torch.matmul(a, b)
        out = out + more[0].reshape(out.shape if op["bias"] == "full" else -1) if more else out
    return activated(op, out)


def activated(op, out):
    name = op.get("activation")
    if name and name not in UNARY:
        raise NoCall(f"an activation {name}")
    return UNARY[name](out, {key.removeprefix("activation_"): op[key] for key in op}) if name else out


def conv(op, read):
    if op.get("what") or op.get("transposed") or op.get("layout") != "nchw" or op.get("quant") or op.get("residual"):
        raise NoCall("a convolution of another form")
    kernel, group, dims = op["kernel"], op.get("group", 1), op["input"]
    wanted = [dims, [op["shape"][1], dims[1] // group, *kernel]]
    found = pick(read, wanted + ([[op["shape"][1]]] if op.get("bias") else []))
    x, pads, rank = found[0].reshape(dims), op.get("pads", [0] * 2 * len(kernel)), len(kernel)
    if pads[:rank] != pads[rank:]:
        x, pads = F.pad(x, [n for k in reversed(range(rank)) for n in (pads[k], pads[k + rank])]), [0] * 2 * rank
    call = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    return activated(op, call(x, found[1].reshape(wanted[1]), found[2] if len(found) > 2 else None,
                              op.get("stride", 1), pads[:rank], op.get("dilation", 1), group))


def heads_of(tensor, batch, heads, length, size, layout):
    """[sequences, heads, rows, elements], however they lie."""
    if list(tensor.shape) == [batch, heads, length, size] and not tensor.is_contiguous():
        return tensor
    if layout == "bhsd":
        return tensor.reshape(batch, heads, length, size)
    return tensor.reshape(batch, length, heads, size).transpose(1, 2)


BACKENDS = [SDPBackend.CUDNN_ATTENTION]


def attend(q, k, v, mask, **how):
    """By cuDNN, as in the reports; by what PyTorch picks where it does not give cuDNN this one, which is said."""
    try:
        with sdpa_kernel(BACKENDS):
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, **how)
    except RuntimeError as error:
        if len(BACKENDS) > 1:
            raise
        print(f"attention runs without cuDNN: {str(error).splitlines()[0][:150]}")
        BACKENDS.extend([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])
        return attend(q, k, v, mask, **how)


def attention(op, read):
    batch, heads, queries, size = op["shape"]
    keys, groups, values = op["kv_len"], op["kv_heads"], op.get("v_head", size)
    if op.get("what") or op.get("window") or op.get("softcap") or op.get("projection") or op.get("mask") == "lengths":
        raise NoCall("an attention of another form")
    lies = {side: op.get(f"{side}_layout", op.get("layout", "bhsd")) for side in ("q", "k", "v", "out")}
    given, mask = mask_of(op, read)
    read = [x for x in read if x is not given]
    if op.get("packed"):
        q, k, v = unpacked(op, read)
    else:
        q, k, v = pick(read, [[batch, heads, queries, size], [batch, groups, keys, size], [batch, groups, keys, values]])
    out = attend(heads_of(q, batch, heads, queries, size, lies["q"]), heads_of(k, batch, groups, keys, size, lies["k"]),
                 heads_of(v, batch, groups, keys, values, lies["v"]),
                 mask, is_causal=op.get("mask") == "causal", scale=op.get("scale"), enable_gqa=groups != heads)
    return out if lies["out"] == "bhsd" else out.transpose(1, 2)


@functools.cache
def made_mask(dims, device):
    """Where several tensors make one mask, or it repeats over some sequences: made beforehand, as it would be once a model."""
    batch, *shape = dims
    one = torch.zeros(shape, device=device, dtype=torch.half)
    return one.reshape(-1, *shape[-3:]).repeat(batch // (one.numel() // math.prod(shape[-3:])), 1, 1, 1)


def mask_of(op, read):
    """(The tensor that is read, as the attention takes it)."""
    dims = op.get("mask_shape")
    if not dims:
        return None, None
    given = next((x for x in read if list(x.shape) == dims), None)
    if given is not None and len(dims) <= 4:
        return given, given.reshape([1] * (4 - len(dims)) + dims)
    return given, made_mask((op["shape"][0], *dims), read[0].device)


def unpacked(op, read):
    """Of the one tensor in which queries, keys and values lie beside each other in each row."""
    batch, heads, rows, size = op["shape"]
    if op["packed"] != "qkv":
        raise NoCall(f"packed as {op['packed']}")
    one = pick(read, [[batch, rows, 3 * heads * size]])[0].reshape(batch, rows, 3 * heads * size)
    return [piece.reshape(batch, rows, heads, size).transpose(1, 2) for piece in one.chunk(3, -1)]


def norm(op, read):
    rows, cols = op["shape"]
    if op.get("what") not in ("layer", "rms") or op.get("residual") or op.get("input") or op.get("input_bias"):
        raise NoCall(f"a norm {op.get('what')}")
    x, *rest = pick(read, [[rows, cols]] + [[cols]] * (1 + bool(op.get("bias"))))
    if op["what"] == "rms":
        return F.rms_norm(x.reshape(rows, cols), (cols,), rest[0].reshape(cols), 1e-5)
    return F.layer_norm(x.reshape(rows, cols), (cols,), *(each.reshape(cols) for each in rest))


def softmax(op, read):
    if op.get("what") not in (None, "log") or op.get("inner", 1) != 1 or op.get("bias") or op.get("scale", 1) != 1:
        raise NoCall("a softmax of another form")
    call = torch.log_softmax if op.get("what") else torch.softmax
    return call(pick(read, [op["shape"]])[0].reshape(op["shape"]), -1)


def swiglu(x, y):
    return F.silu(x) * y


UNARY = {"relu": lambda x, op: F.relu(x), "gelu": lambda x, op: F.gelu(x), "silu": lambda x, op: F.silu(x),
         "gelu_tanh": lambda x, op: F.gelu(x, approximate="tanh"), "sigmoid": lambda x, op: torch.sigmoid(x),
         "hardswish": lambda x, op: F.hardswish(x), "hardsigmoid": lambda x, op: F.hardsigmoid(x),
         "tanh": lambda x, op: torch.tanh(x), "erf": lambda x, op: torch.erf(x), "exp": lambda x, op: torch.exp(x),
         "sqrt": lambda x, op: torch.sqrt(x), "neg": lambda x, op: -x, "not": lambda x, op: ~x,
         "reciprocal": lambda x, op: torch.reciprocal(x), "isnan": lambda x, op: torch.isnan(x),
         "clip": lambda x, op: torch.clamp(x, op.get("min", 0), op.get("max", 6))}
UNARY["fastgelu"] = UNARY["gelu_tanh"]
MORE = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "pow": torch.pow, "max": torch.maximum,
        "min": torch.minimum, "and": torch.logical_and, "or": torch.logical_or, "where": torch.where, "equal": torch.eq,
        "greater": torch.gt, "less": torch.lt, "greaterorequal": torch.ge, "lessorequal": torch.le, "swiglu": swiglu}


def operand_dims(word, shape):
    return {"tensor": shape, "vector": shape[-1:], "scalar": [1]}.get(word) or [int(n) for n in word.split("x")]


def elementwise(op, read):
    what, shape = op["what"], op["shape"]
    words = op.get("inputs", "tensor").split(",")
    told = [operand_dims(word, shape) if word != "same" else None for word in words]
    # a scalar that is known is no tensor in the dataflow
    if "scalar" in words and len(read) < len(words):
        read = read + [torch.ones((), dtype=DTYPES[op["dtype"]], device=read[0].device)] * (len(words) - len(read))
    found = pick(read, [dims for dims in told if dims is not None])
    placed = iter(found)
    given = [found[0] if dims is None else next(placed).reshape(dims) for dims in told]
    if what in UNARY:
        return UNARY[what](given[0], op)
    if what not in MORE:
        raise NoCall(f"elementwise {what}")
    if what == "where":  # listed largest first: the condition is the one of truths
        given.sort(key=lambda x: x.dtype != torch.bool)
    return MORE[what](*given)


def reduce(op, read):
    if op.get("what") not in ("mean", "sum", "max") or op.get("axes") or op.get("input"):
        raise NoCall(f"a reduction {op.get('what')}")
    call = {"mean": torch.mean, "sum": torch.sum, "max": torch.amax}[op["what"]]
    return call(pick(read, [op["shape"]])[0].reshape(op["shape"]), -1)


def pool(op, read):
    rank = len(op.get("kernel", []))
    if op.get("what") not in ("max", "average") or op.get("layout") != "nchw" or rank != 2 or op.get("indices_out"):
        raise NoCall(f"a pool {op.get('what')}")
    x, pads = read[0].reshape(op["input"]), op.get("pads", [0] * 4)
    if op.get("global"):
        return F.adaptive_avg_pool2d(x, 1) if op["what"] == "average" else F.adaptive_max_pool2d(x, 1)
    if pads[:2] != pads[2:]:
        raise NoCall("a pool whose sides differ")
    call = F.max_pool2d if op["what"] == "max" else F.avg_pool2d
    return call(x, op["kernel"], op.get("stride", 1), pads[:2], ceil_mode=bool(op.get("ceil_mode")))


def embedding(op, read):
    if op.get("what") or op.get("block_size"):
        raise NoCall("an embedding of another form")
    table = next(x for x in read if x.is_floating_point())
    return F.embedding(next(x for x in read if x is not table), table)


def rotary(op, read):
    batch, heads, rows, size = op["shape"]
    if op.get("interleaved") or op.get("rotary_dim", size) != size:
        raise NoCall("a rotary of another form")
    x, cos, sin = pick(read, [op["shape"], [rows, size], [rows, size]])
    x, cos, sin = x.reshape(op["shape"]), cos.reshape(rows, size), sin.reshape(rows, size)
    half = size // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * sin


def move(op, read):
    what, x = op["what"], read[0]
    if what == "cast":
        return x.to(DTYPES[op["out_dtype"]])
    if what == "transpose":
        return x.reshape(op["input"]).permute(op["perm"]).contiguous()
    if what == "concat":
        sizes, axis = op.get("sizes"), op["axis"]
        pieces = []
        for k in range(op["inputs"]):
            dims = list(op["shape"])
            dims[axis] = sizes[k] if sizes else dims[axis] // op["inputs"]
            pieces.append(dims)
        return torch.cat([x.reshape(dims) for x, dims in zip(pick(read, pieces), pieces)], axis)
    if what == "gather":
        data, at = x.reshape(op["input"]), read[1] if len(read) > 1 else torch.zeros(1, dtype=torch.int64, device=x.device)
        return torch.index_select(data, op.get("axis", 0), at.reshape(-1))
    if what == "gathernd":
        at = read[1]
        return x.reshape(op["input"])[tuple(at[..., k] for k in range(at.shape[-1]))]
    if what in ("expand", "tile"):
        return x.reshape(op["input"]).expand(op["shape"]).contiguous()
    raise NoCall(f"a move {what}")


CALLS = {"gemm": gemm, "conv": conv, "attention": attention, "norm": norm, "softmax": softmax, "elementwise": elementwise,
         "reduce": reduce, "pool": pool, "embedding": embedding, "rotary": rotary, "move": move}


class Run:
    """One run of a list, as often as it is called. `seen` is called around each occurrence."""

    def __init__(self, described, device):
        self.ops, self.device = described["ops"], device
        self.tensors, self.steps = described["graph"]["tensors"], described["graph"]["occurrences"]
        self.seen = lambda name, call: call()
        made = {tensor for step in self.steps for tensor in step[5]}
        self.given = {tensor: self.leaf(tensor) for step in self.steps for tensor in self.sources(step[4]) if tensor not in made}

    def sources(self, tensors):
        for at in tensors:
            row = self.tensors[at]
            yield row[SOURCE] if len(row) > SOURCE and row[PRODUCER] < 0 else at

    def leaf(self, at):
        """Small numbers for floats; for whole numbers zeros, which are a place in anything that they may index."""
        row = self.tensors[at]
        dims, dtype = row[DIMS], DTYPES[row[DTYPE]]
        if dtype.is_floating_point:
            scale = dims[0] ** -0.5 if len(dims) > 1 and row[KIND] == "weight" else 1
            return (torch.randn(dims, device=self.device) * scale).to(dtype)
        return torch.zeros(dims, device=self.device, dtype=dtype) if dtype != torch.bool else torch.ones(
            dims, device=self.device, dtype=dtype)

    def value(self, at, values):
        row = self.tensors[at]
        if at in values:
            return values[at]
        source = values[row[SOURCE]]
        if len(row) > STRIDES:
            return torch.as_strided(source.contiguous(), row[DIMS], row[STRIDES], row[OFFSET])
        return source.reshape(row[DIMS])

    def made(self, op, step, values):
        """What an occurrence gives: where that is a place in what it reads, as it lies there, a copy of it."""
        row = self.tensors[step[5][0]]
        read = [self.value(at, values) for at in step[4]]
        if op["op"] == "move" and len(row) > STRIDES and row[SOURCE] in values:
            out = torch.as_strided(values[row[SOURCE]].contiguous(), row[DIMS], row[STRIDES], row[OFFSET])
            return out.clone(memory_format=torch.contiguous_format)
        return CALLS[op["op"]](op, read).reshape(row[DIMS]).contiguous()

    def __call__(self):
        values = dict(self.given)
        for step in self.steps:
            op = self.ops[step[0]]
            if op["op"] not in CALLS or len(step[5]) != 1:
                raise NoCall(f"{op['id']}: {op['op']} of {len(step[5])} results")
            try:
                values[step[5][0]] = self.seen(op["id"], lambda: self.made(op, step, values))
            except NoCall as error:
                raise NoCall(f"{op['id']}: {error}") from None


def kernels_of_steps(run, kernel_events):
    """[(id, its kernels as kernel_events has them)] in the order of the calls; an id is looked at when it comes first."""
    order, alone = [], {}

    def seen(name, call):
        if name not in alone:
            call()  # loaded
            alone[name] = kernel_events(call)
        order.append((name, alone[name]))
        return call()

    run.seen = seen
    run()
    run.seen = lambda name, call: call()
    return order


def busy(events, names):
    """{id: {kernel: us}} of (kernel, begin in us, end in us), each of the id beside it; what runs beside others counts once."""
    seen, until = {}, 0
    for (kernel, begin, end), name in zip(events, names):
        row = seen.setdefault(name, {})
        row[kernel] = row.get(kernel, 0) + max(0, end - max(begin, until))
        until = max(until, end)
    return seen


def by_operation(run, common):
    """Of one replay under load."""
    order, stream = kernels_of_steps(run, common.kernel_events), common.the_stream()
    with torch.cuda.stream(stream):
        run()
    torch.cuda.synchronize()
    graph = common.capture(run, [()], 1, stream)
    began = time.monotonic()
    while time.monotonic() - began < common.WARM_S:
        graph.replay()
        torch.cuda.synchronize()
    events = common.kernel_events(graph.replay)
    names = [name for name, kernels in order for _ in kernels]
    if len(events) != len(names):
        raise NoCall(f"a replay runs {len(events)} kernels, its calls by themselves {len(names)}")
    origin = events[0][1]  # nanoseconds since 1970 are more digits than a float has
    return busy([(name, (start - origin) / 1e3, (end - origin) / 1e3) for name, start, end in events], names)


def traced(path):
    """The same of scout_batch's replay by the defaults, from its trace.json; without copies and fills, as on the other side."""
    with open(path, encoding="utf-8") as file:
        events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X" and event["tid"] == 1]
    events = [event for event in events if event["args"]["kernel"] not in ("copy", "fill")]
    events.sort(key=lambda event: event["ts"])
    return busy([(event["args"]["kernel"], event["ts"], event["ts"] + event["dur"]) for event in events],
                [event["name"] for event in events])


def same_kernel(theirs, ours):
    """By the longest word of a kernel's name, which is a word of the other one, or lies in it behind its length where that is
    mangled. A long name may be cut off."""
    word = max(re.findall(r"[A-Za-z_]\w+", theirs.split("(")[0]), key=len, default="")
    return next((name for name in ours if word in re.findall(r"\w+", name) or f"{len(word)}{word}" in name
                 or (len(name) > 150 and word.startswith(name))), None)


def table(run, ours, theirs):
    """A row for each operation, the widest difference first. `same_us`: by kernels of libraries that both run."""
    rows = []
    for op in (op for op in run.ops if op["id"] in theirs or op["id"] in ours):
        mine, other, same = dict(ours.get(op["id"], {})), theirs.get(op["id"], {}), [0, 0]
        row = {"operation": op["id"], "count": op["count"], "library": op["op"] in LIBRARY_KINDS, "scout_us": sum(mine.values()),
               "torch_us": sum(other.values()), "same_us": same, "kernels": sorted(other, key=lambda k: -other[k])}
        for kernel in (k for k in other if row["library"] and "at::native" not in k):
            found = same_kernel(kernel, mine)
            if found:
                same[0] += mine.pop(found)
                same[1] += other[kernel]
        rows.append(row)
    return sorted(rows, key=lambda row: -abs(row["scout_us"] - row["torch_us"]))


def say(rows, result):
    print(f"{'operation':42s} {'count':>5s} {'scout us':>9s} {'torch us':>9s} {'more us':>9s} {'same kernels':>13s}  of PyTorch")
    for row in rows:
        mine, other = row["same_us"]
        same = f"{100 * (mine / other - 1):+6.2f} %" if other else "-"
        print(f"{row['operation']:42s} {row['count']:5.0f} {row['scout_us']:9.2f} {row['torch_us']:9.2f} "
              f"{row['scout_us'] - row['torch_us']:+9.2f} {same:>13s}  {', '.join(row['kernels'])[:110]}")
    for name, words in (("same", "by the same kernels of libraries"), ("library", "products, convolutions, attention"),
                        ("own", "all other operations"), ("between", "between kernels"), ("all", "the whole run")):
        mine, other = result[name]
        share = f"{100 * (mine / other - 1):+11.2f} %" if other else ""
        print(f"{words:42s} {'':5s} {mine:9.2f} {other:9.2f} {mine - other:+9.2f} {share}".rstrip())
    print(f"{'clock, MHz':42s} {'':5s} {result['mhz'][0]:9.0f} {result['mhz'][1]:9.0f}")


def main(ops_path, whole_path, result_path):
    import agree_common as common

    torch.backends.cuda.preferred_blas_library("cublaslt")
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = True
    described, whole = (json.load(open(path, encoding="utf-8")) for path in (ops_path, whole_path))
    run = Run(described, "cuda")
    rows = table(run, traced(whole_path.replace("model.json", "trace.json")), by_operation(run, common))
    took = common.measure({"torch": run}, [(), ()])["torch"]
    whole_us = whole["default"]["time_us"], took.us
    kernels_us = [sum(row[side] for row in rows) for side in ("scout_us", "torch_us")]
    kind_us = {library: [sum(row[side] for row in rows if row["library"] == library) for side in ("scout_us", "torch_us")]
               for library in (True, False)}
    result = {"torch": torch.__version__, "same": [sum(row["same_us"][k] for row in rows) for k in range(2)],
              "library": kind_us[True], "own": kind_us[False], "between": [a - b for a, b in zip(whole_us, kernels_us)], "all": whole_us,
              "mhz": [whole.get("clock_mhz", math.nan), took.mhz],
              "missing": [row["operation"] for row in rows if not row["scout_us"] or not row["torch_us"]], "rows": rows}
    with open(result_path, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=2)
    say(rows, result)


def shapes(paths):
    """Of each list what keeps it from running; 1 where there is one."""
    failed = 0
    for path in paths:
        with open(path, encoding="utf-8") as file:
            run = Run(json.load(file), "meta")
        try:
            run()
            print(f"{path}: {len(run.steps)} calls")
        except NoCall as error:
            failed = 1
            print(f"{path}: {error}")
    return failed


if __name__ == "__main__":
    with torch.no_grad():
        sys.exit(shapes(sys.argv[2:]) if sys.argv[1] == "--shapes" else main(*sys.argv[1:]))

"""Runs a model with PyTorch and holds it against the sum of its operations' default times:

    end_to_end.py OPS.json REPORTS RESULT.json

bert_base as a whole, llama2_7b layer by layer (four layers with weights of their own): the same operations in the same
order as ops.json has them, each one call, transposes that it lists written out, all of a run in one CUDA graph. Products and
attention are libraries' there too. For all else PyTorch has a kernel of its own and can make another one
(torch.compile, the operation alone): the faster of both is taken, as its own take twice as long for some (a bias that
no product has in it, a norm of short rows). The time of a run is measured as agree_common.py does, under load and over
whole seconds; the kernels of one replay are then named by the profiler and given to the operations in the order of
their calls. Between both sums stands what lies between kernels.
"""
import json
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from agree_common import capture, kernel_events, measure, reports, the_stream

DEVICE = "cuda"


def randn(*dims, scale=1.0):
    return (torch.randn(*dims, device=DEVICE) * scale).half()


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * sin


def swiglu(gate, up):
    return F.silu(gate) * up


def turn(x):
    return x.transpose(1, 2).contiguous()


def merge(x):
    """Heads behind each other. Where PyTorch's call writes them as its queries lie, and these lie apart, it is a copy, which
    belongs to the attention."""
    return x.transpose(1, 2).flatten(2)


def add(x, y):
    return x + y


def gelu(x):
    return F.gelu(x)


BACKENDS = [SDPBackend.CUDNN_ATTENTION]


def attend(q, k, v, mask, causal):
    """By cuDNN, as in the reports; by what PyTorch picks where it does not give cuDNN this one, which is said."""
    try:
        with sdpa_kernel(BACKENDS):
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
    except RuntimeError as error:
        if len(BACKENDS) > 1:
            raise
        print(f"attention runs without cuDNN: {str(error).splitlines()[0][:150]}")
        BACKENDS.extend([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])
        return attend(q, k, v, mask, causal)


def microseconds(function, tensors):
    """Of its kernels, one after the other a few times: enough to tell which of two is the faster."""
    function(*tensors)
    torch.cuda.synchronize()
    times = [sum(end - start for _, start, end in kernel_events(lambda: function(*tensors))) for _ in range(5)]
    return sorted(times)[2] / 1e3


def faster(name, function, tensors):
    """The function as PyTorch runs it by itself or as one compiled kernel; where that cannot be compiled here, which is
    said, by itself."""
    made = torch.compile(function, dynamic=False)
    try:
        made(*tensors)
    except Exception as error:  # whatever a compiler, or its absence, raises
        print(f"{name} runs uncompiled: {str(error).strip().splitlines()[0][:150]}")
        return function
    return min((function, made), key=lambda one: microseconds(one, tensors))


class Steps:
    """Runs calls under the id of the operation in ops.json that each of them is; `seen` is called around each."""

    def __init__(self, ops):
        self.ops = [op for op in ops if op["count"] > 0]
        self.seen = lambda name, call: call()
        self.chosen = {}

    def find(self, op, shape, **fields):
        for entry in self.ops:
            if entry["op"] == op and entry.get("shape") == list(shape) and all(entry.get(k) == v for k, v in fields.items()):
                return entry["id"]
        raise KeyError(f"ops.json has no {op} of {list(shape)} with {fields}: it is of another model or size")

    def __call__(self, found, call):
        return self.seen(found, call)

    def own(self, found, function, *tensors):
        """What no library is asked for."""
        if found not in self.chosen:
            self.chosen[found] = faster(found, function, tensors)
        return self.seen(found, lambda: self.chosen[found](*tensors))


class Bert:
    """bert_base at whatever batch and sequence ops.json has: 12 layers behind embeddings and the mask's making."""

    layers, of, share = 12, 1, 1  # share: of what one run computes, in the sum, which is of 1 / of the model

    def __init__(self, ops):
        self.step = Steps(ops)
        self.batch, self.heads, self.length, self.size = next(op for op in ops if op["op"] == "attention")["shape"]
        self.width, self.inner = self.heads * self.size, 4 * self.heads * self.size
        width, inner = self.width, self.inner
        self.table = randn(30522, width)
        self.types, self.places = randn(self.batch, self.length, width), randn(self.length, width)
        weight = lambda rows, cols: (randn(rows, cols, scale=rows ** -0.5), randn(cols))
        norm = lambda: (randn(width), randn(width))
        self.first = norm()
        self.blocks = [{"q": weight(width, width), "k": weight(width, width), "v": weight(width, width),
                        "o": weight(width, width), "up": weight(width, inner), "down": weight(inner, width),
                        "norms": (norm(), norm())} for _ in range(self.layers)]
        self.ops = [op for op in ops if op["count"] > 0 and op.get("what") not in ("view", "folded")]
        rows = torch.arange(self.batch, device=DEVICE).view(-1, 1, 1, 1).expand(self.batch, 1, 1, self.length)
        self.indices = rows, torch.arange(self.length, device=DEVICE).view(1, 1, 1, -1).expand_as(rows)
        self.zero, self.never = (torch.tensor(x, device=DEVICE, dtype=torch.half) for x in (0.0, float("-inf")))
        self.square = torch.ones(1, 1, self.length, 1, dtype=torch.bool, device=DEVICE)

    def inputs(self):
        dims = self.batch, self.length
        return torch.randint(0, 30522, dims, device=DEVICE), torch.ones(dims, dtype=torch.int64, device=DEVICE)

    def add(self, x, y, inputs):
        return self.step.own(self.step.find("elementwise", x.shape, what="add", inputs=inputs), add, x, y)

    def linear(self, x, weight):
        name = self.step.find("gemm", [self.batch * self.length, *reversed(weight[0].shape)])
        rows = x.view(-1, x.shape[-1])
        product = self.step(name, lambda: torch.matmul(rows, weight[0])).view(self.batch, self.length, -1)
        return self.add(product, weight[1], "tensor,vector")

    def norm(self, x, weight):
        name = self.step.find("norm", [self.batch * self.length, self.width], what="layer")
        return self.step.own(name, lambda x, scale, shift: F.layer_norm(x, (self.width,), scale, shift), x, *weight)

    def split(self, x):
        return x.view(self.batch, self.length, self.heads, self.size).transpose(1, 2)

    def mask(self, given):
        batch, length, step = self.batch, self.length, self.step
        known = step.own(step.find("move", given.shape, what="cast"), lambda x: x.to(torch.bool), given)
        name = step.find("move", [batch, 1, 1, length], what="gathernd")
        row = step.own(name, lambda x, *at: x[at], known, *self.indices)
        name = step.find("elementwise", [batch, 1, length, length], what="and")
        full = step.own(name, lambda x, y: x & y, self.square, row)
        name = step.find("elementwise", full.shape, what="where")
        return step.own(name, lambda *x: torch.where(*x), full, self.zero, self.never)

    def block(self, x, block, mask):
        q, k, v = (self.split(self.linear(x, block[name])) for name in "qkv")
        mixed = self.step(self.step.find("attention", q.shape, layout="bshd"), lambda: merge(attend(q, k, v, mask, False)))
        x = self.norm(self.add(self.linear(mixed, block["o"]), x, "tensor,tensor"), block["norms"][0])
        up = self.linear(x, block["up"])
        active = self.step.own(self.step.find("elementwise", up.shape, what="gelu"), gelu, up)
        return self.norm(self.add(self.linear(active, block["down"]), x, "tensor,tensor"), block["norms"][1])

    def __call__(self, words, given):
        name = self.step.find("embedding", [self.batch * self.length, self.width])
        x = self.step.own(name, lambda x, table: F.embedding(x, table), words, self.table)
        x = self.add(self.add(x, self.types, "tensor,tensor"), self.places, f"tensor,{self.length}x{self.width}")
        x, mask = self.norm(x, self.first), self.mask(given)
        for block in self.blocks:
            x = self.block(x, block, mask)
        return x


class Llama:
    """Layers of llama2_7b, each with weights of its own, as cold as they are in a model of 32."""

    layers, of, share = 4, 32, 1 / 4

    def __init__(self, ops):
        self.step = Steps(ops)
        self.batch, self.heads, self.length, self.size = next(op for op in ops if op["op"] == "attention")["shape"]
        self.width, self.inner = self.heads * self.size, 11008
        self.ops = [op for op in ops if op["count"] >= self.of and op.get("what") not in ("view", "folded")]
        weight = lambda rows, cols: randn(rows, cols, scale=rows ** -0.5)
        width, inner = self.width, self.inner
        self.blocks = [{"q": weight(width, width), "k": weight(width, width), "v": weight(width, width),
                        "o": weight(width, width), "gate": weight(width, inner), "up": weight(width, inner),
                        "down": weight(inner, width), "norms": (randn(width), randn(width))} for _ in range(self.layers)]
        self.cos, self.sin = randn(self.length, self.size), randn(self.length, self.size)

    def inputs(self):
        return (randn(self.batch, self.length, self.width),)

    def linear(self, x, weight):
        name = self.step.find("gemm", [self.batch * self.length, *reversed(weight.shape)])
        rows = x.view(-1, x.shape[-1])
        return self.step(name, lambda: torch.matmul(rows, weight)).view(self.batch, self.length, -1)

    def norm(self, x, weight):
        name = self.step.find("norm", [self.batch * self.length, self.width], what="rms")
        return self.step.own(name, lambda x, scale: F.rms_norm(x, (self.width,), scale, 1e-5), x, weight)

    def turn(self, x):
        return self.step.own(self.step.find("move", x.transpose(1, 2).shape, what="transpose"), turn, x)

    def split(self, x):
        return x.view(self.batch, self.length, self.heads, self.size)

    def turned(self, x):
        return self.step.own(self.step.find("rotary", x.shape), rotate, x, self.cos, self.sin)

    def add(self, x, y):
        return self.step.own(self.step.find("elementwise", x.shape, what="add"), add, x, y)

    def block(self, x, block):
        rows = self.norm(x, block["norms"][0])
        q, k, v = (self.split(self.linear(rows, block[name])) for name in "qkv")
        q, k, v = self.turned(self.turn(q)), self.turned(self.turn(k)), v.transpose(1, 2)
        mixed = self.step(self.step.find("attention", q.shape, layout="bshd"), lambda: merge(attend(q, k, v, None, True)))
        x = self.add(x, self.linear(mixed, block["o"]))
        rows = self.norm(x, block["norms"][1])
        gate, up = self.linear(rows, block["gate"]), self.linear(rows, block["up"])
        name = self.step.find("elementwise", gate.shape, what="swiglu")
        return self.add(x, self.linear(self.step.own(name, swiglu, gate, up), block["down"]))

    def __call__(self, x):
        for block in self.blocks:
            x = self.block(x, block)
        return x


MODELS = {"bert_base": Bert, "llama2_7b": Llama}


def kernels_of_steps(model, given):
    """[(id, its kernels as kernel_events has them)] in the order of the calls; an id is looked at when it comes first."""
    order, alone = [], {}

    def seen(name, call):
        if name not in alone:
            call()  # compiled and loaded
            alone[name] = kernel_events(call)
        order.append((name, alone[name]))
        return call()

    model.step.seen = seen
    model(*given)
    model.step.seen = lambda name, call: call()
    return order


def by_operation(model, given):
    """Microseconds of kernels and their names by operation's id, of one replay; and how often each was called."""
    order = kernels_of_steps(model, given)
    stream = the_stream()
    with torch.cuda.stream(stream):
        model(*given)
    torch.cuda.synchronize()
    graph = capture(model, [given], 1, stream)
    for _ in range(20):
        graph.replay()
    torch.cuda.synchronize()
    events, alone = kernel_events(graph.replay), [event for _, kernels in order for event in kernels]
    if len(events) != len(alone):  # events cannot be attributed
        print(f"a replay runs {len(events)} kernels, the operations by themselves {len(alone)}: times are of these")
        events = alone
    times, names, calls, at = {}, {}, {}, 0
    for name, kernels in order:
        mine, at = events[at:at + len(kernels)], at + len(kernels)
        times[name] = times.get(name, 0) + sum(end - start for _, start, end in mine) / 1e3
        names[name] = names.get(name, set()) | {event[0] for event in mine}
        calls[name] = calls.get(name, 0) + 1
    return times, names, calls


def table(model, found, times, names, calls):
    """One row for each operation, the widest difference first."""
    rows = []
    for name, count in calls.items():
        each = (found.get(name) or {}).get("baseline_time_us")
        count *= model.share
        rows.append({"operation": name, "count": count, "by": (found.get(name) or {}).get("baseline"),
                     "scout_us": each * count if each else None, "torch_us": times[name] * model.share,
                     "kernels": sorted(names[name])})
    return sorted(rows, key=lambda row: -abs((row["scout_us"] or 0) - row["torch_us"]))


def say(rows, result):
    print(f"{'operation':42s} {'count':>5s} {'scout us':>9s} {'torch us':>9s} {'more us':>9s} {'of all':>7s}  by, kernels")
    for row in rows:
        scout = row["scout_us"] or float("nan")
        print(f"{row['operation']:42s} {row['count']:5.0f} {scout:9.2f} {row['torch_us']:9.2f} {scout - row['torch_us']:+9.2f} "
              f"{100 * (scout - row['torch_us']) / result['torch_us']:+6.2f} %  {row['by']}; {', '.join(row['kernels'])[:110]}")
    gaps = result["torch_us"] - result["kernels_us"]
    print(f"{'between kernels':42s} {'':5s} {'':9s} {gaps:9.2f} {-gaps:+9.2f} {-100 * gaps / result['torch_us']:+6.2f} %")
    print(f"{'together':42s} {'':5s} {result['scout_us']:9.2f} {result['torch_us']:9.2f} "
          f"{result['scout_us'] - result['torch_us']:+9.2f} {100 * (result['scout_us'] / result['torch_us'] - 1):+6.2f} %")


def main(ops_path, folder, result_path):
    torch.backends.cuda.preferred_blas_library("cublaslt")
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = True
    with open(ops_path, encoding="utf-8") as file:
        described = json.load(file)
    model = MODELS[described["model"]["name"]](described["ops"])
    found = {report["operation"]: report for report in reports(folder)}
    given = model.inputs()
    times, names, calls = by_operation(model, given)
    took = measure({"torch": lambda *inputs: model(*inputs)}, [given, model.inputs()])["torch"].us * model.share
    rows = table(model, found, times, names, calls)
    missing = [row["operation"] for row in rows if not row["scout_us"]]
    missing += [f"{op['id']} is called {calls.get(op['id'], 0) * model.share:g} times" for op in model.ops
                if calls.get(op["id"], 0) * model.share != op["count"] // model.of]
    result = {"torch": torch.__version__, "torch_us": took, "kernels_us": sum(row["torch_us"] for row in rows),
              "scout_us": sum(row["scout_us"] or 0 for row in rows), "missing": missing, "rows": rows}
    say(rows, result)
    with open(result_path, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=2)


if __name__ == "__main__":
    with torch.no_grad():
        main(*sys.argv[1:])

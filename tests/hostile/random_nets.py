"""Random graphs that mostly fit: what they make of bytes and dimensions must be what scout_batch takes.

Tensors belong to a class with one shape a model, so that any may stand where another of its class does: the same one
twice, a constant for an activation, outputs that are named and read by nothing, dimensions of 0, 1 and of very much.
"""
import random

from case import LOOSE, Case
from cases_control import body
from wire import BOOL, FP16, INT64, UINT8, external, floats, function, ints, net, node, tensor, value

MS = "com.microsoft"
SIZES = (0, 1, 1, 2, 3, 4, 7, 8, 16, 64, 1 << 20, 1 << 33, 1 << 45)
REALS = (0.0, 0.5, -1.0, 2.0, float("inf"), float("-inf"), float("nan"), 1e-45, 3.4e38)


class Net:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.big = self.rng.random() < 0.1
        size = self.size
        self.shapes = {"m": (size(), size()), "h": (size(), 2 * self.rng.randint(1, 4), size(), 2 * self.rng.randint(1, 8)),
                       "c": (self.rng.randint(1, 3), 2 * self.rng.randint(1, 4), self.rng.randint(4, 9), 8)}
        batch, heads, length, head = self.shapes["h"]
        self.heads = heads
        self.shapes["p"] = (batch, heads, size(), head)
        self.shapes["r"] = (batch, length, heads * head)
        self.pool = {k: [k + "x", k + "y"] for k in self.shapes}
        self.nodes, self.inits, self.count = [], [], 0

    def size(self):
        return self.rng.choice(SIZES if self.big else SIZES[:-3])

    def new(self):
        self.count += 1
        return "t%d" % self.count

    def one(self, kind):
        return self.rng.choice(self.pool[kind])

    def real(self):
        return self.rng.choice(REALS)

    def add(self, op, ins, outs, domain="", **attrs):
        """A node; its outputs are named, each as it may be. outs: the class of each, None: of none that is used again."""
        names = []
        for kind in outs:
            name = self.new() if self.rng.random() < 0.85 or not names else ""
            names.append(name)
            if kind and name:
                self.pool[kind].append(name)
        self.nodes.append(node(op, ins, names, domain=domain, **attrs))

    # ---- what a node can be ----

    def constant(self):
        kind = self.rng.choice("mhcpr")
        name, dims = self.new(), self.shapes[kind]
        self.pool[kind].append(name)
        if self.rng.random() < 0.4:  # stored in bytes
            self.inits += [external(name + "q", dims, "w.bin", UINT8), floats(name + "s", [0.5], [])]
            self.nodes.append(node("DequantizeLinear", [name + "q", name + "s"], name))
        else:
            self.inits.append(external(name, dims, "w.bin"))

    def pointwise(self):
        kind = self.rng.choice("mhcpr")
        op = self.rng.choice("Relu Elu LeakyRelu Selu Sigmoid Exp Softmax Identity HardSigmoid Gelu Cast Dropout".split())
        attrs = {"Cast": {"to": self.rng.choice((1, FP16))}, "Elu": {"alpha": self.real()},
                 "LeakyRelu": {"alpha": self.real()}, "HardSigmoid": {"alpha": self.real(), "beta": self.real()},
                 "Selu": {"gamma": self.real()}}.get(op, {})
        self.add(op, [self.one(kind)], [None if op == "Cast" else kind] + [None] * (op == "Dropout"), **attrs)

    def binary(self):
        kind = self.rng.choice("mhcpr")
        self.add(self.rng.choice("Add Mul Sub Div Max Min Sum".split()), [self.one(kind), self.one(kind)], [kind])

    def product(self):
        a, b = self.one("m"), self.one("m")
        op = self.rng.choice(("MatMul", "Gemm", "FusedMatMul"))
        if op == "MatMul":
            self.nodes.append(node("Transpose", [b], [b + "_%d" % self.count], perm=[1, 0]))
            self.add(op, [a, b + "_%d" % self.count], [None])
        elif op == "Gemm":
            self.add(op, [a, b], [None], transB=1, alpha=self.real())
        else:
            self.add(op, [a, b], [None], MS, transB=1, alpha=self.real())

    def attention(self):
        past = self.rng.random() < 0.6
        ins = [self.one("h"), self.one("h"), self.one("h"), ""] + ([self.one("p"), self.one("p")] if past else [])
        attrs = {"scale": self.real(), "softcap": self.real(), "is_causal": self.rng.randint(0, 1)}
        self.add("Attention", ins, ["h", None, None, None][:self.rng.randint(1, 3)], **attrs)

    def attention_ms(self):
        past = self.rng.random() < 0.6
        ins = [self.one("r"), self.one("r"), self.one("r")]
        if self.rng.random() < 0.5:
            ins += ["", "", ""] + ([self.one("p"), self.one("p")] if past else [])
            self.add("MultiHeadAttention", ins, ["r", None, None][:self.rng.choice((1, 3))], MS, num_heads=self.heads,
                     scale=self.real())
        else:
            lengths, total = self.new(), self.new()
            self.inits += [ints(total, [self.rng.choice((1, 5, 1 << 31))], [])]
            self.inits += [tensor(lengths, [self.shapes["r"][0]], 6, [1] * self.shapes["r"][0])] if self.shapes["r"][0] < 99 else []
            ins += [self.one("p"), self.one("p")] if past else ["", ""]
            self.add("GroupQueryAttention", ins + [lengths, total], ["r", None, None], MS, num_heads=self.heads,
                     kv_num_heads=self.heads, softcap=self.real(), do_rotary=self.rng.randint(0, 1))

    def window(self):
        op = self.rng.choice(("MaxPool", "AveragePool", "LRN", "GlobalAveragePool"))
        attrs = {"MaxPool": {"kernel_shape": [2, 2]}, "AveragePool": {"kernel_shape": [3, 3]},
                 "LRN": {"size": 3, "alpha": self.real(), "bias": self.real()}}.get(op, {})
        self.add(op, [self.one("c")], ["c" if op == "LRN" else None] + [None] * (op == "MaxPool"), **attrs)

    def normal(self):
        kind = self.rng.choice("mhr")
        scale = self.new()
        self.inits.append(external(scale, self.shapes[kind][-1:], "w.bin"))
        self.add("LayerNormalization", [self.one(kind), scale], [kind, None, None], epsilon=self.real())

    def cut(self):
        kind = self.rng.choice("mhcpr")
        n = self.rng.randint(1, 4)
        self.add("Split", [self.one(kind)], [None] * n, num_outputs=n, axis=-1)

    def counted(self):
        self.add("TopK", [self.one("m"), "one"], [None, None])
        self.add("NonZero", [self.one("c")], [None])

    def branch(self):
        kind = self.rng.choice("mhc")
        make = lambda op: body([node(op, [self.one(kind)], ["r"])], [], ["r"])
        self.add("If", ["flag"], [kind], then_branch=make("Relu"), else_branch=make("Abs"))

    def called(self):
        kind = self.rng.choice("mhc")
        self.add("F", [self.one(kind)], [kind], "local")

    def make(self):
        kinds = (self.constant, self.pointwise, self.binary, self.product, self.attention, self.attention_ms, self.window,
                 self.normal, self.cut, self.counted, self.branch, self.called)
        self.inits.append(ints("one", [1]))
        for _ in range(self.rng.randint(1, 12)):
            self.rng.choice(kinds)()
        inputs = [value(n, self.shapes[k]) for k in self.shapes for n in (k + "x", k + "y")] + [value("flag", (), BOOL)]
        last = [n for k in self.pool for n in self.pool[k][2:]][-self.rng.randint(1, 3):] or ["mx"]
        return net(self.nodes, self.inits, inputs, [value(n, None) for n in last], version=23, functions=[
            function("F", "a", "b", [node("Neg", "a", "c"), node("Relu", "c", "b")])])


def cases(count):
    return [Case("random_%05d" % seed, LOOSE, lambda seed=seed: Net(seed).make()) for seed in range(count)]

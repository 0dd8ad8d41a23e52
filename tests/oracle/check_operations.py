"""What ops.json says of the real models: exits, coverage, work against published or analytic figures, structure."""

import onnx

import oracle

# name, options: these end with 0, with everything resolved and nothing unknown
LARGER = [
    ("bert_base_ts", 8, 512), ("bert_base", 8, 512), ("bert_base_ort_fp16", 8, 512), ("bert_base_int4", 8, 512),
    ("gpt2_ts", 8, 1024), ("llama2_7b", 8, 2048),
]

# Multiply-adds at batch 1, sequence 128: published for the vision models (224 x 224), counted by hand for the language
# model: 128 x (32 x (4 x 4096^2 + 3 x 4096 x 11008) + 4096 x 32000) + 32 x 2 x 128 x 128 x 4096.
MACS = {"resnet50_ts": 4.09e9, "mobilenet_v3": 0.217e9, "vit_base_ts": 17.56e9, "llama2_7b": 850.0e9}

SAME_WORK = ["bert_base_ts", "bert_base", "bert_base_ort_fp16", "bert_base_int4"]


class Checks:
    def __init__(self):
        self.tally = oracle.Tally()
        self.runs = {}

    def run(self, name, batch=1, seq=128):
        """The run of a model; None, and a skip, where the model is absent."""
        path = oracle.model(name)
        if path is None:
            self.tally.skip(f"{name} is absent")
            return None
        key = (name, batch, seq)
        if key not in self.runs:
            self.runs[key] = oracle.Run(oracle.program(), path, "--batch", batch, "--seq", seq)
        return self.runs[key]

    def ops(self, name, kind=None):
        """Entries of the run at batch 1, sequence 128 that count, of one kind where it is given."""
        run = self.run(name)
        if run is None or not self.tally.check(run.ops is not None, f"{name}: no ops.json: exit {run.code} {run.last_line()}"):
            return None
        return [o for o in run.ops["ops"] if o["count"] > 0 and kind in (None, o["op"])]

    def complete(self, name, batch, seq):
        run = self.run(name, batch, seq)
        if run is None:
            return
        where = f"{name} at batch {batch}, seq {seq}"
        if not self.tally.check(run.code == 0 and run.ops is not None, f"{where}: exit {run.code} {run.last_line()}"):
            if run.ops is None:
                return
        c = run.ops["coverage"]
        self.tally.check(c["nodes"] > 0 and c["resolved"] == c["nodes"] and not c["unresolved"] and not c["unknown"],
                         f"{where}: {c['resolved']} of {c['nodes']} nodes resolved, unknown {c['unknown']}, {c['unresolved'][:3]}")
        counted = sum(o["count"] * o["macs"] for o in run.ops["ops"])
        self.tally.check(run.ops["totals"]["macs"] == counted, f"{where}: the total of MACs is not the sum of its entries")

    def exits(self):
        for path in oracle.models():
            self.complete(path.rsplit("/", 1)[-1].removesuffix(".onnx"), 1, 128)
        for name, batch, seq in LARGER:
            self.complete(name, batch, seq)
        for name in SAME_WORK:
            run = self.run(name, 1, 2048)
            if run is not None:
                self.tally.check(run.code == 3 and run.ops is None and len(run.stderr.splitlines()) >= 1 and "node '" in run.last_line(),
                                 f"{name} at seq 2048: exit {run.code}, names no node: {run.last_line()}")

    def macs(self):
        for name, want in MACS.items():
            run = self.run(name)
            if run is None or run.ops is None:
                continue
            got = run.ops["totals"]["macs"]
            self.tally.check(abs(got - want) <= 0.01 * want, f"{name}: {got / 1e9:.3f} GMAC, should be {want / 1e9:.3f}")
        of_kind = {}
        for name in SAME_WORK:
            ops = self.ops(name)
            if ops is not None:
                of_kind[name] = {k: sum(o["count"] * o["macs"] for o in ops if o["op"] == k) for k in ("gemm", "attention")}
        first = next(iter(of_kind.values()), None)
        for name, work in of_kind.items():
            self.tally.check(work == first and all(work.values()), f"{name}: MACs {work}, others {first}")

    def one_attention(self, name, count, heads, **fields):
        ops = self.ops(name, "attention")
        if ops is None:
            return None
        if not self.tally.check(len(ops) == 1 and sum(o["count"] for o in ops) == count,
                                f"{name}: {[(o['count'], o['shape']) for o in ops]} attentions, should be one of count {count}"):
            return None
        o = ops[0]
        self.tally.check(o["shape"][1] == heads, f"{name}: {o['shape']} heads in attention, should be {heads}")
        for field, want in fields.items():
            self.tally.check(o.get(field) == want, f"{name}: attention {field} is {o.get(field)}, should be {want}")
        return o

    def structure(self):
        gemms = self.ops("llama2_7b", "gemm")
        if gemms is not None:
            counts = sorted((o["count"] for o in gemms if o.get("weights")), reverse=True)
            self.tally.check(counts == [128, 64, 32, 1], f"llama2_7b: weight GEMMs of counts {counts}")
        llama = self.one_attention("llama2_7b", 32, 32, mask="causal+padding")
        if llama:
            self.tally.check(llama["shape"] == [1, 32, 128, 128], f"llama2_7b: attention of shape {llama['shape']}")
        self.one_attention("bert_base_ts", 12, 12)
        gpt = self.one_attention("gpt2_ts", 12, 12)
        if gpt:
            self.tally.check(gpt["mask"].startswith("causal"), f"gpt2_ts: the mask is {gpt['mask']}")
        self.one_attention("attn_opset23", 1, 32, kv_heads=8)
        decode = self.ops("llama_decode_kv", "attention")
        if decode is not None:
            self.tally.check(len(decode) == 1 and decode[0]["shape"][2] == 1 and decode[0].get("kv_len") == 65,
                             f"llama_decode_kv: attentions {[(o['count'], o['shape'], o.get('kv_len')) for o in decode]}")

    def weights(self):
        gemms = self.ops("mlp_sparse", "gemm")
        if gemms is None:
            return
        path = oracle.model("mlp_sparse")
        with open(path, "rb") as f:
            data = f.read()
        places = {}
        for t in onnx.load(path).graph.initializer:
            if len(t.dims) == 2:
                places[t.name] = (data.find(t.raw_data), len(t.raw_data), list(t.dims))
        if not self.tally.check(len(gemms) == 1 and gemms[0]["count"] == 4 and len(gemms[0]["weights"]) == 4,
                                f"mlp_sparse: GEMMs {[(o['count'], len(o.get('weights', []))) for o in gemms]}"):
            return
        for w in gemms[0]["weights"]:
            got = (w.get("offset"), w.get("length"), w.get("dims"))
            self.tally.check(got == places.get(w["name"]), f"mlp_sparse: weight {w}, should be {places.get(w['name'])}")
        self.tally.check(len({w["name"] for w in gemms[0]["weights"]}) == 4, "mlp_sparse: one weight stands there twice")


def main():
    checks = Checks()
    with oracle.need_models(checks.tally) as there:
        if there:
            checks.exits()
            checks.macs()
            checks.structure()
            checks.weights()
    checks.tally.end()


main()

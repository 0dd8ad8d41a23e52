"""Times attentions and convolutions of reports once more, with PyTorch:

    agree_kinds.py OPS.json REPORTS scout_cuda.so RESULT.json

As agree.py does for products: PyTorch's own call (scaled_dot_product_attention by cuDNN, conv2d), measured as
agree_common.py does, and beside it the very plan that the report names, launched here by the same object that
scout_batch loads (agree_plugin.py). Names of the kernels that both launch are read by PyTorch's profiler: where they are
the same, PyTorch's time is what is compared. Where they are not, a convolution is asked for once more with
cudnn.benchmark, in a process of its own, as PyTorch remembers the first plan of a shape; else the replayed plan is
compared, and that is said.
"""
import collections
import json
import os
import subprocess
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from agree_common import baseline_row, kernels, libraries_of, library, measure, reports, rotation
from agree_plugin import INPUT, OUTPUT, WEIGHT, Plugin, operation

COLD_BYTES = 1 << 30
TIMING = {"warm": 1.5, "blocks": 2}  # many operations, and none that swings the clock for long


def randn(*dims):
    return torch.randn(*dims, device="cuda", dtype=torch.half)


class Attention:
    """torch.nn.functional.scaled_dot_product_attention by cuDNN, on q, k, v; a tensor for the plan's result is the last."""

    def __init__(self, entry):
        batch, heads, queries, dim = entry["shape"]
        keys = entry.get("kv_len", queries)
        self.causal = bool(entry.get("causal"))
        self.q, self.kv = [batch, heads, queries, dim], [batch, heads, keys, dim]
        self.op = operation("attention", entry["shape"], "fp16",
                            [("q", INPUT, self.q), ("k", INPUT, self.kv), ("v", INPUT, self.kv), ("out", OUTPUT, self.q)],
                            {"kv_heads": heads, "kv_len": keys}, mask="causal" if self.causal else "none")

    def make(self):
        return randn(*self.q), randn(*self.kv), randn(*self.kv), torch.empty(*self.q, device="cuda", dtype=torch.half)

    def torch_call(self, q, k, v, _):
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)

    def any_call(self, q, k, v, _):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)

    def plan_call(self, plan, q, k, v, out):
        plan.launch(q, k, v, out)
        return out


class Convolution:
    """torch.nn.functional.conv2d on x and a weight as it lies for PyTorch; the plan gets the weight as ONNX has it."""

    def __init__(self, entry):
        self.last = entry["layout"] == "nhwc"
        dims = lambda shape: [shape[0], shape[3], shape[1], shape[2]] if self.last else list(shape)
        self.x, self.y, self.kernel = dims(entry["input"]), dims(entry["shape"]), entry["kernel"]
        self.stride, self.pad = entry["stride"], entry["pads"][:2]
        weight = [self.y[1], self.x[1], *self.kernel]
        self.weight = weight
        self.op = operation("conv", entry["shape"], "fp16",
                            [("input", INPUT, entry["input"]), ("weight", WEIGHT, weight), ("output", OUTPUT, entry["shape"])],
                            {name: entry[name] for name in ("input", "kernel", "stride", "pads")}, layout=entry["layout"])

    def lay(self, tensor):
        return tensor.contiguous(memory_format=torch.channels_last if self.last else torch.contiguous_format)

    def make(self):
        weight = randn(*self.weight)
        return self.lay(randn(*self.x)), self.lay(weight), weight, self.lay(randn(*self.y))

    def torch_call(self, x, weight, *_):
        return torch.nn.functional.conv2d(x, weight, stride=self.stride, padding=self.pad)

    any_call = torch_call

    def plan_call(self, plan, x, _, weight, y):
        plan.launch(x, weight, y)
        return y


WORKS = {"attention": Attention, "conv": Convolution}


def keeping(call, count):
    """The call with its last `count` results kept, so that each launch of a rotation writes memory of its own."""
    kept = collections.deque(maxlen=count)
    return lambda *buffers: kept.append(call(*buffers))


def sets_of(work, report):
    return rotation(work.make, max(report.get("rotation_bytes", 0), COLD_BYTES))


def compare(entry, report, plugin):
    work = WORKS[entry["op"]](entry)
    sets = sets_of(work, report)
    row = baseline_row(report)
    plan = plugin.plan(work.op, row["name"], row["variant"])
    replay = lambda *buffers: work.plan_call(plan, *buffers)
    got, launchers, refused = replay(*sets[0]).float(), {"replay": replay}, ""
    try:
        want = work.torch_call(*sets[0]).float()
        launchers["torch"] = keeping(work.torch_call, len(sets))
    except RuntimeError as error:  # cuDNN's attention by PyTorch is not for every shape
        refused, want = str(error).splitlines()[0][:100], work.any_call(*sets[0]).float()
    for buffers in sets:  # what a plan packs is packed before anything is timed
        replay(*buffers)
    right = ((got - want).norm() / want.norm()).item() < 1e-2
    del got, want
    times = measure(launchers, sets, **TIMING)

    def names(first=sets[0]):
        return {"kernel": kernels(replay, first), "torch_kernel": kernels(work.torch_call, first) if not refused else []}

    return names, {"name": report["name"], "op": entry["op"], "shape": entry["shape"],
            "variant": f"{row['name']} {row['variant']}", "scout_us": report["baseline_time_us"], "replay_us": times["replay"].us,
            "torch_us": times["torch"].us if "torch" in times else None,
            "refused": refused, "right": right, "sets": len(sets)}


def benchmark(names, entries, found):
    """Of convolutions by name: the kernels that cudnn.benchmark chooses, and their time. For another process."""
    torch.backends.cudnn.benchmark = True
    done = []
    for name in names:
        work = WORKS["conv"](entries[name])
        sets = sets_of(work, found[name])
        work.torch_call(*sets[0])
        done.append((name, work, sets[0], measure({"torch": keeping(work.torch_call, len(sets))}, sets, **TIMING)))
    for name, work, first, times in done:
        chosen = kernels(work.torch_call, first)
        print(json.dumps({"name": name, "kernel": chosen, "us": times["torch"].us}), flush=True)


def ask_benchmark(rows, argv):
    """What cudnn.benchmark does with the convolutions whose default is another kernel, by their names."""
    names = [row["name"] for row in rows if row["op"] == "conv" and row["kernel"] != of_library(row["torch_kernel"])]
    if not names:
        return {}
    done = subprocess.run([sys.executable, __file__, "--benchmark", *argv[1:3], *names], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        print(f"cudnn.benchmark: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
    return {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}


def of_library(names):
    """Without PyTorch's own kernels, which fill small tensors beside the library's."""
    return [name for name in names if "at::" not in name]


def decide(row, other):
    """What of PyTorch's the report's time is held against; `other`: what cudnn.benchmark did, or None."""
    ways = [("PyTorch", row["torch_us"], row["torch_kernel"])]
    row["torch_picks_it"], row["by"], row["other_us"] = False, "replay of its plan", row["replay_us"]
    if other:
        row["benchmark_us"], row["benchmark_kernel"] = other["us"], other["kernel"]
        ways.append(("PyTorch with cudnn.benchmark", other["us"], other["kernel"]))
    for by, time_us, names in reversed(ways):
        if row["kernel"] == of_library(names):
            row["torch_picks_it"] = True
        if row["kernel"] == names:
            row["by"], row["other_us"] = by, time_us
    row["ratio"] = row["scout_us"] / row["other_us"]


def say(row):
    at = lambda key: f"{row[key]:9.2f}" if row.get(key) else f"{'–':>9s}"
    print(f"{row['name']:15s} scout {at('scout_us')} us  torch {at('torch_us')}  benchmark {at('benchmark_us')}  replay "
          f"{at('replay_us')}  {100 * (row['ratio'] - 1):+.2f} % of {row['by']}{'' if row['right'] else ', WRONG'}")
    print(f"    scout: {row['variant']}: {', '.join(row['kernel'])[:170]}")
    for source, key in (("torch", "torch_kernel"), ("benchmark", "benchmark_kernel")):
        if row.get(key) and row[key] != row["kernel"]:
            print(f"    {source}: {', '.join(row[key])[:170]}")
    if row["refused"]:
        print(f"    torch refuses: {row['refused']}")


def main(argv):
    entries = json.load(open(argv[1], encoding="utf-8"))
    found = {report["name"]: report for report in reports(argv[2])}
    plugin, rows, waiting = Plugin(argv[3]), [], []
    for name, entry in entries.items():
        if not found.get(name, {}).get("baseline_time_us"):
            print(f"{name}: no baseline ({found.get(name, {}).get('status')})")
            continue
        try:
            names, row = compare(entry, found[name], plugin)
            waiting.append(names)
            rows.append(row)
        except (RuntimeError, ValueError, KeyError) as error:  # the others can be compared all the same
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
        torch.cuda.empty_cache()
    for row, names in zip(rows, waiting):  # at the end: after profiling once, each later launch costs more
        row.update(names())
    others = ask_benchmark(rows, argv)
    for row in rows:
        decide(row, others.get(row["name"]))
        say(row)
    torch.backends.cudnn.version()
    used = set().union(*(libraries_of(report, "cudnn") for report in found.values()))
    path = library("libcudnn.so")
    with open(argv[4], "w", encoding="utf-8") as file:
        json.dump({"torch": torch.__version__, "library": path, "scout_libraries": sorted(used),
                   "same_library": used == {os.path.realpath(path)}, "rows": rows}, file, indent=2)


if __name__ == "__main__":
    with torch.no_grad():
        if sys.argv[1] == "--benchmark":
            benchmark(sys.argv[4:], json.load(open(sys.argv[2], encoding="utf-8")),
                      {report["name"]: report for report in reports(sys.argv[3])})
        else:
            main(sys.argv)

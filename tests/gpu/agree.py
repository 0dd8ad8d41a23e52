"""Times the products of reports once more, with PyTorch: agree.py REPORTS RESULT.json

The independent measurement: torch.matmul of the same shapes on rotating buffers under a CUDA graph, the device loaded
until its clock is steady, then whole seconds (a clock at the power limit swings once a second), all that ran in them
over all their time; and beside it the very algorithm that the report
names (its bytes are in `config`), launched here through ctypes in the same library file. The names of the kernels that
both launch are read by PyTorch's profiler. Where torch.matmul launches another kernel than the report's algorithm,
the replayed algorithm is what is compared, and that is said.
"""
import ctypes
import glob
import json
import os
import sys
import time

import torch

DROP_S, KEEP_S, BLOCKS, WARM_S = 0.1, 1.0, 3, 2.5
GRAPH_S, LEAST_LAUNCHES, TRAIN = 0.006, 20, 8  # a replay is so long that what surrounds it does not count
WORKSPACE = 32 << 20
R_16F, R_32F, COMPUTE_32F = 2, 0, 68
DESC_EPILOGUE, DESC_BIAS_POINTER, DESC_BIAS_DATA_TYPE = 7, 8, 26
KEPT, STREAMS = [], []


class Lt:
    """As much of cuBLASLt as one product needs, from the file that PyTorch has loaded."""

    def __init__(self):
        probe = torch.zeros(64, 64, device="cuda", dtype=torch.half)
        torch.matmul(probe, probe)
        with open("/proc/self/maps", encoding="utf-8") as maps:
            self.path = next(line.split()[-1] for line in maps if "libcublasLt.so" in line)
        self.lib = ctypes.CDLL(self.path)
        self.handle = ctypes.c_void_p()
        self.check(self.lib.cublasLtCreate(ctypes.byref(self.handle)))
        self.workspace = torch.empty(WORKSPACE, device="cuda", dtype=torch.uint8)

    @staticmethod
    def check(code):
        if code != 0:
            raise RuntimeError(f"cuBLASLt answered {code}")

    def layout(self, rows, cols):
        out = ctypes.c_void_p()
        self.check(self.lib.cublasLtMatrixLayoutCreate(ctypes.byref(out), R_16F, ctypes.c_uint64(rows),
                                                       ctypes.c_uint64(cols), ctypes.c_int64(rows)))
        return out

    def set(self, description, attribute, value):
        self.check(self.lib.cublasLtMatmulDescSetAttribute(description, attribute, ctypes.byref(value),
                                                           ctypes.c_size_t(ctypes.sizeof(value))))

    def product(self, m, n, k, algorithm, epilogue=0, biased=False, added=False):
        """A function that launches C = A B by rows, which is C' = B' A' by columns, on the current stream; with one of
        the library's epilogues. A bias comes behind a, b and c, and then a matrix that is added."""
        description = ctypes.c_void_p()
        self.check(self.lib.cublasLtMatmulDescCreate(ctypes.byref(description), COMPUTE_32F, R_32F))
        left, right, out = self.layout(n, k), self.layout(k, m), self.layout(n, m)
        one, beta = ctypes.c_float(1), ctypes.c_float(1 if added else 0)
        words = ctypes.create_string_buffer(bytes.fromhex(algorithm), 64)
        pointer = ctypes.c_void_p
        if epilogue:
            self.set(description, DESC_EPILOGUE, ctypes.c_int32(epilogue))
        if biased:
            self.set(description, DESC_BIAS_DATA_TYPE, ctypes.c_int32(R_16F))

        def launch(a, b, c, *more):
            stream = pointer(torch.cuda.current_stream().cuda_stream)
            if biased:
                self.set(description, DESC_BIAS_POINTER, pointer(more[0].data_ptr()))
            read = more[-1] if added else c
            self.check(self.lib.cublasLtMatmul(
                self.handle, description, ctypes.byref(one), pointer(b.data_ptr()), left, pointer(a.data_ptr()), right,
                ctypes.byref(beta), pointer(read.data_ptr()), out, pointer(c.data_ptr()), out, words,
                pointer(self.workspace.data_ptr()), ctypes.c_size_t(WORKSPACE), stream))
        return launch


def kernels(launch, buffers):
    """Names of what one launch runs on the device."""
    launch(*buffers)
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        launch(*buffers)
        torch.cuda.synchronize()
    events = profile.profiler.kineto_results.events()
    names = {event.name() for event in events if "CUDA" in str(event.device_type())}
    return sorted(name for name in names if not name.startswith(("Memset", "Memcpy")))


def the_stream():
    if not STREAMS:
        STREAMS.append(torch.cuda.Stream())
    return STREAMS[0]


def rotation(m, n, k, covered):
    """Sets of a, b, c: together so many bytes that nothing of one is in the cache when its turn comes again."""
    each = 2 * (m * k + k * n + m * n)
    count = max(2, min(512, -(-int(covered) // each)))
    make = lambda rows, cols: torch.randn(rows, cols, device="cuda", dtype=torch.half)
    return [(make(m, k), make(k, n), torch.empty(m, n, device="cuda", dtype=torch.half)) for _ in range(count)]


def capture(launch, sets, launches, stream):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for index in range(launches):
            launch(*sets[index % len(sets)])
    return graph


def record(launch, sets):
    """A graph of whole rotations, about GRAPH_S long. All of them are recorded and replayed on one stream, and kept: in
    a process that had launched kernels on more streams, every node of every graph took longer, by the half of a
    microsecond or so that starting a kernel takes."""
    stream = the_stream()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    with torch.cuda.stream(stream):
        for buffers in sets[:3]:
            launch(*buffers)
        marks[0].record()
        for index in range(LEAST_LAUNCHES):
            launch(*sets[index % len(sets)])
        marks[1].record()
    torch.cuda.synchronize()
    each = marks[0].elapsed_time(marks[1]) * 1e-3 / LEAST_LAUNCHES
    launches = max(LEAST_LAUNCHES, int(GRAPH_S / each))
    turns = min(-(-launches // len(sets)), 4096 // len(sets) + 1)
    KEPT.append(capture(launch, sets, turns * len(sets), stream))
    return KEPT[-1], turns * len(sets)


def train(graph):
    """Milliseconds of each of several replays, one after the other, so that the device does not idle between them."""
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(TRAIN + 1)]
    with torch.cuda.stream(the_stream()):
        marks[0].record()
        for mark in marks[1:]:
            graph.replay()
            mark.record()
    torch.cuda.synchronize()
    return [first.elapsed_time(last) for first, last in zip(marks[1:], marks[2:])]


def block(graph, launches, drop, keep):
    """Microseconds of a launch, on average over the replays of `keep` seconds; those of `drop` before do not count."""
    times, start = [], time.perf_counter()
    while time.perf_counter() - start < drop:
        train(graph)
    start = time.perf_counter()
    while time.perf_counter() - start < keep:
        times += train(graph)
    return sum(times) / len(times) * 1e3 / launches


def measure(launchers, sets):
    """Interleaved blocks of all, after the device's clock has come to rest under the first."""
    graphs = {name: record(launch, sets) for name, launch in launchers.items()}
    block(*next(iter(graphs.values())), 0, WARM_S)
    times = {name: [] for name in graphs}
    for turn in range(BLOCKS):
        order = list(graphs) if turn % 2 == 0 else list(reversed(graphs))
        for name in order:
            times[name].append(block(*graphs[name], DROP_S, KEEP_S))
    return {name: sum(values) / len(values) for name, values in times.items()}


def algorithm_of(report):
    """The bytes of the algorithm that the baseline's row names, for Lt."""
    row = next(r for r in report["candidates"] if r["name"] == report["baseline"]
               and r["variant"] == report.get("baseline_variant", ""))
    return row["config"]["algo"]


def covered(report):
    return max(report.get("rotation_bytes", 0), 1 << 30)


def compare(report, by_torch, replay, sets, want, others=None, comparable=True):
    """Holds the report's baseline against PyTorch's function, or the replayed algorithm where that launches another
    kernel (or, not `comparable`, something beside it). The third of each of `sets` is the output; `want` is what it
    should be for the first; `others` are launched and timed in the same turns."""
    m, n, k = report["shape"]
    ours, theirs = kernels(replay, sets[0]), kernels(by_torch, sets[0])
    times = measure({"torch": by_torch, "replay": replay, **(others or {})}, sets)
    same = comparable and ours == theirs
    by = "PyTorch" if same else "replay of the algorithm (PyTorch launches " + ", ".join(theirs)[:60] + ")"
    other = times["torch" if same else "replay"]
    replay(*sets[0])
    right = ((sets[0][2].float() - want).norm() / want.norm()).item() < 1e-2
    return {"name": report["name"], "shape": [m, n, k], "scout_us": report["baseline_time_us"], "other_us": other,
            "torch_us": times["torch"], "replay_us": times["replay"], "by": by, "kernel": ", ".join(ours),
            "torch_kernel": ", ".join(theirs), "torch_picks_it": same,
            "others_us": {name: times[name] for name in others or {}},
            "same_kernel": bool(ours) and right,  # what was compared is the report's kernel, and it multiplies
            "ratio": report["baseline_time_us"] / other, "sets": len(sets)}


def plain(report, lt):
    m, n, k = report["shape"]
    sets = rotation(m, n, k, covered(report))
    want = torch.matmul(sets[0][0].float(), sets[0][1].float())
    return compare(report, lambda a, b, c: torch.matmul(a, b, out=c), lt.product(m, n, k, algorithm_of(report)), sets,
                   want)


def run(folder, result, compare_one):
    """Every report of a folder that has a baseline; compare_one(report, lt) makes a row, or None: none of this one."""
    torch.backends.cuda.preferred_blas_library("cublaslt")
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = True
    lt = Lt()
    rows, libraries = [], set()
    for path in sorted(glob.glob(f"{folder}/*.json")):
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        libraries |= {os.path.realpath(entry["path"]) for entry in report.get("libraries", [])
                      if "cublaslt" in entry["name"].lower()}
        if not report.get("baseline_time_us"):
            print(f"{report['name']}: no baseline ({report.get('status')})")
            continue
        row = compare_one(report, lt)
        if not row:
            continue
        rows.append(row)
        others = "".join(f"  {name} {time:.3f}" for name, time in row["others_us"].items())
        print(f"{row['name']:12s} scout {row['scout_us']:10.3f} us  torch {row['torch_us']:10.3f}  replay "
              f"{row['replay_us']:10.3f}  {100 * (row['ratio'] - 1):+.2f} %{others}  {row['kernel'][:70]}"
              f"{'' if row['torch_picks_it'] else '  | torch: ' + row['torch_kernel'][:70]}", flush=True)
        torch.cuda.empty_cache()
    with open(result, "w", encoding="utf-8") as file:
        json.dump({"torch": torch.__version__, "library": lt.path, "scout_libraries": sorted(libraries),
                   "same_library": libraries == {os.path.realpath(lt.path)}, "rows": rows}, file, indent=2)


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], plain)

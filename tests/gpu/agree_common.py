"""What the independent measurements with PyTorch share (agree*.py, end_to_end.py): the same work on rotating buffers
under a CUDA graph, the device loaded until its clock is steady, then whole seconds (a clock at the power limit swings
once a second), all that ran in them over all their time; and the names of the kernels that were launched.
"""
import collections
import glob
import json
import os
import time

import torch
import triton
import triton.language as tl

DROP_S, KEEP_S, BLOCKS, WARM_S = 0.1, 1.0, 3, 2.5
GRAPH_S, LEAST_LAUNCHES, TRAIN = 0.006, 20, 8  # a replay is so long that what surrounds it does not count
MOST_SETS, MOST_LAUNCHES = 512, 4096
KEPT, STREAMS = [], []
Timed = collections.namedtuple("Timed", "us mhz")  # of a launch, and the clock meanwhile


def library(word):
    """The file that this process has loaded whose path has the word in it; libraries are loaded when first used."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return next((line.split()[-1] for line in maps if word in line), None)


def reports(folder):
    """All reports of a folder, in the order of their files' names."""
    for path in sorted(glob.glob(f"{folder}/*.json")):
        with open(path, encoding="utf-8") as file:
            yield json.load(file)


def libraries_of(report, word):
    """The real paths of the libraries whose names have the word in them, as the report says them."""
    return {os.path.realpath(entry["path"]) for entry in report.get("libraries", []) if word in entry["name"].lower()}


def baseline_row(report):
    """The row of the report's baseline."""
    return next(row for row in report["candidates"] if row["name"] == report["baseline"]
                and row["variant"] == report.get("baseline_variant", ""))


def kernel_events(work):
    """(name, start in ns, end in ns) of every kernel that `work()` runs on the device, in the order of their starts."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        work()
        torch.cuda.synchronize()
    events = [(event.name(), event.start_ns(), event.start_ns() + event.duration_ns())
              for event in profile.profiler.kineto_results.events()
              if "CUDA" in str(event.device_type()) and not event.is_user_annotation()]
    return sorted((event for event in events if not event[0].startswith(("Memset", "Memcpy"))), key=lambda event: event[1])


def kernels(launch, buffers):
    """Names of what one launch runs on the device."""
    launch(*buffers)
    torch.cuda.synchronize()
    return sorted({name for name, _, _ in kernel_events(lambda: launch(*buffers))})


def the_stream():
    if not STREAMS:
        STREAMS.append(torch.cuda.Stream())
    return STREAMS[0]


def rotation(make, covered):
    """Sets of what `make()` gives, a tuple of tensors: together so many bytes that nothing of one is in the cache when
    its turn comes again."""
    first = make()
    each = sum(tensor.numel() * tensor.element_size() for tensor in first)
    count = max(2, min(MOST_SETS, -(-int(covered) // each)))
    return [first] + [make() for _ in range(count - 1)]


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
    turns = min(-(-launches // len(sets)), MOST_LAUNCHES // len(sets) + 1)
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


@triton.jit
def stamp_kernel(out):
    processor = tl.inline_asm_elementwise("mov.u32 $0, %smid;", "=r", [], dtype=tl.int32, is_pure=False, pack=1)
    cycles = tl.inline_asm_elementwise("mov.u64 $0, %clock64;", "=l", [], dtype=tl.int64, is_pure=False, pack=1)
    now = tl.inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l", [], dtype=tl.int64, is_pure=False, pack=1)
    tl.store(out + 2 * processor, cycles)
    tl.store(out + 2 * processor + 1, now)


def stamp():
    """Cycles and nanoseconds of the multiprocessors, as they count them: a row each, zeros where none ran."""
    out = torch.zeros(512, 2, device="cuda", dtype=torch.int64)
    stamp_kernel[(torch.cuda.get_device_properties(0).multi_processor_count,)](out)
    return out


def mean_clock(first, last):
    """MHz between two stamps, by the multiprocessors that both have."""
    both = ((first[:, 1] > 0) & (last[:, 1] > 0)).nonzero()
    passed = (last - first)[both.flatten()].double()
    return 1e3 * (passed[:, 0] / passed[:, 1]).median().item()


def block(graph, launches, drop, keep):
    """A launch, on average over the replays of `keep` seconds; those of `drop` before do not count."""
    times, start = [], time.perf_counter()
    while time.perf_counter() - start < drop:
        train(graph)
    first, start = stamp(), time.perf_counter()
    while time.perf_counter() - start < keep:
        times += train(graph)
    return Timed(sum(times) / len(times) * 1e3 / launches, mean_clock(first, stamp()))


def measure(launchers, sets, warm=WARM_S, keep=KEEP_S, blocks=BLOCKS):
    """A launch, by the launchers' names: interleaved blocks of all, after the device's clock has come to rest under the
    first."""
    graphs = {name: record(launch, sets) for name, launch in launchers.items()}
    block(*next(iter(graphs.values())), 0, warm)
    times = {name: [] for name in graphs}
    for turn in range(blocks):
        order = list(graphs) if turn % 2 == 0 else list(reversed(graphs))
        for name in order:
            times[name].append(block(*graphs[name], DROP_S, keep))
    return {name: Timed(*(sum(column) / len(values) for column in zip(*values))) for name, values in times.items()}

#!/usr/bin/env python3
"""How a power-capped clock moves under load, seen in the times of products: what the timing engine's model of a device
(tests/unit/noisy.c) was made from. Prints microseconds per launch: medians of 0.25 s under 5 s of one load, then of
0.1 s in blocks of 1 s that alternate between two loads; behind them clock (MHz) and power (W).
"""
import statistics
import time

import pynvml
import torch

ROTATION, TRAIN = 4, 8
pynvml.nvmlInit()
device = pynvml.nvmlDeviceGetHandleByIndex(0)


def telemetry():
    return pynvml.nvmlDeviceGetClockInfo(device, pynvml.NVML_CLOCK_SM), pynvml.nvmlDeviceGetPowerUsage(device) / 1000


def load(m, n, k, launches, rotation=ROTATION):
    """A graph of so many fp16 products, and what it must not outlive."""
    make = lambda rows, cols: torch.randn(rows, cols, device="cuda", dtype=torch.half)
    left, right = [make(m, k) for _ in range(rotation)], [make(k, n) for _ in range(rotation)]
    out = make(m, n)
    torch.matmul(left[0], right[0], out=out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for index in range(launches):
            torch.matmul(left[index % rotation], right[index % rotation], out=out)
    return graph, launches, (left, right, out)


def run(item, seconds):
    """(when, microseconds per launch) of every replay."""
    graph, launches, _ = item
    start, seen = time.perf_counter(), []
    while time.perf_counter() - start < seconds:
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(TRAIN + 1)]
        marks[0].record()
        for mark in marks[1:]:
            graph.replay()
            mark.record()
        torch.cuda.synchronize()
        now = time.perf_counter() - start
        seen += [(now, first.elapsed_time(last) / launches * 1e3) for first, last in zip(marks, marks[1:])]
    return seen


def bins(seen, width, count):
    parts = [[us for when, us in seen if index * width <= when < (index + 1) * width] for index in range(count)]
    return " ".join("%.2f" % statistics.median(part) for part in parts if part)


def main():
    loads = {"4096": load(4096, 4096, 4096, 12), "8192": load(8192, 8192, 8192, 2), "512": load(512, 4096, 4096, 80),
             "probe": load(14592, 3840, 16384, 1, 2)}
    for name in ("8192", "512", "4096"):
        print(name, "long:", bins(run(loads[name], 5.0), 0.25, 20), telemetry())
    for order in (["8192", "4096"], ["512", "probe"], ["8192", "probe"]):
        for turn in range(3):
            for name in order if turn % 2 == 0 else order[::-1]:
                print(name, "blk:", bins(run(loads[name], 1.0), 0.1, 10), telemetry())


main()

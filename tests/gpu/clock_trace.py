#!/usr/bin/env python3
"""How a power-capped clock moves under load, seen in the times of products: what the timing engine and the model of a
device that it is tested on (tests/fakes/noisy.c) were made from. After a rest of 0.1 s, 5 s of one load: microseconds
per launch in each 0.1 s; then by how many percent each half second, each second, each pair of half seconds from
opposite phases (as A B B A and A B P P B A have them), and the same pairs of 0.6 s, were slower than all seconds but the
first on average; behind them clock (MHz) and power (W). Then 0.1 s each of blocks of 1 s that alternate between loads.
"""
import os
import statistics
import time

import pynvml
import torch

ROTATION, TRAIN = 4, 8
pynvml.nvmlInit()
device = pynvml.nvmlDeviceGetHandleByIndex(int(os.environ.get("CUDA_VISIBLE_DEVICES") or 0))


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


def mean(seen, *spans):
    """Microseconds per launch over spans of time: launches count by how long they took."""
    inside = [us for when, us in seen if any(begin <= when < end for begin, end in spans)]
    return len(inside) / sum(1 / us for us in inside)


def swings(seen):
    usual = mean(seen, (1, 5))
    percent = lambda values: " ".join("%+.2f" % (100 * (value / usual - 1)) for value in values)
    pair = lambda begin, length, apart: mean(seen, *((at + 0.06, at + length)
                                                     for at in (begin, begin + apart * length)))
    print("  halves ", percent(mean(seen, (0.5 * k, 0.5 * k + 0.5)) for k in range(10)))
    print("  seconds", percent(mean(seen, (k, k + 1)) for k in range(5)))
    for length in (0.5, 0.6):
        for apart in (1, 3, 5):
            starts = [1 + 0.25 * k for k in range(17) if 1 + 0.25 * k + (apart + 1) * length <= 5]
            print("  pairs of %.1f s, %d apart" % (length, apart), percent(pair(at, length, apart) for at in starts))


def main():
    loads = {"4096": load(4096, 4096, 4096, 12), "8192": load(8192, 8192, 8192, 2), "512": load(512, 4096, 4096, 80),
             "probe": load(14592, 3840, 16384, 1, 2)}
    run(loads["8192"], 3.0)
    for name in ("8192", "512", "4096"):
        time.sleep(0.1)
        seen = run(loads[name], 5.0)
        print(name, "long:", bins(seen, 0.1, 50), telemetry())
        swings(seen)
    for order in (["8192", "4096"], ["512", "probe"]):
        for turn in range(2):
            for name in order if turn % 2 == 0 else order[::-1]:
                print(name, "blk:", bins(run(loads[name], 1.0), 0.1, 10), telemetry())


main()

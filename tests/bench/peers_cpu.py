#!/usr/bin/env python3
"""A model as a whole beside onnxruntime, on this machine's processor, on as many threads: the folder of a profiled model is
replayed, by the libraries' defaults and by its plan, in turns with runs of the same file by onnxruntime. Prints the times
and, of each turn, ratios to the runs of onnxruntime just before and behind it.

    peers_cpu.py SCOUT_BATCH [--turns N] FOLDER...

Which file that is, and what its dimensions are bound to, is said by the folder's ops.json. Weights that the file leaves out
are random ones, on both sides. A replay has its weights in several copies, one after another, where one would stay in the
cache from run to run. So has onnxruntime: as many sessions, which share their threads. What one session takes, whose weights
may stay there, stands beside it.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime
from onnx import external_data_helper, helper, numpy_helper

SECONDS = 1.0  # of onnxruntime, before and behind each replay
NEWEST_FORMAT = 11  # that onnxruntime reads; newer ones add nothing that these models use


def fill(model, rng):
    """Weights that lie in no file: of about the size that keeps a model's values near 1."""
    for t in model.graph.initializer:
        if not external_data_helper.uses_external_data(t):
            continue
        kind = helper.tensor_dtype_to_np_dtype(t.data_type)
        deep = max(1, int(np.prod(t.dims[1:])) if len(t.dims) > 1 else 1)
        if np.issubdtype(kind, np.floating):
            values = np.abs(rng.standard_normal(t.dims)) if len(t.dims) < 2 else rng.standard_normal(t.dims) / deep**0.5
        else:
            values = rng.integers(-8, 8, t.dims) if np.issubdtype(kind, np.signedinteger) else rng.integers(0, 8, t.dims)
        name = t.name
        t.CopyFrom(numpy_helper.from_array(values.astype(kind), name))


def inputs_of(model, bound, rng):
    given = {t.name for t in model.graph.initializer}
    arrays = {}
    for i in model.graph.input:
        if i.name in given:
            continue
        t = i.type.tensor_type
        dims = [d.dim_value if d.HasField("dim_value") else bound[d.dim_param] for d in t.shape.dim]
        kind = helper.tensor_dtype_to_np_dtype(t.elem_type)
        if np.issubdtype(kind, np.floating):
            arrays[i.name] = rng.standard_normal(dims).astype(kind)
        else:
            arrays[i.name] = np.ones(dims, kind)
    return arrays


class Peer:
    def __init__(self, folder):
        rng = np.random.default_rng(20261126)
        with open(os.path.join(folder, "ops.json")) as f:
            listed = json.load(f)
        path, bound = listed["model"]["path"], listed["dims"]
        model = onnx.load(path, load_external_data=False)
        try:
            external_data_helper.load_external_data_for_model(model, os.path.dirname(os.path.abspath(path)))
        except (FileNotFoundError, onnx.checker.ValidationError):
            fill(model, rng)
        model.ir_version = min(model.ir_version, NEWEST_FORMAT)
        self.inputs = inputs_of(model, bound, rng)
        with open(os.path.join(folder, "model.json")) as f:
            copies = json.load(f)["memory"]["weight_copies"]
        self.sessions = [self.session(model) for _ in range(copies)]

    @staticmethod
    def session(model):
        o = onnxruntime.SessionOptions()
        o.use_per_session_threads = False
        o.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        o.add_session_config_entry("session.set_denormal_as_zero", "1")
        o.log_severity_level = 3
        return onnxruntime.InferenceSession(model.SerializeToString(), o, providers=["CPUExecutionProvider"])

    def run(self, seconds, sessions):
        """The median, in microseconds, of runs of these sessions in turn."""
        times, end = [], time.perf_counter() + seconds
        while time.perf_counter() < end or len(times) < 5:
            session = sessions[len(times) % len(sessions)]
            began = time.perf_counter()
            session.run(None, self.inputs)
            times.append(time.perf_counter() - began)
        return statistics.median(times) * 1e6


def replay(scout, folder):
    said = subprocess.run([scout, "--replay", folder, "--device", "cpu"], capture_output=True, text=True)
    if said.returncode != 0:
        sys.exit("peers: the replay of %s ended with %d: %s" % (folder, said.returncode, said.stderr.strip().splitlines()[-1:]))
    with open(os.path.join(folder, "model.json")) as f:
        model = json.load(f)
    return model["default"]["time_us"], (model.get("best") or model["default"])["time_us"]


def show(name, values, form):
    print("    %-22s %s (%s to %s)" % (name, *(form % f(values) for f in (statistics.median, min, max))))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("scout")
    p.add_argument("folders", nargs="+")
    p.add_argument("--turns", type=int, default=5)
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    args = p.parse_args()
    onnxruntime.set_global_thread_pool_sizes(args.threads, 1)
    print("onnxruntime %s, %d threads, %d turns; median (least to most)" % (onnxruntime.__version__, args.threads, args.turns))
    for folder in args.folders:
        peer, rows = Peer(folder), []
        warm = peer.run(SECONDS, peer.sessions[:1])
        before = peer.run(SECONDS, peer.sessions)
        for _ in range(args.turns):
            default, plan = replay(args.scout, folder)
            after = peer.run(SECONDS, peer.sessions)
            rows.append((default, plan, (before + after) / 2))
            before = after
        print("%s: weights in %d copies, each in turn; from one, onnxruntime takes %.1f us" %
              (os.path.basename(os.path.normpath(folder)), len(peer.sessions), warm))
        for k, name in enumerate(("default, us", "plan, us", "onnxruntime, us")):
            show(name, [r[k] for r in rows], "%8.1f")
        show("default / onnxruntime", [r[0] / r[2] for r in rows], "%8.3f")
        show("plan / onnxruntime", [r[1] / r[2] for r in rows], "%8.3f")
        sys.stdout.flush()


main()

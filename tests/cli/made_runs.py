"""Makes a run: a model's folder with reports of operations that deviate a little from run to run.
Usage: made_runs.py FOLDER COUNT SEED [CHANGE]…

A change: `machine=1.05` (times of all), `compute=1.05` (of what computes), `op_0003=1.1` (of one), `op_0004:best=0.8` (something faster than its default
appears), `op_0005:status=CRASHED`, `op_0006:id=NAME` (called otherwise), `op_0007:gone`, `op_0008:key=TEXT`,
`op_0009:borderline` (its efficiency is at the threshold), `op_0010:ceiling=0.5` (times), `ceilings=1.05` (of all),
`regime=TEXT`, `method=N`, `model=NAME`, `class=TEXT`, `driver=TEXT`, `cublaslt=TEXT`, `device=NAME`, `clock=MHZ`, `count=N` (of all), `taken=TIME`,
`broken` (a report cut short), `fusions=N` (as many beside them: `fu_0001=1.1`, `fu_0001:parts=1.1`, `fu_0001:best=1` (no faster than its
parts; 0.7), and what operations have)."""
import json
import os
import random
import sys

folder, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
changes, special = {}, {}
for argument in sys.argv[4:]:
    place, _, value = argument.partition("=")
    operation, _, what = place.partition(":")
    if operation.startswith(("op_", "fu_")):
        special.setdefault(operation, {})[what or "times"] = value
    else:
        changes[place] = value

NOISE, BETWEEN = 0.0009, 0.002
numbers = random.Random(seed)
klass = changes.get("class", "name=NVIDIA H200;driver=580;cublaslt=13.1.0")
os.makedirs(os.path.join(folder, "reports"))


def row(name, variant, status, us):
    made = {"name": name, "variant": variant, "status": status, "reason": None}
    if status == "OK":
        made["time_us"] = {"median": us, "mean": us, "min": us, "p05": us, "p95": us, "rel_ci95": 1.96 * NOISE, "batches": 40, "launches": 400}
        made["tflops"], made["tbps"] = 1.0, 0.1
        made["clock_mhz"] = float(changes.get("clock", 1470))
    else:
        made["reason"] = {"code": "signal", "text": "ended by <signal> & more"}
    return made


def report(number, operation, own):
    truth = 20.0 + 13.7 * (number % 29)
    deviation = 1 + numbers.gauss(0, NOISE) + numbers.gauss(0, BETWEEN)
    us = truth * deviation * float(changes.get("machine", 1)) * float(own.get("times", 1))
    if number % 3:
        us *= float(changes.get("compute", 1))
    status = own.get("status", "OK")
    efficiency = 0.9 if "borderline" in own else 0.95
    made = {
        "schema": "ceiling-scout/report/1", "operation": own.get("id", operation), "name": operation, "op": "gemm" if number % 3 else "norm",
        "shape": [64, 64, 64 + number], "dtype": "fp16", "precision": "fp16", "count": int(changes.get("count", 1 + number % 4)), "batch": 1,
        "pattern": "DENSE", "sparsity": 0.0, "key": own.get("key", f"gemm;shape=64,64,{64 + number};type=fp16"),
        "device": {"name": changes.get("device", "cuda:0"), "model": changes.get("model", "NVIDIA H200"), "class": klass,
                   "instance": klass + ";uuid=GPU-1", "capability": "9.0", "units": 132, "driver": changes.get("driver", "580.1")},
        "regime": changes.get("regime", "sustained-model-graph"), "method": int(changes.get("method", 5)),
        "search": {"exhaustive": False, "candidate": None, "early_exit": 0.97, "workspace_limit": 1, "candidates_hash": "0"},
        "taken": changes.get("taken", "2026-01-01T00:00:00Z"),
        "libraries": [{"name": "cublaslt", "version": changes.get("cublaslt", "13.1.0"), "path": "/lib/cublaslt"}],
        "status": status, "reason": None, "baseline": "lib", "baseline_variant": "", "best": "lib", "best_variant": "", "best_approach": "NONE",
        "ratio": 1.0, "ratio_ci": 0.0, "flops": 1e9, "bytes_read": 1e6, "bytes_written": 1e6,
        "ceiling_time_us": truth * efficiency * float(own.get("ceiling", 1)) * float(changes.get("ceilings", 1)), "ceiling_ci": 0.005,
        "ceiling_from": "stored", "launch_us": 1.0, "peak_tflops": 700.0, "bound": "compute" if number % 3 else "memory",
        "candidates": [row("lib", "", status, us)],
    }
    if status == "OK":
        made["baseline_time_us"] = made["best_time_us"] = us
        if "best" in own:
            made["best"], made["best_variant"], made["best_approach"] = "mine", "tile=64", "CUSTOM_KERNEL"
            made["best_time_us"], made["ratio"], made["ratio_ci"] = us * float(own["best"]), float(own["best"]), 0.002
            made["candidates"].append(row("mine", "tile=64", "OK", made["best_time_us"]))
    else:
        made.update(baseline=None, baseline_variant=None, best=None, best_variant=None, reason=made["candidates"][0]["reason"])
        for key in ("ratio", "ratio_ci", "best_approach"):
            del made[key]
    return made


def fusion(number, operation, own):
    """Two parts one after another, and all at once."""
    best = float(own.get("best", 0.7))
    made = report(number, operation, {"best": best * float(own.get("times", 1)), **{key: own[key] for key in own if key in ("status", "id", "key")}})
    apart = made.get("baseline_time_us", 0) * float(own.get("parts", 1))
    made["key"] = own.get("key", f"fused;{number}")
    told = {"pattern": own.get("pattern", "gemm+bias"), "ops": [], "count": made["count"], "selected": made["count"], "saved_bytes": 1, "how": "sequence"}
    if made["status"] == "OK":
        at_once, won = made["best_time_us"], best < 0.98
        ratio = at_once / apart
        made["candidates"][0].update(name="parts", time_us={**made["candidates"][0]["time_us"], "median": apart})
        made.update(baseline="parts", baseline_time_us=apart, best_approach="FUSION", ratio=ratio)
        if not won:
            made.update(best="parts", best_variant="", best_time_us=apart, best_approach="NONE", ratio=1.0, ratio_ci=0.0)
        told.update(parts_time_us=apart, fused_time_us=at_once, fused="mine", fused_variant="tile=64", speedup=1 / ratio, speedup_ci=0.002,
                    kernels_parts=2, kernels_fused=1, worth="yes" if won else "no", saved_us=made["count"] * (apart - at_once) if won else 0)
    else:
        told["why"] = made["reason"]
    return {**made, "fusion": told}


def write(kind, made, name, own):
    if "gone" not in own:
        with open(os.path.join(folder, kind, name + ".json"), "w", encoding="utf-8") as file:
            json.dump(made, file)


for k in range(count):
    name = f"op_{k:04}"
    write("reports", report(k, name, special.get(name, {})), name, special.get(name, {}))
for k in range(int(changes.get("fusions", 0))):
    os.makedirs(os.path.join(folder, "fusions"), exist_ok=True)
    name = f"fu_{k:04}"
    write("fusions", fusion(k, name, special.get(name, {})), name, special.get(name, {}))
if "broken" in changes:
    with open(os.path.join(folder, "reports", "broken.json"), "w", encoding="utf-8") as file:
        file.write('{"schema": "ceiling-scout/report/1", "operation": "bro')

"""Reports as scout_batch writes them, made up, for the tests of analyze. Usage: made_reports.py FOLDER [hostile|open]

With "open" there are those whose intervals, passes and addresses leave something open, and nothing else.
A model's folder: operations of every outcome, a fusion, run.json. With "hostile" there is one operation more for each of
NASTY, which stands in every text that a report has.
"""
import json
import os
import sys

NASTY = [
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2",
    "@SUM(A1)",
    " =1",
    "\t=1",
    'a"b,c;d',
    "line\nbreak\r\nend",
    "<script>alert(1)</script>",
    "]]><!--&amp;\"'",
    "| a | b |",
    "`x` **y** _z_ [l](javascript:1) ![i](x) @everyone #1 http://x.y www.x.y",
    "# heading",
    "1. list",
    "\x01\x02\x1b[31mred\x7f\u0085\u202etxet",
    "\ufeffbom\uffff\u2028",
    "$(touch pwned)`touch pwned`",
    "*/ int x; /*",
    "é😀" * 50,
    "x" * 5000,
]

CLASS = "name=Test GPU;capability=9.0;units=132;memory_mib=143155;power_limit_w=700;driver=580;cublaslt=13.1.0"
DEVICE = {
    "name": "cuda:0",
    "model": "Test GPU",
    "class": CLASS,
    "instance": CLASS + ";uuid=GPU-0",
    "capability": "9.0",
    "units": 132,
    "driver": "580.1",
}


def row(name, variant, us=None, status="OK", code=None, text=None, ci=0.004):
    made = {"name": name, "variant": variant, "status": status, "reason": None}
    if status != "OK":
        made["reason"] = {"code": code, "text": text}
        return made
    made["time_us"] = {"median": us, "mean": us, "min": us, "p05": us, "p95": us, "rel_ci95": ci, "batches": 40, "launches": 400}
    made.update(tflops=1e6 / us, tbps=1.0, clock_mhz=1470.0, power_w=684.0)
    return made


def report(operation, op="gemm", count=1, us=100.0, ceiling=80.0, best=None, rows=(), **more):
    """One operation whose default takes us and whose best, where there is one, takes best."""
    made = {
        "schema": "ceiling-scout/report/1",
        "operation": operation,
        "name": operation,
        "op": op,
        "shape": [2048, 4096, 4096],
        "dtype": "fp16",
        "precision": "fp16",
        "layout": "nn",
        "count": count,
        "batch": 1,
        "pattern": "DENSE",
        "sparsity": 0.0,
        "key": operation,
        "device": DEVICE,
        "regime": "sustained-model-graph",
        "method": 4,
        "search": {"exhaustive": False, "candidate": None, "early_exit": 0.97, "workspace_limit": 1, "candidates_hash": "0" * 16},
        "status": "OK",
        "reason": None,
        "baseline": "lib",
        "baseline_variant": "algo=0",
        "best": "lib",
        "best_variant": "algo=0",
        "best_approach": "NONE",
        "baseline_time_us": us,
        "best_time_us": us,
        "flops": 5e10,
        "bytes_read": 5e7,
        "bytes_written": 1e7,
        "ceiling_time_us": ceiling,
        "ceiling_ci": 0.004,
        "launch_us": 0.5,
        "ceiling_from": "stored",
        "peak_tflops": 5e10 / (ceiling - 0.5) * 1e-6,
        "peak_shape": [8192, 8192, 16384],
        "peak_how": "lib",
        "bound": "compute",
        "efficiency": ceiling / us,
        "above_ceiling": False,
        "specials": 1e6,
        "taken": "2026-01-01T00:00:00Z",
        "candidates": [row("lib", "algo=0", us), *rows],
    }
    if best:
        made.update(best_variant="algo=7", best_approach="LIBRARY_TUNE", best_time_us=best, ratio=best / us, ratio_ci=0.006)
        made["candidates"].append(row("lib", "algo=7", best))
    made.update(more)
    return made


def unmeasured(operation, status, code, text, **more):
    made = report(operation, **more)
    for key in ("baseline_time_us", "best_time_us", "efficiency", "best", "best_variant", "best_approach"):
        del made[key]
    made.update(status=status, reason={"code": code, "text": text}, best=None)
    made["candidates"] = [row("lib", "algo=0", None, status, code, text)]
    return made


def write(folder, made, name=None):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, (name or made["operation"]) + ".json"), "w", encoding="utf-8") as out:
        json.dump(made, out)


def run_json():
    ceilings = {
        "schema": "ceiling-scout/ceilings/1",
        "instance": DEVICE["instance"],
        "taken": "2026-01-01T00:00:00Z",
        "launch_us": 0.5,
        "special_per_s": 4e12,
        "peaks": [{"precision": "fp16", "tflops": 680.0, "shape": [8192, 8192, 16384], "how": "lib", "rel_ci95": 0.004,
                   "clock_mhz": 1432.0, "power_w": 686.0}],
        "bandwidths": [{"bytes": 1 << 26, "read_fraction": 0.67, "resident": False, "tbps": 4.0, "rel_ci95": 0.001}],
    }
    device = {"name": "cuda:0", "model": "Test GPU", "class": CLASS, "instance": DEVICE["instance"], "ceilings": ceilings}
    return {"schema": "ceiling-scout/run/1", "state": "complete", "model": "made_up", "devices": [device]}


def write_folder(folder, hostile):
    reports, fusions = os.path.join(folder, "reports"), os.path.join(folder, "fusions")
    outraced = row("lib", "algo=3", None, "SKIPPED", "outraced", "12.0 % behind the best after 2 rounds")
    made = [
        report("gemm_proven", count=10, us=100, ceiling=85, best=90, rows=[outraced]),
        report("gemm_optimal", count=20, us=100, ceiling=95),
        report("gemm_near", count=5, us=100, ceiling=89.7),
        report("attention_open", op="attention", count=5, us=200, ceiling=100),
        report("norm_small", op="norm", us=10, ceiling=6, bound="memory"),
        report("move_launch", op="move", us=1.0, ceiling=0.9, bound="launch", launch_us=0.8),
        report("gemm_rival", count=3, us=100, ceiling=70, rows=[row("other", "v=1", 98.5)],
               rival={"name": "other", "variant": "v=1", "approach": "CUSTOM_KERNEL", "ratio": 0.985, "ratio_ci": 0.004}),
        report("gemm_wrong", rows=[row("bad", "v=1", None, "WRONG", "samples", "3 sampled outputs differ")]),
        unmeasured("conv_missing", "UNSUPPORTED", "type", "no library here does that", op="conv", count=2),
        unmeasured("conv_skipped", "SKIPPED", "budget", "the time was used up", op="conv"),
        unmeasured("gemm_part", "SKIPPED", "not_asked", "a part of another operation", count=0),
    ]
    for one in made:
        write(reports, one)
    parts = report("norm_residual", op="norm", count=4, us=22, ceiling=11, baseline="parts", baseline_variant="")
    parts["candidates"] = [row("parts", "", 22.0), row("lib", "algo=7", 14.0)]
    parts.update(best_variant="algo=7", best_approach="FUSION", best_time_us=14.0, ratio=14 / 22, ratio_ci=0.004)
    parts["fusion"] = {"pattern": "norm+residual", "ops": [], "count": 4, "selected": 4, "saved_bytes": 1, "how": "sequence",
                       "parts_time_us": 22.0, "fused_time_us": 14.0, "fused": "lib", "fused_variant": "algo=7",
                       "speedup": 22 / 14, "speedup_ci": 0.004, "kernels_parts": 2, "kernels_fused": 1, "worth": "yes",
                       "saved_us": 32.0}
    write(fusions, parts)
    for k, text in enumerate(NASTY if hostile else []):
        bad = row(text, text, None, "WRONG", "samples", text)
        odd = report(text + str(k), op=text, us=100, ceiling=50, rows=[bad], name=text, layout=text, mask=text, what=text,
                     peak_how=text, regime="sustained-model-graph")
        write(reports, odd, f"odd_{k}")
        write(reports, unmeasured(text + "!" + str(k), "ERROR", "error", text), f"missing_{k}")
        everywhere = dict.fromkeys(("name", "dtype", "weight_dtype", "precision", "pattern", "bound", "ceiling_from", "key"), text)
        faster = report(text + "?" + str(k), us=100, ceiling=50, **everywhere)
        faster.update(baseline=text, baseline_variant=text, best=text, best_variant=text + "2", best_approach="CUSTOM_KERNEL")
        faster.update(best_time_us=60.0, ratio=0.6, ratio_ci=0.004, rival={"name": text, "variant": text, "approach": "LIBRARY_TUNE",
                                                                           "ratio": 0.7, "ratio_ci": 0.01})
        faster["candidates"] = [row(text, text, 100.0), row(text, text + "2", 60.0)]
        faster["device"] = {**DEVICE, "name": text, "driver": text}
        write(reports, faster, f"faster_{k}")
        write(fusions, {**faster, "operation": text + "+" + str(k), "fusion": {**parts["fusion"], "pattern": text}}, f"fused_{k}")
    if hostile:
        with open(os.path.join(reports, "broken.json"), "w", encoding="utf-8") as out:
            out.write("{")
    with open(os.path.join(folder, "run.json"), "w", encoding="utf-8") as out:
        json.dump(run_json(), out)


def passed(made, quality="good", ci=None, source="4 passes", **more):
    """A row of several passes; without an interval it has one pass alone."""
    made.update({"time_from": "plain", "interval_from": source, "quality": quality, **more})
    if ci is None:
        del made["time_us"]["rel_ci95"]
    else:
        made["time_us"]["rel_ci95"] = ci
    return made


def write_open(folder):
    reports = os.path.join(folder, "reports")
    once = report("gemm_once", us=100, ceiling=60, best=50, passes=1, undecided=["winner", "ceiling", "time"])
    del once["ratio_ci"]
    for one in once["candidates"]:
        passed(one, "wide", source="1 pass")
    write(reports, once)
    moves = report("gemm_addresses", count=4, us=100, ceiling=85, best=90, passes=4, undecided=[])
    seen = [{"time_us": 89.0 + k, "ratio": 0.89 + k / 100, "blocks": 20, "dropped": k} for k in range(4)]
    passed(moves["candidates"][0], ci=0.004)
    passed(moves["candidates"][1], ci=0.006, time_from="clock", ratio=0.9, ratio_ci=0.006, passes=seen,
           addresses={"best": 0.86, "worst": 0.97})
    for k in range(30):
        moves["candidates"].append(passed(row("lib", f"algo={20 + k}", 130.0 - k), "wide", 0.02 if k else 1.23, ratio=1.3 - k / 100, ratio_ci=0.02 if k else 1.4))
    write(reports, moves)
    write(reports, report("rotary_own", op="rotary", count=2, us=100, ceiling=85, best=80, baseline_own=True))
    close = report("gemm_close", count=3, us=100, ceiling=92, ceiling_from="probe", ceiling_ci=0.001, stored_ceiling_time_us=80.0,
                   probe={"bound": "compute", "bound_us": 91.5, "bound_ci": 0.001, "among": True})
    close["candidates"] = [passed(row("lib", "algo=0", 100.0), "drifting", 0.05)]
    write(reports, close)
    old = unmeasured("gemm_old", "UNSTABLE", "drift", "the blocks disagree")
    write(reports, old)


if __name__ == "__main__":
    if "open" in sys.argv[2:]:
        write_open(sys.argv[1])
    else:
        write_folder(sys.argv[1], "hostile" in sys.argv[2:])

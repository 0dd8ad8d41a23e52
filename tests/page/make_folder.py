#!/usr/bin/env python3
"""Folders of reports as scout_batch writes them, for the tests of report.html: what they say is made up, the same each time.
Usage: make_folder.py KIND FOLDER   KIND: ordinary, hostile, or a number of operations"""
import json
import os
import random
import sys

DEVICE = {"name": "cuda:0", "model": "Made-up 100", "class": "name=Made-up 100;units=100;driver=1", "capability": "9.0", "units": 100,
          "instance": "name=Made-up 100;units=100;driver=1;uuid=0", "driver": "1.2"}
CROSSOVER = {"operation": "gemm_sweep", "pattern": "BLOCK_SPARSE", "block": 64, "from": 0.82, "behind": 0.8, "points": [
    {"zeros": z, "dense_us": 100.0} | ({"sparse_us": 500 * (1 - z), "name": "own", "variant": ""} if z > 0.6 else {})
    for z in (0.5, 0.7, 0.8, 0.9, 0.97)]}
PEAK, READ = 600.0, 4.0  # TFLOP/s, TB/s


def row(name, variant, time_us=None, code=None, text="", status="SKIPPED", flops=0.0, moved=0.0, **more):
    if time_us is None:
        return {"name": name, "variant": variant, "status": status, "reason": {"code": code, "text": text}, **more}
    time = {"median": time_us, "mean": time_us, "min": time_us * 0.98, "p05": time_us * 0.99, "p95": time_us * 1.02, "rel_ci95": 0.004,
            "batches": 100, "launches": 1000}
    return {"name": name, "variant": variant, "status": "OK", "reason": None, "time_us": time, "tflops": flops / time_us / 1e6,
            "tbps": moved / time_us / 1e6, "clock_mhz": 1500.0, "power_w": 600.0, "throttle": "power cap",
            "error": {"worst": 1e-4, "tolerance": 1e-3}, "config": {"library": name, "algo": 6}, **more}


def report(k, op, shape, flops, moved, slower, gain, count, **more):
    """The default takes `slower` times the ceiling; the best `gain` of the default's time (1: nothing is faster)."""
    ceiling = max(flops / PEAK / 1e6, moved / READ / 1e6) + 0.5
    base, best = ceiling * slower, ceiling * slower * gain
    name = f"{op}_{'x'.join(map(str, shape))}_fp16_{k:05d}"
    rows = [row("library", "algo=0", base, flops=flops, moved=moved)]
    if gain < 1:
        rows.append(row("library", "algo=6", best, flops=flops, moved=moved, pack_us=100.0, pack_bytes=1 << 20))
    rows += [row("library", f"algo={a}", code="outraced", text=f"{a}.0 % behind the best after {a} rounds") for a in range(1, 6)]
    rows += [row("own_kernel", "", code="pattern", text="its weight is dense", status="UNSUPPORTED"),
             row("own_tiled", "tile=64", code="samples", text="3 of 4096 sampled outputs differ", status="WRONG") if k % 7 == 3 else
             row("own_tiled", "tile=64", code="early_exit", text="the best so far is within 3 % of the ceiling")]
    made = {"schema": "ceiling-scout/report/1", "operation": name, "name": name, "op": op, "shape": list(shape), "layout": "nn",
            "dtype": "fp16", "weight_dtype": "fp16", "precision": "fp16", "count": count, "batch": 1, "pattern": "DENSE", "sparsity": 0.0,
            "key": f"{op};shape={shape};n={k}", "device": DEVICE, "regime": "sustained-model-graph", "method": 4,
            "search": {"exhaustive": False, "candidate": None, "early_exit": 0.97, "workspace_limit": 1 << 25, "candidates_hash": "0" * 16},
            "status": "OK", "reason": None, "baseline": "library", "baseline_variant": "algo=0", "best": "library",
            "best_variant": "algo=6" if gain < 1 else "algo=0", "best_approach": "LIBRARY_TUNE" if gain < 1 else "NONE",
            "flops": flops, "bytes_read": moved * 0.7, "bytes_written": moved * 0.3, "ceiling_time_us": ceiling, "ceiling_from": "stored",
            "ceiling_ci": 0.004, "launch_us": 0.5, "baseline_time_us": base, "best_time_us": best, "baseline_tflops": flops / base / 1e6,
            "best_tflops": flops / best / 1e6, "ceiling_tflops": flops / ceiling / 1e6, "peak_tflops": PEAK,
            "peak_shape": [8192, 8192, 8192], "peak_how": "library", "efficiency": 1 / slower, "above_ceiling": False,
            "bound": "compute" if flops / PEAK > moved / READ else "memory", "config": {"library": "library", "algo": 6},
            "settled": True, "seconds": 4.0, "taken": f"2026-01-01T{k // 3600 % 24:02d}:{k // 60 % 60:02d}:{k % 60:02d}Z", "libraries": [],
            "candidates": rows, **more}
    if gain < 1:
        made |= {"ratio": gain, "ratio_ci": 0.004}
    return made


def product(k, m, n, depth, slower=1.05, gain=1.0, count=1, **more):
    return report(k, "gemm", (m, n, depth), 2.0 * m * n * depth, 2.0 * (m * depth + n * depth + m * n), slower, gain, count, **more)


def passes(k, op, rows, cols, slower=1.05, gain=1.0, count=1, **more):
    return report(k, op, (rows, cols), 4.0 * rows * cols, 4.0 * rows * cols, slower, gain, count, **more)


def without_baseline(made, status, code, text):
    """The same operation, of which nothing is known but why."""
    for key in [key for key in made if key.startswith(("baseline", "best", "efficiency", "ratio", "config"))]:
        del made[key]
    return made | {"status": status, "reason": {"code": code, "text": text}, "baseline": None, "best": None, "candidates": []}


def fusion(k, pattern, parts_us, fused_us, worth):
    """What does all at once (`own`), beside its parts in sequence, which are the default."""
    made = passes(9000 + k, "norm", 2048, 4096 + k, count=4)
    made["operation"] = made["name"] = f"{pattern.replace('+', '_')}_{k}"
    made["fusion"] = {"pattern": pattern, "ops": [], "count": 4, "selected": 4, "saved_bytes": 1 << 20, "how": "sequence"}
    if not fused_us:
        made["fusion"]["why"] = {"code": "budget", "text": "fusions have a quarter of the run's time"}
        return without_baseline(made, "SKIPPED", "budget", "its time was used up")
    made["fusion"] |= {"parts_time_us": parts_us, "fused_time_us": fused_us, "fused": "own", "fused_variant": "", "kernels_parts": 2,
                       "speedup": parts_us / fused_us, "speedup_ci": 0.004, "kernels_fused": 1, "worth": worth,
                       "saved_us": 4 * (parts_us - fused_us) if worth == "yes" else 0.0}
    won = fused_us < parts_us
    return made | {"baseline": "parts", "baseline_variant": "", "best": "own" if won else "parts", "best_variant": "",
                   "best_approach": "FUSION" if won else "NONE", "ceiling_time_us": min(parts_us, fused_us) * 0.9,
                   "baseline_time_us": parts_us, "best_time_us": min(parts_us, fused_us), "ratio": min(1.0, fused_us / parts_us),
                   "ratio_ci": 0.004, "candidates": [row("parts", "", parts_us), row("own", "", fused_us)]}


def ordinary():
    blocks = {"16": 0.12, "32": 0.125, "64": 0.13, "128": 0.4}
    weight = {"source": "file", "name": "up.weight", "counted": "host", "pattern": "BLOCK_SPARSE", "rows": 4096, "cols": 4096,
              "nonzeros": 2000000, "zeros": 0.88, "two_of_four_by_row": False, "two_of_four_by_col": False, "blocks": blocks,
              "pieces": blocks, "block": 64, "fewest_in_row": 100, "most_in_row": 900, "balance": 1.2, "same_rows": 0}
    sweep = {"precision": "fp16", "points": [{"shape": [8192, 8192, 65536 + 16384 * k], "tflops": 580.0 + k, "rel_ci95": 0.004,
                                              "clock_mhz": 1500.0} for k in range(8)]}
    reports = [product(0, 2048, 11008, 4096, 1.15, 0.9, 64), product(1, 2048, 4096, 4096, count=128),
               product(2, 4096, 4096, 4096, 1.4, 0.6, 8, weight=weight, pattern="BLOCK_SPARSE", sparsity=0.88),
               product(3, 8192, 8192, 147456, 1.03, sweep=sweep),
               report(4, "attention", (1, 32, 2048, 128), 3.4e10, 6.7e7, 2.1, 1.0, 32, mask="causal"),
               passes(5, "norm", 2048, 4096, 1.2, 0.85, 65), passes(6, "elementwise", 2048, 4096, 1.3, 1.0, 64),
               report(7, "move", (1, 32, 2048, 128), 0.0, 3.3e7, 1.2, 1.0, 96),
               without_baseline(passes(8, "softmax", 4096, 4096, count=2), "UNSTABLE", "interval", "the median's interval is 3 % wide"),
               without_baseline(passes(9, "reduce", 64, 64, count=0), "SKIPPED", "not_asked", "a part of another operation")]
    fusions = [fusion(0, "norm+residual", 22.0, 14.5, "yes"), fusion(1, "gemm+gelu", 50.0, 51.0, "no"), fusion(2, "gemm+bias", 0, 0, ""),
               fusion(4, "gemm+silu", 900.0, 500.0, "yes")]
    return reports, fusions


HOSTILE = ["</script><script>document.title='owned'</script>", "\"><img src=x onerror=\"document.title='owned'\">",
           "' autofocus onfocus='document.title=\"owned\"", "</style><style>*{display:none}</style>", "&lt;b&gt; & <b>bold</b>",
           "\u202eesrever\u2066\u200f name", "https://example.invalid/\r\nSet-Cookie: a=b", "<svg/onload=document.title='owned'>", "=1+1",
           "\x1b[31mred\x07", "x" * 10000, "`${document.title='owned'}`", "--><!--", "]]>", "javascript:document.title='owned'"]


def poison(value, number, keep):
    """Every text of a tree replaced by a hostile one, but for those that a reader must understand."""
    if isinstance(value, dict):
        return {key: value[key] if key in keep else poison(value[key], number + len(key), keep) for key in value}
    if isinstance(value, list):
        return [poison(item, number + k, keep) for k, item in enumerate(value)]
    return HOSTILE[number % len(HOSTILE)] if isinstance(value, str) else value


def hostile():
    """Each operation with another text in each of its members."""
    keep = {"schema", "operation", "status", "bound", "approach", "best_approach", "taken", "class", "instance", "model", "regime", "key",
            "worth", "best", "baseline", "best_variant", "baseline_variant", "op"}
    reports, fusions = ordinary()
    reports = [poison(r, k, keep) for k, r in enumerate(reports)]
    fusions = [poison(r, 3 * k, keep) for k, r in enumerate(fusions)]
    for k, r in enumerate(reports + fusions):
        if r in reports:
            r["name"] = HOSTILE[k % len(HOSTILE)]
        r["device"]["model"] = HOSTILE[1]
        for who in ("baseline", "best") if r["best"] else ():  # these rows must still be found
            second = who == "best" and r["best_time_us"] != r["baseline_time_us"]
            r[who], r[who + "_variant"] = r["candidates"][second]["name"], r["candidates"][second]["variant"]
    extra = [passes(100 + k, "norm", 64, 64 + k, 1.5, name=text) for k, text in enumerate(HOSTILE)]
    for r in extra:
        r["device"] = reports[0]["device"]
    return reports + extra, fusions


def many(count):
    choose = random.Random(1)
    reports = []
    for k in range(count):
        slower, gain, often = 1 + choose.random(), choose.choice([1.0, 1.0, 0.9, 0.7]), choose.randint(1, 99)
        if k % 3 == 0:
            reports.append(product(k, 2048, 64 * choose.randint(1, 200), 64 * choose.randint(1, 200), slower, gain, often))
        else:
            reports.append(passes(k, ["norm", "elementwise", "softmax"][k % 3], choose.randint(64, 9000), 4096, slower, gain, often))
    return reports, []


def run_of(reports, model):
    device = reports[0]["device"]
    table = [{"bytes": 65536 << k, "read_fraction": 1.0, "resident": resident, "rel_ci95": 0.001,
              "tbps": min(READ * (2 if resident and k < 9 else 1), 0.05 * 2 ** k)} for k in range(14) for resident in (False, True)]
    ceilings = {"schema": "ceiling-scout/ceilings/1", "instance": device["instance"], "load": "sustained", "launch": "graph", "taken":
                "2026-01-01T00:00:00Z", "launch_us": 0.5, "special_per_s": 4e12, "plateau_bytes": 3e8, "read_tbps": READ, "copy_tbps": 3.8,
                "write_tbps": 3.9, "clock_mhz": 1500.0, "power_w": 600.0, "bandwidths": table, "peaks": [
                    {"precision": "fp16", "tflops": PEAK, "shape": [8192, 8192, 8192], "layout": "nn", "how": "library", "rel_ci95": 0.004},
                    {"precision": "fp8", "tflops": 2 * PEAK, "shape": [8192, 8192, 8192], "layout": "nn", "how": "library", "rel_ci95": 0.004}]}
    return {"schema": "ceiling-scout/run/1", "program": "0.1.0 (ceiling-scout)", "state": "complete", "started": "2026-01-01T00:00:00Z",
            "seconds": 95.0, "model": model, "regime": "sustained-model-graph", "method": 4, "clock_mhz": {"min": 1400.0, "median": 1500.0, "max": 1980.0},
            "power_w": {"min": 100.0, "median": 600.0, "max": 700.0}, "crossovers": [CROSSOVER], "devices": [
                {**device, "libraries": [{"name": "library", "version": "13.1.0", "path": "linked in"}], "ceilings": ceilings}]}


def ops_of(reports):
    """The layers of a model: as many as an operation occurs, up to eight; of the second one their names are hostile."""
    ops = [{"id": r["operation"], "count": r["count"], "nodes": [n for n in HOSTILE if "://" not in n] if k == 1 else
            [f"/encoder/layer.{n}/{r['op']}_{k}/Op" for n in range(min(r["count"], 8))]} for k, r in enumerate(reports)]
    return {"schema": "ceiling-scout/ops/1", "ops": ops}


def write(folder, reports, fusions, model):
    for name, group in (("reports", reports), ("fusions", fusions)):
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        for made in group:
            with open(os.path.join(folder, name, made["operation"] + ".json"), "w", encoding="utf-8") as out:
                json.dump(made, out)
    for name, made in (("run.json", run_of(reports, model)), ("ops.json", ops_of(reports))):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
            json.dump(made, out)


if __name__ == "__main__":
    kind, where = sys.argv[1:]
    made_reports, made_fusions = {"ordinary": ordinary, "hostile": hostile}.get(kind, lambda: many(int(kind)))()
    write(where, made_reports, made_fusions, HOSTILE[0] if kind == "hostile" else "made_up")

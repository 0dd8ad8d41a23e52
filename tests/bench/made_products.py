"""Writes reports as scout_batch would, of products that were never measured: for tables of any size.
Usage: made_products.py FOLDER COUNT   operations of 20 forms, every second one with a proven gain"""
import itertools
import json
import os
import sys

DEVICE_CLASS = "name=Made Up 1;capability=9.0;units=132;memory_mib=1000;power_limit_w=700;driver=580;cublaslt=13.1.0;cudnn=9.19.0"


def row(name, variant, median, algo):
    config = {"library": "cublaslt", "version": "13.1.0", "algo": algo, "weight": "as_is"}
    time = {"median": median, "mean": median, "min": median, "p05": median, "p95": median, "rel_ci95": 0.002, "batches": 40,
            "launches": 4000}
    return {"name": name, "variant": variant, "status": "OK", "reason": None, "time_us": time, "tflops": 1.0, "tbps": 1.0,
            "workspace_bytes": 4, "config": config}


def report(number, form, m, n, k):
    layout, dtype, bias, batch = form
    key = f"gemm;shape={m},{n},{k};layout={layout};type={dtype};weight={dtype}"
    key += f";batch={batch}" * (batch > 1) + ";bias=n" * bias + ";weight_side=b"
    base = 10.0 + number % 97
    gain = number % 2 == 0
    rows = [row("cublaslt", "algo=0,weight=as_is", base, "00" * 64)]
    if gain:
        rows.append(row("cublaslt", "algo=3,weight=as_is", base * 0.9, "42" * 64))
    best = rows[-1]
    return {
        "schema": "ceiling-scout/report/1", "operation": f"gemm_{number}", "name": f"gemm_{number}", "op": "gemm",
        "shape": [m, n, k], "layout": layout, "dtype": dtype, "weight_dtype": dtype, "precision": dtype, "count": 1,
        "batch": batch, "pattern": "DENSE", "sparsity": 0.0, "key": key,
        "device": {"name": "cuda:0", "model": "Made Up 1", "class": DEVICE_CLASS, "instance": DEVICE_CLASS + ";uuid=x",
                   "capability": "9.0", "units": 132, "driver": "580.1"},
        "regime": "sustained-model-graph", "method": 5, "status": "OK", "reason": None,
        "baseline": "cublaslt", "baseline_variant": rows[0]["variant"], "best": "cublaslt", "best_variant": best["variant"],
        "best_approach": "LIBRARY_TUNE" if gain else "NONE", **({"ratio": 0.9, "ratio_ci": 0.004} if gain else {}),
        "flops": 2.0 * m * n * k, "bytes_read": 1e6, "bytes_written": 1e6, "ceiling_time_us": base * 0.8,
        "ceiling_ci": 0.01, "launch_us": 1.0, "bound": "compute", "baseline_time_us": base,
        "best_time_us": best["time_us"]["median"], "baseline_tflops": 1.0, "ceiling_tflops": 1.2,
        "config": best["config"], "candidates": rows,
    }


def main():
    folder, count = sys.argv[1], int(sys.argv[2])
    forms = list(itertools.product(("nn", "nt"), ("fp16", "bf16", "fp8e4m3fn", "int8", "fp32"), (False, True), (1,)))
    shapes = itertools.product((1, 16, 64, 128, 256, 512, 1024, 2048), (768, 1024, 3072, 4096, 5120, 11008, 12288, 32000),
                               (768, 1024, 3072, 4096, 5120, 8192, 11008, 14336), forms)
    os.makedirs(folder, exist_ok=True)
    for number, (m, n, k, form) in zip(range(count), shapes):
        with open(os.path.join(folder, f"gemm_{number}.json"), "w", encoding="utf-8") as file:
            json.dump(report(number, form, m, n, k), file)


main()

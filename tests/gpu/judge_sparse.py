"""What judge.py holds sparse products against: real rates, which candidates skip zeros, and from how many on that pays."""
import os

from judge_common import BAD, load, reports, row_said, verdict

# Of operations by name: what the best sparse candidate reaches at least, in TFLOP/s on numbers that are not zero.
LEAST_REAL = {"blocks_8192": 195, "blocks_8192_128": 211}


def is_sparse(row):
    return row.get("dense_equivalent_tflops", 0) > row.get("tflops", 0) > 0


def fastest_of(rows):
    return min(rows, key=lambda row: row["time_us"]["median"], default=None)


def sparse_targets(report):
    good = [row for row in report.get("candidates", []) if row["status"] == "OK"]
    best, dense = fastest_of([row for row in good if is_sparse(row)]), fastest_of([row for row in good if not is_sparse(row)])
    if best and dense:
        print(f"    {report['name']:24} {best['name']} {best['variant']}: {best['tflops']:.0f} TFLOP/s real, "
              f"{best['dense_equivalent_tflops']:.0f} as if dense, "
              f"{dense['time_us']['median'] / best['time_us']['median']:.2f} x {dense['name']}")
    least = LEAST_REAL.get(report["name"])
    if least:
        real = best["tflops"] if best else 0
        verdict(real >= least, f"targets {report['name']}: {real:.0f} real TFLOP/s ({least})")


# What can leave out the zeros of a model's weights on a GPU, if anything can.
LEAVES_OUT = {"STRUCTURED_24": {"cusparselt"}, "BLOCK_SPARSE": {"gemm_block_sparse", "cusparse_bsr", "cusparse_ell"},
              "UNSTRUCTURED": {"cusparse_csr"}, "DENSE": set()}


def sparse(folder):
    if os.path.exists(f"{folder}/mlp.seconds"):
        found = {report["pattern"]: report for report in reports(f"{folder}/mlp").values()}
        verdict(set(found) == set(LEAVES_OUT), f"sparse mlp_sparse: reports {sorted(found)}")
        for pattern, report in found.items():
            rows = [row for row in report["candidates"] if row["name"] in LEAVES_OUT.get(pattern, ())]
            good = {row["name"] for row in rows if row["status"] == "OK" or "error" in row}
            for row in [row for row in rows if row["status"] not in ("OK", "SKIPPED")][:6]:
                print(f"    {pattern}: {row_said(row)[:200]}")
            verdict(report.get("baseline_time_us"), f"sparse mlp_sparse {pattern}: dense baseline "
                    f"{report.get('baseline')} {report.get('baseline_time_us', 0):.2f} us")
            wrong = [row_said(row) for row in report["candidates"] if row["status"] in BAD]
            verdict(not wrong, f"sparse mlp_sparse {pattern}: {len(wrong)} wrong or failed {' '.join(wrong)[:200]}")
            if LEAVES_OUT.get(pattern):
                verdict(good, f"sparse mlp_sparse {pattern}: zeros left out by {', '.join(sorted(good)) or 'none'}")
    else:
        print("SKIPPED sparse mlp_sparse: MLP_SPARSE or extract_ops is not there")
    for block in os.environ.get("SPARSE_BLOCKS", "64 128").split():
        path = f"{folder}/sweep_{block}/run.json"
        crossovers = load(path).get("crossovers", []) if os.path.exists(path) else []
        from_zeros = crossovers[0].get("from") if crossovers else None
        verdict(from_zeros is not None and from_zeros <= 0.875,
                f"sparse blocks of {block}: faster than dense from {100 * (from_zeros or 1):.1f} % zeros on (87.5)")

#!/usr/bin/env python3
"""The same operations in fresh processes without a cache of results, all but the first beside another process that holds
random allocations: what a figure owes to where its memory happens to lie.

    tests/gpu/repeat_beside.py BIN RESULTS [RUNS]      BIN: a folder with scout_batch; RUNS: 6; ceilings are shared
    tests/gpu/repeat_beside.py --hold SEED             holds half of 200 random allocations until its input ends

TORCH_LIBRARIES: where the libraries lie, if not in the search order. Prints a line for each operation, and then what
held: efficiencies within 1 point, ratios of the winner within 0.5 %, verdicts equal or marked open, 95 % intervals of
any two processes overlapping in 93 % of rows, where both are brought to one clock. Ends with 1 where one did not.
"""
import itertools
import json
import math
import os
import pathlib
import random
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
MOST_BYTES = 128 << 20


def hold(seed):
    import torch

    rng = random.Random(seed)
    blocks = [torch.empty(rng.randrange(512, MOST_BYTES), dtype=torch.uint8, device="cuda") for _ in range(200)]
    kept = [b for b in blocks if rng.random() < 0.5]
    del blocks
    torch.cuda.empty_cache()
    print("ready", flush=True)
    sys.stdin.read()
    return len(kept)


def measure(scout, results, run):
    holder = None
    if run > 0:
        holder = subprocess.Popen([sys.executable, __file__, "--hold", str(run)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        if holder.stdout.readline().strip() != "ready":
            sys.exit("the process that holds memory did not start")
    folder = results / f"run_{run}"
    library = ["--library-path", os.environ["TORCH_LIBRARIES"]] if os.environ.get("TORCH_LIBRARIES") else []
    done = subprocess.run([scout, HERE / "repeat_beside.json", "--device", "cuda:0", "--precision", "fp16", "--no-cache",
                           "--cache-dir", results / "cache", "-o", folder, *library], capture_output=True, text=True)
    (results / f"run_{run}.txt").write_text(done.stdout + done.stderr)
    if holder:
        holder.stdin.close()
        holder.wait()
    return {r["name"]: r for r in (json.loads(p.read_text()) for p in (folder / "reports").glob("*.json"))}


def interval(report, key, ci):
    x, half = report.get(key), report.get(ci)
    return (x, math.inf if half is None else half) if x else None


def row(report):
    for one in report["candidates"]:
        if one["name"] == report["baseline"] and one["variant"] == report.get("baseline_variant", ""):
            return one.get("time_us", {})
    return {}


def at_one_clock(reports, times):
    """A time belongs to its clock: each as it would be at the mean of theirs."""
    clocks = [r.get("clock_mhz") for r in reports]
    if not all(clocks):
        return times
    one = math.exp(sum(map(math.log, clocks)) / len(clocks))
    return [(t * (c / one) ** r["clock_slope"], ci) for r, c, (t, ci) in zip(reports, clocks, times)]


def overlap(a, b):
    return abs(math.log(a[0] / b[0])) <= a[1] + b[1]


def main():
    if sys.argv[1:2] == ["--hold"]:
        hold(int(sys.argv[2]))
        return 0
    scout, results = pathlib.Path(sys.argv[1]).resolve() / "scout_batch", pathlib.Path(sys.argv[2])
    runs = int(sys.argv[3]) if len(sys.argv) > 3 else 6
    results.mkdir(parents=True, exist_ok=True)
    all_runs = [measure(scout, results, run) for run in range(runs)]
    bad, pairs, overlapping = 0, 0, 0
    print(f"{'operation':24} {'time':>9} {'spread':>7} {'at one':>7} {'eff.':>6} {'points':>6}  ratios and verdicts")
    for name in sorted(all_runs[0]):
        reports = [r[name] for r in all_runs if name in r]
        times = [(row(r).get("median"), row(r).get("rel_ci95", math.inf)) for r in reports]
        if len(reports) < runs or any(not t[0] for t in times):
            print(f"{name:24} without a figure in some run")
            bad += 1
            continue
        told, times = times, at_one_clock(reports, times)
        effs = [100 * r.get("efficiency", math.nan) for r in reports]
        ratios = [r["ratio"] for r in reports if r.get("ratio")]
        verdicts = {r["approach"] for r in reports}
        open_ = any(r.get("borderline") or r.get("undecided") for r in reports)
        for a, b in itertools.combinations(times, 2):
            pairs += 1
            overlapping += overlap(a, b)
        points = max(effs) - min(effs)
        apart_told, spread = (max(t[0] for t in all_) / min(t[0] for t in all_) - 1 for all_ in (told, times))
        apart = max(ratios) / min(ratios) - 1 if len(ratios) > 1 else 0
        good = points <= 1 and apart <= 0.005 and (len(verdicts) == 1 or open_)
        bad += not good
        print(f"{name:24} {told[0][0]:9.2f} {100 * apart_told:6.2f}% {100 * spread:6.2f}% {effs[0]:6.1f} {points:6.2f}  "
              f"{' '.join(f'{x:.4f}' for x in ratios)} {'/'.join(sorted(verdicts))}{' open' if open_ else ''}"
              f"{'' if good else '   <- beyond'}")
    share = overlapping / pairs if pairs else 0
    print(f"95 % intervals of two processes overlap in {100 * share:.1f} % of {pairs} pairs (93 wanted); "
          f"{bad} of {len(all_runs[0])} operations beyond")
    return 1 if bad or share < 0.93 else 0


if __name__ == "__main__":
    sys.exit(main())

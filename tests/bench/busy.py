"""Compares runs beside busy loops: busy.py FOLDER REPETITIONS. The line: every run ends with 0 in under 90 s, every
operation has a figure, medians of an operation lie within 2 % on a quiet machine and within 5 % beside any load for 90 %
of the operations, 90 % of all pairs of intervals overlap, and every comparison decides. Ends with "N passed, N failed"."""
import glob
import itertools
import json
import os
import sys

LOADS = (0, 2, 4, 8)
MOST_SECONDS, NEAR, NEAR_QUIET, SHARE = 90, 0.05, 0.02, 0.9


def figures_of(folder):
    """Of one run: name to (median, half width), None where there is no figure."""
    found = {}
    for path in sorted(glob.glob(f"{folder}/*/reports/*.json")):
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        if report["count"] == 0 or (report["reason"] or {}).get("code") == "no_work":
            continue
        rows = [row for row in report["candidates"]
                if row["name"] == report["baseline"] and row["variant"] == report["baseline_variant"]]
        time = rows[0].get("time_us") if rows else None
        found[report["name"]] = (time["median"], time.get("rel_ci95", float("inf"))) if time else None
    return found


def spread(runs, name):
    """The largest median over the smallest one, less one."""
    medians = [run[name][0] for run in runs]
    return max(medians) / min(medians) - 1


def share_within(runs, near):
    """Of the operations that all runs know, those whose medians lie so near to each other."""
    names = [name for name in runs[0] if all(run.get(name) for run in runs)]
    return sum(spread(runs, name) <= near for name in names) / len(names) if names else 0


def overlap(a, b):
    return a[0] * (1 - a[1]) <= b[0] * (1 + b[1]) and b[0] * (1 - b[1]) <= a[0] * (1 + a[1])


def share_overlapping(runs):
    """Of all pairs of figures of one operation. What has no interval overlaps nothing."""
    good = count = 0
    for one, other in itertools.combinations(runs, 2):
        for name in one:
            a, b = one.get(name), other.get(name)
            count += 1
            good += bool(a and b and max(a[1], b[1]) < float("inf") and overlap(a, b))
    return good / count if count else 0


def width(runs):
    """The middle half width of an interval."""
    widths = sorted(figure[1] for run in runs for figure in run.values() if figure)
    return widths[len(widths) // 2] if widths else float("nan")


def decision_of(path):
    with open(path, encoding="utf-8") as file:
        words = file.read().split()
    return next((word for word in ("keep", "revert", "undecided") if word in words), "none")


def main(folder, repetitions):
    seconds = {}
    with open(f"{folder}/runs.txt", encoding="utf-8") as file:
        for line in file:
            name, took, code = line.split()
            seconds[name] = float(took), int(code)
    runs = {(load, k): figures_of(f"{folder}/out_{load}_{k}") for load in LOADS for k in range(1, repetitions + 1)}
    passed = {"runs": True, "figures": True, "decisions": True}
    print(f"{os.cpu_count()} cores, models/transformer_block.onnx BATCH=1 SEQ=128, each run with an empty cache")
    print("busy loops  seconds (exit)             without figure  within 2 %  within 5 %  overlap  half width  validate: seconds")
    for load in LOADS:
        mine = [runs[load, k] for k in range(1, repetitions + 1)]
        took = [seconds[f"profile_{load}_{k}"] for k in range(1, repetitions + 1)]
        checks = [seconds[f"validate_{load}_{k}"] for k in range(1, repetitions + 1)]
        decisions = [decision_of(f"{folder}/validate_{load}_{k}.txt") for k in range(1, repetitions + 1)]
        empty = sum(figure is None for run in mine for figure in run.values())
        passed["runs"] &= all(code == 0 and s < MOST_SECONDS for s, code in took)
        passed["figures"] &= empty == 0 and all(mine)
        passed["decisions"] &= all(word in ("keep", "revert") for word in decisions)
        said = ", ".join(f"{s:.0f} ({code})" for s, code in took)
        ends = ", ".join(f"{word} {s:.0f}" for word, (s, _) in zip(decisions, checks))
        print(f"{load:10d}  {said:25s}  {empty:14d}  {100 * share_within(mine, NEAR_QUIET):8.0f} %  "
              f"{100 * share_within(mine, NEAR):8.0f} %  {100 * share_overlapping(mine):5.0f} %  {100 * width(mine):8.1f} %  {ends}")
    everything = list(runs.values())
    quiet = share_within([runs[0, k] for k in range(1, repetitions + 1)], NEAR_QUIET)
    near, pairs = share_within(everything, NEAR), share_overlapping(everything)
    print(f"all of them: medians within 5 % for {100 * near:.0f} % of the operations, "
          f"{100 * pairs:.0f} % of pairs of intervals overlap")
    for name in sorted(runs[0, 1], key=lambda name: -(runs[0, 1][name] or (0,))[0]):
        print(f"  {name:50s} " + "  ".join(
            " ".join(f"{runs[load, k][name][0]:8.3f}" if runs[load, k].get(name) else "       -"
                     for k in range(1, repetitions + 1)) for load in LOADS))
    passed |= {"quiet medians": quiet >= SHARE, "medians": near >= SHARE, "intervals": pairs >= SHARE}
    for name, good in passed.items():
        print(f"{'ok    ' if good else 'FAILED'} {name}")
    print(f"{sum(passed.values())} passed, {len(passed) - sum(passed.values())} failed")
    return not all(passed.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))

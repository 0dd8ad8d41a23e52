"""The driver of tests/bench/bench_extract.sh: runs both programs in turn and prints the table.

extract_ops is timed from outside, as the whole process from start to exit, with its output file written. python onnx
is timed from inside, for load and infer_shapes alone, so that the start of the interpreter is not held against it.
Peak memory is the process's own as the kernel reports it; what the driver itself holds (about 10 MB) is its floor.
"""
import argparse
import glob
import os
import statistics
import subprocess
import sys
import time

import bench_models

ONNX = """
import sys, time
import onnx
start = time.perf_counter()
model = onnx.load(sys.argv[1], load_external_data=False)
onnx.shape_inference.infer_shapes(model)
print(time.perf_counter() - start)
"""
PATIENCE_S = 60  # a program that takes longer than this in all gets fewer runs, and the row says how many
GROWTH_ALLOWED = 13.0  # from 10 k to 100 k nodes: ten times the work, and some room for caches


def measure(command):
    """(seconds, peak bytes, exit code, stdout) of one run."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    said = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return time.perf_counter() - start, usage.ru_maxrss * 1024, child.returncode, said.decode()


def targets(name):
    """(milliseconds, megabytes) that extract_ops is to stay under."""
    if name.endswith("gb"):
        return 100, 50
    if name.endswith("nodes"):
        return 1000, 200
    return 50, 50


def bench(extract, path, runs, folder):
    """Rows of medians: ours and theirs, each (ms, MB) or the reason why there is none."""
    ops = os.path.join(folder, "ops.json")
    ours, theirs, code, refused = [], [], 0, None
    for _ in range(runs):
        wall, peak, code, _ = measure([extract, path, "-o", ops, "--batch", "1", "--seq", "128", "--quiet"])
        if code > 1:
            return f"exit {code}", None, code
        ours.append((wall * 1e3, peak / 1e6))
        if refused is None and sum(row[0] for row in theirs) < PATIENCE_S * 1e3:
            _, peak, other, said = measure([sys.executable, "-c", ONNX, path])
            if other != 0:
                refused = "refused" if other > 0 else f"killed by signal {-other}"
            else:
                theirs.append((float(said) * 1e3, peak / 1e6))
    middle = [tuple(statistics.median(column) for column in zip(*rows)) if rows else None for rows in (ours, theirs)]
    return middle[0], refused or (*middle[1], len(theirs)), code


def main():
    options = argparse.ArgumentParser()
    options.add_argument("extract")
    options.add_argument("--runs", type=int, default=10)
    options.add_argument("--only", default="")
    options.add_argument("--models", default="../shared/models")
    options.add_argument("--folder", default="out/bench")
    o = options.parse_args()
    os.makedirs(o.folder, exist_ok=True)

    paths = sorted(glob.glob(os.path.join(o.models, "*.onnx"))) or sorted(glob.glob("models/*.onnx"))
    paths += bench_models.make_all(o.folder)
    print(f"median of {o.runs} alternating runs; extract_ops: whole process; python onnx: load and infer_shapes only")
    print(f"{'model':<24} {'extract_ops':>12} {'peak':>9} {'target':>16}   {'':<6} {'python onnx':>12} {'peak':>9} {'times':>7}")
    missed, found = 0, {}
    for path in paths:
        name = os.path.splitext(os.path.basename(path))[0]
        if o.only not in name:
            continue
        ours, theirs, _ = bench(o.extract, path, o.runs, o.folder)
        ms, mb = targets(name)
        if isinstance(ours, str):
            missed += 1
            print(f"{name:<24} {ours:>12} {'':>9} {f'{ms} ms {mb} MB':>16}   MISS")
            continue
        good = ours[0] < ms and ours[1] < mb
        missed += not good
        found[name] = ours[0]
        line = f"{name:<24} {ours[0]:>9.1f} ms {ours[1]:>6.1f} MB {f'{ms} ms {mb} MB':>16}   {'pass' if good else 'MISS':<6}"
        if isinstance(theirs, tuple):
            line += f" {theirs[0]:>9.1f} ms {theirs[1]:>6.0f} MB {theirs[0] / ours[0]:>6.1f}x"
            line += f" ({theirs[2]} runs)" if theirs[2] < o.runs else ""
        else:
            line += f" {theirs:>12}"
        print(line, flush=True)
    if "made_10k_nodes" in found and "made_100k_nodes" in found:
        growth = found["made_100k_nodes"] / found["made_10k_nodes"]
        good = growth <= GROWTH_ALLOWED
        missed += not good
        print(f"{'growth 10 k to 100 k':<24} {growth:>8.1f} times {'':>8} {f'{GROWTH_ALLOWED:.0f} times':>16}   {'pass' if good else 'MISS'}")
    print(f"{missed} targets missed" if missed else "every target met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

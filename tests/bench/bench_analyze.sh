#!/usr/bin/env bash
# Speed and memory of analyze on many reports: makes a folder of them (once; each is as large as a real one), reads it as
# it is in memory, and prints how long that took and what it took at most. Ends with 1 when a target is missed: 100,000
# reports in 5 s and 500 MB.
# Usage: tests/bench/bench_analyze.sh ANALYZE [REPORTS]
set -euo pipefail
analyze=$(realpath "${1:?usage: tests/bench/bench_analyze.sh ANALYZE [REPORTS]}")
count=${2:-100000}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=out/bench/reports_$count

if [[ ! -e $folder/.made ]]; then
    rm -rf -- "$folder"
    mkdir -p -- "$folder/reports"
    python3 -B - "$folder/reports" "$count" <<'PYTHON'
# What a product's report holds, with as many candidates as make it about 10 KB; times and ids differ.
import json, pathlib, sys
folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
kept = json.loads(pathlib.Path("tests/analyze/seeds/beaten.json").read_text())
rows = kept["candidates"]
lost = dict(rows[0], status="SKIPPED", reason={"code": "outraced", "text": "behind the best by more than both intervals"})
for name in ("time_us", "tflops", "tbps"):
    lost.pop(name, None)
kept["libraries"] = [{"name": f"library{k}", "version": "1.2.3", "path": "/usr/lib/x86_64-linux-gnu/library.so.1"} for k in range(6)]
while len(json.dumps(kept, indent=2)) < 10000:
    rows.append(dict(lost, variant=f"algo={len(rows)},split=4"))
text = json.dumps(kept, indent=2)
ids = json.dumps(kept["operation"])
times = [kept["baseline_time_us"], kept["best_time_us"]]
for k in range(count):
    made = text.replace(f'"operation": {ids}', f'"operation": "gemm_{k:06d}_fp16_0123456789"', 1)
    made = made.replace(f'"name": {ids}', f'"name": "gemm_{k:06d}_fp16_0123456789"', 1)
    made = made.replace(f'"key": "', f'"key": "{k:06d};', 1).replace('"count": 1,', f'"count": {k % 97 + 1},', 1)
    for time in times:  # in the report and in its row
        made = made.replace(json.dumps(time), json.dumps(time * (1 + k % 1009 / 100)))
    (folder / f"gemm_{k:06d}_fp16_0123456789.json").write_text(made)
PYTHON
    touch "$folder/.made"
fi
python3 -B - "$analyze" "$folder" "$count" <<'PYTHON'
import os, resource, subprocess, sys, time
analyze, folder, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
size = sum(e.stat().st_size for e in os.scandir(folder + "/reports"))
seconds = []
for _ in range(3):  # the first one has the disk to wait for
    start = time.monotonic()
    done = subprocess.run([analyze, folder], stdout=subprocess.DEVNULL)
    seconds.append(time.monotonic() - start)
    if done.returncode:
        sys.exit(f"analyze ended with {done.returncode}")
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
best = min(seconds)
print(f"{count} reports, {size / 1e6:.0f} MB: {best:.2f} s ({', '.join(f'{s:.2f}' for s in seconds)}), {size / best / 1e6:.0f} MB/s, {peak:.0f} MB of memory")
missed = best > 5 * count / 100000 or peak > 500
print("the target is missed: 5 s and 500 MB for 100,000" if missed else "within the target: 5 s and 500 MB for 100,000")
sys.exit(missed)
PYTHON

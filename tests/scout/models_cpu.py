"""Profiles a model on the CPU with a budget, and looks at what is there afterwards:
models_cpu.py ROOT SCOUT_BATCH MODEL.onnx SECONDS. One line per check, beginning with "ok" or "FAILED".

Every operation has a figure, however busy the machine is; only where others take a good part of it the budget may end
before the last operations' turn."""
import json
import os
import pathlib
import resource
import subprocess
import sys
import time

MOST_S = 120.0  # of everything
KINDS = {"gemm", "conv", "attention", "norm", "softmax"}
BROKEN = {"WRONG", "TIMEOUT", "CRASHED", "ERROR"}
BUSY = 0.3  # from there on the budget may end before the last operations' turn


def machine_seconds():
    """Of all processors: busy, and all (what another virtual machine took counts as busy)."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(x) for x in file.readline().split()[1:9]]
    tick = os.sysconf("SC_CLK_TCK")
    return (sum(fields) - fields[3] - fields[4]) / tick, sum(fields) / tick


def own_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def profile(root, scout, model, budget):
    """The command's exit code, its seconds, and the part of the machine that others used meanwhile."""
    environment = dict(os.environ, PROFILE_MODEL=model, PROFILE_OUT="out", PROFILE_SCOUT=scout, PROFILE_DEVICE="cpu",
                       PROFILE_BUDGET=budget)
    extract = str(pathlib.Path(scout).with_name("extract_ops"))
    begun, before, own = time.monotonic(), machine_seconds(), own_seconds()
    code = subprocess.run([f"{root}/scripts/profile.sh", extract], env=environment, check=False,
                          stdout=subprocess.DEVNULL).returncode
    seconds, after = time.monotonic() - begun, machine_seconds()
    others = (after[0] - before[0] - (own_seconds() - own)) / (after[1] - before[1])
    return code, seconds, max(others, 0.0)


def check(holds, what, *details):
    print(f"{'ok' if holds else 'FAILED'} {what}" + "".join(f"\n    {line}" for line in details if not holds))


def baseline_row(report):
    for row in report["candidates"]:
        if row["name"] == report["baseline"] and row["variant"] == report.get("baseline_variant", ""):
            return row
    return None


def lacks(report, busy):
    """What is missing in the report of an operation of KINDS; None: nothing."""
    row = baseline_row(report)
    if busy and report["status"] == "SKIPPED" and report["reason"]["code"] == "budget":
        return None
    if row is None or row["status"] != "OK":
        return f"its baseline: {report['status']} {report['reason']}"
    if not row.get("error", {}).get("worst", 1) <= row["error"]["tolerance"]:
        return f"its baseline was not verified: {row.get('error')}"
    if not (report.get("efficiency") and report.get("ceiling_from")):
        return "an efficiency"
    return None


def main(root, scout, model, budget):
    name = pathlib.Path(model).stem
    code, seconds, others = profile(root, scout, model, budget)
    folder = pathlib.Path("out", f"{name}@cpu")
    check(code in (0, 1), f"{name}: profiled, exit 0 or 1", f"exit {code}")
    check(seconds < MOST_S, f"{name}: end to end in {seconds:.0f} s, less than {MOST_S:.0f}")
    operations = json.loads((folder / "ops.json").read_text())["ops"]
    run = json.loads((folder / "run.json").read_text())
    reports = [json.loads(path.read_text()) for path in sorted((folder / "reports").glob("*.json"))]
    check(run["state"] == "complete", f"{name}: the run is complete", run["state"])
    check({o["id"] for o in operations} <= {r["operation"] for r in reports}, f"{name}: every operation has a report")
    silent = [r["operation"] for r in reports if (r["status"] != "OK") != bool((r["reason"] or {}).get("text"))]
    check(not silent, f"{name}: every report has a status and its reason", *silent)
    broken = [f"{r['operation']}: {row['name']} {row['status']}: {row['reason']['text']}" for r in reports
              for row in r["candidates"] if row["status"] in BROKEN]
    check(not broken, f"{name}: nothing is wrong, crashed, late or failed", *broken)
    main_ones = [r for r in reports if r["op"] in KINDS and r["count"] > 0]
    missing = [f"{r['operation']} lacks {lacks(r, others > BUSY)}" for r in main_ones if lacks(r, others > BUSY)]
    check(main_ones and not missing, f"{name}: all of {', '.join(sorted(KINDS))} have a verified baseline", *missing)
    counted = [r for r in reports if r["count"] > 0 and (r["reason"] or {}).get("code") != "no_work"]
    known = sum(r["status"] == "OK" for r in counted)
    owed = known == len(counted) if others <= BUSY else known > 0
    bare = [f"{r['operation']}: {r['status']} {r['reason']}" for r in counted if r["status"] != "OK"]
    check(owed, f"{name}: {known} of {len(counted)} operations have a figure; others used {100 * others:.0f} % of the machine",
          *bare)


if __name__ == "__main__":
    main(*sys.argv[1:5])

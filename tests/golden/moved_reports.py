"""Measures a model's folder again, in a manner of speaking: moved_reports.py ANALYZE FOLDER SCRATCH copies its reports
with every time, ratio and ceiling moved inside its interval, at random and many times over, and holds the verdicts
against those of the reports as they are. Those that are borderline there may be others; all else has to stay.
"""
import glob
import json
import os
import random
import subprocess
import sys

DRAWS = 40


def verdicts(analyze, folder):
    said = subprocess.run([analyze, folder, "--format", "json"], capture_output=True, text=True, check=False)
    group = json.loads(said.stdout)["groups"][0]
    return {row["operation"]: (row["approach"], row["priority"], row["borderline"]) for row in group["operations"]}


def factor(ci):
    """Somewhere in the interval; its ends as often as all between, for there verdicts would tip."""
    return 1 + ci * random.choice([-1, 1, random.uniform(-1, 1), random.uniform(-1, 1)])


def move(report):
    times, before = {}, report.get("baseline_time_us")
    for row in report["candidates"]:
        if row["status"] != "OK":
            continue
        moved = factor(row["time_us"].get("rel_ci95", 0))
        for key in ("median", "mean", "min", "p05", "p95"):
            row["time_us"][key] *= moved
        times[row["name"], row["variant"]] = row["time_us"]["median"]
    for who in ("baseline", "best"):
        place = report.get(who), report.get(f"{who}_variant")
        if place in times and f"{who}_time_us" in report:
            report[f"{who}_time_us"] = times[place]
    if report.get("best_variant") != report.get("baseline_variant") or report.get("best") != report.get("baseline"):
        report["ratio"] *= factor(report.get("ratio_ci", 0))
    if report.get("rival", {}).get("ratio_ci", 1) < 1:
        report["rival"]["ratio"] *= factor(report["rival"]["ratio_ci"])
    if "ceiling_ci" in report:
        report["ceiling_time_us"] *= factor(report["ceiling_ci"])
    if report.get("ceiling_from") == "probe":  # a ratio to the baseline, which takes it along
        report["ceiling_time_us"] *= report["baseline_time_us"] / before
    return report


def main(analyze, folder, scratch):
    reports = []
    for path in sorted(glob.glob(f"{folder}/reports/*.json")):
        with open(path, encoding="utf-8") as file:
            reports.append((os.path.basename(path), file.read()))
    before, changed, tipped = verdicts(analyze, folder), [], set()
    os.makedirs(f"{scratch}/reports", exist_ok=True)
    for name in os.listdir(f"{scratch}/reports"):
        os.remove(f"{scratch}/reports/{name}")
    for draw in range(DRAWS):
        random.seed(f"{folder} {draw}")
        for name, text in reports:
            with open(f"{scratch}/reports/{name}", "w", encoding="utf-8") as file:
                json.dump(move(json.loads(text)), file)
        for operation, (approach, priority, _) in verdicts(analyze, scratch).items():
            was = before[operation]
            if (approach, priority) == was[:2]:
                continue
            tipped.add(operation)
            if not was[2]:
                changed.append(f"{operation}: {was[0]} {was[1]} became {approach} {priority} in draw {draw}")
    judged = [row for row in before.values() if row[0] != "UNMEASURED"]
    borderline = sum(row[2] for row in judged)
    print(f"{folder}: moved inside their intervals {DRAWS} times, {len(tipped)} verdicts of {len(judged)} changed; "
          f"{borderline} are borderline ({100 * borderline / len(judged):.1f} %)")
    for line in changed[:5]:
        print(f"FAILED {line}")
    return 1 if changed or not judged else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

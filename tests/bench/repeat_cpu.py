"""Compares the reports of several runs: repeat_cpu.py FOLDER RUNS. What is known well agrees in its efficiency, and,
where it is not borderline in any run, in its verdict; what is known less well says so, and has a figure all the same.
Ends with "N passed, N failed, N skipped": skipped are rows without a verdict to compare, borderline ones and those that
were known well less than twice."""
import glob
import json
import sys

POINTS = 3.0


def row_of(report):
    """OK, wide, or whatever else is said of what has no figure."""
    if not (report.get("baseline_time_us") and report.get("efficiency")):
        return report.get("status") or "nothing"
    rows = [row for row in report.get("candidates", []) if row.get("name") == report.get("baseline")]
    return "wide" if any(row.get("quality") in ("wide", "drifting") for row in rows[:1]) else "OK"


def read(folder, runs):
    found = {}
    for run in range(1, runs + 1):
        for path in sorted(glob.glob(f"{folder}/run_{run}/reports/*.json")):
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
            found.setdefault(report["name"], []).append(report)
    return found


def verdict_of(good):
    """"borderline", "alone" (nothing to compare it with), "same" or "changed"."""
    if any(report.get("borderline") for report in good):
        return "borderline"
    if len(good) < 2:
        return "alone"
    said = {(report.get("priority"), report.get("approach")) for report in good}
    return "same" if len(said) == 1 else "changed"


def main(folder, runs):
    passed = failed = known = wide = 0
    verdicts = {"same": 0, "changed": 0, "borderline": 0, "alone": 0}
    for name, reports in read(folder, runs).items():
        states = [row_of(report) for report in reports]
        good = [report for report, state in zip(reports, states) if state == "OK"]
        known += len(good)
        wide += states.count("wide")
        others = [state for state in states if state not in ("OK", "wide")]
        efficiencies = [100 * report["efficiency"] for report in good]
        spread = max(efficiencies) - min(efficiencies) if good else 0
        said = [f"{report.get('priority')}/{report.get('approach')}{' ?' if report.get('borderline') else ''}"
                for report in good]
        verdict = verdict_of(good)
        verdicts[verdict] += 1
        bad = others or len(reports) != runs or spread > POINTS or verdict == "changed"
        print(f"{'FAILED' if bad else 'ok    '} {name:10s} {len(good)} known well, {states.count('wide')} wide, "
              f"efficiency {' '.join(f'{e:.1f}' for e in efficiencies)} (within {spread:.1f} points), "
              f"verdict {verdict}: {', '.join(sorted(set(said)))} {' '.join(others)}".rstrip())
        failed += bool(bad)
        passed += not bad and verdict == "same"
    print(f"{known} rows known well, {wide} wide")
    print(f"verdicts: {verdicts['same'] + verdicts['changed']} compared, {verdicts['changed']} of them changed; "
          f"{verdicts['borderline']} borderline, {verdicts['alone']} that were known well less than twice")
    total = sum(verdicts.values())
    if total == 0:
        print("no reports were written")
        failed = 1
    print(f"{passed} passed, {failed} failed, {max(0, total - passed - failed)} skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))

"""Compares the reports of several runs: repeat_cpu.py FOLDER RUNS. Ends with "N passed, N failed"."""
import glob
import json
import sys

POINTS = 3.0


def row_of(report):
    """OK, UNSTABLE, or whatever else the baseline's row says."""
    if report.get("baseline_time_us") and report.get("efficiency"):
        return "OK"
    rows = [row["status"] for row in report.get("candidates", [])]
    return "UNSTABLE" if "UNSTABLE" in rows else report.get("status") or "nothing"


def read(folder, runs):
    found = {}
    for run in range(1, runs + 1):
        for path in sorted(glob.glob(f"{folder}/run_{run}/reports/*.json")):
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
            found.setdefault(report["name"], []).append(report)
    return found


def main(folder, runs):
    passed = failed = settled = unstable = 0
    for name, reports in read(folder, runs).items():
        states = [row_of(report) for report in reports]
        good = [report for report, state in zip(reports, states) if state == "OK"]
        settled += len(good)
        unstable += states.count("UNSTABLE")
        others = [state for state in states if state not in ("OK", "UNSTABLE")]
        efficiencies = [100 * report["efficiency"] for report in good]
        spread = max(efficiencies) - min(efficiencies) if good else 0
        said = {f"{report.get('priority')}/{report.get('approach')}" for report in good}
        borderline = any(report.get("borderline") for report in good)
        holds = not others and len(reports) == runs and spread <= POINTS and (len(said) <= 1 or borderline)
        print(f"{'ok    ' if holds else 'FAILED'} {name:10s} {len(good)} settled, {states.count('UNSTABLE')} UNSTABLE, "
              f"efficiency {' '.join(f'{e:.1f}' for e in efficiencies)} (within {spread:.1f} points), "
              f"{' '.join(sorted(said))}{' borderline' if borderline else ''} {' '.join(others)}")
        passed, failed = passed + holds, failed + (not holds)
    print(f"{settled} rows settled, {unstable} UNSTABLE")
    if passed + failed == 0:
        print("no reports were written")
        failed = 1
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))

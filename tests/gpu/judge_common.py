"""What judging any part of tests/gpu/run.sh needs: reading what it left, and saying a verdict."""
import glob
import json
import os

BAD = ("WRONG", "CRASHED", "TIMEOUT", "ERROR")


def verdict(good, what):
    print(f"{'PASSED' if good else 'FAILED'} {what}")


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def text(path):
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def reports(folder):
    """By the name that the operations file gives."""
    found = (load(path) for path in sorted(glob.glob(f"{folder}/reports/*.json")))
    return {report["name"]: report for report in found}


def seconds(folder, name):
    words = text(f"{folder}/{name}.seconds").split()
    return (float(words[0]), int(words[1])) if len(words) == 2 else (float("inf"), 99)


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def spread(values):
    return (max(values) - min(values)) / median(values)


def rows_of(report, name):
    return [row for row in report.get("candidates", []) if row["name"] == name]


def row_said(row):
    """A row of a report in one line."""
    reason = row.get("reason") or {}
    return f"{row['name']} {row['variant']}: {row['status']} {reason.get('code', '')} {reason.get('text', '')}"

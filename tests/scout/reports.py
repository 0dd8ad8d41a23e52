#!/usr/bin/env python3
"""Looks into folders of reports: whether two say the same but for time, and how a candidate fared."""

import json
import pathlib
import re
import sys

# What depends on when something was measured and how long it took, and on which candidates there were beside.
VOLATILE = re.compile(
    r"(_us|_s|_ci|ci95|_tflops|_mhz|_w|_c)$"
    r"|^(time_us|tflops|tbps|taken|seconds|ratio|efficiency|borderline|recommendation|throttle|rotation_bytes|copies|candidates_hash|passes|interval_from|quality|undecided|card)$"
)


def masked(value):
    if isinstance(value, dict):  # `addresses` is told where passes differ, which their number and seeds decide
        return {k: "time" if VOLATILE.search(k) and v is not None else masked(v) for k, v in value.items() if k != "addresses"}
    if isinstance(value, list):
        return [masked(v) for v in value]
    if isinstance(value, str):
        return re.sub(r"[0-9.]+ %|after [0-9]+ rounds", "#", value)
    return value


def reports(folder):
    found = {}
    for path in sorted(pathlib.Path(folder, "reports").iterdir()):
        assert path.suffix == ".json", f"{path} is no report"
        found[path.name] = json.loads(path.read_text())
    return found


def differences(one, other, place=""):
    """The places where two documents differ, the deepest of them alone."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(set(one) | set(other)):
            yield from differences(one.get(key), other.get(key), f"{place}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for k, (here, there) in enumerate(zip(one, other)):
            yield from differences(here, there, f"{place}[{k}]")
    elif one != other:
        yield place, one, other


def same(one, other, *aside):
    left, right = reports(one), reports(other)
    for table in (left, right):
        for report in table.values():
            report["candidates"] = [row for row in report["candidates"] if row["name"] not in aside]
    left, right = masked(left), masked(right)
    if not left:
        print("    there are no reports")
    if left == right:
        return bool(left)
    for name in sorted(set(left) | set(right)):
        a, b = left.get(name), right.get(name)
        if a is None or b is None:
            print(f"    {name}: only in one of them")
            continue
        for place, here, there in differences(a, b):
            print(f"    {name}: {place}: {json.dumps(here)[:90]} != {json.dumps(there)[:90]}")
    return False


def row(folder, candidate, status, code):
    """In every report that has rows, that candidate has one of this status and one of these codes (a|b), and no time."""
    seen = 0
    for name, report in reports(folder).items():
        if report["op"] != "gemm":
            continue
        rows = [r for r in report["candidates"] if r["name"] == candidate]
        good = [r for r in rows if r["status"] == status and r["reason"]["code"] in code.split("|") and "time_us" not in r]
        if not rows or len(good) != len(rows):
            print(f"    {name}: {candidate}: {[(r['status'], r['reason']) for r in rows]}, not {status} {code}")
            return False
        seen += 1
    return seen > 0


def baseline(report):
    for candidate in report["candidates"]:
        if candidate["name"] == report["baseline"] and candidate["variant"] == report["baseline_variant"]:
            return candidate
    return None


def passes(folder, least, most):
    """Every operation has a time, from so many passes."""
    counts = {}
    for name, report in reports(folder).items():
        known = baseline(report) is not None and report["baseline_time_us"] > 0
        counts[name] = report["passes"] if known else 0
    good = bool(counts) and all(int(least) <= n <= int(most) for n in counts.values())
    if not good:
        print(f"    passes: {counts}")
    return good


def heavy_first(folder, name):
    """Others go on once that one has come to its first look, and not all of them do."""
    counts = {key: report.get("passes", 0) for key, report in reports(folder).items()}
    heavy = counts.pop(f"{name}.json")
    good = min(counts.values()) < 4 and (heavy >= 4 or max(counts.values()) <= 1)
    if not good:
        print(f"    passes: {heavy} of {name}, {counts}")
    return good


def searched(folder, name):
    """No candidate of that operation was left out for want of time."""
    late = [c["name"] for c in reports(folder)[name + ".json"]["candidates"]
            if c["status"] == "SKIPPED" and (c["reason"] or {}).get("code") == "budget"]
    if late:
        print(f"    left out: {late}")
    return not late


def known(folder, target, share, most):
    """All but that share of the model's time is known to the target, or has had as many passes as there are."""
    whole = wide = few = 0.0
    for report in reports(folder).values():
        time = report["count"] * report["baseline_time_us"]
        whole += time
        few += time if report["passes"] < 13 else 0
        if baseline(report)["time_us"]["rel_ci95"] > float(target) and report["passes"] < int(most):
            wide += time
    good = few > 0 and wide <= float(share) * whole
    if not good:
        print(f"    {wide / whole:.1%} of the time is wide, {few / whole:.1%} had less than 13 passes")
    return good


def went_on(one, other):
    """The first passes are the same, and there are more where something was open."""
    later = reports(other)
    for name, report in reports(one).items():
        before, after = baseline(report)["passes"], baseline(later[name])["passes"]
        if before != after[: len(before)] or (report["undecided"] and len(after) == len(before)):
            print(f"    {name}: {before} is not how {after} begins")
            return False
    return True


if __name__ == "__main__":
    sys.exit(0 if {"same": same, "row": row, "passes": passes, "known": known, "searched": searched, "went_on": went_on, "heavy_first": heavy_first}[sys.argv[1]](*sys.argv[2:]) else 1)

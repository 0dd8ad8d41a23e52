"""Runs that were stopped at random moments: a stored folder loses reports, or their figures for want of time, and what
analyze makes of it is held against what is left. Usage: partial.py ANALYZE FOLDER SCRATCH TIMES"""
import csv
import json
import os
import random
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as etree

analyze, stored, scratch, times = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
FORMATS = {"text": "summary.txt", "json": "summary.json", "md": "summary.md", "csv": "summary.csv", "junit": "junit.xml", "html": "report.html"}
# Nothing of this is true of what has no figure.
NEVER = ("at least", "lower bound", "Nothing: ", "Every operation that takes time", "up to date")
# And of a folder without any figure nothing of this either.
NOT_WITHOUT = ("optimal", "0.0 %", "with what is proven", "at ceilings", "at all ceilings", "recoverable")
bad = []


def sure(good, what):
    if not good:
        bad.append(what)


def stop(folder, choose, kept, state):
    """Reports beyond those kept are away, or were skipped for want of time. What is left: {operation: report}."""
    shutil.copytree(stored, folder)
    left, counted, absent = {}, 0, 0
    names = sorted(os.listdir(os.path.join(folder, "reports")))
    choose.shuffle(names)
    for name in names:
        path = os.path.join(folder, "reports", name)
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        idle = report["status"] == "SKIPPED" or report["count"] == 0
        counted += not idle
        if idle or kept > 0:
            kept -= not idle
            left[report["operation"]] = report
        elif choose.random() < 0.5:
            os.remove(path)
            absent += 1
        else:
            report = {k: v for k, v in report.items() if not k.startswith(("best", "baseline", "efficiency", "ratio", "rival", "config"))}
            report |= {"status": "SKIPPED", "reason": {"code": "budget", "text": "the time was used up"}, "baseline": None, "best": None}
            report["candidates"] = []
            left[report["operation"]] = report
            with open(path, "w", encoding="utf-8") as file:
                json.dump(report, file)
    with open(os.path.join(folder, "run.json"), encoding="utf-8") as file:
        run = json.load(file)
    run["state"] = state
    with open(os.path.join(folder, "run.json"), "w", encoding="utf-8") as file:
        json.dump(run, file)
    return left, counted, absent


def figures(said):
    """Bars are of figures: nothing is drawn where there are none."""
    return len(re.findall(r'<rect class="(?:now|proven|ceiling|k-[a-z]+)" width', said["html"].split('id="roof')[0]))


def look(what, folder, left, counted, absent):
    out = folder + "_out"
    done = subprocess.run([analyze, folder, "-o", out], capture_output=True, text=True, check=False)
    sure(done.returncode == 1 or (done.returncode == 0 and not absent and not left), f"{what}: exit {done.returncode} {done.stderr}")
    said = {}
    for name, file in FORMATS.items():
        with open(os.path.join(out, file), encoding="utf-8", newline="") as text:
            said[name] = text.read()
    timed = [r for r in left.values() if r["status"] == "OK" and r["count"] > 0]
    head = f"PARTIAL: {len(timed)} of {counted} operation"
    sure(said["text"].startswith(head), f"{what}: text begins with {said['text'][:100]!r}")
    sure(f"**{head}" in said["md"].split("## ")[0], f"{what}: md {said['md'][:200]!r}")
    sure(head in said["html"].split("<main")[0], f"{what}: the page's head")
    partial = json.loads(said["json"])["groups"][0].get("partial", {})
    sure((partial.get("measured"), partial.get("operations")) == (len(timed), counted), f"{what}: json {partial}")
    sure(("share" in partial) == (absent == 0), f"{what}: the share is known where each has an estimate: {partial}")
    property_of = {p.get("name"): p.get("value") for p in etree.fromstring(said["junit"].encode()).iter("property")}
    sure(property_of.get("partial", "").startswith(head), f"{what}: junit {property_of.get('partial')}")
    for row in csv.DictReader(said["csv"].splitlines()):
        sure(row["partial"].startswith(head), f"{what}: csv {row['partial']}")
        known = row["outcome"] != "missing"
        sure(all(bool(row[c]) == known for c in ("weight_us", "share", "proven_share", "potential_us")), f"{what}: csv, a figure of {row['operation']}")
    for name in ("text", "md", "html"):
        for sentence in NEVER + (() if timed or name == "html" else NOT_WITHOUT):
            sure(sentence not in said[name], f"{what}: {name} says {sentence!r}: {said[name][max(0, said[name].find(sentence) - 60):][:120]!r}")
    for report in left.values():
        if report["status"] == "SKIPPED" and report["reason"]["code"] == "budget":
            one = subprocess.run([analyze, "explain", folder, report["operation"]], capture_output=True, text=True, check=False).stdout
            sure(head in one and "without a figure" in one, f"{what}: explain {one[:300]!r}")
    total = sum(r["count"] * r["baseline_time_us"] for r in timed)
    shown = re.search(r"^([0-9.]+) (us|ms|s) ± \S+ % a run", said["text"], re.M)
    sure(bool(shown) == bool(timed), f"{what}: a time only where there is one")
    if shown:
        us = float(shown[1]) * {"us": 1, "ms": 1e3, "s": 1e6}[shown[2]]
        sure(abs(us / total - 1) < 1e-3, f"{what}: {shown[0]} of {total} us")
        sure(figures(said) > 0, f"{what}: bars")
    else:
        sure(figures(said) == 0, f"{what}: bars of nothing")


choice = random.Random(21)
for k in range(times):
    most = 17
    keep = 0 if k == 0 else choice.randint(0, most - 1)
    ended = choice.choice(["interrupted", "interrupted", "running", "failed"])
    where = os.path.join(scratch, f"stopped_{k}")
    look(f"{k}: {keep} left, {ended}", where, *stop(where, choice, keep, ended))
print("\n".join(bad[:20]))
sys.exit(len(bad) > 0)

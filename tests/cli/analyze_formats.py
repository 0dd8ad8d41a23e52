"""Reads what analyze wrote with other people's readers and compares it with the reports.
Usage: analyze_formats.py md|csv|junit REPORTS FILE"""
import csv
import glob
import html
import json
import os
import re
import sys
import xml.etree.ElementTree as etree

from junit_form import complaints

BAD = {"WRONG", "CRASHED", "TIMEOUT", "ERROR"}
CONTROLS = set(range(0x20)) | set(range(0x7F, 0xA0)) | {0x061C, 0x200E, 0x200F, 0xFEFF}
CONTROLS |= set(range(0x2028, 0x202F)) | set(range(0x2066, 0x206A))
format_name, folder, path = sys.argv[1:]
reports, broken = {}, []
for name in glob.glob(os.path.join(folder, "*.json")):
    try:
        with open(name, encoding="utf-8") as file:
            report = json.load(file)
        reports[report["operation"]] = report
    except ValueError:
        broken.append(name)
with open(path, encoding="utf-8", newline="") as file:
    text = file.read()


def clean(what):
    return "".join("?" if ord(c) in CONTROLS else c for c in what)


def sure(good, what):
    if not good:
        sys.exit(f"{format_name}: {what}")


def cut(what, most):
    return what if len(what) <= most else what[:most] + "…"


def check_csv():
    sure(text.endswith("\r\n") and "\r" not in text.replace("\r\n", ""), "lines end with CRLF")
    sure(len(text.split("\r\n")) == len(reports) + 2, "a line for each report, whatever the names hold")
    header, *rows = csv.reader(text.splitlines(), strict=True)
    sure(len(rows) == len(reports), "a row for each report")
    seen = {}
    for row in rows:
        sure(len(row) == len(header), f"as many fields as the header: {row}")
        seen[row[header.index("operation")]] = dict(zip(header, row))
        for field in row:
            first = field.lstrip(" \u00a0")[:1]
            sure(first not in set("=+-@\uff1d\uff0b\uff0d\uff20") or re.fullmatch("-?[0-9.e+-]+", field), f"no formula: {field}")
    for operation, report in reports.items():
        want = clean(operation)
        row = seen.get(want) or seen.get("'" + want)
        sure(row is not None, f"{want!r} has a row")
        sure(row["count"] == str(report["count"]), "its count")
        sure(row["shape"] == "x".join(map(str, report["shape"])), "its shape")
        for column in ("baseline_time_us", "ceiling_time_us", "flops", "ratio"):
            wanted = report.get(column)
            sure(row[column] == "" if wanted is None else abs(float(row[column]) - wanted) <= 1e-8 * abs(wanted), column)
        sure(row["status"] == report["status"], "its status")
        sure(int(row["bad_rows"]) == sum(r["status"] in BAD for r in report["candidates"]), "its bad rows")


def check_junit():
    root = etree.fromstring(text.encode())
    sure(root.tag == "testsuites", "the root")
    sure(not complaints(root), complaints(root))
    cases = {}
    total = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for suite in [root, *root]:
        sure(re.fullmatch(r"[0-9]+\.[0-9]{3}", suite.get("time")), "seconds as Jenkins wants them")
    for suite in root:
        sure(suite.tag == "testsuite", "only suites in it")
        found = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
        for case in suite.iter("testcase"):
            found["tests"] += 1
            for kind, key in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
                found[key] += case.find(kind) is not None
            cases[case.get("name")] = case
            sure(float(case.get("time")) >= 0 and case.get("classname") is not None, "time and class of a test")
        sure({k: int(suite.get(k)) for k in found} == found, f"the suite counts its tests: {suite.attrib}")
        for key, n in found.items():
            total[key] += n
    sure({k: root.get(k) for k in total} == {**{k: str(n) for k, n in total.items()}, "skipped": None}, "the root counts all")
    sure(total["errors"] == len(broken), "an error for each file that is no report")
    names = {p.get("name") for p in root.iter("property")}
    sure({"device", "device_class", "regime", "method", "model"} <= names, f"device and regime: {names}")
    for operation, report in reports.items():
        want = clean(operation).replace("\uffff", "\ufffd")
        sure(want in cases, f"{want!r} has a test")
        case = cases[want]
        bad = any(r["status"] in BAD for r in report["candidates"])
        status = report["status"]
        failed = bad or status not in ("OK", "SKIPPED")
        sure((case.find("failure") is not None) == failed, f"{want!r}: failed or not")
        sure((case.find("skipped") is not None) == (status == "SKIPPED" and not bad), f"{want!r}: skipped or not")
        if bad:
            said = case.find("failure").text
            row = next(r for r in report["candidates"] if r["status"] in BAD)
            sure(row["status"] in said and row["reason"]["code"] in said, f"{want!r}: the bad row is told")


def cells(line):
    return re.split(r"(?<!\\)\|", line)[1:-1]


def check_markdown():
    header, rows = None, []
    for line in text.split("\n"):
        sure(not re.search("<|\x1b|\\]\\(|(?<![a-zA-Z0-9_.])@[a-z]", re.sub("`[^`]*`", "", line).replace("< 0.1 %", "")), f"markup in {line!r}")
        if not line.startswith("|"):
            header = None
            sure(re.match(r"$|#{1,2} |[0-9]+\. |- |[A-Z1-9]|\*\*PARTIAL: ", line), f"a line like no other: {line!r}")
            continue
        header = header or cells(line)
        sure(len(cells(line)) == len(header), f"as many cells as the header: {line!r}")
        rows.append(cells(line))
    found = [cell.strip() for row in rows for cell in row]
    shown = {c[1:-1] if c[:1] == "`" else html.unescape(c).replace("\u200b", "") for c in found}
    for operation, report in reports.items():
        if report["status"] == "OK":
            sure(cut(clean(operation), 100) in shown, f"{operation!r} is in a table")


{"csv": check_csv, "junit": check_junit, "md": check_markdown}[format_name]()

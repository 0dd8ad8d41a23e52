"""Reads what analyze compare wrote with other people's readers, and holds the formats against each other.
Usage: compared.py FOLDER   (of -o)"""
import csv
import json
import os
import sys
import xml.etree.ElementTree as etree
from html.parser import HTMLParser

from junit_form import complaints


def sure(good, what):
    if not good:
        sys.exit(what)


def read(name):
    with open(os.path.join(sys.argv[1], name), encoding="utf-8", newline="") as file:
        return file.read()


made = json.loads(read("comparison.json"))
rows = made["operations"]
states = [row["state"] for row in rows]
sure(all(states.count(name) == made["counts"][name] for name in ("SAME", "FASTER", "SLOWER", "AMBIGUOUS")), "json: counts")
sure(len(rows) == made["counts"]["compared"], "json: a row for each that is compared")

fused = made["fusions"]
fused_states = [row["state"] for row in fused["rows"]]
sure(all(fused_states.count(name) == fused["counts"][name] for name in ("SAME", "FASTER", "SLOWER", "AMBIGUOUS")), "json: counts of fusions")
sure(len(fused["rows"]) == fused["counts"]["compared"], "json: a row for each fusion that is compared")
sure(all("pattern" in row for row in fused["rows"]) and not any("pattern" in row for row in rows), "json: fusions say what they join")
rows = rows + fused["rows"]
states += fused_states

lines = list(csv.DictReader(read("comparison.csv").splitlines(), strict=True))
sure([line["state"] for line in lines] == states, "csv: the same rows in the same order")
sure([line["verdict"] for line in lines] == [row["verdict"] for row in rows], "csv: the same verdicts")
for line, row in zip(lines, rows):
    sure(None not in line and None not in line.values(), "csv: as many fields as the header")
    sure((line["fusion"] != "") == ("pattern" in row), "csv: which are fusions")
    for column in ("change", "net_change", "lost_us"):
        sure((line[column] == "") == (column not in row), f"csv: {column} is empty where it is not known")
        sure(line[column] == "" or abs(float(line[column]) - row[column]) <= 1e-6 * abs(row[column]) + 1e-12, f"csv: {column}")
    for field in line.values():
        sure(field[:1] not in set("=+@") and (field[:1] != "-" or field[1:2].isdigit()), f"csv: no formula: {field}")

suites = etree.fromstring(read("comparison.xml"))
tests = suites.findall(".//testcase")
machines = 1 + len(made["machine"]["parts"])
others = machines + len(made["skipped"])
sure(len(tests) == len(rows) + others == int(suites.get("tests")), "junit: a test for each, and for the machine")
sure(len({(test.get("classname"), test.get("name")) for test in tests if test.find("error") is None}) == len(tests) - len(made["skipped"]),
     "junit: no two tests of one name")
sure(sum(test.get("classname") == "fusion" for test in tests) == len(fused["rows"]), "junit: which are fusions")
sure(len(suites.findall(".//error")) == len(made["skipped"]) == int(suites.get("errors")), "junit: an error for each that was left out")
failed = [test for test in tests[machines:] if test.find("failure") is not None]
sure(len(failed) == sum(row["failed"] for row in rows), "junit: what failed")
sure(len(suites.findall(".//failure")) == int(suites.get("failures")), "junit: how many failed")
sure(len(suites.findall(".//skipped")) == int(suites[0].get("skipped")), "junit: how many were skipped")
sure(dict(suites.attrib, name="", skipped="") == dict(suites[0].attrib, name="", skipped=""), "junit: the root says what its suite says")
sure(abs(sum(float(test.get("time")) for test in tests) - float(suites.get("time"))) < 1e-3, "junit: the time of all tests")
sure(not complaints(suites), f"junit: {complaints(suites)}")

text = read("comparison.txt")
sure(all(len(line) <= 110 for line in text.splitlines()), "text: no longer lines than 110 columns")
sure(not any(ord(c) < 32 and c != "\n" for c in text), "text: nothing that drives a terminal")
page = read("comparison.md")
table = [line for line in page.splitlines() if line.startswith("| SLOWER") or line.startswith("| FASTER")]
sure(all(line.replace("\\|", "").count("|") in (3, 8) for line in table), "md: tables keep their columns")
sure("<" not in page.replace("&#60;", ""), "md: no markup")


class Markup(HTMLParser):
    """What is open, the rows that can be filtered, and attributes that no element of the page may have."""
    def __init__(self):
        super().__init__()
        self.open, self.rows, self.wrong = [], [], []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.wrong += [name for name in attributes if name.startswith("on") or name in ("style", "src")]
        if tag == "tr" and "data-f" in attributes:
            self.rows.append(attributes["data-f"].split())
        if tag not in ("meta", "br", "input", "wbr"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag):
        self.wrong += [] if self.open and self.open.pop() == tag else [f"</{tag}>"]


html = Markup()
html.feed(read("comparison.html"))
sure(not html.wrong and not html.open, f"html: {html.wrong} {html.open}")
sure([row[0] for row in html.rows] == [f"s-{state}" for state in states], "html: the same rows in the same order")
sure([row[1] for row in html.rows] == [f"v-{row['verdict']}" for row in rows], "html: the same verdicts")

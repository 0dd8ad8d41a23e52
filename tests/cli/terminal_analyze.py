"""analyze on pseudo-terminals of several widths: every line fits, nothing but names is cut, and colours are there unless
NO_COLOR is set. Usage: terminal_analyze.py ANALYZE FOLDER [BEFORE WORD…]   BEFORE: a folder that it is compared with; WORDs: what that says"""
import json
import os
import re
import subprocess
import sys

from pseudo_terminal import on_terminal

analyze, folder, *compared = sys.argv[1:]


def joined(text):
    """Without colours, and without what a line's end is made of: a word that is longer than a line is broken, too."""
    return re.sub(r"\s+", "", re.sub(r" \\$", "", re.sub(r"\x1b\[[0-9;]*m", "", text), flags=re.M))


def sentences():
    said = json.loads(subprocess.run([analyze, folder, "--format", "json"], capture_output=True, text=True, check=False).stdout)
    for group in said["groups"]:
        for row in group["operations"]:
            if row["outcome"] not in ("missing", "outside"):
                yield row["recommendation"]
        for missing in group["missing"]:
            yield missing["text"]


def what_is_wrong(columns, command, wanted):
    code, output = on_terminal([analyze, *command], columns)
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in output.replace("\r", "").split("\n")]
    longest = max(lines, key=len)
    if code not in (0, 1) or len(longest) > columns:
        yield f"exit {code}, longest line {len(longest)}: {longest!r}"
    if ("\x1b[" in output) == ("NO_COLOR" in os.environ):
        yield "colours, or none"
    whole = joined(output)
    for sentence in wanted:
        if joined(sentence) not in whole:
            yield f"not whole: {sentence!r}"
    for line in lines:
        if re.search(r"\de[+-]\d\d", line):
            yield f"an exponent: {line!r}"


def reasons(operation):
    with open(os.path.join(folder, "reports", operation + ".json"), encoding="utf-8") as file:
        return [row["reason"]["text"] for row in json.load(file)["candidates"] if row["reason"]]


bad = 0
wanted = {"summary": (["--top", "0", folder], [*sentences()])}
if compared:
    wanted["compare"] = (["compare", compared[0], folder, "--top", "0"], compared[1:])
for name in sorted(os.listdir(os.path.join(folder, "reports")))[::5]:
    wanted[f"explain {name[:-5]}"] = (["explain", folder, name[:-5], "--top", "0"], reasons(name[:-5]))
for columns in (50, 80, 99, 140, 250):
    for what, (command, sentence) in wanted.items():
        for wrong in what_is_wrong(columns, command, sentence):
            print(f"{what}, {columns} columns: {wrong}")
            bad = 1
sys.exit(bad)

"""Runs a command on pseudo-terminals of several widths: every line must fit, and colours be there unless NO_COLOR is set."""
import os
import re
import sys

from pseudo_terminal import on_terminal

# What a reader looks for: the shares of every operation, the bytes of every fusion.
SHARES = re.compile(r"\S +(< 0\.1|\d+\.\d) % +(< 0\.1|\d+\.\d) %$")
SAVED = re.compile(r"^  \S.* +\d[\d.]*( [KMGTPE])? x +\d[\d.]* [KMGTPE]?B(   .*)?$")


def what_is_wrong(code, output, columns):
    coloured = "\x1b[" in output
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", part) for line in output.split("\n") for part in line.split("\r")]
    longest = max(map(len, lines))
    if code != 0 or longest > columns or coloured == ("NO_COLOR" in os.environ):
        yield f"exit {code}, longest line {longest}, coloured {coloured}"
    head = next((k for k, line in enumerate(lines) if line.endswith("flops   bytes")), None)
    if head is None:
        yield "no operations"
        return
    section = None
    for line in filter(None, lines[head:]):
        if line.startswith(("free nodes", "free")):
            section = None
        elif line.startswith("fusions"):
            section = SAVED
            if not re.search(r" \d[\d.]* [KMGTPE]?B( in all)?$", line):
                yield f"without its sum: {line!r}"
        elif line is lines[head]:
            section = SHARES
        elif section and not section.search(line) and not line.startswith("  and "):
            yield f"something is cut: {line!r}"


bad = 0
for columns in [*range(30, 100), 120, 132, 160, 200]:
    for what in what_is_wrong(*on_terminal(sys.argv[1:], columns), columns):
        print(f"{columns} columns: {what}")
        bad = 1
sys.exit(bad)

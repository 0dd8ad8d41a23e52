"""Runs a command on pseudo-terminals of several widths: a bar must be drawn while it measures, nothing of it be left, and
every line of the table fit, with its heads and its sum whole. Usage: terminal_scout.py COMMAND…"""
import re
import sys

from pseudo_terminal import on_terminal

BAR = re.compile(r"^\[[#.]{8,20}\] (starting|(ceilings|operations|fusions|refined) \d+/\d+)")
bad = 0
for columns in (40, 60, 80, 120):
    code, output = on_terminal(sys.argv[1:], columns)
    pieces = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", part) for line in output.split("\n") for part in line.split("\r")]
    bars = [piece for piece in pieces if piece.startswith("[")]
    left = output.split("\x1b[K")[-1]
    longest = max(map(len, pieces))
    if code > 1 or longest > columns or not bars or not all(map(BAR.match, bars)) or "[#" in left:
        print(f"{columns} columns: exit {code}, longest line {longest}, {len(bars)} bars: {bars[:2]}")
        bad = 1
    figures = [line for line in left.split("\n") if line.startswith("down ")]
    if not figures or not re.search(r" \d[\d.]* us .*\d %", figures[0]):
        print(f"{columns} columns: figures are cut: {figures}")
        bad = 1
    heads = [line for line in left.split("\n") if line.startswith("oper")]
    if not heads or not re.match(r"operation +shape +", heads[0]) or "…" in heads[0]:
        print(f"{columns} columns: heads are cut: {heads}")
        bad = 1
    if columns >= 60 and " 64x32x96 " not in figures[0]:
        print(f"{columns} columns: a shape is cut: {figures}")
        bad = 1
    if not re.search(r"^together [^…]* at the ceilings [\d.]+ us", " ".join(left[left.find("together"):].split())):
        print(f"{columns} columns: the sum is cut: {left[left.find('together'):]}")
        bad = 1
sys.exit(bad)

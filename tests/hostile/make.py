#!/usr/bin/env python3
"""Writes every hostile case into a folder, and a list of them (cases.json) for run_cases.py.

    make.py FOLDER            all cases, the truncations and the flips
    make.py --seeds FOLDER    only the small valid models, one file each: the seed corpus of the fuzzers
"""
import json
import os
import random
import shutil
import sys

import cases_bent
import cases_control
import cases_graph
import cases_growth
import cases_output
import cases_path
import cases_shape
import cases_wire
import random_nets
import seeds
from case import Case, LOOSE

FLIPS, RANDOM = 2000, 5000
SANITIZED = 500  # of the random ones; the others are run without sanitizers


def write(path, content):
    with open(path, "wb") as out:
        out.write(content() if callable(content) else content)


def lay_out(folder, case):
    """One folder per case; the model stands in a folder inside it, so that there is an outside to escape to."""
    home = os.path.join(folder, case.name, "model")
    os.makedirs(home)
    if case.content is not None:
        write(os.path.join(home, "model.onnx"), case.content)
    if case.layout is not None:
        case.layout(home)
    path = case.path if case.path.startswith("/") or not case.path else os.path.join(home, case.path)
    return {"name": case.name, "path": path, "home": home, "exits": list(case.exits), "pattern": case.pattern,
            "args": list(case.args), "seconds": case.seconds}


def truncations():
    whole = seeds.small()
    return [Case("cut_at_%03d" % n, LOOSE if n == len(whole) else (0, 3), whole[:n]) for n in range(len(whole))]


def flips():
    """Seeded, so that a failure comes back: one to four bytes of a small model changed, inserted or taken out."""
    rng = random.Random(20260714)
    table = seeds.seeds()
    cases = []
    for n in range(FLIPS):
        name, data = table[n % len(table)]
        data = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data))
            kind = rng.randrange(4)
            if kind == 0:
                data[at] ^= 1 << rng.randrange(8)
            elif kind == 1:
                data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
            elif kind == 2:
                data.insert(at, rng.randrange(256))
            else:
                del data[at]
        cases.append(Case("flip_%04d_%s" % (n, name), LOOSE, bytes(data)))
    return cases


def main(args):
    if len(args) == 2 and args[0] == "--seeds":
        os.makedirs(args[1], exist_ok=True)
        for name, data in seeds.seeds():
            write(os.path.join(args[1], name + ".onnx"), data)
        return 0
    if len(args) != 1 or args[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    folder = os.path.abspath(args[0])
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    modules = (cases_wire, cases_graph, cases_control, cases_shape, cases_path, cases_growth, cases_output, cases_bent)
    nets = random_nets.cases(RANDOM)
    few = [c for m in modules for c in m.cases()] + truncations() + flips() + nets[:SANITIZED]
    if len({c.name for c in few + nets[SANITIZED:]}) != len(few + nets[SANITIZED:]):
        raise SystemExit("two cases have one name")
    for name, cases in (("cases.json", few), ("more.json", nets[SANITIZED:])):
        with open(os.path.join(folder, name), "w") as out:
            json.dump([lay_out(folder, c) for c in cases], out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

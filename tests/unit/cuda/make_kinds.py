#!/usr/bin/env python3
"""Makes tests/unit/cuda/kinds.json, one entry for each kind, operator, types and form that extract_ops lists, out of any
number of its ops.json: of onnx's backend tests, of the oracle's contrib operators, of exported and quantised models.

Usage: make_kinds.py OPS.json... > kinds.new && mv kinds.new tests/unit/cuda/kinds.json
The stored entries may be among them: they are read before the new file takes their place.
Of entries that are alike the smallest stays, so that the file does not depend on the order. Parts of operations and
those that do no work are entries, too, where nothing else is like them.
"""

import json
import sys

# Where an operation stands and what it costs, not what it is.
LEFT_OUT = {"id", "nodes", "weights", "more", "parts", "count", "occurrences", "macs", "flops", "bytes_read", "bytes_written"}
# Texts that are sizes in disguise.
SIZES = {"shape", "input", "kernel", "pads", "stride", "dilation", "inputs", "operands", "equation", "indices", "updates", "sizes"}


def value(name, x):
    """What of a field tells forms apart: texts and flags do, sizes and numbers are there or not."""
    if name in SIZES or isinstance(x, (list, float)) or (isinstance(x, int) and x not in (0, 1)):
        return "…"
    return json.dumps(x, sort_keys=True) if not isinstance(x, dict) else ",".join(sorted(x))


def form(op):
    return tuple((name, value(name, x)) for name, x in sorted(op.items()) if name != "chain")


def elements(op):
    size = 1
    for n in op.get("shape", []):
        size *= max(n, 1) if isinstance(n, int) else 1
    return size


def main(paths):
    kept = {}
    for path in paths:
        with open(path, encoding="utf-8") as f:
            ops = json.load(f)["ops"]
        for op in ops:
            if op.get("what") in ("view", "folded", "control"):
                continue
            bare = {name: x for name, x in op.items() if name not in LEFT_OUT}
            rank = (elements(bare), json.dumps(bare, sort_keys=True))
            if form(bare) not in kept or rank < kept[form(bare)][0]:
                kept[form(bare)] = (rank, bare)
    entries = sorted((bare for _, bare in kept.values()), key=lambda op: (op["op"], op.get("what", ""), json.dumps(op, sort_keys=True)))
    print('{"schema": "ceiling-scout/ops/1", "model": {"name": "kinds"}, "ops": [')
    for k, op in enumerate(entries):
        entry = {"id": f"k{k:04}", **op, "count": 1}
        print(json.dumps(entry, ensure_ascii=False) + ("," if k + 1 < len(entries) else ""))
    print("]}")


if __name__ == "__main__":
    main(sys.argv[1:])

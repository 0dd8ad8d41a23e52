"""Checks what ops.json promises: every node in exactly one entry that is no part, ids unique, parts there and of count 0,
weights one per place, totals the sum of the entries. Usage: counting.py OPS.json…"""
import json
import sys


def broken(ops):
    nodes = {}
    ids = {}
    for op in ops["ops"]:
        if op["id"] in ids:
            yield f"id {op['id']} stands there twice"
        ids[op["id"]] = op
    parts = {part for op in ops["ops"] for part in op.get("parts", [])}
    for part in parts:
        if part not in ids:
            yield f"part {part} is no entry"
        elif ids[part]["count"] != 0:
            yield f"part {part} counts {ids[part]['count']}"
    for op in ops["ops"]:
        if op["id"].endswith("_part"):
            continue
        for node in op["nodes"]:
            nodes[node] = nodes.get(node, 0) + 1
        if "weights" in op and len(op["weights"]) != op["occurrences"]:
            yield f"{op['id']}: {len(op['weights'])} weights for {op['occurrences']} places"
    if len(nodes) != ops["coverage"]["nodes"]:
        yield f"{len(nodes)} nodes are listed of {ops['coverage']['nodes']}"
    for node, times in nodes.items():
        if times != 1:
            yield f"node {node!r} is counted {times} times"
    known = all(op.get("times", 1) != "unknown" for op in ops["ops"])
    limit = 2**63 - 1
    sums = {name: sum(op[name] * op["count"] for op in ops["ops"]) for name in ("macs", "flops", "bytes_read", "bytes_written")}
    sums["bytes"] = sums.pop("bytes_read") + sums.pop("bytes_written")
    for name, total in sums.items():
        told = ops["totals"][name]
        if known and told != min(total, limit) or told > min(total, limit):
            yield f"totals.{name} is {told}, the entries' sum {total}"


bad = 0
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    for what in broken(document):
        print(f"{path}: {what}")
        bad = 1
sys.exit(bad)

"""Whether a configuration lists what its exported model does: operations with all that tells them apart, how often, their
multiply-accumulates and floating-point operations. Names, bytes and what costs nothing are left aside: an export reads
constants that a configuration has as inputs. Of experts an export copies the matrices that each token asks for, which no
program that serves them does: there the multiply-accumulates must be equal, and all operations that hold a weight of
another kind. Usage: config_compare.py EXPORT.json CONFIG.json"""
import collections
import json
import sys

BESIDE = {"id", "nodes", "weights", "parts", "bytes_read", "bytes_written", "count"}
with open(sys.argv[2], encoding="utf-8") as config_file:
    EXPERTS = '"assumed"' in config_file.read()
TOTALS = ("macs",) if EXPERTS else ("macs", "flops")


def is_compared(op):
    if not EXPERTS:
        return True
    return "weight_dtype" in op and "batch" not in op or op["op"] in ("attention", "rotary")


def listed(path):
    with open(path, encoding="utf-8") as file:
        read = json.load(file)
    found = collections.Counter()
    for op in read["ops"]:
        if op["count"] and not (op["op"] == "move" and op.get("what") in ("view", "folded")) and is_compared(op):
            found[json.dumps({key: op[key] for key in sorted(op.keys() - BESIDE)})] += op["count"]
    return found, read["totals"], read["coverage"]


(export, export_totals, _), (config, config_totals, coverage) = (listed(path) for path in sys.argv[1:])
for key in sorted(export.keys() | config.keys()):
    if export[key] != config[key]:
        print(f"{export[key]} in the export, {config[key]} of the configuration: {key}")
for total in TOTALS:
    if export_totals[total] != config_totals[total] or not config_totals[total]:
        print(f"{total}: {export_totals[total]} in the export, {config_totals[total]} of the configuration")
if coverage["unresolved"] or coverage["unknown"] or not config:
    print("not all of it is resolved")
sys.exit(export != config or any(export_totals[t] != config_totals[t] for t in TOTALS) or bool(coverage["unresolved"]))

"""Folders of reports that cost more than they say. Usage: hostile_reports.py FOLDER REPORTS   prints the kinds"""
import json
import pathlib
import sys

import made_reports

folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
one = json.dumps(made_reports.report("OPERATION"))
rowed = made_reports.report("OPERATION")
rowed["candidates"] += [{"name": "a", "variant": str(k), "status": "SKIPPED", "reason": None} for k in range(60)]
rowed = json.dumps(rowed)
KINDS = {
    "good": lambda k: one,
    "cut": lambda k: one[: len(one) // 2],
    "classes": lambda k: one.replace("name=Test GPU;", f"name=GPU {k};"),
    "regimes": lambda k: one.replace("sustained-model-graph", f"r{k}"),
    "long": lambda k: one.replace('"OPERATION"', '"OPERATION' + "x" * 2000 + '"'),
    "members": lambda k: one[:-1] + "," + ",".join(f'"p{j}":1' for j in range(200)) + "}",
    "rows": lambda k: rowed,
}
for kind in KINDS:
    reports = folder / kind / "reports"
    reports.mkdir(parents=True)
    for k in range(count):
        (reports / f"{k:06d}.json").write_text(KINDS[kind](k).replace("OPERATION", f"o{k:06d}"))
    print(kind)

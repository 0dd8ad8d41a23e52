"""Holds Grafana's dashboard against what reads it and what it reads: Grafana's own model of a dashboard knows each member,
each query is PromQL, asks for metrics that a night writes, by labels that these have, and no panel lies on another one.
Usage: grafana_dashboard.py DASHBOARD.json NIGHT.prom; a line for each fault."""
import json
import re
import sys

import promql_parser
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard


def lost(before, after, place):
    """What the model does not know is not there again."""
    if isinstance(before, dict):
        return [fault for key, value in before.items()
                for fault in (lost(value, after[key], f"{place}.{key}") if isinstance(after, dict) and key in after else [f"{place}.{key}: is not known"])]
    if isinstance(before, list):
        if not isinstance(after, list) or len(before) != len(after):
            return [f"{place}: is another list"]
        return [fault for k, pair in enumerate(zip(before, after)) for fault in lost(*pair, f"{place}[{k}]")]
    return [] if before == after else [f"{place}: {before!r} is read as {after!r}"]


def written(path):
    """Metric to its labels."""
    metrics = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            if sample := re.match(r"([a-z_]+)(?:\{(.*)\})? ", line):
                metrics.setdefault(sample[1], set()).update(re.findall(r'(\w+)="', sample[2] or ""))
    return metrics


def query_faults(place, text, metrics, asked):
    found = []
    try:
        promql_parser.parse(text.replace("$model", ".*").replace("$device", ".*"))
    except ValueError as error:
        found.append(f"{place}: {error}")
    for name, labels in re.findall(r"(ceiling_scout_\w+)(?:\{([^}]*)\})?", text):
        asked.add(name)
        if name not in metrics:
            found.append(f"{place}: no night writes {name}")
            continue
        found += [f"{place}: {name} has no label {label}" for label in re.findall(r"(\w+)[=!]", labels) if label not in metrics[name]]
    return found


def main(dashboard, night):
    with open(dashboard, encoding="utf-8") as file:
        data = json.load(file)
    plugins.register_default_plugins()
    found = lost(data, json.loads(JSONEncoder().encode(Dashboard.from_json(data))), "")
    metrics, asked, taken = written(night), set(), {}
    for panel in data["panels"]:
        place, grid = panel["title"], panel["gridPos"]
        for target in panel["targets"]:
            found += query_faults(place, target["expr"], metrics, asked)
            own = metrics.get(re.search(r"ceiling_scout_\w+", target["expr"])[0], set())
            found += [f"{place}: no label {label}" for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]) if label not in own]
        for x in range(grid["x"], grid["x"] + grid["w"]):
            for y in range(grid["y"], grid["y"] + grid["h"]):
                if x >= 24 or taken.setdefault((x, y), place) != place:
                    found.append(f"{place}: lies on {taken.get((x, y), 'the edge')}")
    variables = {variable["name"]: variable for variable in data["templating"]["list"]}
    for name, variable in variables.items():
        if asks := re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]):
            found += query_faults(name, asks[1], metrics, asked)
            found += [] if asks[2] in metrics.get(re.match(r"\w+", asks[1])[0], ()) else [f"{name}: no label {asks[2]}"]
    found += [f"${name}: there is no such variable" for name in re.findall(r"\$\{?(\w+)", json.dumps(data)) if name not in variables]
    found += [f"{name}: no panel shows it" for name in sorted(set(metrics) - asked)]
    for fault in sorted(set(found)):
        print(fault)
    return len(found) > 0


sys.exit(main(*sys.argv[1:]))

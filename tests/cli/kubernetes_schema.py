"""Holds manifests against the published schema of Kubernetes, as its Python client carries it: each member is known, has
its type, and what must be there is there. Usage: kubernetes_schema.py NIGHT.yaml; a line for each fault.
With JOB and CONTAINER behind: prints that container's command, each word ended by a NUL."""
import ast
import importlib.util
import os
import re
import sys

import yaml

SIMPLE = {"str": str, "int": int, "bool": bool, "float": (int, float), "object": object, "datetime": str}
MODELS = os.path.join(importlib.util.find_spec("kubernetes").submodule_search_locations[0], "client", "models")


def model(name):
    """The members of one kind: its JSON name to its type, and those that must be there."""
    path = os.path.join(MODELS, re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower() + ".py")
    with open(path, encoding="utf-8") as file:
        source = file.read()
    tables = {node.targets[0].id: ast.literal_eval(node.value) for kind in ast.parse(source).body if isinstance(kind, ast.ClassDef)
              for node in kind.body if isinstance(node, ast.Assign)}
    names, types = tables["attribute_map"], tables["openapi_types"]
    needed = re.findall(r"client_side_validation and (\w+) is None", source)
    return {names[key]: types[key] for key in names}, {names[key] for key in needed}


def faults(value, kind, place):
    if listed := re.fullmatch(r"list\[(.*)\]", kind):
        if not isinstance(value, list):
            return [f"{place}: is no list"]
        return [fault for k, one in enumerate(value) for fault in faults(one, listed[1], f"{place}[{k}]")]
    if mapped := re.fullmatch(r"dict\(str, (.*)\)", kind):
        if not isinstance(value, dict):
            return [f"{place}: is no object"]
        # A quantity is a text in the schema, and may be written as a number.
        return [fault for key, one in value.items()
                for fault in faults(str(one) if place.endswith(("limits", "requests")) else one, mapped[1], f"{place}.{key}")]
    if kind in SIMPLE:
        wrong = not isinstance(value, SIMPLE[kind]) or (isinstance(value, bool) and kind in ("int", "float"))
        return [f"{place}: {value!r} is no {kind}"] if wrong else []
    if not isinstance(value, dict):
        return [f"{place}: is no object"]
    members, needed = model(kind)
    found = [f"{place}.{key}: must be there" for key in sorted(needed - set(value))]
    for key, one in value.items():
        found += faults(one, members[key], f"{place}.{key}") if key in members else [f"{place}.{key}: is not known"]
    return found


def main(path, job=None, container=None):
    with open(path, encoding="utf-8") as file:
        manifests = list(yaml.safe_load_all(file))
    found = []
    for k, manifest in enumerate(manifests):
        if (manifest.get("apiVersion"), manifest.get("kind")) != ("batch/v1", "Job"):
            found.append(f"[{k}]: is no Job of batch/v1")
        found += faults(manifest, "V1Job", f"[{k}]")
    for fault in found:
        print(fault)
    if job is not None and not found:
        pod = manifests[int(job)]["spec"]["template"]["spec"]
        one = next(one for one in pod["containers"] + pod.get("initContainers", []) if one["name"] == container)
        sys.stdout.write("".join(word + "\0" for word in one["command"] + one.get("args", [])))
    return len(found) > 0


sys.exit(main(*sys.argv[1:]))

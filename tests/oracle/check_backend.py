"""onnx's backend test models as Debian's libonnx-testdata installs them: the shapes of the stored expected outputs."""

import glob
import os
from concurrent.futures import ThreadPoolExecutor

import onnx
from onnx import numpy_helper

import backend_case
import oracle

FOLDER = os.environ.get("ONNX_TESTDATA", "/usr/share/libonnx-testdata/data")


def read_value(path, type_proto):
    with open(path, "rb") as f:
        data = f.read()
    if type_proto.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if type_proto.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def read_case(path):
    model = onnx.load(path)
    folder = os.path.join(os.path.dirname(path), "test_data_set_0")

    def values(prefix, infos):
        names = [os.path.join(folder, f"{prefix}_{k}.pb") for k in range(len(infos))]
        return [read_value(n, i.type) if os.path.exists(n) else None for n, i in zip(names, infos)]

    return backend_case.Case("/".join(path.split("/")[-3:-1]), model, values("input", model.graph.input),
                             values("output", model.graph.output))


def judge(path):
    try:
        case = read_case(path)
    except Exception as problem:  # a model or a value that this version of onnx cannot read
        return path, "unreadable", [str(problem)[:200]]
    return case.name, *backend_case.judge(oracle.program(), case)


def _twins_agree(results):
    """An operator written out as a function ("…_expanded") has shapes that depend on values only where the operator itself
    does: else the two differ in what was found, and that is wrong."""
    by_name = {name: verdict for name, verdict, _ in results}
    for name, verdict, problems in results:
        twin = name.partition("_expanded")[0]
        if verdict.startswith("by ") and by_name.get(twin, verdict) != verdict:
            verdict, problems = "wrong", [*problems, f"but {twin} is {by_name[twin]}"]
        yield name, verdict, problems


def report(tally, results):
    """Prints how many matched, of how many; every case that is not wrong passed."""
    results = sorted(_twins_agree(results))
    count = {v: sum(1 for r in results if r[1] == v) for v in ("matched", "by value", "by data", "wrong", "unreadable")}
    for name, verdict, problems in results:
        if verdict == "unreadable":
            tally.skip(f"{name}: {problems[0]}")
            continue
        tally.check(verdict != "wrong", f"{name}: " + "; ".join(problems))
        if verdict.startswith("by ") and os.environ.get("VERBOSE"):
            print(f"{verdict}: {name}: {'; '.join(problems)}")
    readable = len(results) - count["unreadable"]
    print(f"{count['matched']} of {readable} matched; {count['by value']} more match once the inputs' values are known; "
          f"{count['by data']} are results of data and rightly bounded; {count['wrong']} are wrong")


def main():
    tally = oracle.Tally()
    paths = sorted(glob.glob(os.path.join(FOLDER, "*", "*", "model.onnx")))
    if not paths:
        tally.skip(f"there are no test models in {FOLDER} (Debian: libonnx-testdata)")
        tally.end()
    with ThreadPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count())) as pool:
        report(tally, list(pool.map(judge, paths)))
    tally.end()


if __name__ == "__main__":
    main()

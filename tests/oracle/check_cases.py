"""The same as check_backend for the cases that the installed onnx package makes: newer operator sets than Debian's."""

import os
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx

import backend_case
import check_backend
import oracle


def collect():
    """Every node test case of the package that comes with a model and data."""
    warnings.simplefilter("ignore")
    from onnx.backend.test.case.node import collect_testcases

    return [c for c in collect_testcases(None) if c.model is not None and c.data_sets]


def as_value(value):
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, np.generic):
        return np.asarray(value)
    return value


def judge(test):
    inputs, outputs = test.data_sets[0]
    if isinstance(inputs, dict):
        inputs, outputs = list(inputs.values()), list(outputs.values())
    case = backend_case.Case(test.name, test.model, [as_value(v) for v in inputs], [as_value(v) for v in outputs])
    return case.name, *backend_case.judge(oracle.program(), case)


def main():
    tally = oracle.Tally()
    try:
        tests = collect()
    except ImportError as problem:
        tally.skip(f"this onnx package makes no test cases: {problem}")
        tally.end()
    with ThreadPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count())) as pool:
        check_backend.report(tally, list(pool.map(judge, tests)))
    tally.end()


main()

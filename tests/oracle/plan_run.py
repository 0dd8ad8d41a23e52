"""A model run by libscout_run's plan, through ctypes: what its own Python package and any other language calls."""

import ctypes
import os

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

RANK = 8
TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16, 11: np.float64,
         12: np.uint32, 13: np.uint64}
GUARD = 256  # bytes around outputs
INPUT, OUTPUT, WEIGHT, CONSTANT = range(4)


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int32), ("text", ctypes.c_char * 508)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("type", ctypes.c_int32), ("rank", ctypes.c_int32), ("dims", ctypes.c_int64 * RANK),
                ("strides", ctypes.c_int64 * RANK)]


class Info(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("use", ctypes.c_int32), ("name", ctypes.c_char_p), ("as_", Tensor)]


class Refused(Exception):
    pass


def tensor_of(array):
    number = next(k for k, t in TYPES.items() if np.dtype(t) == array.dtype)
    t = Tensor(array.ctypes.data, number, array.ndim)
    t.dims[:array.ndim] = array.shape
    t.strides[:array.ndim] = [s // array.itemsize for s in array.strides]
    return t


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(os.path.abspath(path))
        self.run = ctypes.c_void_p()
        self.error = Error()
        self.must(self.c.scout_run_open(ctypes.byref(self.run), None, ctypes.byref(self.error)))
        self.c.scout_run_plan_close.argtypes = [ctypes.c_void_p]
        self.c.scout_run_close.argtypes = [ctypes.c_void_p]

    def must(self, code):
        if code != 0:
            raise Refused(self.error.text.decode())

    def launches(self):
        counts = (ctypes.c_uint64 * 4)()
        self.c.scout_run_count(self.run, counts)
        return sum(counts)

    def close(self):
        self.c.scout_run_close(self.run)


class Plan:
    """Opened from a folder; bind by name, then launch. Arrays that are bound are kept."""

    def __init__(self, library, folder):
        self.lib, self.plan, self.kept = library, ctypes.c_void_p(), {}
        error = ctypes.byref(library.error)
        library.must(library.c.scout_run_plan_open(library.run, os.fsencode(folder), ctypes.byref(self.plan), error))
        self.tensors = {}
        for k in range(library.c.scout_run_plan_count(self.plan)):
            info = Info(ctypes.sizeof(Info))
            library.must(library.c.scout_run_plan_tensor(self.plan, k, ctypes.byref(info), error))
            self.tensors[info.name.decode()] = (info.use, TYPES.get(info.as_.type), tuple(info.as_.dims[:info.as_.rank]))

    def bind(self, name, array):
        t = tensor_of(array)
        self.lib.must(self.lib.c.scout_run_plan_bind(self.plan, name.encode(), ctypes.byref(t), ctypes.byref(self.lib.error)))
        self.kept[name] = array

    def launch(self):
        self.lib.must(self.lib.c.scout_run_plan_launch(self.plan, None, ctypes.byref(self.lib.error)))

    def close(self):
        self.lib.c.scout_run_plan_close(self.plan)


def weights_of(model):
    constants = {n.output[0]: a.t for n in model.graph.node if n.op_type == "Constant" for a in n.attribute if a.name == "value"}
    return constants | {t.name: t for t in model.graph.initializer}


def constants_of(plan, path, feeds):
    """What a plan wants of constants that the model computes of its weights: by onnxruntime."""
    names = [name for name, (use, _, _) in plan.tensors.items() if use == CONSTANT]
    if not names:
        return {}
    model = onnx.load(path)
    given = {i.name: i for i in model.graph.input}
    makers = {o: n for n in model.graph.node for o in n.output}
    wanted, left = [], list(names)
    while left:
        node = makers.get(left.pop())
        if node is not None and node not in wanted:
            wanted.append(node)
            left += node.input
    nodes = [n for n in model.graph.node if n in wanted]
    read = {i for n in nodes for i in n.input}
    del model.graph.node[:], model.graph.output[:], model.graph.input[:]
    model.graph.input.extend(i for name, i in given.items() if name in read)
    model.graph.node.extend(nodes)
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip(names, session.run(None, {name: feeds[name] for name in given if name in read})))


def outputs(plan, model, feeds, folder="."):
    """All outputs of a run on these inputs, and the model's own weights in the type that the plan takes."""
    stored, guarded = weights_of(model), {}
    for name, (use, dtype, dims) in plan.tensors.items():
        if use == OUTPUT:
            guarded[name] = np.full(int(np.prod(dims)) * np.dtype(dtype).itemsize + 2 * GUARD, 0xff, np.uint8)
            plan.bind(name, guarded[name][GUARD:-GUARD].view(dtype).reshape(dims))
            continue
        elif use in (INPUT, CONSTANT):
            array = feeds[name]
        else:
            array = numpy_helper.to_array(stored[name], folder).astype(dtype).reshape(dims)
        plan.bind(name, np.array(array, order="C"))
    for _ in range(2):  # the second one is on what the first one left
        plan.launch()
    for name, memory in guarded.items():
        if (memory[:GUARD] != 0xff).any() or (memory[-GUARD:] != 0xff).any():
            raise Refused(f"{name}: something was written beside it")
    return {name: plan.kept[name] for name, (use, _, _) in plan.tensors.items() if use == OUTPUT}


def distance(got, want):
    """The largest difference beside the size of what is wanted; infinite where one alone has a number."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return np.inf
    if not np.issubdtype(want.dtype, np.floating):
        return 0 if np.array_equal(got, want) else np.inf
    finite = np.isfinite(want)
    if not np.array_equal(finite, np.isfinite(got)) or not np.array_equal(got[~finite], want[~finite], equal_nan=True):
        return np.inf
    size = max(1e-2, float(np.sqrt(np.mean(np.square(want[finite], dtype=np.float64))))) if finite.any() else 1
    return float(np.max(np.abs(got[finite].astype(np.float64) - want[finite]), initial=0)) / size

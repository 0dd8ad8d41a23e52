"""scout_cuda.so inside of PyTorch's process: the very plan that a report names, through the ABI of scout/plugin.h, so
that PyTorch's graphs can time it and its profiler can name its kernels.

    plugin = Plugin("bin/scout_cuda.so")
    plan = plugin.plan(operation("attention", …), "cudnn_attention", "graph=whole,engine=0")
    plan.launch(q, k, v, out)      # on the current stream, tensors in the order of the operation's
"""
import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_uint32, c_uint64
from ctypes import c_size_t, c_void_p

import torch

ABI, MAX_RANK, MAX_PARAMETERS = 3, 8, 8
KINDS = {"gemm": 1, "conv": 2, "attention": 3, "norm": 4, "softmax": 5}
TYPES = {"fp32": 1, "fp16": 10, "bf16": 16}
INPUT, WEIGHT, SIDE, OUTPUT = range(4)
WORKSPACE = 32 << 20


class Why(Structure):
    _fields_ = [("code", c_char * 24), ("text", c_char * 232)]

    def __str__(self):
        return f"{self.code.decode()}: {self.text.decode()}"


class Tensor(Structure):
    _fields_ = [("size", c_uint32), ("role", c_uint32), ("type", c_uint32), ("rank", c_uint32),
                ("dims", c_int64 * MAX_RANK), ("strides", c_int64 * MAX_RANK), ("bytes", c_uint64),
                ("name", c_char * 16), ("below", c_int64), ("left", c_uint32)]


class Field(Structure):
    _fields_ = [("name", c_char_p), ("number", c_int64), ("text", c_char_p)]


class Op(Structure):
    _fields_ = [("size", c_uint32), ("kind", c_uint32), ("key", c_char_p), ("what", c_char_p), ("layout", c_char_p),
                ("mask", c_char_p), ("rank", c_uint32), ("shape", c_int64 * MAX_RANK), ("input", c_uint32),
                ("weight", c_uint32), ("accumulate", c_uint32), ("output", c_uint32), ("tf32", c_uint32),
                ("workspace_limit", c_uint64), ("field_count", c_uint32), ("tensor_count", c_uint32),
                ("fields", POINTER(Field)), ("tensors", POINTER(Tensor)), ("flops", c_double),
                ("bytes_read", c_double), ("bytes_written", c_double), ("crowd_written", c_double)]


class Parameter(Structure):
    _fields_ = [("name", c_char * 24), ("count", c_uint32), ("values", c_int64 * 512), ("labels", POINTER(c_char_p))]


class Domain(Structure):
    _fields_ = [("count", c_uint32), ("parameters", Parameter * MAX_PARAMETERS)]


class Needs(Structure):
    _fields_ = [("size", c_uint32), ("packs", c_uint32), ("pack_bytes", c_uint64), ("workspace_bytes", c_uint64)]


class Args(Structure):
    _fields_ = [("size", c_uint32), ("tensors", POINTER(c_void_p)), ("workspace", c_void_p), ("stream", c_void_p)]


class Candidate(Structure):
    _fields_ = [("size", c_uint32), ("kind", c_uint32), ("flags", c_uint32), ("priority", c_int32), ("name", c_char_p),
                ("about", c_char_p), ("library", c_char_p), ("approach", c_char_p), ("precisions", c_void_p),
                ("supports", CFUNCTYPE(c_int, POINTER(Op), c_void_p, POINTER(Why))),
                ("domain", CFUNCTYPE(c_int, POINTER(Op), c_void_p, c_int, POINTER(Domain), POINTER(Why))),
                ("allows", c_void_p),
                ("prepare", CFUNCTYPE(c_int, POINTER(Op), c_void_p, POINTER(c_int64), POINTER(c_void_p), POINTER(Needs),
                                      POINTER(Why))),
                ("pack", CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_void_p, POINTER(Why))),
                ("launch", CFUNCTYPE(c_int, c_void_p, POINTER(Args), POINTER(Why))),
                ("describe", c_void_p), ("destroy", c_void_p), ("pack_tensors", c_void_p), ("plan_bytes", c_size_t)]


class Device(Structure):
    _fields_ = [("size", c_uint32), ("name", c_char_p), ("count", c_void_p), ("identify", c_void_p),
                ("open", CFUNCTYPE(c_int, c_int32, POINTER(c_void_p), POINTER(Why)))] + [
        (name, c_void_p) for name in ("close", "memory", "alloc", "release", "upload", "download", "fill", "checksum",
                                      "record", "run", "drop")] + [
        ("has_graphs", c_int), ("resolution_s", c_double)] + [
        (name, c_void_p) for name in ("now", "pause", "telemetry", "stream", "empty", "special", "arithmetic",
                                      "datasheet")] + [
        ("reference_count", c_uint32), ("candidate_count", c_uint32), ("references", c_void_p),
        ("candidates", POINTER(POINTER(Candidate)))]


class Entry(Structure):
    _fields_ = [("size", c_uint32), ("abi", c_uint32), ("name", c_char_p), ("version", c_char_p),
                ("device", POINTER(Device))]


def check(answer, why, doing):
    if answer != 0:
        raise RuntimeError(f"{doing} answered {answer}: {why}")


def operation(kind, shape, dtype, tensors, fields, layout=None, mask=None):
    """As the harness builds it. tensors: (name, role, dims), each dense; fields: numbers, or lists of numbers."""
    op = Op(size=ctypes.sizeof(Op), kind=KINDS[kind], key=f"{kind} {shape} {dtype} {fields} {layout} {mask}".encode(),
            layout=layout and layout.encode(), mask=mask and mask.encode(), rank=len(shape), input=TYPES[dtype],
            weight=TYPES[dtype] if kind == "conv" else 0, accumulate=TYPES["fp32"], output=TYPES[dtype],
            workspace_limit=WORKSPACE)
    op.shape[:len(shape)] = shape
    made = (Tensor * len(tensors))()
    for tensor, (name, role, dims) in zip(made, tensors):
        stride = 1
        for axis in reversed(range(len(dims))):
            tensor.dims[axis], tensor.strides[axis] = dims[axis], stride
            stride *= dims[axis]
        tensor.size, tensor.role, tensor.type, tensor.rank = ctypes.sizeof(Tensor), role, TYPES[dtype], len(dims)
        tensor.bytes, tensor.name = stride * (4 if dtype == "fp32" else 2), name.encode()
    listed = (Field * len(fields))()
    for field, (name, value) in zip(listed, fields.items()):
        field.name = name.encode()
        if isinstance(value, list):
            field.text = ",".join(map(str, value)).encode()
        else:
            field.number = value
    op.tensors, op.tensor_count, op.fields, op.field_count = made, len(made), listed, len(listed)
    return op


class Plugin:
    """The device of the object, opened on the GPU that PyTorch uses; with `device` False asked about operations only."""

    def __init__(self, path, device=True):
        entry = ctypes.CDLL(path).scout_plugin_entry
        entry.restype = POINTER(Entry)
        self.api = entry(c_uint32(ABI)).contents.device.contents
        if self.api.size < ctypes.sizeof(Device):  # what is new stands behind what was there
            raise RuntimeError(f"{path} has a device of {self.api.size} bytes, {ctypes.sizeof(Device)} are known here")
        self.candidates = {}
        for index in range(self.api.candidate_count):
            candidate = self.api.candidates[index].contents
            self.candidates[candidate.name.decode(), candidate.kind] = candidate
        self.device, why = c_void_p(), Why()
        if device:
            check(self.api.open(0, ctypes.byref(self.device), ctypes.byref(why)), why, "opening the device")

    def supports(self, op, name):
        why = Why()
        answer = self.candidates[name, op.kind].supports(ctypes.byref(op), self.device, ctypes.byref(why))
        return answer == 0, str(why)

    def plan(self, op, name, variant):
        return Plan(self, op, self.candidates[name, op.kind], variant)


class Plan:
    """A variant of a candidate, ready to be launched. Weights that it packs are packed once for each address."""

    def __init__(self, plugin, op, candidate, variant):
        self.memory = ctypes.create_string_buffer(max(1, candidate.plan_bytes))
        why, self.plan, self.needs = Why(), ctypes.cast(self.memory, c_void_p), Needs(size=ctypes.sizeof(Needs))
        self.op, self.candidate, self.packed = op, candidate, {}
        values = self.values(plugin, variant)
        check(candidate.prepare(ctypes.byref(op), plugin.device, values, ctypes.byref(self.plan), ctypes.byref(self.needs),
                                ctypes.byref(why)), why, f"preparing {variant}")
        self.workspace = torch.empty(max(1, self.needs.workspace_bytes), device="cuda", dtype=torch.uint8)

    def values(self, plugin, variant):
        """The numbers behind "engine=0,form=packed"."""
        why, domain, values = Why(), Domain(), (c_int64 * MAX_PARAMETERS)()
        said = dict(word.split("=", 1) for word in variant.split(",") if word)
        if not said:
            return values
        check(self.candidate.domain(ctypes.byref(self.op), plugin.device, 1, ctypes.byref(domain), ctypes.byref(why)), why,
              "its variants")
        for place, parameter in enumerate(domain.parameters[:domain.count]):
            texts = [parameter.labels[k].decode() if parameter.labels else str(parameter.values[k])
                     for k in range(parameter.count)]
            values[place] = parameter.values[texts.index(said[parameter.name.decode()])]
        return values

    def pack(self, weight):
        if weight.data_ptr() not in self.packed:
            why = Why()
            packed = torch.empty(self.needs.pack_bytes, device="cuda", dtype=torch.uint8)
            check(self.candidate.pack(self.plan, weight.data_ptr(), packed.data_ptr(),
                                      torch.cuda.current_stream().cuda_stream, ctypes.byref(why)), why, "packing")
            torch.cuda.synchronize()
            self.packed[weight.data_ptr()] = packed
        return self.packed[weight.data_ptr()]

    def launch(self, *tensors):
        given, why = list(tensors), Why()
        if self.needs.packs:
            given[self.needs.packs - 1] = self.pack(given[self.needs.packs - 1])
        pointers = (c_void_p * len(given))(*[tensor.data_ptr() for tensor in given])
        args = Args(size=ctypes.sizeof(Args), tensors=pointers, workspace=self.workspace.data_ptr(),
                    stream=torch.cuda.current_stream().cuda_stream)
        check(self.candidate.launch(self.plan, ctypes.byref(args), ctypes.byref(why)), why, "launching")

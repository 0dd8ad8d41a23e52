"""libscout_run: the functions and structures of runtime/scout_run.h, and nothing else."""
from __future__ import annotations

import ctypes as c
import functools
from typing import Any, Dict, List, Tuple

from ._places import declared, library

SONAME = "libscout_run.so.1"
OK, INVALID, UNSUPPORTED, NO_DEVICE, NO_MEMORY, FAILED, LOST = range(7)
RANK = 8
# Numbered as in ONNX.
TYPES = {"fp32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "fp16": 10,
         "fp64": 11, "uint32": 12, "uint64": 13, "bf16": 16, "fp8e4m3fn": 17, "fp8e5m2": 19}


class Error(c.Structure):
    _fields_ = [("status", c.c_int32), ("text", c.c_char * 508)]


class Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("type", c.c_int32), ("rank", c.c_int32), ("dims", c.c_int64 * RANK),
                ("strides", c.c_int64 * RANK)]


Say = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p)


class Options(c.Structure):
    _fields_ = [("size", c.c_uint32), ("near_shapes", c.c_uint32), ("table", c.c_char_p), ("device", c.c_char_p),
                ("library_path", c.c_char_p), ("workspace_bytes", c.c_uint64), ("say", Say), ("context", c.c_void_p),
                ("tune_ms", c.c_uint32), ("reserved", c.c_uint32), ("cache_dir", c.c_char_p),
                ("signers", c.c_char_p)]


class Counts(c.Structure):
    _fields_ = [("listed", c.c_uint64), ("unlisted", c.c_uint64), ("refused", c.c_uint64), ("unpacked", c.c_uint64)]


class GemmMore(c.Structure):
    _fields_ = [("size", c.c_uint32), ("weight", c.c_int32), ("tf32", c.c_int32), ("reserved", c.c_int32),
                ("activation", c.c_char_p), ("bias", c.POINTER(Tensor)), ("residual", c.POINTER(Tensor)),
                ("scales", c.POINTER(Tensor)), ("packed", c.c_void_p)]


class AttentionMore(c.Structure):
    _fields_ = [("size", c.c_uint32), ("causal", c.c_int32), ("past", c.c_int64), ("window", c.c_int64),
                ("scale", c.c_double), ("softcap", c.c_double), ("has_past", c.c_int32), ("reserved", c.c_int32),
                ("mask", c.POINTER(Tensor)), ("lengths", c.POINTER(Tensor))]


class OpInfo(c.Structure):
    _fields_ = [("size", c.c_uint32), ("listed", c.c_int32), ("key", c.c_char_p), ("implementation", c.c_char_p),
                ("variant", c.c_char_p), ("note", c.c_char_p), ("tensor_count", c.c_int32), ("packs", c.c_int32),
                ("pack_bytes", c.c_uint64), ("workspace_bytes", c.c_uint64), ("expected_us", c.c_double),
                ("default_us", c.c_double)]


class PlanInfo(c.Structure):
    _fields_ = [("size", c.c_uint32), ("use", c.c_int32), ("name", c.c_char_p), ("tensor", Tensor)]


_handle, _tensor, _error = c.c_void_p, c.POINTER(Tensor), c.POINTER(Error)
_FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {
    "run_open": (c.c_int32, [c.POINTER(_handle), c.POINTER(Options), _error]),
    "run_close": (None, [_handle]),
    "run_device": (c.c_char_p, [_handle]),
    "run_has_table": (c.c_int32, [_handle]),
    "run_table_note": (c.c_char_p, [_handle]),
    "run_count": (None, [_handle, c.POINTER(Counts)]),
    "run_gemm": (c.c_int32, [_handle, _tensor, _tensor, _tensor, c.POINTER(GemmMore), c.c_void_p, _error]),
    "run_attention": (c.c_int32, [_handle, _tensor, _tensor, _tensor, _tensor, c.POINTER(AttentionMore), c.c_void_p,
                                  _error]),
    "pack_weight_gemm": (c.c_int32, [_handle, _tensor, _tensor, _tensor, c.POINTER(GemmMore), c.POINTER(_handle), _error]),
    "run_weight_bytes": (c.c_uint64, [_handle]),
    "run_weight_free": (None, [_handle]),
    "run_find": (c.c_int32, [_handle, c.c_char_p, c.POINTER(_handle), _error]),
    "run_op_describe": (None, [_handle, c.POINTER(OpInfo)]),
    "run_plan_open": (c.c_int32, [_handle, c.c_char_p, c.POINTER(_handle), _error]),
    "run_plan_close": (None, [_handle]),
    "run_plan_count": (c.c_int32, [_handle]),
    "run_plan_tensor": (c.c_int32, [_handle, c.c_int32, c.POINTER(PlanInfo), _error]),
    "run_plan_bind": (c.c_int32, [_handle, c.c_char_p, _tensor, _error]),
    "run_plan_launch": (c.c_int32, [_handle, c.c_void_p, _error]),
}


@functools.lru_cache(maxsize=None)
def functions() -> Dict[str, Any]:
    """The library's functions, without their prefix. It is loaded at the first call."""
    return declared(library(SONAME), "scout_", _FUNCTIONS)

"""libscout_dispatch: the functions and structures of dispatch/scout_dispatch.h, and nothing else."""
from __future__ import annotations

import ctypes as c
import functools
from typing import Any, Dict, List, Tuple

from ._places import declared, library

SONAME = "libscout_dispatch.so.1"
OK, WARNED, REFUSED, BAD, FAILED, BUSY, UNSIGNED = range(7)
KEY_ROOM = 1024


class Note(c.Structure):
    _fields_ = [("text", c.c_char * 640)]


class Library(c.Structure):
    _fields_ = [("name", c.c_char_p), ("version", c.c_char_p)]


class Device(c.Structure):
    _fields_ = [("name", c.c_char_p), ("capability", c.c_char_p), ("driver", c.c_char_p), ("units", c.c_int64),
                ("memory_mib", c.c_int64), ("power_limit_w", c.c_int64), ("libraries", c.POINTER(Library)),
                ("library_count", c.c_int)]


class Field(c.Structure):
    _fields_ = [("name", c.c_char_p), ("text", c.c_char_p), ("numbers", c.POINTER(c.c_int64)), ("count", c.c_int),
                ("number", c.c_int64)]


class Op(c.Structure):
    _fields_ = [("kind", c.c_char_p), ("what", c.c_char_p), ("shape", c.POINTER(c.c_int64)), ("rank", c.c_int),
                ("layout", c.c_char_p), ("mask", c.c_char_p), ("type", c.c_char_p), ("weight_type", c.c_char_p),
                ("out_type", c.c_char_p), ("weight_side", c.c_char_p), ("fields", c.POINTER(Field)),
                ("field_count", c.c_int)]


class Entry(c.Structure):
    _fields_ = [("key", c.c_char_p), ("operation", c.c_char_p), ("choice", c.c_int), ("implementation", c.c_char_p),
                ("variant", c.c_char_p), ("library", c.c_char_p), ("version", c.c_char_p), ("algo", c.c_void_p),
                ("algo_bytes", c.c_uint32), ("config", c.c_char_p), ("packing", c.c_char_p), ("pack_us", c.c_double),
                ("pack_bytes", c.c_int64), ("workspace_bytes", c.c_int64), ("expected_us", c.c_double),
                ("expected_ci", c.c_double), ("default_us", c.c_double), ("default_ci", c.c_double),
                ("ratio", c.c_double), ("ratio_ci", c.c_double), ("batches", c.c_int64), ("launches", c.c_int64)]


class View(c.Structure):
    _fields_ = [("index", c.c_void_p), ("holds", c.c_void_p)]


class Ends(c.Structure):
    _fields_ = [("lower", c.POINTER(Entry)), ("upper", c.POINTER(Entry))]


_handle, _note, _view, _entry = c.c_void_p, c.POINTER(Note), c.POINTER(View), c.POINTER(Entry)
_FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {
    "open": (c.c_int, [c.POINTER(_handle), c.c_char_p, c.POINTER(Device), _note]),
    "open_signed": (c.c_int, [c.POINTER(_handle), c.c_char_p, c.c_char_p, c.POINTER(Device), _note]),
    "close": (None, [_handle]),
    "reload": (c.c_int, [_handle, c.c_char_p, _note]),
    "begin": (View, [_handle]),
    "end": (None, [_view]),
    "find_text": (_entry, [_view, c.c_char_p]),
    "near_text": (c.c_int, [_view, c.c_char_p, c.POINTER(Ends)]),
    "op_text": (c.c_size_t, [c.POINTER(Op), c.c_char_p, c.c_size_t]),
    "count": (c.c_size_t, [_view]),
    "at": (_entry, [_view, c.c_size_t]),
    "class": (c.c_char_p, [_view]),
}


@functools.lru_cache(maxsize=None)
def functions() -> Dict[str, Any]:
    """The library's functions, without their prefix. It is loaded at the first call."""
    return declared(library(SONAME), "scout_dispatch_", _FUNCTIONS)

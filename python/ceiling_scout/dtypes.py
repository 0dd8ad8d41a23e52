"""Names of data types: those of Ceiling Scout, and what NumPy, PyTorch and DLPack call the same."""
from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional, Tuple


class Type(NamedTuple):
    name: str  # in keys, reports and tables
    bits: int
    typestr: Optional[str]  # of __array_interface__, without the byte order
    dlpack: Optional[Tuple[int, int]]  # code and bits
    others: Tuple[str, ...] = ()  # of NumPy, PyTorch, ml_dtypes


TYPES = (
    Type("fp32", 32, "f4", (2, 32), ("float32", "float")),
    Type("fp16", 16, "f2", (2, 16), ("float16", "half")),
    Type("bf16", 16, None, (4, 16), ("bfloat16",)),
    Type("fp64", 64, "f8", (2, 64), ("float64", "double")),
    Type("int8", 8, "i1", (0, 8)),
    Type("uint8", 8, "u1", (1, 8)),
    Type("int16", 16, "i2", (0, 16), ("short",)),
    Type("uint16", 16, "u2", (1, 16)),
    Type("int32", 32, "i4", (0, 32), ("int",)),
    Type("uint32", 32, "u4", (1, 32)),
    Type("int64", 64, "i8", (0, 64), ("long",)),
    Type("uint64", 64, "u8", (1, 64)),
    Type("bool", 8, "b1", (6, 8)),
    Type("fp8e4m3fn", 8, None, (10, 8), ("float8_e4m3fn",)),
    Type("fp8e4m3fnuz", 8, None, (11, 8), ("float8_e4m3fnuz",)),
    Type("fp8e5m2", 8, None, (12, 8), ("float8_e5m2",)),
    Type("fp8e5m2fnuz", 8, None, (13, 8), ("float8_e5m2fnuz",)),
)

_BY_NAME: Dict[str, Type] = {name: t for t in TYPES for name in (t.name, *t.others)}
_BY_TYPESTR = {t.typestr: t for t in TYPES if t.typestr}
_BY_DLPACK = {t.dlpack: t for t in TYPES if t.dlpack}


def name_of(dtype: Any) -> str:
    """The name of a type: "fp16" of "fp16", "float16", numpy.float16, numpy.dtype("float16") or torch.float16. A text that
    is none of these stays as it is: tables know types that no array has (int4)."""
    if isinstance(dtype, str):
        found = _BY_NAME.get(dtype)
        return found.name if found else dtype
    text = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    found = _BY_NAME.get(str(text).rpartition(".")[2])
    if not found:
        raise TypeError(f"a data type was expected, such as \"fp16\", numpy.float16 or torch.float16, not {dtype!r}")
    return found.name


def of_typestr(typestr: str) -> Optional[Type]:
    return _BY_TYPESTR.get(typestr)


def of_dlpack(code: int, bits: int) -> Optional[Type]:
    return _BY_DLPACK.get((code, bits))


def of_name(name: str) -> Optional[Type]:
    return _BY_NAME.get(name)

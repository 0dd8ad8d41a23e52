"""Other people's arrays as they lie in memory, without a copy: PyTorch's tensors, __cuda_array_interface__,
__array_interface__ (NumPy), DLPack, and the buffer protocol."""
from __future__ import annotations

import ctypes as c
import math
import struct
import sys
from dataclasses import dataclass
from typing import Any, Callable, Optional, Sequence, Tuple

from . import dtypes

MOST_DIMENSIONS = 8


@dataclass(frozen=True)
class View:
    """Memory of an array. `owner` keeps it; strides count elements."""

    pointer: int
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    dtype: str
    device: str  # "cpu", "cuda:0"
    readonly: bool
    owner: Any

    @property
    def itemsize(self) -> int:
        return _type(self.dtype).bits // 8

    @property
    def contiguous(self) -> bool:
        """Whether it lies densely, rows last."""
        return 0 in self.shape or all(n == 1 or s == d for n, s, d in zip(self.shape, self.strides, dense(self.shape)))

    @property
    def extent(self) -> Tuple[int, int]:
        """First byte, and the one behind the last."""
        if 0 in self.shape:
            return self.pointer, self.pointer
        steps = [(n - 1) * s for n, s in zip(self.shape, self.strides)]
        low, high = sum(s for s in steps if s < 0), sum(s for s in steps if s > 0)
        return self.pointer + low * self.itemsize, self.pointer + (high + 1) * self.itemsize

    def __str__(self) -> str:
        return f"{self.dtype} {list(self.shape)} on {self.device}"


def _type(name: str) -> dtypes.Type:
    found = dtypes.of_name(name)
    assert found is not None
    return found


def dense(shape: Sequence[int]) -> Tuple[int, ...]:
    """Strides of what lies densely, rows last."""
    return tuple(math.prod(shape[k + 1:]) for k in range(len(shape)))


def size_of(name: str) -> int:
    """Bytes of a number."""
    return _type(name).bits // 8


def _named(dtype: Any, what: str) -> str:
    name = dtypes.name_of(dtype)
    if dtypes.of_name(name) is None:
        raise TypeError(f"{what}: a type of these was expected: {', '.join(t.name for t in dtypes.TYPES)}; not {dtype}")
    return name


# ---- each way in ----

def _of_torch(array: Any, what: str) -> View:
    import torch

    if array.layout != torch.strided or array.is_quantized:
        raise TypeError(f"{what}: a dense tensor was expected, not one of layout {array.layout}; say .to_dense()")
    if array.device.type not in ("cpu", "cuda"):
        raise TypeError(f"{what}: a tensor on the CPU or a CUDA device was expected, not on {array.device}")
    if array.is_conj() or array.is_neg():
        raise TypeError(f"{what}: a tensor without a pending conjugation or negation was expected; say .resolve_conj()")
    device = "cpu" if array.device.type == "cpu" else f"cuda:{array.device.index or 0}"
    return View(array.data_ptr(), tuple(array.shape), tuple(array.stride()), _named(array.dtype, what), device, False, array)


def _of_interface(array: Any, what: str, about: Any, device: str) -> View:
    if about.get("mask") is not None:
        raise TypeError(f"{what}: an array without a mask was expected")
    typestr, shape = about["typestr"], tuple(int(n) for n in about["shape"])
    found = dtypes.of_typestr(typestr[1:])
    if found and int(typestr[2:]) > 1 and typestr[0] != ("<" if sys.byteorder == "little" else ">"):
        raise TypeError(f"{what}: numbers in this machine's byte order were expected, not {typestr}; say .astype(...)")
    name = found.name if found else _named(getattr(array, "dtype", typestr), what)
    size, strides = _type(name).bits // 8, about.get("strides")
    if strides is not None and any(s % size for s in strides):
        raise ValueError(f"{what}: strides of whole elements were expected, not {tuple(strides)} bytes; make a copy first")
    steps = dense(shape) if strides is None else tuple(int(s) // size for s in strides)
    data = about.get("data")
    if data is None:
        raise TypeError(f"{what}: an array that tells its address was expected")
    return View(int(data[0] or 0), shape, steps, name, device, bool(data[1]), array)


class _Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("device_type", c.c_int32), ("device_id", c.c_int32), ("ndim", c.c_int32),
                ("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16), ("shape", c.POINTER(c.c_int64)),
                ("strides", c.POINTER(c.c_int64)), ("byte_offset", c.c_uint64)]


_pointer_of = c.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = c.c_void_p, [c.py_object, c.c_char_p]
_CPU, _CUDA, _CUDA_HOST = 1, 2, 3


def _of_dlpack(array: Any, what: str) -> View:
    capsule = array.__dlpack__()  # not taken: while it is kept, so is the memory
    tensor = c.cast(_pointer_of(capsule, b"dltensor"), c.POINTER(_Tensor)).contents
    if tensor.device_type not in (_CPU, _CUDA, _CUDA_HOST):
        raise TypeError(f"{what}: memory of the CPU or a CUDA device was expected, not of DLPack device {tensor.device_type}")
    found = dtypes.of_dlpack(tensor.code, tensor.bits)
    if found is None or tensor.lanes != 1:
        raise TypeError(f"{what}: a plain data type was expected, not DLPack's code {tensor.code} of {tensor.bits} bits in "
                        f"{tensor.lanes} lanes")
    shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides and tensor.ndim else dense(shape)
    device = f"cuda:{tensor.device_id}" if tensor.device_type == _CUDA else "cpu"
    return View((tensor.data or 0) + tensor.byte_offset, shape, strides, found.name, device, False, (array, capsule))


class _Buffer(c.Structure):
    _fields_ = [("buf", c.c_void_p), ("obj", c.py_object), ("len", c.c_ssize_t), ("itemsize", c.c_ssize_t),
                ("readonly", c.c_int), ("ndim", c.c_int), ("format", c.c_char_p), ("shape", c.c_void_p),
                ("strides", c.c_void_p), ("suboffsets", c.c_void_p), ("internal", c.c_void_p)]


_get_buffer, _release_buffer = c.pythonapi.PyObject_GetBuffer, c.pythonapi.PyBuffer_Release
_get_buffer.argtypes, _release_buffer.argtypes = [c.py_object, c.POINTER(_Buffer), c.c_int], [c.POINTER(_Buffer)]
_FORMATS = {"f": "f4", "d": "f8", "e": "f2", "?": "b1", "b": "i1", "B": "u1", "c": "u1"}
_FORMATS.update({code: f"{'u' if code.isupper() else 'i'}{struct.calcsize(code)}" for code in "hHiIlLqQnN"})


def _of_buffer(array: Any, what: str) -> View:
    memory = memoryview(array)
    code = memory.format
    code = code[1:] if code[:1] in ("@", "=") else code
    if code[:1] in ("<", ">") and (code[0] == "<") == (sys.byteorder == "little"):
        code = code[1:]
    found = dtypes.of_typestr(_FORMATS.get(code, ""))
    size = memory.itemsize
    if found is None or found.bits != 8 * size:
        raise TypeError(f"{what}: numbers were expected, not a buffer of format {memory.format!r}")
    if memory.suboffsets:
        raise TypeError(f"{what}: one piece of memory was expected, not a buffer with suboffsets")
    raw = _Buffer()
    _get_buffer(memory, c.byref(raw), 0x18)  # PyBUF_STRIDES; the memoryview, which is kept, holds the memory
    pointer = int(raw.buf or 0)
    _release_buffer(c.byref(raw))
    strides = memory.strides or ()
    if any(s % size for s in strides):
        raise ValueError(f"{what}: strides of whole elements were expected, not {strides} bytes; make a copy first")
    return View(pointer, tuple(memory.shape or ()), tuple(s // size for s in strides), found.name, "cpu", memory.readonly,
                memory)


def view(array: Any, what: str = "the array") -> View:
    """How an array lies in memory. `what` stands in the text of the exception where it is none."""
    if isinstance(array, View):
        return array
    if _root(array) == "torch" and hasattr(array, "data_ptr"):
        found = _of_torch(array, what)
    elif hasattr(array, "__cuda_array_interface__"):
        number = int(getattr(getattr(array, "device", None), "id", 0) or 0)
        found = _of_interface(array, what, array.__cuda_array_interface__, f"cuda:{number}")
    elif hasattr(array, "__array_interface__"):
        found = _of_interface(array, what, array.__array_interface__, "cpu")
    elif hasattr(array, "__dlpack__"):
        found = _of_dlpack(array, what)
    else:
        try:
            memoryview(array)
        except TypeError:
            raise TypeError(f"{what}: an array was expected (NumPy's, PyTorch's, or any with the buffer protocol, DLPack or "
                            f"__cuda_array_interface__), not {type(array).__name__}") from None
        found = _of_buffer(array, what)
    if len(found.shape) > MOST_DIMENSIONS:
        raise ValueError(f"{what}: at most {MOST_DIMENSIONS} dimensions were expected, not {len(found.shape)}")
    if found.pointer % found.itemsize:
        raise ValueError(f"{what}: data at a multiple of {found.itemsize} bytes was expected, not at {found.pointer:#x}; "
                         "make a copy first")
    return found


def _root(array: Any) -> str:
    return type(array).__module__.partition(".")[0]


# ---- new arrays, of the sort that the caller has ----

def _torch_empty(like: Any, shape: Tuple[int, ...], dtype: str) -> Any:
    import torch

    name = next(n for n in (dtype, *_type(dtype).others) if isinstance(getattr(torch, n, None), torch.dtype))
    return torch.empty(shape, dtype=getattr(torch, name), device=like.device)


def _module_empty(like: Any, shape: Tuple[int, ...], dtype: str) -> Any:
    module = sys.modules[_root(like)]
    return module.empty(shape, dtype=like.dtype if _named(like.dtype, "") == dtype else _type(dtype).typestr)


def _memory_empty(like: Any, shape: Tuple[int, ...], dtype: str) -> Any:
    code = next((k for k, v in _FORMATS.items() if v == _type(dtype).typestr), "none")
    size, room = math.prod(shape) * _type(dtype).bits // 8, 64
    memory = bytearray(size + room)
    first = -c.addressof(c.c_char.from_buffer(memory)) % room
    try:
        return memoryview(memory)[first:first + size].cast(code, shape or (1,))  # type: ignore[call-overload]
    except (TypeError, ValueError):  # bf16; before Python 3.12 also fp16
        raise TypeError(f"a place for the result was expected (out=…): a plain buffer cannot be {dtype} "
                        f"{list(shape)}") from None


_EMPTY: "dict[str, Callable[[Any, Tuple[int, ...], str], Any]]" = {
    "torch": _torch_empty, "numpy": _module_empty, "cupy": _module_empty}


def empty(like: Any, shape: Sequence[int], dtype: str, device: str) -> Any:
    """A new array of the sort of `like`, on its device."""
    make = _EMPTY.get(_root(like))
    if make is None and device != "cpu":
        raise TypeError(f"a place for the result on {device} was expected (out=…): {type(like).__name__} is not known to "
                        "make one there")
    return (make or _memory_empty)(like, tuple(shape), dtype)


def bytes_of(found: View, what: str) -> "memoryview[int]":
    """The bytes of an array in this machine's memory that lies densely, without a copy."""
    if found.device != "cpu":
        raise TypeError(f"{what}: an array in the CPU's memory was expected, not on {found.device}; say .cpu() or .get()")
    if not found.contiguous:
        raise ValueError(f"{what}: a dense array, rows last, was expected, not strides of {found.strides} elements for "
                         f"{list(found.shape)}; make a contiguous copy first")
    size = math.prod(found.shape) * found.itemsize
    if size == 0:
        return memoryview(b"")
    return memoryview((c.c_ubyte * size).from_address(found.pointer)).cast("B")


def stored(array: Any, what: str) -> View:
    """A matrix as it is stored, in the CPU's memory: of the transposed view of a dense one that one. From a device it is
    copied, all else is not."""
    found = view(array, what)
    if found.device != "cpu":
        away = next((getattr(array, name) for name in ("cpu", "get") if hasattr(array, name)), None)
        if away is None:
            raise TypeError(f"{what}: an array that can be copied to the CPU was expected (.cpu() or .get()), not {found}")
        found = view(away(), what)
    turned = View(found.pointer, found.shape[::-1], found.strides[::-1], found.dtype, found.device, found.readonly,
                  found.owner)
    if not found.contiguous and turned.contiguous:
        return turned
    bytes_of(found, what)  # says where it is neither
    return found


def stream_of(found: View, what: Optional[Any]) -> Optional[int]:
    """The CUDA stream to launch on: what the caller says, else PyTorch's current one where it is loaded."""
    if what is not None:
        return int(getattr(what, "cuda_stream", getattr(what, "ptr", what)))
    torch = sys.modules.get("torch")
    if found.device == "cpu" or torch is None:
        return None
    return stream_on(torch.device(found.device))


def stream_on(device: Any) -> Optional[int]:
    """PyTorch's current stream on a device of its own; None: a CPU."""
    return None if device.type == "cpu" else int(sys.modules["torch"].cuda.current_stream(device).cuda_stream)

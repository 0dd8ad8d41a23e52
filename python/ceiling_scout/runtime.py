"""Runs what a dispatch table names, on the caller's memory, by libscout_run."""
from __future__ import annotations

import ctypes as ct
import logging
import os
import threading
import weakref
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, NoReturn, Optional, Sequence, Tuple, Union

from . import _places, arrays
from . import _run as c
from .arrays import View, view
from .errors import ScoutError, Unsupported
from .sparsity import Sparsity, detect_sparsity
from .table import key_of

Path = Union[str, "os.PathLike[str]"]
TABLE = "CEILING_SCOUT_TABLE"
log = logging.getLogger("ceiling_scout")


def _raise(error: Any) -> NoReturn:
    text = error.text.decode("utf-8", "replace")
    if error.status == c.NO_MEMORY:
        raise MemoryError(text)
    raise {c.INVALID: ValueError, c.UNSUPPORTED: Unsupported}.get(error.status, ScoutError)(text)


def _check(status: int, error: Any) -> None:
    if status != c.OK:
        _raise(error)


def _tensor(of: View, what: str) -> Any:
    number = c.TYPES.get(of.dtype)
    if number is None:
        raise TypeError(f"{what}: one of {', '.join(c.TYPES)} was expected, not {of.dtype}")
    t = c.Tensor(of.pointer, number, len(of.shape))
    t.dims[: len(of.shape)], t.strides[: len(of.shape)] = of.shape, of.strides
    return t


def _optional(of: Optional[View], what: str) -> Any:
    return None if of is None else ct.pointer(_tensor(of, what))


def _views(device: str, given: Mapping[str, Any]) -> Dict[str, Optional[View]]:
    """All on one device, and without a gradient that would be lost."""
    found: Dict[str, Optional[View]] = {}
    for what, array in given.items():
        found[what] = one = None if array is None else view(array, what)
        if one is not None and one.device != device:
            raise TypeError(f"{what}: an array on {device} was expected, where the runner is, not on {one.device}")
        if getattr(array, "requires_grad", False) and _records():
            raise TypeError(f"{what}: a tensor without a gradient was expected: nothing here is differentiated; run it under "
                            "torch.no_grad(), or .detach() it")
    return found


def _records() -> bool:
    import torch  # type: ignore[import-not-found,unused-ignore]

    return bool(torch.is_grad_enabled())


def _out(like: Any, out: Any, shape: Sequence[int], dtype: str, device: str) -> Tuple[Any, View]:
    made = arrays.empty(like, shape, dtype, device) if out is None else out
    place = view(made, "out")
    if place.readonly:
        raise ValueError("out: an array that can be written was expected")
    if place.shape != tuple(shape) or place.device != device or place.dtype != dtype:
        raise ValueError(f"out: {dtype} {list(shape)} on {device} was expected, not {place}")
    return made, place


@dataclass(frozen=True)
class Counts:
    """Launches since the runner was opened. All but `listed` ran the library's default in its place."""

    listed: int  # ran what the table says, which may be the default
    unlisted: int  # the table does not have the operation, or there is no table
    refused: int  # the table's choice could not be made here
    unpacked: int  # the table's choice wants a packed weight, and got a plain one


@dataclass(frozen=True)
class Choice:
    """What runs an operation."""

    key: str
    listed: bool  # the table has it, and its choice runs
    implementation: str
    variant: str
    note: str  # why the default runs; "" where the table's choice does
    packs: bool  # the weight is rearranged once
    workspace_bytes: int


class Runner:
    """A device with a table. Any thread may launch at any time. A table that cannot be used is no error: `note` says why,
    and all operations run the library's default."""

    def __init__(self, device: str = "cpu", table: Optional[Path] = None, *, near: bool = False,
                 workspace_bytes: int = 0) -> None:
        self.device = "cuda:0" if device == "cuda" else device
        self._say = c.Say(lambda _, line: log.warning("%s", line.decode("utf-8", "replace")))
        self._handle = ct.c_void_p()
        self._ops: Dict[str, Any] = {}
        options = c.Options(ct.sizeof(c.Options), int(near), None if table is None else os.fsencode(table),
                            self.device.encode(), os.fsencode(_places.library_path()), workspace_bytes, self._say, None)
        error = c.Error()
        _check(c.functions()["run_open"](ct.byref(self._handle), ct.byref(options), ct.byref(error)), error)

    @property
    def name(self) -> str:
        """Of the device: "NVIDIA H200"."""
        return str(c.functions()["run_device"](self._open()).decode("utf-8", "replace"))

    @property
    def has_table(self) -> bool:
        return bool(c.functions()["run_has_table"](self._open()))

    @property
    def note(self) -> str:
        """Why no table is used; "" where one is."""
        return str(c.functions()["run_table_note"](self._open()).decode("utf-8", "replace"))

    @property
    def counts(self) -> Counts:
        found = c.Counts()
        c.functions()["run_count"](self._open(), ct.byref(found))
        return Counts(found.listed, found.unlisted, found.refused, found.unpacked)

    def _open(self) -> Any:
        if not self._handle:
            raise ValueError("this runner was closed")
        return self._handle

    def close(self) -> None:
        """When no launch is under way. Packed weights are of no use afterwards."""
        handle, self._handle = self._handle, ct.c_void_p()
        self._ops.clear()
        c.functions()["run_close"](handle)

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    # ---- operations by their tensors ----

    def matmul(self, a: Any, b: Any, *, out: Any = None, bias: Any = None, residual: Any = None,
               activation: Optional[str] = None, weight: bool = True, tf32: bool = False,
               packed: "Optional[Packed]" = None, stream: Any = None) -> Any:
        """activation(a @ b + bias + residual). a is [M, K] and b [K, N], either of which may be transposed, and both may
        have a dimension of products before these. b counts as a constant weight, as it does in most tables
        (weight=False: it does not); `packed` is what pack() made of it. Without `out` the result is of the sort of a."""
        v = _views(self.device, {"a": a, "b": b, "bias": bias, "residual": residual})
        shape = _product(v["a"], v["b"])
        left = v["a"]
        assert left is not None
        result, place = _out(a, out, shape, left.dtype, self.device)
        more, kept = self._gemm(v, place, activation, weight, tf32, packed)
        error = c.Error()
        _check(c.functions()["run_gemm"](self._open(), *kept[:3], ct.byref(more), arrays.stream_of(left, stream),
                                         ct.byref(error)), error)
        return result

    def _gemm(self, v: Mapping[str, Optional[View]], out: Optional[View], activation: Optional[str], weight: bool,
              tf32: bool, packed: "Optional[Packed]") -> Tuple[Any, List[Any]]:
        a, b = v["a"], v["b"]
        assert a is not None and b is not None
        if a.dtype != b.dtype:
            raise TypeError(f"b: an array of a's type, {a.dtype}, was expected, not {b.dtype}")
        tensors = [ct.byref(_tensor(a, "a")), ct.byref(_tensor(b, "b")), None if out is None else ct.byref(_tensor(out, "out"))]
        if packed is not None:
            packed.check(self, b)
        more = c.GemmMore(ct.sizeof(c.GemmMore), ord("b") if weight else 0, int(tf32), 0,
                          None if activation is None else activation.encode(), _optional(v.get("bias"), "bias"),
                          _optional(v.get("residual"), "residual"), None, None if packed is None else packed.handle)
        return more, tensors

    def pack(self, a: Any, b: Any, *, bias: Any = None, residual: Any = None, activation: Optional[str] = None,
             tf32: bool = False) -> "Optional[Packed]":
        """b as what runs this product wants it, told as for matmul, and for as many rows. None: it is taken as it is."""
        v = _views(self.device, {"a": a, "b": b, "bias": bias, "residual": residual})
        shape, left, right = _product(v["a"], v["b"]), v["a"], v["b"]
        assert left is not None and right is not None
        out = View(0, shape, arrays.dense(shape), left.dtype, self.device, False, None)
        more, kept = self._gemm(v, out, activation, True, tf32, None)
        handle, error = ct.c_void_p(), c.Error()
        status = c.functions()["pack_weight_gemm"](self._open(), *kept[:3], ct.byref(more), ct.byref(handle), ct.byref(error))
        if status == c.UNSUPPORTED:
            return None
        _check(status, error)
        return Packed(self, handle, right)

    def attention(self, q: Any, k: Any, v: Any, *, causal: bool = False, mask: Any = None, scale: float = 0.0,
                  window: int = 0, past: Optional[int] = None, softcap: float = 0.0, lengths: Any = None, out: Any = None,
                  stream: Any = None) -> Any:
        """softmax(scale q k^T + mask) v of [sequences, heads, rows, size of a head]. k and v may have fewer heads. A causal
        one lets query i see the keys up to i + past, which is how many more keys than queries there are unless it is told.
        The mask is added; scale 0 is 1 / sqrt(size of a head)."""
        found = _views(self.device, {"q": q, "k": k, "v": v, "mask": mask, "lengths": lengths})
        of_q, of_k, of_v = (found[name] for name in "qkv")
        assert of_q is not None and of_k is not None and of_v is not None
        for what, one in (("q", of_q), ("k", of_k), ("v", of_v)):
            if len(one.shape) != 4:
                raise ValueError(f"{what}: [sequences, heads, rows, size of a head] was expected, not {one}")
            if one.dtype != of_q.dtype:
                raise TypeError(f"{what}: an array of q's type, {of_q.dtype}, was expected, not {one.dtype}")
        result, place = _out(q, out, (*of_q.shape[:3], of_v.shape[3]), of_q.dtype, self.device)
        more = c.AttentionMore(ct.sizeof(c.AttentionMore), int(causal), past or 0, window, scale, softcap,
                               int(past is not None), 0, _optional(found["mask"], "mask"),
                               _optional(found["lengths"], "lengths"))
        error = c.Error()
        tensors = [ct.byref(_tensor(one, what)) for what, one in (("q", of_q), ("k", of_k), ("v", of_v), ("out", place))]
        _check(c.functions()["run_attention"](self._open(), *tensors, ct.byref(more), arrays.stream_of(of_q, stream),
                                              ct.byref(error)), error)
        return result

    # ---- operations by their key ----

    def _find(self, key: str) -> Any:
        op = self._ops.get(key)
        if op is None:
            op, error = ct.c_void_p(), c.Error()
            _check(c.functions()["run_find"](self._open(), key.encode(), ct.byref(op), ct.byref(error)), error)
            self._ops[key] = op
        return op

    def choice(self, key: str) -> Choice:
        """What runs the operation of this key (key_of makes one) here."""
        info = c.OpInfo(ct.sizeof(c.OpInfo))
        c.functions()["run_op_describe"](self._find(key), ct.byref(info))
        return Choice(key, bool(info.listed), info.implementation.decode(), info.variant.decode(),
                      info.note.decode("utf-8", "replace"), info.packs >= 0, info.workspace_bytes)

    def _tensor_names(self, op: Any, count: int) -> List[str]:
        names, error = [], c.Error()
        for k in range(count):
            info = c.TensorInfo(ct.sizeof(c.TensorInfo))
            _check(c.functions()["run_op_tensor"](op, k, ct.byref(info), ct.byref(error)), error)
            names.append(info.name.decode())
        return names


def _product(a: Optional[View], b: Optional[View]) -> Tuple[int, ...]:
    """The shape of a @ b."""
    assert a is not None and b is not None
    for what, one in (("a", a), ("b", b)):
        if len(one.shape) not in (2, 3):
            raise ValueError(f"{what}: a matrix, or one dimension of matrices, was expected, not {one}")
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"b: {a.shape[-1]} rows were expected, as many as a has columns, not {b}")
    batches = {one.shape[0] for one in (a, b) if len(one.shape) == 3}
    if len(batches - {1}) > 1:
        raise ValueError(f"as many products in b as in a were expected, or one, not {a} and {b}")
    return (*([max(batches)] if batches else []), a.shape[-2], b.shape[-1])


class Packed:
    """A constant weight, rearranged for what runs it. It belongs to one product with as many rows as it was packed for."""

    def __init__(self, runner: Runner, handle: Any, of: View) -> None:
        self.runner, self.handle = runner, handle
        self._of = (of.shape, of.dtype)
        self.bytes: int = c.functions()["run_weight_bytes"](handle)
        self._free = weakref.finalize(self, _free_weight, runner, handle)

    def check(self, runner: Runner, b: View) -> None:
        if runner is not self.runner or (b.shape, b.dtype) != self._of:
            raise ValueError(f"packed: a weight that this runner packed of {b} was expected")


def _free_weight(runner: Runner, handle: Any) -> None:
    if runner._handle:  # else it went with the runner's device
        c.functions()["run_weight_free"](handle)


# ---- the runners that functions of this module use ----

_lock = threading.Lock()
_runners: Dict[str, Runner] = {}
_settings: Dict[str, Any] = {"table": None, "near": False}


def use(table: Optional[Path], *, near: bool = False) -> None:
    """Has matmul, attention, SparseWeight and the operators of PyTorch run by this table from now on; None: by the
    library's defaults. With `near` also sizes that lie in a proven range. $CEILING_SCOUT_TABLE names the first one."""
    with _lock:
        _settings.update(table=None if table is None else os.fspath(table), near=near, said=True)
        _runners.clear()  # those in use stay until they are not


def runner_of(device: str) -> Runner:
    """The runner of a device, with the table that use() named."""
    found = _runners.get(device)
    if found is None:
        with _lock:
            found = _runners.get(device)
            if found is None:
                table = _settings["table"] if _settings.get("said") else os.environ.get(TABLE) or None
                found = _runners[device] = Runner(device, table, near=_settings["near"])
    return found


def matmul(a: Any, b: Any, **more: Any) -> Any:
    """As Runner.matmul, on the device where a lies, by the table that use() named."""
    return runner_of(view(a, "a").device).matmul(a, b, **more)


def attention(q: Any, k: Any, v: Any, **more: Any) -> Any:
    """As Runner.attention, on the device where q lies, by the table that use() named."""
    return runner_of(view(q, "q").device).attention(q, k, v, **more)


class SparseWeight:
    """A constant weight [K, N] with zeros, for products a @ weight: their key has these zeros, so the table's choice for
    just this weight runs, and packs it once for each number of rows. Where the table has none, or it cannot be made here,
    the library's default multiplies the whole weight; choice(rows) says what runs. The array must not change."""

    def __init__(self, weight: Any, *, runner: Optional[Runner] = None) -> None:
        found = view(weight, "the weight")
        if len(found.shape) != 2:
            raise ValueError(f"the weight: a matrix was expected, not {found}")
        self._array, self._view = weight, found
        self.layout = "nn" if found.contiguous else "nt"
        stored, at = self._stored()
        if not stored.contiguous:
            raise ValueError(f"the weight: a dense matrix or the transposed view of one was expected, not strides of "
                             f"{found.strides} elements for {list(found.shape)}; make a contiguous copy first")
        self.sparsity: Sparsity = detect_sparsity(at)
        self._runner = runner
        self._packed: Dict[Tuple[int, str], Any] = {}

    def _stored(self) -> Tuple[View, Any]:
        """As it is stored, and the same in the CPU's memory."""
        def turned(of: View) -> View:
            return of if self.layout == "nn" else View(of.pointer, of.shape[::-1], of.strides[::-1], of.dtype, of.device,
                                                       of.readonly, of.owner)

        stored = turned(self._view)
        if stored.device == "cpu":
            return stored, stored
        away = next((getattr(self._array, name) for name in ("cpu", "get") if hasattr(self._array, name)), None)
        if away is None:
            raise TypeError(f"the weight: an array that can be copied to the CPU was expected, not {self._view}")
        return stored, turned(view(away(), "the weight"))

    @property
    def runner(self) -> Runner:
        return self._runner or runner_of(self._view.device)

    def key(self, rows: int) -> str:
        """Of the product with so many rows, as reports and tables have it."""
        k, n = self._view.shape
        plain = key_of("gemm", shape=(rows, n, k), dtype=self._view.dtype, layout=self.layout)
        if not self.sparsity.worth:
            return plain
        return (f"{plain};sparsity={self.sparsity.zeros:.9g};sparse_pattern={self.sparsity.pattern};"
                f"zeros={self.sparsity.hash}")

    def choice(self, rows: int) -> Choice:
        """What runs a product with so many rows here."""
        return self.runner.choice(self.key(rows))

    def matmul(self, a: Any, *, out: Any = None, stream: Any = None) -> Any:
        """a @ weight, for a of [M, K], rows last."""
        runner = self.runner
        left = _views(runner.device, {"a": a})["a"]
        assert left is not None
        if len(left.shape) != 2 or left.shape[1] != self._view.shape[0] or left.dtype != self._view.dtype:
            raise ValueError(f"a: {self._view.dtype} [M, {self._view.shape[0]}] was expected, not {left}")
        if not left.contiguous:
            raise ValueError(f"a: a dense array, rows last, was expected, not strides of {left.strides} elements; make a "
                             "contiguous copy first")
        result, place = _out(a, out, (left.shape[0], self._view.shape[1]), left.dtype, runner.device)
        if not place.contiguous:
            raise ValueError(f"out: a dense array, rows last, was expected, not strides of {place.strides} elements")
        key = self.key(left.shape[0])
        op, packed = self._prepared(runner, key)
        pointers = self._pointers(runner, op, {"a": left.pointer, "c": place.pointer})
        error = c.Error()
        _check(c.functions()["run_launch"](op, pointers, len(pointers), packed, arrays.stream_of(left, stream),
                                           ct.byref(error)), error)
        return result

    def __rmatmul__(self, a: Any) -> Any:
        return self.matmul(a)

    __array_ufunc__ = None  # NumPy leaves a @ weight to this class

    def _pointers(self, runner: Runner, op: Any, more: Mapping[str, int]) -> Any:
        info = c.OpInfo(ct.sizeof(c.OpInfo))
        c.functions()["run_op_describe"](op, ct.byref(info))
        places = {"b": self._view.pointer, **more}
        names = runner._tensor_names(op, info.tensor_count)
        return (ct.c_void_p * len(names))(*[places.get(name) for name in names])

    def _prepared(self, runner: Runner, key: str) -> Tuple[Any, Any]:
        op = runner._find(key)
        place = (id(runner), key)
        if place not in self._packed:
            handle, error = ct.c_void_p(), c.Error()
            pointers = self._pointers(runner, op, {})
            status = c.functions()["pack_weight"](op, pointers, len(pointers), ct.byref(handle), ct.byref(error))
            if status not in (c.OK, c.UNSUPPORTED):
                _raise(error)
            self._packed[place] = Packed(runner, handle, self._view) if status == c.OK else None
        kept = self._packed[place]
        return op, None if kept is None else kept.handle

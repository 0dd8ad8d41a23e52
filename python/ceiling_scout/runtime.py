"""Runs what a dispatch table names, on the caller's memory, by libscout_run."""
from __future__ import annotations

import ctypes as ct
import functools
import logging
import os
import threading
import weakref
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, NoReturn, Optional, Sequence, Tuple, Union

from . import _places, arrays
from . import _run as c
from .arrays import View, view
from .errors import ScoutError, TableUnsigned, Unsupported
from .sparsity import Sparsity, detect_sparsity
from .table import SIGNERS, Entry, Table, key_of, load, public_keys

Path = Union[str, "os.PathLike[str]"]
TABLE = "CEILING_SCOUT_TABLE"
log = logging.getLogger("ceiling_scout")


_GEMM_SIZE, _B = ct.sizeof(c.GemmMore), ord("b")


def _raise(error: Any) -> NoReturn:
    text = error.text.decode("utf-8", "replace")
    if error.status == c.NO_MEMORY:
        raise MemoryError(text)
    raise {c.INVALID: ValueError, c.UNSUPPORTED: Unsupported}.get(error.status, ScoutError)(text)


# OpenMP, which runs the loops of libscout_run, pins a thread to one core when it starts its first team. The caller's thread
# gets its own cores back, or all that it starts later would have that one core alone.
_seen = threading.local()


def _call(name: str, *arguments: Any) -> Any:
    if getattr(_seen, "pinned", False):
        return c.functions()[name](*arguments)
    cores = os.sched_getaffinity(0)
    try:
        return c.functions()[name](*arguments)
    finally:
        if os.sched_getaffinity(0) != cores:
            os.sched_setaffinity(0, cores)
            _seen.pinned = True


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
    import torch

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
    and all operations run the library's default. With `near` sizes that lie in a proven range run what its ends run. With
    `tune_ms` an operation that the table does not have is measured for about so long when it is first asked for, and kept
    in the cache of scout_batch. With `signers`, a file of public keys as in id_ed25519.pub, a table that none of them has
    signed cannot be used; without, $CEILING_SCOUT_SIGNERS names them."""

    def __init__(self, device: str = "cpu", table: Optional[Path] = None, *, near: bool = False, tune_ms: int = 0,
                 workspace_bytes: int = 0, signers: Optional[Path] = None) -> None:
        self.device = "cuda:0" if device == "cuda" else device
        self._say = c.Say(lambda _, line: log.warning("%s", line.decode("utf-8", "replace")))
        self._handle = ct.c_void_p()
        self._ops: Dict[str, Any] = {}
        keys, signers = None, (os.environ.get(SIGNERS) or None) if signers is None else signers
        if signers is not None:
            try:
                keys = public_keys(signers)
            except TableUnsigned as why:  # no table is used, as of another device
                log.warning("%s", why)
                keys = b""
        options = c.Options(ct.sizeof(c.Options), int(near), None if table is None else os.fsencode(table),
                            self.device.encode(), os.fsencode(_places.library_path()), workspace_bytes, self._say,
                            None, tune_ms, 0, None, keys)
        error = c.Error()
        _check(_call("run_open", ct.byref(self._handle), ct.byref(options), ct.byref(error)), error)
        # A GPU may still be at a launch when the last reference goes: its runner is closed by hand, or not at all.
        self._closing = weakref.finalize(self, _close, c.functions()["run_close"], self._handle.value, self._say)
        self._closing.atexit = False
        if self.device != "cpu":
            self._closing.detach()

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
        self._closing.detach()
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
        _check(_call("run_gemm", self._open(), *kept[:3], ct.byref(more), arrays.stream_of(left, stream),
                                         ct.byref(error)), error)
        return result

    def gemm(self, a: Any, b: Any, out: Any, bias: Any, packed: Any, stream: Optional[int]) -> None:
        """The same of tensors as libscout_run has them, which nothing is checked of here."""
        more = c.GemmMore(_GEMM_SIZE, _B, 0, 0, None, None if bias is None else ct.pointer(bias), None, None, packed)
        error = c.Error()
        if _call("run_gemm", self._open(), a, b, out, more, stream, error) != c.OK:
            _raise(error)

    def _gemm(self, v: Mapping[str, Optional[View]], out: Optional[View], activation: Optional[str], weight: bool,
              tf32: bool, packed: "Optional[Packed]") -> Tuple[Any, List[Any]]:
        a, b = v["a"], v["b"]
        assert a is not None and b is not None
        if a.dtype != b.dtype:
            raise TypeError(f"b: an array of a's type, {a.dtype}, was expected, not {b.dtype}")
        tensors = [None if one is None else ct.byref(_tensor(one, what))
                   for one, what in ((a, "a"), (b, "b"), (out, "out"))]
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
        status = _call("pack_weight_gemm", self._open(), *kept[:3], ct.byref(more), ct.byref(handle), ct.byref(error))
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
        _check(_call("run_attention", self._open(), *tensors, ct.byref(more), arrays.stream_of(of_q, stream),
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


def _close(close: Any, handle: Optional[int], say: Any) -> None:
    close(handle)  # which may still say something


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
_settings: Dict[str, Any] = {"table": None, "signers": None, "said": False}
_more: Dict[str, Any] = {}


def use(table: Optional[Path], *, near: bool = False, tune_ms: int = 0, signers: Optional[Path] = None) -> None:
    """Has matmul, attention, SparseWeight and the operators of PyTorch run by this table from now on; None: by the
    library's defaults. The other arguments are those of Runner. Each call says all of them anew.
    $CEILING_SCOUT_TABLE names the first table."""
    with _lock:
        _settings.update(table=None if table is None else os.fspath(table),
                         signers=None if signers is None else os.fspath(signers), said=True)
        _more.update(near=near, tune_ms=tune_ms)
        _runners.clear()  # those in use stay until they are not
        table_of.cache_clear()


def table_in_use() -> Optional[str]:
    """The path of the table that use() or the variable named."""
    return _settings["table"] if _settings["said"] else os.environ.get(TABLE) or None


def signers_in_use() -> Optional[str]:
    """The file of public keys that use() named; None: that of the variable, or none."""
    found: Optional[str] = _settings["signers"]
    return found


def lookup(kind: str, **parts: Any) -> Optional[Entry]:
    """As Table.lookup, in the table in use. None: it does not have the operation, or there is no table."""
    found = table_of(table_in_use(), signers_in_use())
    return None if found is None else found.lookup(kind, **parts)


@functools.lru_cache(maxsize=8)
def table_of(path: Optional[str], signers: Optional[str]) -> Optional[Table]:
    return None if path is None else load(path, signers=signers)


def runner_of(device: str) -> Runner:
    """The runner of a device, with the table that use() named."""
    found = _runners.get(device)
    if found is None:
        with _lock:
            found = _runners.get(device)
            if found is None:
                found = _runners[device] = Runner(device, table_in_use(), signers=signers_in_use(), **_more)
    return found


def matmul(a: Any, b: Any, **more: Any) -> Any:
    """As Runner.matmul, on the device where a lies, by the table that use() named."""
    return runner_of(view(a, "a").device).matmul(a, b, **more)


def attention(q: Any, k: Any, v: Any, **more: Any) -> Any:
    """As Runner.attention, on the device where q lies, by the table that use() named."""
    return runner_of(view(q, "q").device).attention(q, k, v, **more)


class SparseWeight:
    """A constant weight [K, N] with zeros, for products a @ weight. What the table has for just these zeros runs, and packs
    the weight once for each number of rows. Where the table has nothing of the kind, the library's default multiplies the
    whole weight; packed_bytes says which. The array must not change."""

    def __init__(self, weight: Any, *, runner: Optional[Runner] = None) -> None:
        self._view = view(weight, "the weight")
        if len(self._view.shape) != 2:
            raise ValueError(f"the weight: a matrix was expected, not {self._view}")
        self._array, self._runner = weight, runner
        self._packed: Dict[Any, Tuple[Runner, Optional[Packed]]] = {}

    @property
    def shape(self) -> Tuple[int, ...]:
        return self._view.shape

    @functools.cached_property
    def sparsity(self) -> Sparsity:
        """Its zeros, as it is stored: of the transposed view of a matrix those of that matrix."""
        return detect_sparsity(arrays.stored(self._array, "the weight"))

    def key(self, rows: int) -> str:
        """Of the product with so many rows, as reports and tables have it."""
        k, n = self.shape
        plain = key_of("gemm", shape=(rows, n, k), dtype=self._view.dtype, layout="nn" if self._view.contiguous else "nt")
        found = self.sparsity
        if not found.worth:
            return plain
        return f"{plain};sparsity={found.zeros:.9g};sparse_pattern={found.pattern};zeros={found.hash}"

    def matmul(self, a: Any, *, bias: Any = None, residual: Any = None, activation: Optional[str] = None, out: Any = None,
               stream: Any = None) -> Any:
        """As Runner.matmul with this weight."""
        runner, packed = self._prepared(a, bias=bias, residual=residual, activation=activation)
        return runner.matmul(a, self._array, bias=bias, residual=residual, activation=activation, out=out, stream=stream,
                             packed=packed)

    def __rmatmul__(self, a: Any) -> Any:
        return self.matmul(a)

    __array_ufunc__ = None  # NumPy leaves a @ weight to this class

    def packed_bytes(self, a: Any, **more: Any) -> int:
        """What the weight takes as it is packed for this product; 0: it runs as it is."""
        packed = self._prepared(a, **more)[1]
        return packed.bytes if packed else 0

    def _prepared(self, a: Any, bias: Any = None, residual: Any = None, activation: Optional[str] = None) -> Any:
        runner = self._runner or runner_of(self._view.device)
        left, added = view(a, "a"), None if bias is None else view(bias, "bias").shape
        told = (id(runner), left.shape, left.strides, left.dtype, added, residual is None, activation)
        if told not in self._packed:
            self._packed[told] = runner, runner.pack(a, self._array, bias=bias, residual=residual, activation=activation)
        return self._packed[told]

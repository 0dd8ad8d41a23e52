"""Dispatch tables: what was measured to be fastest on a device, looked up by libscout_dispatch."""
from __future__ import annotations

import ctypes
import json
import os
import threading
import warnings
import weakref
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Type, Union

from . import _dispatch as c
from ._show import Column, Shown, times
from .devices import Device, find
from .dtypes import name_of
from .errors import TableBad, TableRefused, TableUnsigned

Path = Union[str, "os.PathLike[str]"]
SIGNERS = "CEILING_SCOUT_SIGNERS"

CHOICES = ("default", "tuned", "custom")
Value = Union[None, bool, int, float, str, Sequence[int]]


@dataclass(frozen=True)
class Entry:
    """What was measured of one operation, and what it is to be run with. Times are medians in microseconds."""

    key: str
    operation: str
    choice: str  # "default": nothing was proven to be faster; "tuned": a library's algorithm; "custom": another kernel
    implementation: str
    variant: str
    library: Optional[str]
    version: Optional[str]
    algo: bytes  # of cuBLASLt, for cublasLtMatmulAlgoCheck; empty: none
    config: Dict[str, Any]  # everything that it needs to be run again
    packing: Optional[str]  # how the weight is rearranged once; None: it is not
    pack_us: float
    pack_bytes: int
    workspace_bytes: int
    expected_us: float
    expected_ci: float  # relative half width of its interval
    default_us: float
    default_ci: float
    ratio: float  # of expected over default, from neighbouring blocks
    ratio_ci: float
    batches: int
    launches: int

    @property
    def proven(self) -> bool:
        """Whether something faster than the library's default was proven."""
        return self.choice != "default"


class Ends(NamedTuple):
    """Two measured entries that agree, around a size that was not measured."""

    lower: Entry
    upper: Entry


# What is so where nothing is said of it, as in lists of operations that are written by hand (docs/formats.md).
_BYTES = ("int8", "uint8", "fp8e4m3fn", "fp8e5m2")


def _customary(kind: str, op: Dict[str, Any], fields: Dict[str, Value]) -> None:
    if kind == "gemm":
        if op["layout"] is None:
            op["layout"] = "nt" if op["dtype"] in _BYTES else "nn"
        side = op["weight_side"] or "b"
        op["weight_side"] = None if side == "none" else side
        if side != "none" and op["weight_dtype"] is None:
            op["weight_dtype"] = op["dtype"]
    elif kind == "attention" and len(op["shape"]) == 4:
        if op["mask"] is None:
            op["mask"] = "none"
        fields.setdefault("kv_heads", op["shape"][1])
        fields.setdefault("kv_len", op["shape"][2])
    elif kind == "norm":
        if op["what"] is None:
            op["what"] = "layer"
        if op["weight_dtype"] is None:
            op["weight_dtype"] = op["dtype"]


def _encoded(what: str, text: Optional[str]) -> Optional[bytes]:
    if text is None:
        return None
    if not isinstance(text, str):
        raise TypeError(f"{what}: a text was expected, not {text!r}")
    if "\0" in text:
        raise ValueError(f"{what}: a text without NUL was expected, not {text!r}")
    return text.encode("utf-8", "surrogateescape")


def _integers(what: str, values: Sequence[int]) -> Any:
    for value in values:
        if not hasattr(value, "__index__") or not -(2**63) <= int(value) < 2**63:
            raise TypeError(f"{what}: integers of 64 bits were expected, not {value!r}")
    return (ctypes.c_int64 * len(values))(*[int(value) for value in values])


def _shortest(value: float) -> str:
    """As numbers with a fraction stand in keys: the shortest text that reads back as the same."""
    return next((text for text in (f"{value:.{n}g}" for n in range(1, 17)) if float(text) == value), f"{value:.17g}")


def key_of(kind: str, *, shape: Sequence[int], dtype: Any, what: Optional[str] = None, layout: Optional[str] = None,
           mask: Optional[str] = None, weight_dtype: Any = None, out_dtype: Any = None,
           weight_side: Optional[str] = None, **fields: Value) -> str:
    """The canonical text of an operation, which is what tables are asked for. What is not said is as it is in a list of
    operations that is written by hand: a gemm is "nn" (of bytes "nt"), and its right side is a weight of the same type
    (weight_side="none": it is not); an attention has no mask, and as many heads and keys as queries; a norm is a layer
    norm. Further dimensions are named as in docs/formats.md: bias="n", batch=12, kv_heads=8."""
    types = [None if t is None else name_of(t) for t in (dtype, weight_dtype, out_dtype)]
    op: Dict[str, Any] = {"what": what, "shape": shape, "layout": layout, "mask": mask, "dtype": types[0],
                          "weight_dtype": types[1], "out_dtype": types[2], "weight_side": weight_side}
    numbers = _integers("shape", shape)
    _customary(kind, op, fields)
    return write_key(kind, numbers, op, fields)


def write_key(kind: str, shape: Any, op: Mapping[str, Optional[str]], fields: Mapping[str, Value]) -> str:
    """The same of parts that nothing is added to; `shape` is an array of c_int64."""
    kept: List[Any] = []
    rows = (c.Field * max(1, len(fields)))()
    given = 0
    for name, value in fields.items():
        if value is None:
            continue
        row = rows[given]
        given += 1
        row.name = _encoded("the name of a dimension", name)
        if isinstance(value, float) and not value.is_integer():
            row.text = _shortest(value).encode()
        elif isinstance(value, str):
            row.text = _encoded(name, value)
        elif isinstance(value, (int, float)) or hasattr(value, "__index__"):
            row.number = _integers(name, [int(value)])[0]
        else:
            numbers = _integers(name, value)
            kept.append(numbers)
            row.numbers = ctypes.cast(numbers, ctypes.POINTER(ctypes.c_int64))
            row.count = len(numbers)
    texts = [_encoded(name, op[name]) for name in ("layout", "mask", "dtype", "weight_dtype", "out_dtype", "weight_side")]
    asked = c.Op(_encoded("the kind", kind), _encoded("what", op["what"]), shape, len(shape), *texts, rows, given)
    room = ctypes.create_string_buffer(c.KEY_ROOM)
    length = c.functions()["op_text"](ctypes.byref(asked), room, len(room))
    if length == 0:
        raise ValueError(f"the key of this {kind} is longer than {c.KEY_ROOM - 1} bytes, which no key may be")
    return room.raw[:length].decode("utf-8", "surrogateescape")


def _text(value: Optional[bytes]) -> Optional[str]:
    return None if value is None else value.decode("utf-8", "replace")


_PLAIN = [name for name, *_ in c.Entry._fields_ if name not in ("choice", "algo", "algo_bytes", "config")]


def _copied(found: Any) -> Entry:
    e = found.contents
    parts: Dict[str, Any] = {name: getattr(e, name) for name in _PLAIN}
    parts.update((name, _text(value)) for name, value in parts.items() if isinstance(value, bytes))
    return Entry(**parts, choice=CHOICES[e.choice], algo=ctypes.string_at(e.algo, e.algo_bytes) if e.algo else b"",
                 config=json.loads(e.config) if e.config else {})


class Table(Shown):
    """A dispatch table. Any thread may look up in it, also while another one reloads it."""

    def __init__(self, path: Path, device: Optional[Device] = None, signers: Optional[Path] = None) -> None:
        self.path = os.fspath(path)
        self._handle = ctypes.c_void_p()
        self._lock = threading.Lock()
        note = c.Note()
        signers = (os.environ.get(SIGNERS) or None) if signers is None else signers
        open_it, keys = ("open", []) if signers is None else ("open_signed", [public_keys(signers)])
        self._finish(c.functions()[open_it](ctypes.byref(self._handle), os.fsencode(self.path), *keys, _given(device),
                                            ctypes.byref(note)), note, device)
        self._closing = weakref.finalize(self, c.functions()["close"], self._handle.value)
        self._closing.atexit = False

    @staticmethod
    def _finish(status: int, note: Any, device: Optional[Device]) -> None:
        text = note.text.decode("utf-8", "replace")
        if status == c.REFUSED:
            raise TableRefused(text)
        if status == c.UNSIGNED:
            raise TableUnsigned(text)
        if status not in (c.OK, c.WARNED):
            raise TableBad(text)
        if status == c.WARNED and (device is None or "." in device.driver):  # of a branch alone no patch is known
            warnings.warn(text, stacklevel=4)

    def _open(self) -> Any:
        if not self._handle:
            raise ValueError("this table was closed")
        return self._handle

    def _view(self) -> Any:
        return _View(self._open())

    def lookup(self, kind: str, *, shape: Sequence[int], dtype: Any, **parts: Any) -> Optional[Entry]:
        """The entry of exactly this operation. None: it was not measured, run the default. Parts are those of key_of."""
        return self.find(key_of(kind, shape=shape, dtype=dtype, **parts))

    def near(self, kind: str, *, shape: Sequence[int], dtype: Any, **parts: Any) -> Optional[Ends]:
        """The two measured entries around an operation that was not measured, where both agree on what to run."""
        return self.find_near(key_of(kind, shape=shape, dtype=dtype, **parts))

    def find(self, key: str) -> Optional[Entry]:
        """As lookup, by canonical text."""
        text = _encoded("key", key)
        with self._view() as view:
            found = c.functions()["find_text"](view, text)
            return _copied(found) if found else None

    def find_near(self, key: str) -> Optional[Ends]:
        """As near, by canonical text."""
        ends = c.Ends()
        text = _encoded("key", key)
        with self._view() as view:
            if not c.functions()["near_text"](view, text, ctypes.byref(ends)):
                return None
            return Ends(_copied(ends.lower), _copied(ends.upper))

    def reload(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Puts another table in the place of this one. Where that fails this one stays."""
        note = c.Note()
        with self._lock:
            status = c.functions()["reload"](self._open(), os.fsencode(path), ctypes.byref(note))
        self._finish(status, note, None)
        self.path = os.fspath(path)

    @property
    def device_class(self) -> str:
        """The device that it was measured on, as reports name it."""
        with self._view() as view:
            return _text(c.functions()["class"](view)) or ""

    def __len__(self) -> int:
        with self._view() as view:
            return int(c.functions()["count"](view))

    def __iter__(self) -> Iterator[Entry]:
        with self._view() as view:
            entries = [_copied(c.functions()["at"](view, k)) for k in range(c.functions()["count"](view))]
        return iter(entries)

    def close(self) -> None:
        """No other thread may be looking up."""
        self._handle = ctypes.c_void_p()
        self._closing()

    def __enter__(self) -> "Table":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def _shown(self) -> Tuple[str, List[Column], List[List[str]]]:
        entries = list(self)
        proven = sorted((e for e in entries if e.proven), key=lambda e: e.ratio)
        title = (f"{len(entries)} operations of {Device.of_class(self.device_class).name or 'a device'}, "
                 f"{len(proven)} of them proven to be faster than the default")
        columns = [Column("operation"), Column("choice"), Column("variant"), Column("expected", right=True),
                   Column("default", right=True), Column("ratio", right=True)]
        rows = [[e.operation, e.implementation, e.variant, times(e.expected_us), times(e.default_us),
                 f"{e.ratio:.3f} ± {100 * e.ratio_ci:.1f} %"] for e in proven]
        return title, columns, rows


class _View:
    """One table, held: it stays whole while another one is loaded."""

    def __init__(self, handle: Any) -> None:
        self._view = c.functions()["begin"](handle)

    def __enter__(self) -> Any:
        return ctypes.byref(self._view)

    def __exit__(self, *_: Any) -> None:
        c.functions()["end"](ctypes.byref(self._view))


def _given(device: Optional[Device]) -> Any:
    if device is None:
        return None
    libraries = (c.Library * max(1, len(device.libraries)))()
    for row, (name, version) in zip(libraries, device.libraries.items()):
        row.name, row.version = _encoded("a library's name", name), _encoded("a version", version)
    texts = [_encoded(name, getattr(device, name)) for name in ("name", "capability", "driver")]
    return ctypes.byref(c.Device(*texts, device.units, device.memory_mib, device.power_limit_w, libraries,
                                 len(device.libraries)))


def public_keys(path: Path) -> bytes:
    """What the libraries take of a file of public keys, one a line."""
    try:
        with open(path, "rb") as file:
            return file.read().replace(b"\0", b"?")
    except OSError as why:
        raise TableUnsigned(f"signers: {why}") from None


def load(path: Path, device: Union[None, str, Device] = None, *, signers: Optional[Path] = None) -> Table:
    """Opens a dispatch table (`analyze dispatch`). With a device ("cpu", "cuda:0", "auto", or a Device) a table of another
    one raises TableRefused: then run the defaults. Without one nothing is compared, so the table may be looked at
    anywhere, and nothing may be run by it. With `signers`, a file of public keys as in id_ed25519.pub, a table that none of
    them has signed (`analyze dispatch --sign KEY`) raises TableUnsigned. $CEILING_SCOUT_SIGNERS names them where none are
    given."""
    return Table(path, find(device) if isinstance(device, str) else device, signers)

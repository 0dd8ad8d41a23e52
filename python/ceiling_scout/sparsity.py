"""What the zeros of a weight are good for, by the same count as scout_batch makes of a model's weights."""
from __future__ import annotations

import ctypes as c
import functools
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from . import _places, arrays
from ._show import Column, Shown, percent

SIZES = (16, 32, 64, 128)
# Numbered as in ONNX.
_TYPES = {"fp32": 1, "uint8": 2, "int8": 3, "fp16": 10, "bf16": 16, "fp8e4m3fn": 17}


class _Facts(c.Structure):
    _fields_ = [("rows", c.c_int64), ("cols", c.c_int64), ("nonzeros", c.c_int64), ("zeros", c.c_double),
                ("two_of_four_by_row", c.c_bool), ("two_of_four_by_col", c.c_bool), ("blocks", c.c_double * 4),
                ("pieces", c.c_double * 4), ("fewest", c.c_int64), ("most", c.c_int64), ("same_rows", c.c_int64),
                ("block", c.c_int), ("pattern", c.c_char_p), ("hash", c.c_uint64)]


class _Conversion(c.Structure):
    _fields_ = [("threshold", c.c_double), ("below", c.c_double), ("work", c.c_double * 4), ("lost", c.c_double * 4),
                ("largest", c.c_int)]


@functools.lru_cache(maxsize=None)
def _functions() -> Dict[str, Any]:
    facts = c.POINTER(_Facts)
    return _places.declared(_places.library("libscout_sparsity.so.1"), "sparsity_", {
        "analyse": (c.c_bool, [c.c_void_p, c.c_int, c.c_int64, c.c_int64, facts]),
        "convert": (c.c_bool, [c.c_void_p, c.c_int, facts, c.c_double, c.POINTER(_Conversion)])})


@dataclass(frozen=True, repr=False)
class Sparsity(Shown):
    """The zeros of a matrix as it is stored. Fractions are from 0 to 1."""

    rows: int
    cols: int
    zeros: float
    pattern: str  # DENSE, BLOCK_SPARSE, STRUCTURED_24, UNSTRUCTURED
    block: int  # side of the largest blocks that are worth keeping as such; 0: none
    two_of_four_by_row: bool  # of each four neighbours in a row at most two are not zero
    two_of_four_by_col: bool
    blocks: Dict[int, float]  # by side: of all square blocks, the fraction that is not all zeros
    pieces: Dict[int, float]  # by length: the same of pieces of rows
    fewest_in_row: int
    most_in_row: int
    same_rows: int
    threshold: float  # what was smaller in size counted as zero below
    below: float
    work: Dict[int, float]  # by side: of the dense product's work, what square blocks leave
    norm_lost: Dict[int, float]  # by side: of the weight's norm, what is left out with them
    hash: str  # of which numbers are zero, as keys have it

    @property
    def worth(self) -> bool:
        """Whether a sparse product is worth measuring."""
        return self.pattern != "DENSE"

    def _shown(self) -> Tuple[str, List[Column], List[List[str]]]:
        title = f"{self.rows} x {self.cols}, {percent(self.zeros)} zeros: {self.pattern}"
        if self.two_of_four_by_row or self.two_of_four_by_col:
            title += f", 2:4 by {'row' if self.two_of_four_by_row else 'column'}"
        columns = [Column("blocks"), Column("not all zeros", True), Column("work left", True), Column("norm lost", True)]
        return title, columns, [[f"{n} x {n}", percent(self.blocks[n]), percent(self.work[n]), percent(self.norm_lost[n])]
                                for n in SIZES]


def detect_sparsity(weight: Any, *, threshold: float = 0.0, dtype: Optional[str] = None) -> Sparsity:
    """Looks at the zeros of a matrix in the CPU's memory, without a copy. With a threshold it also tells what blocks would
    do if what is smaller were zero. `dtype` names the type where the array's own is only its size: "bf16" of uint16."""
    found = arrays.view(weight, "the weight")
    if len(found.shape) != 2 or 0 in found.shape:
        raise ValueError(f"the weight: a matrix was expected, not {found}")
    name = dtype or found.dtype
    if name not in _TYPES:
        raise TypeError(f"the weight: one of {', '.join(_TYPES)} was expected, not {name}")
    if dtype is not None and arrays.size_of(dtype) != found.itemsize:
        raise TypeError(f"the weight: {dtype} has {arrays.size_of(dtype)} bytes a number, and the array {found.itemsize}")
    if not threshold >= 0:
        raise ValueError(f"the threshold: a number of at least 0 was expected, not {threshold}")
    memory = arrays.bytes_of(found, "the weight")
    facts, conversion = _Facts(), _Conversion()
    calls = _functions()
    if not (calls["analyse"](found.pointer, _TYPES[name], *found.shape, c.byref(facts)) and
            calls["convert"](found.pointer, _TYPES[name], c.byref(facts), threshold, c.byref(conversion))):
        raise MemoryError("looking at the zeros of a weight")
    del memory

    def by_size(values: Any) -> Dict[int, float]:
        return dict(zip(SIZES, values))

    return Sparsity(facts.rows, facts.cols, facts.zeros, facts.pattern.decode(), facts.block, facts.two_of_four_by_row,
                    facts.two_of_four_by_col, by_size(facts.blocks), by_size(facts.pieces), facts.fewest, facts.most,
                    facts.same_rows, threshold, conversion.below, by_size(conversion.work), by_size(conversion.lost),
                    f"{facts.hash:016x}")

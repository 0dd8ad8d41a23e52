"""Ceiling Scout in Python: measured verdicts on models, dispatch tables, and what they name, run.

    import ceiling_scout as scout
    table = scout.load("dispatch.json")
    entry = table.lookup("gemm", shape=(1, 4096, 4096), dtype="fp16")

Nothing but the C libraries and programs that lie in the wheel is needed; NumPy and PyTorch are used where an array is
theirs."""
from __future__ import annotations

from typing import Any

from ._measure import Measurement, Variant, Variants, benchmark, detect_ceiling
from ._profile import Profile, Row, profile, read
from .devices import Device, devices
from .errors import LibraryMissing, ProgramFailed, ScoutError, TableBad, TableRefused, TableUnsigned, Unsupported
from .plan import Plan, Slot, load_plan
from .runtime import Choice, Counts, Packed, Runner, SparseWeight, attention, lookup, matmul, use
from .sparsity import Sparsity, detect_sparsity
from .table import Ends, Entry, Table, key_of, load

__all__ = ["Choice", "Counts", "Device", "Ends", "Entry", "LibraryMissing", "Measurement", "Packed", "Plan", "Profile",
           "ProgramFailed", "Row", "Runner", "ScoutError", "Slot", "SparseWeight", "Sparsity", "Table", "TableBad",
           "TableRefused", "TableUnsigned", "Unsupported", "Variant", "Variants", "attention", "benchmark", "detect_ceiling",
           "detect_sparsity", "devices", "key_of", "load", "load_plan", "lookup", "matmul", "profile", "read", "use"]


def __getattr__(name: str) -> Any:
    if name in ("patch", "Patched"):  # what needs PyTorch is imported when it is asked for
        from . import pytorch

        return getattr(pytorch, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

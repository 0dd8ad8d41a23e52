"""Single operations, measured by `scout_batch`."""
from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import _programs, arrays
from ._profile import option
from ._show import Column, Shown, as_text, percent, times
from .dtypes import name_of
from .errors import ScoutError

Path = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Variant:
    """One way to run an operation. None: it has no time, and `reason` says why."""

    name: str
    variant: str
    status: str
    reason: str
    time_us: Optional[float]
    time_ci: Optional[float]  # relative half width of its interval; None: not known
    tflops: Optional[float]
    ratio: Optional[float]  # of its time to the baseline's
    ratio_ci: Optional[float]
    approach: str
    quality: str


class Variants(Shown):
    """All ways to run an operation, the fastest first."""

    def __init__(self, title: str, rows: Sequence[Variant], best: Tuple[Optional[str], Optional[str]]) -> None:
        self.title = title
        self.rows: Tuple[Variant, ...] = tuple(sorted(rows, key=lambda v: (v.time_us is None, v.time_us or 0.0)))
        self._best = best

    def _shown(self) -> Tuple[str, List[Column], List[List[str]]]:
        columns = [Column("candidate"), Column("variant"), Column("time", True), Column("interval", True),
                   Column("TFLOP/s", True), Column("ratio", True), Column("")]
        rows = []
        for v in self.rows:
            if v.time_us is None:
                rows.append([v.name, v.variant, v.status, "", "", "", v.reason[:60]])
                continue
            mark = "best" if (v.name, v.variant) == self._best else v.quality if v.quality != "good" else ""
            rows.append([v.name, v.variant, times(v.time_us), "?" if v.time_ci is None else f"± {percent(v.time_ci)}",
                         f"{v.tflops:.4g}" if v.tflops else "", f"{v.ratio:.3f}" if v.ratio else "1", mark])
        return self.title, columns, rows


def _variant(row: Dict[str, Any]) -> Variant:
    time, reason = row.get("time_us") or {}, row.get("reason") or {}
    return Variant(row["name"], row.get("variant") or "", row["status"], reason.get("text") or "", time.get("median"),
                   time.get("rel_ci95"), row.get("tflops"), row.get("ratio"), row.get("ratio_ci"),
                   row.get("approach") or "", row.get("quality") or "")


class Measurement(Shown):
    """One operation, measured beside its ceiling. Times are medians in microseconds; None: not known."""

    def __init__(self, report: Dict[str, Any]) -> None:
        self.report = report  # all of it, docs/formats.md
        self.operation: str = report["operation"]
        self.op: str = report["op"]
        self.shape: Tuple[int, ...] = tuple(report.get("shape") or ())
        self.precision: str = report.get("precision") or report.get("dtype") or ""
        self.device: str = report["device"]["model"]
        self.status: str = report["status"]
        self.baseline: Optional[str] = report.get("baseline")
        self.best: Optional[str] = report.get("best")
        self.baseline_time_us: Optional[float] = report.get("baseline_time_us")
        self.best_time_us: Optional[float] = report.get("best_time_us")
        self.ceiling_time_us: Optional[float] = report.get("ceiling_time_us")
        self.ceiling_tflops: Optional[float] = report.get("ceiling_tflops") or None
        self.efficiency: Optional[float] = report.get("efficiency")
        self.bound: Optional[str] = report.get("bound")
        self.proven: bool = (report.get("best_approach") or "NONE") != "NONE"
        self.priority: str = report.get("priority") or ""
        self.approach: str = report.get("approach") or ""
        self.recommendation: str = report.get("recommendation") or ""
        self.key: str = report.get("key") or ""
        size = " x ".join(map(str, self.shape))
        self.variants = Variants(f"{self.op} {size}, {self.precision}, on {self.device}: all variants",
                                 [_variant(row) for row in report["candidates"]],
                                 (self.best, report.get("best_variant") or ""))

    def _shown(self) -> Tuple[str, List[Column], List[List[str]]]:
        def known(us: Optional[float]) -> str:
            return "?" if us is None else times(us)

        r = self.report
        rows = [["baseline", self.baseline or self.status, r.get("baseline_variant") or "", known(self.baseline_time_us),
                 f"{r.get('baseline_tflops') or 0:.4g}"],
                ["best", self.best or "", r.get("best_variant") or "", known(self.best_time_us),
                 f"{r.get('best_tflops') or 0:.4g}"],
                ["ceiling", f"bound by {self.bound or '?'}", "", known(self.ceiling_time_us),
                 f"{self.ceiling_tflops or 0:.4g}"]]
        reached = "" if self.efficiency is None else f", {percent(self.efficiency)} of the ceiling"
        title = f"{self.op} {' x '.join(map(str, self.shape))}, {self.precision}, on {self.device}{reached}"
        if self.recommendation:
            title += ". " + self.recommendation
        columns = [Column(""), Column("candidate"), Column("variant"), Column("time", True), Column("TFLOP/s", True)]
        return title, columns, rows


def _measure(operations: Dict[str, Any], folder: str, *, progress: Optional[bool], **options: Any) -> Measurement:
    """Of a file with one operation: its report."""
    path, out = os.path.join(folder, "ops.json"), os.path.join(folder, "out")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(operations, file)
    arguments = [path, f"--output={out}", "--cache=cold", "--no-fusions", "--no-replay"]
    for kernel in options.pop("custom_kernels", None) or ():
        arguments.append(f"--custom-kernel={os.fspath(kernel)}")
    for name, value in options.items():
        arguments += option(name, value)
    ended = _programs.run("scout_batch", arguments, progress=progress)
    reports = os.path.join(out, "reports")
    names = sorted(os.listdir(reports)) if os.path.isdir(reports) else []
    if len(names) != 1:
        raise ScoutError(f"scout_batch wrote {len(names)} reports of one operation: {ended.stderr.strip()[-300:]}")
    with open(os.path.join(reports, names[0]), encoding="utf-8") as file:
        return Measurement(json.load(file))


def detect_ceiling(kind: str, shape: Sequence[int], dtype: Any = "fp32", *, device: Optional[str] = None,
                   budget: Union[None, float, str] = None, target_ci: Optional[str] = None,
                   regime: Optional[str] = None, exhaustive: bool = False, no_cache: bool = False,
                   custom_kernels: Sequence[Path] = (), progress: Optional[bool] = None, **dims: Any) -> Measurement:
    """How fast an operation runs here, and how fast it could. Further dimensions are those of lists of operations that are
    written by hand (docs/formats.md): detect_ceiling("attention", (1, 32, 2048, 128), "fp16", causal=True, kv_heads=8).
    With custom_kernels, plugins of yours are measured beside the libraries."""
    given = {name: list(value) if isinstance(value, tuple) else value for name, value in dims.items()}
    entry = {"op": kind, "shape": [int(n) for n in shape], "dtype": name_of(dtype), **given}
    with tempfile.TemporaryDirectory(prefix="scout_") as folder:
        return _measure({kind: entry}, folder, progress=progress, device=device, budget=budget, target_ci=target_ci,
                        regime=regime, exhaustive=exhaustive, no_cache=no_cache, custom_kernels=custom_kernels)


def benchmark(a: Any, b: Any, *, device: Optional[str] = None, budget: Union[None, float, str] = None,
              target_ci: Optional[str] = None, regime: Optional[str] = None, exhaustive: bool = True,
              no_cache: bool = False, custom_kernels: Sequence[Path] = (), weight: bool = True,
              progress: Optional[bool] = None) -> Measurement:
    """Measures a @ b by every variant that there is, and prints each with its time, TFLOP/s and ratio to the baseline. The
    product is that of these arrays: their sizes, type and order, and the zeros of b, which counts as a constant weight
    (weight=False: it does not). It runs on the arrays' own device unless another one is named."""
    views = [arrays.view(array, name) for array, name in ((a, "a"), (b, "b"))]
    left, right = views
    if len(left.shape) != 2 or len(right.shape) != 2 or left.shape[1] != right.shape[0]:
        raise ValueError(f"a of [M, K] and b of [K, N] were expected, not {left} and {right}")
    if left.dtype != right.dtype or left.device != right.device:
        raise TypeError(f"two arrays of one type on one device were expected, not {left} and {right}")
    (m, k), n = left.shape, right.shape[1]
    transposed = not right.contiguous
    entry: Dict[str, Any] = {"id": "gemm", "op": "gemm", "shape": [m, n, k], "layout": "nt" if transposed else "nn",
                             "dtype": left.dtype, "count": 1, "occurrences": 1, "nodes": ["gemm"], "macs": m * n * k,
                             "flops": 2 * m * n * k, "bytes_read": (m * k + n * k) * left.itemsize,
                             "bytes_written": m * n * left.itemsize}
    with tempfile.TemporaryDirectory(prefix="scout_") as folder:
        model = os.path.join(folder, "weight.bin")
        if weight:
            stored = arrays.stored(b, "b")
            with open(model, "wb") as file:
                file.write(arrays.bytes_of(stored, "b"))
            length = n * k * right.itemsize
            entry.update(weight_dtype=right.dtype, weight_side="b",
                         weights=[{"name": "b", "dims": list(stored.shape), "dtype": right.dtype, "file": "weight.bin",
                                   "offset": 0, "length": length}])
        operations = {"schema": "ceiling-scout/ops/1", "model": {"name": "benchmark", "path": model}, "ops": [entry]}
        made = _measure(operations, folder, progress=progress, device=device or left.device, budget=budget,
                        target_ci=target_ci, regime=regime, exhaustive=exhaustive, no_cache=no_cache,
                        custom_kernels=custom_kernels)
    print(made.variants)
    return made

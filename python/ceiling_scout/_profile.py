"""A model's verdicts: measured by `ceiling-scout profile`, read by `analyze`."""
from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from . import _programs
from ._show import Column, Shown, percent, times
from .table import Table, load

Path = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Row:
    """One operation of a model, what to do first on top. Members are those of summary.json (docs/formats.md); times are
    microseconds per occurrence, gains per run of the model, shares fractions of its time. None: not known."""

    rank: int
    operation: str
    op: str
    status: str
    outcome: str
    count: int
    name: str = ""
    shape: Tuple[int, ...] = ()
    dtype: str = ""
    precision: str = ""
    pattern: str = "DENSE"
    sparsity: float = 0.0
    layers: Tuple[str, ...] = ()
    baseline: Optional[str] = None
    baseline_variant: Optional[str] = None
    baseline_time_us: Optional[float] = None
    baseline_ci: Optional[float] = None
    best: Optional[str] = None
    best_variant: Optional[str] = None
    best_time_us: Optional[float] = None
    best_ci: Optional[float] = None
    ceiling_time_us: Optional[float] = None
    ceiling_ci: Optional[float] = None
    efficiency: Optional[float] = None
    bound: Optional[str] = None
    share: Optional[float] = None
    proven_gain_us: Optional[float] = None
    potential_gain_us: Optional[float] = None
    priority: str = "NONE"
    approach: str = "UNMEASURED"
    borderline: bool = False
    recommendation: str = ""


_MEMBERS = {f.name for f in fields(Row)}


def _row(found: Mapping[str, Any]) -> Row:
    known: Dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value
                             for name, value in found.items() if name in _MEMBERS}
    return Row(**known)


class Profile(Shown):
    """What was measured of a model. In a notebook it shows itself as a table."""

    def __init__(self, folder: Path, code: Optional[int] = None) -> None:
        self.folder = os.fspath(folder)
        ended = _programs.run("analyze", [self.folder, "--format", "json"], progress=False)
        group: Dict[str, Any] = json.loads(ended.stdout)["groups"][0]
        self.code = ended.code if code is None else code  # 1: something has no figure, or a candidate failed
        self.model: str = group["model"]
        self.device: str = group["device"]["model"]
        self.regime: str = group["regime"]
        self.rows: Tuple[Row, ...] = tuple(_row(found) for found in group["operations"])
        self.totals: Dict[str, Any] = group["totals"]
        self.whole: Optional[Dict[str, Any]] = group.get("whole")  # the model measured as a whole
        self.fusions: Dict[str, Any] = group["fusions"]
        self.partial: Optional[str] = group.get("partial", {}).get("text")

    @property
    def page(self) -> str:
        """The path of report.html."""
        return os.path.join(self.folder, "report.html")

    def table(self, device: Optional[str] = None) -> Table:
        """The dispatch table that was made of it."""
        return load(os.path.join(self.folder, "dispatch.json"), device)

    def _shown(self) -> Tuple[str, List[Column], List[List[str]]]:
        t = self.totals
        title = f"{self.model} · {self.device} · {self.regime}: {times(t['baseline_us'])} a run"
        if self.whole:
            default = self.whole["default"]
            title = f"{self.model} · {self.device} · {self.regime}: {times(default['time_us'])} a run as a whole"
        title += f", proven {percent(t['proven_share'])}, only potential {percent(t['potential_share'])}"
        if self.partial:
            title += f" · {self.partial}"
        columns = [Column("operation"), Column("shape"), Column("dtype"), Column("count", True), Column("time", True),
                   Column("best", True), Column("share", True), Column("of ceiling", True), Column("priority"),
                   Column("approach")]
        rows = []
        for r in self.rows:
            if r.outcome == "outside":
                continue
            known = r.baseline_time_us is not None
            faster = r.best_time_us is not None and (r.best, r.best_variant) != (r.baseline, r.baseline_variant)
            rows.append([r.layers[0] if r.layers else r.name or r.operation, "x".join(map(str, r.shape)),
                         r.precision or r.dtype, str(r.count), times(r.baseline_time_us or 0) if known else r.status,
                         times(r.best_time_us or 0) if faster else "=", percent(r.share) if r.share is not None else "",
                         percent(r.efficiency) if r.efficiency is not None else "", r.priority,
                         r.approach + (" ?" if r.borderline else "")])
        return title, columns, rows


def option(name: str, value: Any) -> List[str]:
    """"--budget=90" of a budget; nothing of None or False; the bare option of True."""
    flag = "--" + name.replace("_", "-")
    if value is None or value is False:
        return []
    return [flag] if value is True else [f"{flag}={value}"]


def profile(model: Path, *, batch: Optional[int] = None, seq: Optional[int] = None,
            dims: Optional[Mapping[str, int]] = None, precision: Optional[str] = None, device: Optional[str] = None,
            regime: Optional[str] = None, budget: Union[None, float, str] = None, target_ci: Optional[str] = None,
            min_time: Union[None, float, str] = None, quick: bool = False, out: Path = "out", wait: bool = True,
            progress: Optional[bool] = None) -> Profile:
    """Extracts the operations of an ONNX model, measures them, and says what is worth doing. All of it is kept below
    `out`, and what has not changed since is not measured again. Options are those of `ceiling-scout profile`: budget="2m"
    bounds the time, quick=True gives first figures soon. Ctrl-C keeps what is finished; the same call goes on."""
    arguments = ["profile"]
    for name, value in (("batch", batch), ("seq", seq), ("precision", precision), ("device", device), ("regime", regime),
                        ("budget", budget), ("target_ci", target_ci), ("min_time", min_time), ("quick", quick),
                        ("out", os.fspath(out)), ("no_wait", not wait)):
        arguments += option(name, value)
    arguments += [f"--dim={name}={value}" for name, value in (dims or {}).items()]
    last = ["--", os.fspath(model)]
    folder = _programs.run("ceiling-scout", [*arguments, "--folder", *last], progress=False).stdout.rstrip("\n")
    ended = _programs.run("ceiling-scout", [*arguments, *last], progress=progress)
    return Profile(folder, ended.code)


def read(folder: Path) -> Profile:
    """What was measured before: a model's folder, or one of reports."""
    return Profile(folder)

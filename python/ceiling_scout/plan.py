"""A whole model by libscout_run: what extract_ops wrote of it, on the caller's weights and inputs."""
from __future__ import annotations

import ctypes as ct
import os
import weakref
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Tuple

from . import _run as c
from . import arrays
from .runtime import Path, Runner, _call, _check, _out, _tensor, _views

INPUT, OUTPUT, WEIGHT, CONSTANT = range(4)
_NAMES = {number: name for name, number in c.TYPES.items()}


@dataclass(frozen=True)
class Slot:
    """What is bound under a name."""

    use: int
    dtype: str
    shape: Tuple[int, ...]


class Plan:
    """A model's folder (ops.json, and plan.json if it is there), opened on a device. `inputs`, `outputs`, `weights` and
    `constants` say by name what it takes: constants are what the model computes of its weights alone, and ops.json does not
    tell. Arrays that are bound are used where they lie, and kept. One call at a time."""

    def __init__(self, folder: Path, runner: Optional[Runner] = None) -> None:
        self.runner = Runner() if runner is None else runner
        self._handle = ct.c_void_p()
        self._kept: Dict[str, Any] = {}
        error = c.Error()
        _check(_call("run_plan_open", self.runner._open(), os.fsencode(folder), ct.byref(self._handle), ct.byref(error)), error)
        self._closing = weakref.finalize(self, _close, self.runner, self._handle.value)
        self.slots: Dict[str, Slot] = dict(self._slot(k) for k in range(c.functions()["run_plan_count"](self._handle)))

    def _slot(self, number: int) -> Tuple[str, Slot]:
        info, error = c.PlanInfo(ct.sizeof(c.PlanInfo)), c.Error()
        _check(c.functions()["run_plan_tensor"](self._handle, number, ct.byref(info), ct.byref(error)), error)
        of = info.tensor
        return info.name.decode("utf-8", "replace"), Slot(info.use, _NAMES.get(of.type, "?"), tuple(of.dims[: of.rank]))

    def _of(self, use: int) -> Dict[str, Slot]:
        return {name: slot for name, slot in self.slots.items() if slot.use == use}

    @property
    def inputs(self) -> Dict[str, Slot]:
        return self._of(INPUT)

    @property
    def outputs(self) -> Dict[str, Slot]:
        return self._of(OUTPUT)

    @property
    def weights(self) -> Dict[str, Slot]:
        return self._of(WEIGHT)

    @property
    def constants(self) -> Dict[str, Slot]:
        return self._of(CONSTANT)

    def bind(self, given: Mapping[str, Any]) -> None:
        """Inputs, weights, constants, and outputs to write to. Another type, other sizes or gaps are a ValueError."""
        for name, found in _views(self.runner.device, given).items():
            if found is None:
                raise ValueError(f"{name}: an array was expected")
            if found.readonly and name in self.slots and self.slots[name].use == OUTPUT:
                raise ValueError(f"{name}: an array that can be written was expected")
            error, tensor = c.Error(), _tensor(found, name)
            _check(_call("run_plan_bind", self._handle, name.encode(), ct.byref(tensor), ct.byref(error)), error)
            self._kept[name] = found

    def __call__(self, given: Optional[Mapping[str, Any]] = None, *, stream: Any = None, **more: Any) -> Dict[str, Any]:
        """Binds what is given, and runs. The outputs by name: arrays of the sort of the first input, or those that were
        given."""
        all_given = {**(given or {}), **more}
        self.bind(all_given)
        like = next(iter(all_given.values()), None)
        results: Dict[str, Any] = {}
        for name, slot in self.outputs.items():
            if name in all_given:
                results[name] = all_given[name]
                continue
            results[name], place = _out(like, None, slot.shape, slot.dtype, self.runner.device)
            self.bind({name: results[name]})
        error = c.Error()
        first = next(iter(self._kept.values()), None)
        queue = None if first is None else arrays.stream_of(first, stream)
        _check(_call("run_plan_launch", self._handle, queue, ct.byref(error)), error)
        return results

    def close(self) -> None:
        """Before its runner, when no launch is under way."""
        self._closing()
        self._handle = ct.c_void_p()


def _close(runner: Runner, handle: Optional[int]) -> None:
    if runner._handle:  # else it went with the runner's device
        c.functions()["run_plan_close"](handle)


def load_plan(folder: Path, device: str = "cpu", table: Optional[Path] = None) -> Plan:
    """A model's folder on a device of its own."""
    return Plan(folder, Runner(device, table))

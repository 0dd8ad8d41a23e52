"""The devices of this machine, as the programs name them."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Mapping

from . import _programs
from .errors import ScoutError


@dataclass(frozen=True)
class Device:
    """What a process runs on, as `scout_batch --list-devices` names it. What is 0 is not compared."""

    name: str
    capability: str
    driver: str
    units: int = 0
    memory_mib: int = 0
    power_limit_w: int = 0
    libraries: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_class(cls, text: str) -> "Device":
        """From the text of a device class: "name=NVIDIA H200;capability=9.0;…;cublaslt=13.1.0"."""
        members = dict(part.split("=", 1) for part in text.split(";") if "=" in part)
        name, capability, driver = (members.pop(name, "") for name in ("name", "capability", "driver"))
        units, memory, power = (int(members.pop(name, "0")) for name in ("units", "memory_mib", "power_limit_w"))
        return cls(name, capability, driver, units, memory, power, members)


def devices() -> Dict[str, Device]:
    """The devices of this machine that can be measured and run on: {"cpu": Device(…), "cuda:0": Device(…)}."""
    found, name = {}, ""
    for line in _programs.run("scout_batch", ["--list-devices"], progress=False).stdout.splitlines():
        word, _, rest = line.strip().partition(" ")
        if line[:1] != " ":
            name = word
        elif word == "class":
            found[name] = Device.of_class(rest)
    return found


def find(name: str) -> Device:
    """One of them. "auto": a GPU if there is one, else the CPU; "cuda": the first one."""
    there = devices()
    wanted = {"auto": [n for n in there if n.startswith("cuda")] + ["cpu"], "cuda": ["cuda:0"]}.get(name, [name])
    for each in wanted:
        if each in there:
            return there[each]
    raise ScoutError(f"there is no device {name} here; there are: {', '.join(there) or 'none'}")

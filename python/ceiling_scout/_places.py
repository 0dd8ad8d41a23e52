"""Where the programs and shared libraries lie: in $CEILING_SCOUT_HOME (an installed tree), else in this package, which
holds such a tree when it was installed from a wheel, else where the system looks for programs and libraries."""
from __future__ import annotations

import ctypes
import os
import shutil
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Tuple

from .errors import LibraryMissing

HOME = "CEILING_SCOUT_HOME"
LIBRARY_PATH = "CEILING_SCOUT_LIBRARY_PATH"


def trees() -> Iterator[Path]:
    """The installed trees to be searched. Where the variable is set it is meant, and there is no other."""
    home = os.environ.get(HOME)
    yield Path(home) if home else Path(__file__).parent / "tree"


def program(name: str) -> str:
    for tree in trees():
        path = tree / "bin" / name
        if path.is_file():
            return str(path)
    found = None if os.environ.get(HOME) else shutil.which(name)
    if found:
        return found
    raise LibraryMissing(f"{name} was not found in {' or '.join(str(t / 'bin') for t in trees())}, nor in the path; "
                         f"install the wheel of this platform, or set {HOME} to an installed tree")


def library(name: str) -> ctypes.CDLL:
    """A shared library by its soname: one for others, or one of the programs' own."""
    for tree in trees():
        for path in (tree / "lib" / name, tree / "lib" / "ceiling-scout" / name):
            if path.is_file():
                return _load(str(path))
    if os.environ.get(HOME):
        raise LibraryMissing(f"{name} was not found in {next(trees()) / 'lib'}, which {HOME} names")
    return _load(name)


def _load(name: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(name)
    except OSError as why:
        raise LibraryMissing(f"{name} cannot be loaded ({why}); install the wheel of this platform, or set {HOME} to an "
                             "installed tree") from None


def declared(lib: ctypes.CDLL, prefix: str, functions: Mapping[str, Tuple[Any, List[Any]]]) -> Dict[str, Any]:
    """Its functions, without their prefix, each with the types of its result and arguments."""
    found = {}
    for name, (result, arguments) in functions.items():
        try:
            function = getattr(lib, prefix + name)
        except AttributeError:
            raise LibraryMissing(f"{lib._name} has no {prefix + name}: it is older than this package; "
                                 "install both from one wheel") from None
        function.restype, function.argtypes = result, arguments
        found[name] = function
    return found


def library_path() -> str:
    """What the programs and libscout_run search first for cuBLASLt, cuDNN and others: what is asked for, then the wheels
    of NVIDIA that lie beside this package or in the path of this Python."""
    folders = [os.environ.get(LIBRARY_PATH, "")]
    for place in dict.fromkeys([str(Path(__file__).parent.parent), *sys.path]):
        if place:
            folders += sorted(str(path) for path in Path(place).glob("nvidia/*/lib"))
    return ":".join(folder for folder in folders if folder)

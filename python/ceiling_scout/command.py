"""The command `ceiling-scout` of an installed wheel: the program that lies in it."""
from __future__ import annotations

import os
import sys

from . import _places
from .errors import LibraryMissing


def main() -> None:
    path = _places.library_path()
    if path:
        os.environ[_places.LIBRARY_PATH] = path
    try:
        program = _places.program("ceiling-scout")
    except LibraryMissing as why:
        sys.exit(f"ceiling-scout: {why}")
    os.execv(program, ["ceiling-scout", *sys.argv[1:]])

"""What can go wrong. Each text is one line that says what was expected, and what to do about it."""
from __future__ import annotations


class ScoutError(Exception):
    """Everything that this package raises, but for arguments of a wrong type or value (TypeError, ValueError)."""


class LibraryMissing(ScoutError):
    """A shared library or a program of Ceiling Scout is not there, or cannot be loaded."""


class TableBad(ScoutError):
    """No dispatch table, or one that contradicts itself, or a file that cannot be read."""


class TableUnsigned(TableBad):
    """A signature is demanded, and the table has none that is right by a key that was named."""


class TableRefused(ScoutError):
    """A dispatch table of another device, driver branch or library version: run the defaults."""


class ProgramFailed(ScoutError):
    """A program ended with an exit code that is no success; the README of Ceiling Scout lists the codes."""

    def __init__(self, program: str, code: int, said: str) -> None:
        super().__init__(said or f"{program} ended with {code}")
        self.program = program
        self.code = code


class Unsupported(ScoutError):
    """Nothing on this device computes the operation."""

"""Starts the programs. What they say of a mistake is what the exception says."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import IO, List, Optional, Sequence

from . import _places
from .errors import LibraryMissing, ProgramFailed

MOST_SAID = 1 << 20


class Ended:
    def __init__(self, code: int, stdout: str, stderr: str) -> None:
        self.code, self.stdout, self.stderr = code, stdout, stderr


def on_terminal() -> bool:
    """Whether this process's standard error is a terminal, and nothing stands in its place (a notebook's)."""
    try:
        return sys.stderr.fileno() == 2 and os.isatty(2)
    except (AttributeError, OSError, ValueError):
        return False


def _drain(stream: IO[str], kept: List[str], show: bool) -> None:
    size = 0
    with stream:
        for line in stream:
            if size < MOST_SAID:
                kept.append(line)
                size += len(line)
            if show:
                sys.stderr.write(line)
                sys.stderr.flush()


def run(name: str, arguments: Sequence[str], *, progress: Optional[bool] = None, accept: Sequence[int] = (0, 1)) -> Ended:
    """Runs a program to its end. progress None: on a terminal it draws its own bar there, else it is silent; True: where
    there is no terminal, its lines go to sys.stderr as they come. Ctrl-C ends it as it does in a shell: it keeps what is
    finished."""
    draws = progress is not False and on_terminal()
    environment = dict(os.environ)
    path = _places.library_path()
    if path:
        environment[_places.LIBRARY_PATH] = path
    program = _places.program(name)
    try:
        child = subprocess.Popen([program, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=None if draws else subprocess.PIPE, env=environment, text=True,
                                 encoding="utf-8", errors="replace")
    except OSError as why:
        raise LibraryMissing(f"{program} cannot be started: {why.strerror}; install the wheel of this platform") from None
    said: List[List[str]] = [[], []]
    readers = [threading.Thread(target=_drain, args=(stream, kept, show), daemon=True)
               for stream, kept, show in ((child.stdout, said[0], False), (child.stderr, said[1], progress is True))
               if stream]
    for reader in readers:
        reader.start()
    code = _wait(child)
    for reader in readers:
        reader.join()
    out, err = "".join(said[0]), "".join(said[1])
    if code not in accept:
        raise ProgramFailed(name, code, _why(name, code, err))
    return Ended(code, out, err)


def _wait(child: "subprocess.Popen[str]") -> int:
    try:
        return child.wait()
    except KeyboardInterrupt:  # a terminal sent it to the child, too
        if not on_terminal():
            child.send_signal(signal.SIGINT)
        child.wait()
        raise
    except BaseException:
        child.kill()
        child.wait()
        raise


def _why(name: str, code: int, err: str) -> str:
    """The last line that a program said, without its own name; what it drew on the terminal stands there already."""
    lines = [line.strip() for line in err.splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    for program in (name, "extract_ops", "scout_batch", "analyze", "ceiling-scout"):
        if last.startswith(program + ": "):
            last = last[len(program) + 2:]
    how = f"was ended by signal {-code}" if code < 0 else f"ended with {code}"
    return last or f"{name} {how}"

"""Runs a command on a pseudo-terminal, and holds what its bar told against what came. From the middle of the run on the
printed end is within 30 % or 10 s of the real one nine times of ten (beside other work a host's passes may be lost in a
row), and the bar never stands still for 5 s. Usage: eta.py [--figures] COMMAND…   --figures: what was seen, in numbers"""
import fcntl
import os
import re
import select
import struct
import sys
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from pseudo_terminal import run_on

BAR = re.compile(r"\[[#.]+\] ((?:[a-z]+ \d+/\d+(?: · )?)+)  (?:(\d+):(\d\d) left)?")


def main():
    figures = sys.argv[1] == "--figures"
    terminal, line = os.openpty()
    fcntl.ioctl(line, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))
    began, told, output, status = time.monotonic(), [], b"", None
    child = os.fork()
    if child == 0:
        run_on(line, sys.argv[2 if figures else 1:])
    while True:
        if select.select([terminal], [], [], 0.02)[0]:
            text = os.read(terminal, 65536)
            output += text
            for bar in BAR.finditer(text.decode(errors="replace")):
                left = int(bar[2]) * 60 + int(bar[3]) if bar[2] else 0
                told.append((time.monotonic() - began, left, bar[1]))
        elif status is not None:
            break
        else:
            ended, code = os.waitpid(child, os.WNOHANG)
            status = code if ended else None
    whole = time.monotonic() - began
    late = [(at, left) for at, left, _ in told if at > whole / 2]
    bad = [(at, left) for at, left in late if abs(at + left - whole) > max(10, 0.3 * whole)]
    still = [at for (at, *_), (then, *_) in zip(told, told[1:]) if then - at > 5]
    phases = {name for *_, text in told for name in re.findall(r"[a-z]+", text)}
    tables = output.decode(errors="replace").count("estimates after the first pass")
    if os.waitstatus_to_exitcode(status) > 1 or not told or 10 * len(bad) > len(late) or still or tables == 0:
        print(f"FAILED exit {status}, {whole:.1f} s, told {len(told)} times, off: {bad[:3]}, still: {still[:3]}, tables: {tables}")
        return 1
    if figures:
        worst = max(abs(at + left - whole) for at, left in late)
        gap = max(then - at for (at, *_), (then, *_) in zip(told, told[1:]))
        print(f"{whole:7.1f} s, told {len(told):4d} times; from the middle on off by {worst:5.1f} s at most ({100 * worst / whole:4.1f} %); "
              f"beyond 30 % and 10 s {len(bad)} of {len(late)}; stood still for {gap:.1f} s at most")
    else:
        print(" ".join(sorted(phases)))
    return 0


sys.exit(main())

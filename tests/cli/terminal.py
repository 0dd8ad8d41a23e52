"""Runs a command on pseudo-terminals of several widths: every line must fit, and colours be there unless NO_COLOR is set."""
import fcntl
import os
import pty
import re
import struct
import sys
import termios


def on_terminal(command, columns):
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        os.environ["TERM"] = "xterm-256color"
        os.environ.pop("COLUMNS", None)
        os.execv(command[0], command)
    output = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        output += piece
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), output.decode()


bad = 0
for columns in (60, 80, 132):
    code, output = on_terminal(sys.argv[1:], columns)
    coloured = "\x1b[" in output
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", part) for line in output.split("\n") for part in line.split("\r")]
    longest = max(map(len, lines))
    if code != 0 or longest > columns or coloured == ("NO_COLOR" in os.environ):
        print(f"{columns} columns: exit {code}, longest line {longest}, coloured {coloured}")
        bad = 1
sys.exit(bad)

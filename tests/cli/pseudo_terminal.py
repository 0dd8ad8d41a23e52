"""A command on a pseudo-terminal, for the tests of what people see: on_terminal(command, columns)."""
import fcntl
import os
import pty
import struct
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

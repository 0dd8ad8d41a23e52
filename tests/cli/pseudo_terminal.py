"""A command on a pseudo-terminal, for the tests of what people see: on_terminal(command, columns)."""
import fcntl
import os
import select
import struct
import termios


def run_on(line, command):
    os.setsid()
    fcntl.ioctl(line, termios.TIOCSCTTY, 0)
    for fd in range(3):
        os.dup2(line, fd)
    os.environ["TERM"] = "xterm-256color"
    os.environ.pop("COLUMNS", None)
    os.execv(command[0], command)


def on_terminal(command, columns):
    terminal, line = os.openpty()
    fcntl.ioctl(line, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    child = os.fork()
    if child == 0:
        try:
            run_on(line, command)
        finally:
            os._exit(127)
    output, status = b"", None
    # The line stays open on this side until all is read: with its last holder some systems drop what is still in it.
    while True:
        if select.select([terminal], [], [], 0.01)[0]:
            output += os.read(terminal, 65536)
        elif status is not None:
            break
        else:
            ended, code = os.waitpid(child, os.WNOHANG)
            status = code if ended else None
    os.close(terminal)
    os.close(line)
    return os.waitstatus_to_exitcode(status), output.decode()

#!/usr/bin/env python3
"""Runs a program on every case that make.py wrote and checks how it ended.

    run_cases.py PROGRAM CASES.json [NAME]…    NAME: only the cases whose names begin so

Whatever the file: the exit code is one of those the case allows, within its seconds and 256 MB, stderr is at most one line
beside warnings, short and free of control characters, and a refused model leaves no file behind. What is written is at
most 50 times the model and 64 MiB, and scout_batch takes it.
"""
import json
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from taken import refusal

MEGABYTES = 256
PER_BYTE, ROOM = 50, 64 << 20  # of a file that is written
LARGE = 2 << 20        # of a file that another process reads
FULL = 1 << 30          # where the disk is said to be full
PATIENCE = 20           # seconds before a run is killed
TRIES = 3               # of one that takes too long
YARD = 0.2              # seconds of processor time of the yardstick where a case may take what is written beside it
MOST_SLOWER = 2.5       # that excuses
YARDSTICK = "import json; json.loads(json.dumps([{'name': 't%d' % i, 'shape': [i, 4]} for i in range(60000)]))"
LINE, LINES = 2048, 200  # longest line of stderr, and how many
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
WARNING = "extract_ops: warning: "
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # no disk to wait for
ENVIRONMENT = dict(os.environ, ASAN_OPTIONS="exitcode=99:allocator_may_return_null=1",
                   UBSAN_OPTIONS="exitcode=98:print_stacktrace=1")


class Run:
    """One start of the program in an empty folder."""

    def __init__(self, program, case, out):
        self.command = [program, case["path"], "-o", os.path.join(out, "ops.json"),
                        "--tensors", os.path.join(out, "tensors.json")] + case["args"]
        with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
            start = time.monotonic()
            child = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
                                     env=ENVIRONMENT, cwd=out)
            self.wait(child, start + PATIENCE)
            self.wall = time.monotonic() - start
            self.stdout, self.stderr = self.text(stdout), self.text(stderr)
        self.left = {name: os.path.getsize(os.path.join(out, name)) for name in sorted(os.listdir(out))}
        self.most = ROOM + PER_BYTE * (os.path.getsize(case["path"]) if os.path.isfile(case["path"]) else 0)

    def wait(self, child, until):
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > until:
                child.kill()
                pid, status, usage = os.wait4(child.pid, 0)
                break
            time.sleep(0.002)
        self.code = child.returncode = os.waitstatus_to_exitcode(status)
        self.cpu = usage.ru_utime + usage.ru_stime
        self.megabytes = usage.ru_maxrss / 1024

    @staticmethod
    def text(file):
        file.seek(0)
        return file.read(16 << 20).decode("utf-8", "replace")


def slowness():
    """How much slower this machine is now than the one that the cases' seconds are for, by a script that never changes."""
    child = subprocess.Popen([sys.executable, "-ISc", YARDSTICK])
    usage = os.wait4(child.pid, 0)[2]
    child.returncode = 0
    return min(MOST_SLOWER, max(1.0, (usage.ru_utime + usage.ru_stime) / YARD))


def what_is_wrong(run, case, slower):
    """Sentences; empty where all is well."""
    wrong = []
    if run.code not in case["exits"]:
        wrong.append("exit %d, expected %s" % (run.code, " or ".join(map(str, case["exits"]))))
    if run.cpu > case["seconds"] * slower:
        wrong.append("%.2f s of processor time, %.1f allowed" % (run.cpu, case["seconds"] * slower))
    if run.wall >= PATIENCE:
        wrong.append("killed after %d s" % PATIENCE)
    if run.megabytes > MEGABYTES:
        wrong.append("%.0f MB, %d allowed" % (run.megabytes, MEGABYTES))
    wrong += ["%s has %d MB" % (name, size >> 20) for name, size in run.left.items() if size > run.most]
    wrong += wrong_lines(run, case)
    left = list(run.left)
    if run.code in (0, 1) and left != ["ops.json", "tensors.json"]:
        wrong.append("left %s" % left)
    elif run.code not in (0, 1) and left:
        wrong.append("left %s behind" % left)
    return wrong


def wrong_lines(run, case):
    wrong = []
    lines = run.stderr.split("\n")
    if lines.pop() != "":
        wrong.append("stderr does not end with a newline")
    errors = [l for l in lines if not l.startswith(WARNING)]
    if run.code in (0, 1) and len(errors) > 1 or run.code not in (0, 1) and len(errors) != 1:
        wrong.append("%d lines on stderr beside warnings" % len(errors))
    if len(lines) > LINES:
        wrong.append("%d lines on stderr" % len(lines))
    if any(len(l.encode("utf-8", "replace")) > LINE for l in lines):
        wrong.append("a line of more than %d bytes on stderr" % LINE)
    if CONTROL.search(run.stderr):
        wrong.append("control characters on stderr: %r" % CONTROL.search(run.stderr).group())
    if CONTROL.search(run.stdout):
        wrong.append("control characters on stdout: %r" % CONTROL.search(run.stdout).group())
    if any(not l.startswith("extract_ops: ") for l in errors):
        wrong.append("a line on stderr that does not begin with extract_ops:")
    if run.code == 3 and not re.search(case["pattern"], "\n".join(errors), re.I):
        wrong.append("stderr does not match /%s/" % case["pattern"])
    return wrong


def load(out, kind):
    """A file that must be strict JSON of the promised kind, whatever names and numbers the model held."""
    with open(os.path.join(out, kind + ".json"), encoding="utf-8") as f:
        content = json.load(f, parse_constant=lambda c: 1 / 0)
    if not content["schema"].startswith("ceiling-scout/%s/" % kind):
        raise KeyError("schema is " + content["schema"])
    return content


def wrong_json(out):
    try:
        ops, _ = load(out, "ops"), load(out, "tensors")
        sums = [ops["totals"]] + ops["ops"]
        low = [k for s in sums for k in ("macs", "flops", "bytes_read", "bytes_written", "bytes") if not 0 <= s.get(k, 0) < 1 << 63]
        return ["ops.json: %s is negative or too large" % low[0]] if low else []
    except (ValueError, KeyError, TypeError, ZeroDivisionError, RecursionError, OSError) as error:
        return ["a file that was written: %r" % error]


def wrong_written(out):
    """What this process once held counts as memory of the programs that it starts later: another one reads large files."""
    if os.path.getsize(os.path.join(out, "ops.json")) < LARGE:
        return wrong_json(out)
    said = subprocess.run([sys.executable, "-B", os.path.abspath(__file__), "--written", out], capture_output=True, text=True)
    return said.stdout.splitlines() or ([] if said.returncode == 0 else ["its reader ended with %d" % said.returncode])


def check(program, case):
    """The run, and None where all is well, else what to print. A run that took too long is tried again beside the yardstick."""
    for left in reversed(range(TRIES)):
        run, wrong = check_once(program, case, 1.0 if left == TRIES - 1 else slowness())
        if left == 0 or not wrong or any("processor time" not in w for w in wrong):
            break
    if not wrong:
        return run, None
    shown = " ".join(map(shlex.quote, run.command[:2] + ["-o", "ops.json", "--tensors", "tensors.json"] + case["args"]))
    said = "\n".join("    | " + l for l in run.stderr[:3000].splitlines()[:12])
    return run, "FAILED %s: %s\n    %s\n%s" % (case["name"], "; ".join(wrong), ascii(shown)[1:-1], ascii(said)[1:-1].replace("\\n", "\n"))


def check_once(program, case, slower):
    """The run, and what is wrong with it."""
    before = listing(case["home"])
    with tempfile.TemporaryDirectory(dir=MEMORY) as out:
        run = Run(program, case, out)
        wrong = what_is_wrong(run, case, slower)
        if run.code in (0, 1) and not wrong:
            wrong = wrong_written(out) or list(filter(None, [refusal(os.path.join(out, "ops.json"))]))
    if listing(case["home"]) != before:
        wrong.append("the model's folder has changed")
    return run, wrong


def listing(folder):
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def main(args):
    if args[:1] == ["--written"]:
        for line in wrong_json(args[1]):
            print(line)
        return 0
    if len(args) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    program, names = os.path.abspath(args[0]), tuple(args[2:])
    with open(args[1]) as f:
        cases = [c for c in json.load(f) if not names or c["name"].startswith(names)]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FULL, FULL))
    failures, most = 0, (0, 0, 0)
    with ThreadPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count())) as pool:
        for run, failure in pool.map(lambda c: check(program, c), cases):
            most = tuple(map(max, most, (run.wall, run.megabytes, max(run.left.values(), default=0) / 1e6)))
            if failure:
                failures += 1
                print(failure, flush=True)
    print("at most %.1f s, %.0f MB of memory, a file of %.0f MB" % most)
    print("%d passed, %d failed" % (len(cases) - failures, failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

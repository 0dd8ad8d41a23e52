"""Runs a command and says what it took. Usage: bounded.py MEGABYTES SECONDS COMMAND…   seconds of processor time

Ends as the command does; with 99, and a word, where it took more than that of either.
"""
import resource
import subprocess
import sys

megabytes, seconds = float(sys.argv[1]), float(sys.argv[2])
code = subprocess.run(sys.argv[3:]).returncode
took = resource.getrusage(resource.RUSAGE_CHILDREN)
spent, peak = took.ru_utime + took.ru_stime, took.ru_maxrss / 1024
if spent > seconds or peak > megabytes:
    print(f"bounded: {spent:.2f} s and {peak:.0f} MB; {seconds:.2f} s and {megabytes:.0f} MB were allowed", file=sys.stderr)
    sys.exit(99)
sys.exit(code)

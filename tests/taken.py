#!/usr/bin/env python3
"""Whether scout_batch takes what extract_ops wrote.

    taken.py OPS.json…    prints what is not taken; SCOUT names the program where it is not bin/scout_batch
"""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SCOUT = os.path.abspath(os.environ.get("SCOUT") or os.path.join(HERE, "..", "bin", "scout_batch"))


def refusal(path):
    """None, or what it says: it reads all of a list before it finds that nothing in it has this name."""
    said = subprocess.run([SCOUT, path, "-o", path + ".run", "--only", "no such name"], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=60)
    text = said.stderr.decode("utf-8", "replace").strip()
    taken = said.returncode == 2 and "has no operation, name" in text
    return None if taken else "scout_batch does not take it: exit %d, %s" % (said.returncode, text[-300:])


if __name__ == "__main__":
    found = [why for why in map(refusal, sys.argv[1:]) if why]
    print("\n".join(found), end="")
    sys.exit(1 if found else 0)

"""What the checks share: running extract_ops, reading what it wrote, counting what came of it."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from taken import refusal

# onnx's number of a data type -> the name that extract_ops gives it (common/dtype.h).
DTYPES = {
    1: "fp32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool",
    10: "fp16", 11: "fp64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bf16",
    17: "fp8e4m3fn", 18: "fp8e4m3fnuz", 19: "fp8e5m2", 20: "fp8e5m2fnuz", 21: "uint4", 22: "int4", 23: "fp4e2m1",
    24: "fp8e8m0", 25: "uint2", 26: "int2",
}


class Tally:
    """Counts checks and prints those that fail."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def check(self, good, what):
        if good:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED {what}")
        return good

    def skip(self, why):
        self.skipped += 1
        print(f"skipped: {why}")

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        sys.exit(1 if self.failed else 0)


class Run:
    """One run of extract_ops: its exit code, its last words, and what it wrote (None where there is no file)."""

    def __init__(self, program, model, *options, timeout=60):
        with tempfile.TemporaryDirectory() as folder:
            ops, tensors = os.path.join(folder, "ops.json"), os.path.join(folder, "tensors.json")
            command = [program, model, "-o", ops, "--tensors", tensors, "--quiet", *map(str, options)]
            try:
                done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout)
                self.code, self.stderr = done.returncode, done.stderr.strip()
            except subprocess.TimeoutExpired:
                self.code, self.stderr = -1, f"not done after {timeout} s"
            self.tensors_text = _read(tensors)
            self.ops_text = _read(ops)
            if self.ops_text and (why := refusal(ops)):
                self.code, self.stderr = -1, why
        self.ops = json.loads(self.ops_text) if self.ops_text else None
        self.tensors = {}  # name -> (dtype, shape), of the main graph
        for t in json.loads(self.tensors_text)["tensors"] if self.tensors_text else []:
            if not t.get("region"):
                self.tensors[t["name"]] = t

    def last_line(self):
        return self.stderr.splitlines()[-1] if self.stderr else ""


def _read(path):
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as f:
        return f.read()


def program():
    return os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "bin/extract_ops")


def models_folder():
    return os.environ.get("MODELS_DIR", "../shared/models")


def models():
    """Paths of the real models, in order; none where the folder is absent."""
    folder = models_folder()
    if not os.path.isdir(folder):
        return []
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".onnx")]


def model(name):
    """The path of one real model; None where it is absent."""
    path = os.path.join(models_folder(), name + ".onnx")
    return path if os.path.exists(path) else None


@contextlib.contextmanager
def need_models(tally):
    """For a whole check: skipped, with a message, where there are no models."""
    if models():
        yield True
    else:
        tally.skip(f"there are no models in {models_folder()}")
        yield False

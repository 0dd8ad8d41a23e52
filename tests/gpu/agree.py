"""Times the products of reports once more, with PyTorch: agree.py REPORTS RESULT.json

The independent measurement: torch.matmul of the same shapes, measured as agree_common.py does; and beside it the very
algorithm that the report names (its bytes are in `config`), launched here through ctypes in the same library file. The
names of the kernels that both launch are read by PyTorch's profiler. Where torch.matmul launches another kernel than the
report's algorithm, the replayed algorithm is what is compared, and that is said.
"""
import ctypes
import json
import os
import sys

import torch

import agree_common
from agree_common import baseline_row, kernels, libraries_of, library, measure, reports

WORKSPACE = 32 << 20
R_16F, R_32F, COMPUTE_32F = 2, 0, 68
DESC_EPILOGUE, DESC_BIAS_POINTER, DESC_BIAS_DATA_TYPE = 7, 8, 26


class Lt:
    """As much of cuBLASLt as one product needs, from the file that PyTorch has loaded."""

    def __init__(self):
        probe = torch.zeros(64, 64, device="cuda", dtype=torch.half)
        torch.matmul(probe, probe)
        self.path = library("libcublasLt.so")
        self.lib = ctypes.CDLL(self.path)
        self.handle = ctypes.c_void_p()
        self.check(self.lib.cublasLtCreate(ctypes.byref(self.handle)))
        self.workspace = torch.empty(WORKSPACE, device="cuda", dtype=torch.uint8)

    @staticmethod
    def check(code):
        if code != 0:
            raise RuntimeError(f"cuBLASLt answered {code}")

    def layout(self, rows, cols):
        out = ctypes.c_void_p()
        self.check(self.lib.cublasLtMatrixLayoutCreate(ctypes.byref(out), R_16F, ctypes.c_uint64(rows),
                                                       ctypes.c_uint64(cols), ctypes.c_int64(rows)))
        return out

    def set(self, description, attribute, value):
        self.check(self.lib.cublasLtMatmulDescSetAttribute(description, attribute, ctypes.byref(value),
                                                           ctypes.c_size_t(ctypes.sizeof(value))))

    def product(self, m, n, k, algorithm, epilogue=0, biased=False, added=False):
        """A function that launches C = A B by rows, which is C' = B' A' by columns, on the current stream; with one of
        the library's epilogues. A bias comes behind a, b and c, and then a matrix that is added."""
        description = ctypes.c_void_p()
        self.check(self.lib.cublasLtMatmulDescCreate(ctypes.byref(description), COMPUTE_32F, R_32F))
        left, right, out = self.layout(n, k), self.layout(k, m), self.layout(n, m)
        one, beta = ctypes.c_float(1), ctypes.c_float(1 if added else 0)
        words = ctypes.create_string_buffer(bytes.fromhex(algorithm), 64)
        pointer = ctypes.c_void_p
        if epilogue:
            self.set(description, DESC_EPILOGUE, ctypes.c_int32(epilogue))
        if biased:
            self.set(description, DESC_BIAS_DATA_TYPE, ctypes.c_int32(R_16F))

        def launch(a, b, c, *more):
            stream = pointer(torch.cuda.current_stream().cuda_stream)
            if biased:
                self.set(description, DESC_BIAS_POINTER, pointer(more[0].data_ptr()))
            read = more[-1] if added else c
            self.check(self.lib.cublasLtMatmul(
                self.handle, description, ctypes.byref(one), pointer(b.data_ptr()), left, pointer(a.data_ptr()), right,
                ctypes.byref(beta), pointer(read.data_ptr()), out, pointer(c.data_ptr()), out, words,
                pointer(self.workspace.data_ptr()), ctypes.c_size_t(WORKSPACE), stream))
        return launch


def rotation(m, n, k, bytes_covered):
    """Sets of a, b, c."""
    some = lambda rows, cols: torch.randn(rows, cols, device="cuda", dtype=torch.half)
    make = lambda: (some(m, k), some(k, n), torch.empty(m, n, device="cuda", dtype=torch.half))
    return agree_common.rotation(make, bytes_covered)


def algorithm_of(report):
    """The bytes of the algorithm that the baseline's row names, for Lt."""
    return baseline_row(report)["config"]["algo"]


def covered(report):
    return max(report.get("rotation_bytes", 0), 1 << 30)


def compare(report, by_torch, replay, sets, want, others=None, comparable=True):
    """Holds the report's baseline against PyTorch's function, or the replayed algorithm where that launches another
    kernel (or, not `comparable`, something beside it). The third of each of `sets` is the output; `want` is what it
    should be for the first; `others` are launched and timed in the same turns."""
    m, n, k = report["shape"]
    ours, theirs = kernels(replay, sets[0]), kernels(by_torch, sets[0])
    times = measure({"torch": by_torch, "replay": replay, **(others or {})}, sets)
    same = comparable and ours == theirs
    by = "PyTorch" if same else "replay of the algorithm (PyTorch launches " + ", ".join(theirs)[:60] + ")"
    other = times["torch" if same else "replay"]
    replay(*sets[0])
    right = ((sets[0][2].float() - want).norm() / want.norm()).item() < 1e-2
    scout_us, mhz, slope = report["baseline_time_us"], report.get("clock_mhz"), report.get("clock_slope", 0)
    return {"name": report["name"], "shape": [m, n, k], "scout_us": scout_us, "other_us": other.us,
            "scout_mhz": mhz, "other_mhz": other.mhz,
            "ratio_at_its_clock": scout_us * (mhz / other.mhz) ** slope / other.us if mhz else None,
            "torch_us": times["torch"].us, "replay_us": times["replay"].us, "by": by, "kernel": ", ".join(ours),
            "torch_kernel": ", ".join(theirs), "torch_picks_it": same,
            "others_us": {name: times[name].us for name in others or {}},
            "same_kernel": bool(ours) and right,  # what was compared is the report's kernel, and it multiplies
            "ratio": scout_us / other.us, "sets": len(sets)}


def plain(report, lt):
    m, n, k = report["shape"]
    sets = rotation(m, n, k, covered(report))
    want = torch.matmul(sets[0][0].float(), sets[0][1].float())
    return compare(report, lambda a, b, c: torch.matmul(a, b, out=c), lt.product(m, n, k, algorithm_of(report)), sets,
                   want)


def run(folder, result, compare_one):
    """Every report of a folder that has a baseline; compare_one(report, lt) makes a row, or None: none of this one."""
    torch.backends.cuda.preferred_blas_library("cublaslt")
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = True
    lt = Lt()
    rows, libraries = [], set()
    for report in reports(folder):
        libraries |= libraries_of(report, "cublaslt")
        if not report.get("baseline_time_us"):
            print(f"{report['name']}: no baseline ({report.get('status')})")
            continue
        row = compare_one(report, lt)
        if not row:
            continue
        rows.append(row)
        others = "".join(f"  {name} {time:.3f}" for name, time in row["others_us"].items())
        clocks = (f" (at {row['scout_mhz']:.0f} and {row['other_mhz']:.0f} MHz; at one clock "
                  f"{100 * (row['ratio_at_its_clock'] - 1):+.2f} %)") if row["scout_mhz"] else ""
        print(f"{row['name']:12s} scout {row['scout_us']:10.3f} us  torch {row['torch_us']:10.3f}  replay "
              f"{row['replay_us']:10.3f}  {100 * (row['ratio'] - 1):+.2f} %{clocks}{others}  {row['kernel'][:70]}"
              f"{'' if row['torch_picks_it'] else '  | torch: ' + row['torch_kernel'][:70]}", flush=True)
        torch.cuda.empty_cache()
    with open(result, "w", encoding="utf-8") as file:
        json.dump({"torch": torch.__version__, "library": lt.path, "scout_libraries": sorted(libraries),
                   "same_library": libraries == {os.path.realpath(lt.path)}, "rows": rows}, file, indent=2)


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], plain)

"""What is around the programs, on the scripted device, whose figures are the same every time."""
import array
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import ceiling_scout as scout
from ceiling_scout import _show

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTED = {"device": "scripted:0", "custom_kernels": [os.environ["SCOUT_SCRIPTED"]], "budget": 30, "no_cache": True}
GOLDEN = ROOT / "tests/golden/reports/mlp_sparse"


def matrix(rows, cols, number=lambda row, col: 1.0):
    numbers = array.array("f", [number(r, c) for r in range(rows) for c in range(cols)])
    return memoryview(numbers).cast("B").cast("f", (rows, cols))


class Measuring(unittest.TestCase):
    def test_a_ceiling(self):
        found = scout.detect_ceiling("gemm", (64, 128, 256), "float32", **SCRIPTED)
        self.assertEqual((found.op, found.shape, found.precision, found.device), ("gemm", (64, 128, 256), "fp32", "Scripted One"))
        self.assertEqual((found.baseline, found.proven), ("scripted_blas", True))
        self.assertLess(found.best_time_us, found.baseline_time_us)
        self.assertAlmostEqual(found.efficiency, found.ceiling_time_us / found.baseline_time_us)
        best = found.variants.rows[0]
        self.assertEqual((best.name, best.variant, best.time_us), (found.best, "algo=1", found.best_time_us))
        self.assertTrue(all(v.reason for v in found.variants.rows if v.time_us is None))
        self.assertIn("scripted_blas", repr(found))
        self.assertIn("<table>", found._repr_html_())

    def test_dimensions_by_name(self):
        found = scout.detect_ceiling("attention", (1, 4, 16, 8), "fp16", kv_heads=2, causal=True, **SCRIPTED)
        self.assertIn("mask=causal;type=fp16;kv_heads=2;kv_len=16", found.key)

    def test_mistakes_are_told_in_one_line(self):
        for expected, arguments in (("misspelt", dict(misspelt=3)), ("shape", dict(shape=(1, 2))),
                                    ("no device nowhere|nowhere", dict(device="nowhere"))):
            with self.assertRaisesRegex(scout.ProgramFailed, expected) as told:
                scout.detect_ceiling("gemm", **{"shape": (8, 8, 8), **SCRIPTED, **arguments})
            self.assertNotIn("\n", str(told.exception))
            self.assertIn(told.exception.code, (2, 3, 4))

    def test_a_benchmark_prints_every_variant(self):
        program = ("import sys; sys.path.insert(0, sys.argv[1])\n"
                   "import test_programs as t\n"
                   "w = t.matrix(128, 128, lambda r, c: float(c % 4 > 1))\n"
                   "t.scout.benchmark(t.matrix(64, 128), w, **t.SCRIPTED)\n")
        said = subprocess.run([sys.executable, "-B", "-c", program, str(pathlib.Path(__file__).parent)], check=True,
                              capture_output=True, text=True).stdout
        self.assertRegex(said, r"(?m)^scripted_blas +algo=1 +[0-9.]+ us +± [0-9.]+ % +[0-9.e-]+ +0\.[0-9]+  best$")
        self.assertRegex(said, r"(?m)^scripted_blas +algo=3 ")
        self.assertRegex(said, r"(?m)^script.*_absent +UNSUPPORTED ")

    def test_a_benchmark_takes_the_arrays_as_they_are(self):
        w = matrix(128, 256, lambda r, c: float((r // 64 + c // 64) % 5 == 0))
        found = scout.benchmark(matrix(8, 128), w, **SCRIPTED)
        self.assertEqual((found.shape, found.report["layout"], found.report["pattern"]), ((8, 256, 128), "nn", "BLOCK_SPARSE"))
        dense = scout.benchmark(matrix(8, 128), w, weight=False, **SCRIPTED)
        self.assertEqual(dense.report["pattern"], "DENSE")
        for fault, expected, pair in (
                (ValueError, "a of .M, K. and b of .K, N. were expected", (matrix(8, 64), w)),
                (TypeError, "an array was expected", (3, w)),
                (TypeError, "two arrays of one type", (memoryview(bytes(8 * 128)).cast("B", (8, 128)), w))):
            with self.assertRaisesRegex(fault, expected):
                scout.benchmark(*pair, **SCRIPTED)


class Zeros(unittest.TestCase):
    def test_as_scout_batch_counts_them(self):
        for number in (lambda r, c: float(c % 4 > 1), lambda r, c: float((r // 64 + c // 64) % 5 == 0),
                       lambda r, c: float((r * 31 + c * 17) % 10 == 0)):
            w = matrix(256, 192, number)
            ours = scout.detect_sparsity(w)
            weight = scout.benchmark(matrix(16, 256), w, **SCRIPTED).report["weight"]
            self.assertEqual((ours.pattern, ours.rows, ours.cols, ours.block, ours.two_of_four_by_row, ours.most_in_row),
                             (weight["pattern"], weight["rows"], weight["cols"], weight["block"],
                              weight["two_of_four_by_row"], weight["most_in_row"]))
            self.assertAlmostEqual(ours.zeros, weight["zeros"])
            self.assertEqual(list(ours.blocks.values()), list(weight["blocks"].values()))

    def test_a_threshold(self):
        w = matrix(128, 128, lambda r, c: 1.0 if r < 64 else 0.001)
        ours = scout.detect_sparsity(w, threshold=0.01)
        self.assertEqual((ours.pattern, ours.zeros, ours.below, ours.work[64]), ("DENSE", 0.0, 0.5, 0.5))
        self.assertAlmostEqual(ours.norm_lost[64], 0.001, places=5)
        self.assertEqual(scout.detect_sparsity(w).work[64], 1.0)

    def test_what_is_no_weight(self):
        for fault, expected, w, more in (
                (TypeError, "an array was expected", [[1.0]], {}), (ValueError, "a matrix was expected", array.array("f", [1]), {}),
                (TypeError, "fp32, uint8", matrix(2, 2).cast("B").cast("l", (1, 2)), {}),
                (TypeError, "has 2 bytes", matrix(2, 2), {"dtype": "bf16"}),
                (ValueError, "at least 0", matrix(2, 2), {"threshold": float("nan")})):
            with self.assertRaisesRegex(fault, expected):
                scout.detect_sparsity(w, **more)


class Profiles(unittest.TestCase):
    def test_what_was_measured_before(self):
        found = scout.read(GOLDEN)
        told = json.loads(subprocess.run([os.environ["SCOUT_ANALYZE"], str(GOLDEN), "--format", "json"], check=True,
                                         capture_output=True, text=True).stdout)["groups"][0]
        self.assertEqual([(r.rank, r.operation, r.layers, r.priority, r.best_time_us, r.proven_gain_us) for r in found.rows],
                         [(o["rank"], o["operation"], tuple(o["layers"]), o["priority"], o.get("best_time_us"),
                           o.get("proven_gain_us")) for o in told["operations"]])
        self.assertEqual((found.device, found.totals), ("NVIDIA H200", told["totals"]))
        self.assertRegex(repr(found), r"(?m)^node_linear_3 +4096x1024x1024 +fp16 .* HIGH +SPARSE_BLOCK \?$")
        self.assertEqual(found._repr_html_().count("<tr>"), 1 + sum(r.outcome != "outside" for r in found.rows))

    def test_a_model_from_the_beginning(self):
        with tempfile.TemporaryDirectory() as out:
            found = scout.profile(ROOT / "models/pruned_mlp.onnx", batch=2, device="cpu", regime="burst", budget=4, out=out)
            self.assertEqual(found.folder, os.path.join(out, "pruned_mlp@b2_cpu_burst"))
            self.assertIn(found.code, (0, 1))
            self.assertTrue(os.path.isfile(found.page))
            self.assertTrue(any(r.op == "gemm" for r in found.rows))
            self.assertEqual(len(found.table()), sum(r.baseline is not None and r.status == "OK" for r in found.rows
                                                     if r.outcome != "outside"))
            again = scout.profile(ROOT / "models/pruned_mlp.onnx", batch=2, device="cpu", regime="burst", budget=4, out=out)
            self.assertEqual(again.rows, found.rows)

    def test_a_model_that_is_none(self):
        with tempfile.TemporaryDirectory() as out:
            with self.assertRaisesRegex(scout.ProgramFailed, "none.onnx") as told:
                scout.profile("none.onnx", out=out, device="cpu")
            self.assertEqual(told.exception.code, 3)

    def test_progress_on_a_terminal(self):
        sys.path.insert(0, str(ROOT / "tests/cli"))
        from pseudo_terminal import on_terminal

        program = ("import sys; sys.path.insert(0, sys.argv[1])\n"
                   "import test_programs as t\n"
                   "t.scout.detect_ceiling('gemm', (64, 64, 64), **t.SCRIPTED)\n")
        code, seen = on_terminal([sys.executable, "-B", "-c", program, str(pathlib.Path(__file__).parent)], 100)
        self.assertEqual(code, 0, seen)
        self.assertRegex(seen, r"\d+/\d+|\d+ %|measuring")


class Showing(unittest.TestCase):
    def test_names_drive_nothing(self):
        columns, rows = [_show.Column("name")], [["<b>\x1b[31m\u202eevil"]]
        self.assertNotRegex(_show.as_text("t", columns, rows), "[\x1b\u202e]")
        page = _show.as_html("<i>", columns, rows)
        self.assertFalse(re.search("<b>|<i>|\x1b", page), page)
        self.assertIn("and 10 more", _show.as_text("t", columns, [["x"]] * 50))

"""libscout_run from Python: right results on memory of every sort, and exceptions that say what was expected."""
import array
import ctypes
import gc
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

import ceiling_scout as scout
from ceiling_scout import arrays

try:
    import numpy
except ImportError:
    numpy = None
FOLDER = str(pathlib.Path(__file__).parent)


def matrix(rows, cols, code="f", number=lambda r, c: (r * 7 + c * 3) % 11 - 5):
    numbers = array.array(code, [number(r, c) for r in range(rows) for c in range(cols)])
    return memoryview(numbers).cast("B").cast(code, (rows, cols))


OPS = {  # r = x w
    "schema": "ceiling-scout/ops/1", "model": {"name": "m"},
    "ops": [{"id": "product", "op": "gemm", "shape": [2, 3, 4], "layout": "nn", "dtype": "fp32", "weight_dtype": "fp32", "weight_side": "b",
             "nodes": ["times"]}],
    "graph": {"memory": {"weights": 48, "activations": 56, "at": 0, "unsized": 0},
              "tensors": [["x", "input", "fp32", [2, 4], -1, 0, 0, 1], ["w", "weight", "fp32", [4, 3], -1, 0, 0, 1],
                          ["r", "output", "fp32", [2, 3], 0, 0, 0, 0]],
              "occurrences": [[0, 0, 0, 1, [0, 1], [2], [0, 1, 2]]], "cuts": []}}


def product(a, b):
    return [[sum(a[i, k] * b[k, j] for k in range(a.shape[1])) for j in range(b.shape[1])] for i in range(a.shape[0])]


def table(folder, *entries, device=None):
    """A table of this machine's CPU, or of another device."""
    here = device or scout.devices()["cpu"]
    driver = here.driver if device else os.uname().release
    members = {"name": here.name, "capability": here.capability, "units": here.units, "memory_mib": here.memory_mib,
               "power_limit_w": here.power_limit_w, "driver": here.driver, **here.libraries}
    rows = []
    for key, implementation, variant in sorted(entries):
        rows.append({"key": key, "operation": f"op{len(rows)}", "choice": "custom", "implementation": implementation,
                     "variant": variant, "approach": "CUSTOM_KERNEL", "config": {}, "workspace_bytes": 0, "ranges": [],
                     "expected_us": 1.0, "default_us": 2.0, "default": {"implementation": "onednn", "variant": ""},
                     "proof": {"ratio": 0.5, "ratio_ci": 0.01, "expected_ci": 0.01, "default_ci": 0.01, "batches": 9,
                               "launches": 9}})
    text = {"schema": "ceiling-scout/dispatch/1", "regime": "sustained-cold-graph", "method": 12, "models": ["made"],
            "device": {"class": ";".join(f"{name}={value}" for name, value in members.items()), "name": here.name,
                       "capability": here.capability, "driver": driver, "units": here.units,
                       "memory_mib": here.memory_mib, "power_limit_w": here.power_limit_w,
                       "libraries": [{"name": name, "version": version} for name, version in here.libraries.items()]}, "entries": rows}
    path = os.path.join(folder, f"table{len(os.listdir(folder))}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(text, file)
    return path


class Plans(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        pathlib.Path(self.folder.name, "ops.json").write_text(json.dumps(OPS))

    def test_a_model_runs(self):
        plan = scout.load_plan(self.folder.name)
        self.assertEqual(plan.inputs, {"x": scout.Slot(0, "fp32", (2, 4))})
        self.assertEqual((list(plan.weights), list(plan.outputs), plan.constants), (["w"], ["r"], {}))
        x, w = matrix(2, 4), matrix(4, 3)
        with self.assertRaisesRegex(ValueError, "w: it is not bound yet"):
            plan(x=x)
        plan.bind({"w": w})
        for made in (plan({"x": x})["r"], plan(x=x, r=matrix(2, 3))["r"]):
            self.assertEqual([[made[i, j] for j in range(3)] for i in range(2)], product(x, w))
        plan.close()

    def test_what_does_not_fit(self):
        plan = scout.load_plan(self.folder.name)
        for given, said in (({"x": matrix(4, 2)}, r"x: expected the sizes \[2,4\], got \[4,2\]"), ({"x": matrix(2, 4, "d")}, "x: expected fp32, got fp64"),
                            ({"y": matrix(2, 4)}, "y: the plan has no"), ({"x": None}, "x: an array"),
                            ({"r": matrix(2, 3).toreadonly()}, "r: an array that can be written")):
            with self.assertRaisesRegex(ValueError, said):
                plan.bind(given)
        with self.assertRaisesRegex(ValueError, "ops.json"):
            scout.load_plan(self.folder.name + "/none")


class Products(unittest.TestCase):
    def test_plain_memory(self):
        for code in "fd":
            a, b = matrix(5, 12, code), matrix(12, 9, code)
            c = scout.matmul(a, b)
            self.assertEqual((c.format, c.shape, c.tolist()), (code, (5, 9), product(a, b)))

    def test_a_place_for_the_result(self):
        a, b, out = matrix(5, 12), matrix(12, 9), matrix(5, 9)
        self.assertIs(scout.matmul(a, b, out=out), out)
        self.assertEqual(out.tolist(), product(a, b))
        for fault, expected, other in ((ValueError, "fp32 .5, 9. on cpu was expected", matrix(5, 8)),
                                       (ValueError, "fp32 .5, 9. on cpu was expected", matrix(5, 9, "d")),
                                       (ValueError, "can be written", matrix(5, 9).toreadonly()), (TypeError, "array", 3)):
            with self.assertRaisesRegex(fault, expected):
                scout.matmul(a, b, out=other)

    def test_bias_residual_activation(self):
        a, b, bias, more = matrix(4, 8), matrix(8, 6), matrix(1, 6).cast("B").cast("f"), matrix(4, 6)
        c = scout.matmul(a, b, bias=bias, residual=more, activation="relu")
        want = [[max(0.0, x + bias[j] + more[i, j]) for j, x in enumerate(row)] for i, row in enumerate(product(a, b))]
        self.assertEqual(c.tolist(), want)
        with self.assertRaisesRegex((ValueError, scout.ScoutError), "activation|nonsense"):
            scout.matmul(a, b, activation="nonsense")
        with self.assertRaisesRegex(ValueError, "bias: expected"):
            scout.matmul(a, b, bias=matrix(1, 5))

    def test_what_does_not_fit(self):
        a, b = matrix(4, 8), matrix(8, 6)
        raw = bytearray(4 * 8 * 4 + 4)
        beside = memoryview(raw)[2:2 + 128]
        first = 4 - ctypes.addressof(ctypes.c_char.from_buffer(raw)) % 4
        crooked = memoryview(raw)[first % 4 + 1:first % 4 + 1 + 128].cast("f", (4, 8))
        del beside
        for fault, expected, left, right in (
                (TypeError, "an array was expected", [[1.0]], b), (TypeError, "a's type, fp32", a, matrix(8, 6, "d")),
                (ValueError, "8 rows were expected", a, matrix(7, 6)),
                (ValueError, "a matrix, or one dimension of matrices", a.cast("B").cast("f"), b),
                (ValueError, "multiple of 4 bytes", crooked, b),
                (TypeError, "numbers were expected", a, memoryview(b"x" * 48).cast("c", (8, 6)).cast("B").cast("P", (2, 3)))):
            with self.assertRaisesRegex(fault, expected):
                scout.matmul(left, right)
        with self.assertRaisesRegex(ValueError, "memory of its own"):
            square = matrix(6, 6)
            scout.matmul(square, matrix(6, 6), out=square)

    def test_another_device(self):
        class Away:
            __cuda_array_interface__ = {"shape": (4, 8), "typestr": "<f4", "data": (4096, False), "version": 3}

        with self.assertRaisesRegex(TypeError, "on cpu was expected, where the runner is, not on cuda:0"):
            scout.matmul(matrix(4, 8), Away())
        with self.assertRaisesRegex(scout.ScoutError, "CUDA|cuda|NVIDIA|driver"):
            scout.matmul(Away(), Away())

    def test_the_cores_of_the_caller_stay(self):
        cores = os.sched_getaffinity(0)
        scout.matmul(matrix(4, 8), matrix(8, 6))
        self.assertEqual(os.sched_getaffinity(0), cores)

    def test_threads(self):
        want, faults = {n: product(matrix(n, 16), matrix(16, 8)) for n in range(1, 9)}, []

        def work(n):
            for _ in range(50):
                if scout.matmul(matrix(n, 16), matrix(16, 8)).tolist() != want[n]:
                    faults.append(n)

        threads = [threading.Thread(target=work, args=(n,)) for n in want]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(faults, [])


@unittest.skipUnless(numpy, "NumPy is not installed")
class Numpy(unittest.TestCase):
    def numbers(self, *shape, dtype="float32", seed=1):
        return numpy.random.default_rng(seed).standard_normal(shape).astype(dtype)

    def test_layouts_and_types(self):
        for dtype, far in (("float32", 1e-4), ("float16", 2e-2), ("float64", 1e-12)):
            for left in ((7, 24), (3, 7, 24)):
                for turned in (False, True):
                    a, b = self.numbers(*left, dtype=dtype), self.numbers(*((13, 24) if turned else (24, 13)), dtype=dtype)
                    b = b.T if turned else b
                    c = scout.matmul(a, b)
                    self.assertEqual((type(c), c.dtype, c.shape), (numpy.ndarray, a.dtype, (*left[:-1], 13)))
                    self.assertLess(abs(c.astype("float64") - a.astype("float64") @ b.astype("float64")).max(), far)

    def test_no_copy(self):
        a = self.numbers(6, 10)
        found = arrays.view(a[1:, ::2])
        self.assertEqual((found.pointer, found.shape, found.strides), (a.ctypes.data + 40, (5, 5), (10, 2)))
        self.assertEqual(arrays.view(a.T).strides, (1, 10))
        capsule = type("Other", (), {"__dlpack__": lambda self: a.__dlpack__()})()
        other = arrays.view(capsule)
        self.assertEqual((other.pointer, other.shape, other.strides, other.dtype, other.device),
                         (a.ctypes.data, (6, 10), (10, 1), "fp32", "cpu"))
        del other, capsule
        gc.collect()

    def test_strides_that_are_none(self):
        a, b = self.numbers(6, 10), self.numbers(5, 4)
        with self.assertRaisesRegex(ValueError, "without gaps"):
            scout.matmul(a[:, ::2], b)
        with self.assertRaisesRegex(ValueError, "without gaps|expected"):
            scout.matmul(a[::-1, :5], b)
        with self.assertRaisesRegex(TypeError, "byte order"):
            scout.matmul(a.astype(">f4"), self.numbers(10, 4))
        with self.assertRaisesRegex(TypeError, "mask"):
            arrays.view(type("Masked", (), {"__array_interface__": {**a.__array_interface__, "mask": a}})())
        packed = numpy.zeros(4, dtype=[("x", "f4"), ("y", "i1")])["x"]
        with self.assertRaisesRegex(ValueError, "strides of whole elements"):
            arrays.view(packed)
        for odd in (numpy.zeros((2, 2), "complex64"), numpy.zeros((2, 2), "U3"), numpy.zeros((2, 2), object)):
            with self.assertRaises(TypeError):
                scout.matmul(odd, odd)

    def test_attention(self):
        for heads, keys, causal in ((4, 4, False), (4, 4, True), (2, 9, True)):
            q, k, v = self.numbers(2, 4, 5, 16), self.numbers(2, heads, keys + 1, 16, seed=2), self.numbers(
                2, heads, keys + 1, 16, seed=3)
            got = scout.attention(q, k, v, causal=causal)
            wide = [numpy.repeat(x, 4 // heads, axis=1).astype("float64") for x in (k, v)]
            scores = q.astype("float64") @ wide[0].transpose(0, 1, 3, 2) / 4
            if causal:
                rows, cols = numpy.arange(5)[:, None], numpy.arange(keys + 1)[None]
                scores = numpy.where(cols <= rows + keys + 1 - 5, scores, -numpy.inf)
            weights = numpy.exp(scores - scores.max(-1, keepdims=True))
            want = weights / weights.sum(-1, keepdims=True) @ wide[1]
            self.assertLess(abs(got - want).max(), 1e-4)
        mask = numpy.where(numpy.arange(6) < 4, 0, -1e9).astype("float32").reshape(1, 1, 1, 6)
        q = self.numbers(1, 2, 6, 16)
        self.assertLess(abs(scout.attention(q, q, q, mask=mask) - scout.attention(q, q[:, :, :4], q[:, :, :4])).max(), 1e-4)
        for fault, expected, arguments in ((ValueError, "sequences, heads", (q[0], q, q)),
                                           (TypeError, "q's type", (q, q.astype("float16"), q)),
                                           (ValueError, "expected", (q, q[:, :1, :3], q))):
            with self.assertRaisesRegex(fault, expected):
                scout.attention(*arguments)

    def test_a_result_is_not_kept(self):
        a, b = self.numbers(300, 300), self.numbers(300, 300, seed=2)
        first = scout.matmul(a, b)
        kept = first.copy()
        scout.matmul(b, a)
        self.assertTrue((first == kept).all())


@unittest.skipUnless(numpy, "NumPy is not installed")
class Weights(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        scout.use(None)
        self.folder.cleanup()

    def weight(self, k, n, keeps):
        w = numpy.random.default_rng(5).standard_normal((k, n)).astype("float32")
        return w * numpy.fromfunction(keeps, (k, n))

    def test_the_table_runs(self):
        key = scout.key_of("gemm", shape=(16, 32, 64), dtype="fp32")
        runner = scout.Runner("cpu", table(self.folder.name, (key, "cpu_tiled", ""), (key.replace("16,", "17,"), "cpu_none", "")))
        self.assertEqual((runner.has_table, runner.note), (True, ""))
        a, b = numpy.ones((16, 64), "float32"), numpy.ones((64, 32), "float32")
        for rows in (16, 17, 18):
            with self.assertLogs("ceiling_scout") if rows > 16 else self.assertNoLogs("ceiling_scout"):
                got = runner.matmul(numpy.ones((rows, 64), "float32"), b)
            self.assertTrue((got == 64).all())
        self.assertEqual(runner.counts, scout.Counts(listed=1, unlisted=1, refused=1, unpacked=0))
        self.assertEqual((runner.choice(key).implementation, runner.choice(key).listed), ("cpu_tiled", True))
        self.assertIsNone(scout.lookup("gemm", shape=(16, 32, 64), dtype="fp32"))
        scout.use(os.path.join(self.folder.name, "table0.json"))
        self.assertEqual(scout.lookup("gemm", shape=(16, 32, 64), dtype="fp32").implementation, "cpu_tiled")
        self.assertFalse(runner.choice(key.replace("16,", "99,")).listed)
        runner.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            runner.matmul(a, b)

    def test_a_table_of_another_device(self):
        other = scout.Device("Other", "9.0", "580", libraries={"onednn": "1"})
        key = scout.key_of("gemm", shape=(2, 2, 2), dtype="fp32")
        scout.use(table(self.folder.name, (key, "cpu_tiled", ""), device=other))
        with self.assertLogs("ceiling_scout", "WARNING") as said:
            got = scout.matmul(matrix(2, 2), matrix(2, 2))
        self.assertIn("measured with device Other", said.output[0])
        self.assertEqual(got.tolist(), product(matrix(2, 2), matrix(2, 2)))

    @unittest.skipUnless(shutil.which("ssh-keygen"), "ssh-keygen is not installed")
    def test_a_table_that_must_be_signed(self):
        here = os.path.join(self.folder.name, "keys")
        os.mkdir(here)
        for name in ("ours", "theirs"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(here, name)], check=True)
        ours, theirs = (os.path.join(here, name + ".pub") for name in ("ours", "theirs"))
        key = scout.key_of("gemm", shape=(16, 32, 64), dtype="fp32")
        path = table(self.folder.name, (key, "cpu_tiled", ""))
        with self.assertRaisesRegex(scout.TableUnsigned, "there is no signature in"):
            scout.load(path, signers=ours)
        with self.assertLogs("ceiling_scout", "WARNING"):
            self.assertFalse(scout.Runner("cpu", path, signers=ours).has_table)
        subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-n", "ceiling-scout", "-f", ours[:-4], path], check=True)
        opened = scout.load(path, signers=ours)
        self.assertEqual(len(opened), 1)
        self.assertTrue(scout.Runner("cpu", path, signers=ours).has_table)
        with self.assertRaisesRegex(scout.TableUnsigned, "none of the signers"):
            scout.load(path, signers=theirs)
        for signers in (os.path.join(here, "none"), ours[:-4]):  # no file; one that is no public key
            for opens in (scout.load, lambda p, signers: scout.Runner("cpu", p, signers=signers).has_table or scout.load(p, signers=signers)):
                with self.assertRaises(scout.TableUnsigned):
                    opens(path, signers=signers)
        with unittest.mock.patch.dict(os.environ, CEILING_SCOUT_SIGNERS=os.path.join(here, "none")):
            scout.use(path)
            with self.assertLogs("ceiling_scout", "WARNING"):  # it runs by the defaults
                self.assertEqual(scout.matmul(matrix(2, 2), matrix(2, 2)).tolist(), product(matrix(2, 2), matrix(2, 2)))
            with self.assertRaises(scout.TableUnsigned):
                scout.load(path)
        with unittest.mock.patch.dict(os.environ, CEILING_SCOUT_SIGNERS=theirs):
            self.assertFalse(scout.Runner("cpu", path).has_table)
            scout.use(path, signers="")  # no file, and so no demand that could be met
            with self.assertRaises(scout.TableUnsigned):
                scout.lookup("gemm", shape=(16, 32, 64), dtype="fp32")
            scout.use(path)  # the demand of the environment stays
            with self.assertRaises(scout.TableUnsigned):
                scout.lookup("gemm", shape=(16, 32, 64), dtype="fp32")
            scout.use(path, signers=ours)
            self.assertEqual(scout.lookup("gemm", shape=(16, 32, 64), dtype="fp32").implementation, "cpu_tiled")
        with open(path, "a", encoding="utf-8") as file:
            file.write("\n")
        with self.assertRaisesRegex(scout.TableUnsigned, "its signature is of another table"):
            opened.reload(path)
        self.assertEqual(len(opened), 1)

    def test_what_is_not_listed_can_be_tuned(self):
        runner = scout.Runner("cpu", tune_ms=50)
        a, b = numpy.ones((24, 72), "float32"), numpy.random.default_rng(1).standard_normal((72, 40)).astype("float32")
        for _ in range(2):
            self.assertLess(abs(runner.matmul(a, b) - a @ b).max(), 1e-3)
        key = scout.key_of("gemm", shape=(24, 40, 72), dtype="fp32")
        self.assertTrue(runner.choice(key).implementation)
        plain = scout.Runner("cpu").choice(key)
        self.assertNotEqual(runner.choice(key).note, plain.note)  # it was measured here, whatever came of it

    def test_packed(self):
        a, b = numpy.ones((16, 64), "float32"), numpy.random.default_rng(1).standard_normal((64, 32)).astype("float32")
        key = scout.key_of("gemm", shape=(16, 32, 64), dtype="fp32")
        runner = scout.Runner("cpu", table(self.folder.name, (key, "onednn", "weight=packed")))
        if not runner.choice(key).packs:
            self.skipTest("oneDNN packs nothing here")
        packed = runner.pack(a, b)
        self.assertGreater(packed.bytes, 0)
        want = a @ b
        b_given = numpy.zeros_like(b)  # whose data is not read
        self.assertLess(abs(runner.matmul(a, b_given, packed=packed) - want).max(), 1e-4)
        self.assertEqual(runner.counts.listed, 1)
        for wrong in (numpy.zeros((64, 31), "float32"), numpy.zeros((64, 32), "float64")):
            with self.assertRaises((TypeError, ValueError)):
                runner.matmul(a.astype(wrong.dtype), wrong, packed=packed)
        with self.assertRaisesRegex(ValueError, "packed"):
            runner.matmul(numpy.ones((17, 64), "float32"), b, packed=packed)
        with self.assertRaisesRegex(ValueError, "this runner packed"):
            scout.Runner("cpu").matmul(a, b, packed=packed)

    def test_zeros(self):
        a = numpy.random.default_rng(2).standard_normal((8, 512)).astype("float32")
        for turned in (False, True):
            w = self.weight(*((256, 512) if turned else (512, 256)), lambda r, c: (r // 64 + c // 64) % 8 == 0)
            w = w.T if turned else w
            sparse = scout.SparseWeight(w)
            self.assertEqual((sparse.sparsity.pattern, sparse.packed_bytes(a)), ("BLOCK_SPARSE", 0))
            self.assertLess(abs((a @ sparse) - a @ w).max(), 1e-3)
            runner = scout.Runner("cpu", table(self.folder.name, (sparse.key(8), "cpu_bsr", "block=64")))
            listed = scout.SparseWeight(w, runner=runner)
            for _ in range(2):
                self.assertLess(abs((a @ listed) - a @ w).max(), 1e-3)
            self.assertTrue(0 < listed.packed_bytes(a) < w.nbytes / 6, listed.packed_bytes(a))
            self.assertEqual(runner.counts.listed, 2)
            self.assertLess(abs(listed.matmul(a[:3]) - a[:3] @ w).max(), 1e-3)  # not listed: the whole weight
            self.assertEqual((runner.counts.listed, listed.packed_bytes(a[:3])), (2, 0))
            for fault, expected, left in ((ValueError, "rows were expected", a[:, :64]), (TypeError, "array", 3),
                                          (TypeError, "type", a.astype("float64"))):
                with self.assertRaisesRegex(fault, expected):
                    listed.matmul(left)
        for wrong in (w[:, ::2], w[::-1]):
            with self.assertRaisesRegex(ValueError, "dense"):
                scout.SparseWeight(wrong).sparsity

    def test_the_key_of_zeros_is_that_of_reports(self):
        w = self.weight(128, 96, lambda r, c: (r // 32 + c // 32) % 5 == 0)
        measured = scout.benchmark(numpy.ones((8, 128), "float32"), w, device="scripted:0", budget=30,
                                   custom_kernels=[os.environ["SCOUT_SCRIPTED"]])
        self.assertEqual(scout.SparseWeight(w).key(8), measured.key)


class Missing(unittest.TestCase):
    def test_a_library_that_is_no_library(self):
        with tempfile.TemporaryDirectory() as home:
            os.mkdir(home + "/lib")
            for name in ("libscout_run.so.1", "libscout_dispatch.so.1"):
                with open(f"{home}/lib/{name}", "w", encoding="utf-8") as file:
                    file.write("none")
            program = ("import ceiling_scout as s, array\nx = memoryview(array.array('f', [1])).cast('B').cast('f', (1, 1))\n"
                       "for f in (lambda: s.matmul(x, x), lambda: s.load('t.json'), lambda: s.detect_sparsity(x), s.devices):\n"
                       "    try: f()\n    except s.LibraryMissing as why: print(why)\n")
            said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True,
                                  env={**os.environ, "CEILING_SCOUT_HOME": home}).stdout.splitlines()
            self.assertEqual(len(said), 4, said)
            self.assertTrue(all("CEILING_SCOUT_HOME" in line for line in said), said)

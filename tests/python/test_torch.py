"""PyTorch: operators under torch.compile, patch() and what it puts back, and the plugin of vLLM. Skipped without PyTorch."""
import os
import subprocess
import sys
import tempfile
import time
import types
import unittest

import ceiling_scout as scout

try:
    import torch
    from torch import nn
except ImportError:
    torch = None
else:
    from ceiling_scout import pytorch
from test_run import table


def gemm(m, n, k, layout="nt", dtype="fp32", bias=None):
    return scout.key_of("gemm", shape=(m, n, k), dtype=dtype, layout=layout, bias=bias)


@unittest.skipUnless(torch, "PyTorch is not installed")
class Torch(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(scout.use, None)

    def use(self, *entries, **more):
        path = table(self.folder.name, *entries, **more)
        scout.use(path)
        return path

    def near(self, got, want, far=1e-4):
        self.assertEqual((got.shape, got.dtype), (want.shape, want.dtype))
        self.assertLess(float((got - want).abs().max()), far)


class Operators(Torch):
    def test_results(self):
        for dtype, far in ((torch.float32, 1e-4), (torch.bfloat16, 0.2), (torch.float16, 0.05)):
            x, w, b = torch.randn(2, 7, 24).to(dtype), torch.randn(13, 24).to(dtype), torch.randn(13).to(dtype)
            self.near(torch.ops.scout.linear(x, w, b), nn.functional.linear(x, w, b), far)
            self.near(torch.ops.scout.linear(x[:, ::2], w), nn.functional.linear(x[:, ::2], w), far)
            self.near(scout.matmul(x[0], w.t()), x[0] @ w.t(), far)
        q, k = torch.randn(2, 4, 6, 16), torch.randn(2, 2, 6, 16)
        wide = k.repeat_interleave(2, 1)
        for causal in (False, True):
            want = nn.functional.scaled_dot_product_attention(q, wide, wide, is_causal=causal)
            self.near(torch.ops.scout.attention(q, k, k, causal, 0.0), want)
            turned = q.transpose(1, 2).contiguous().transpose(1, 2)  # as heads lie in models
            self.near(torch.ops.scout.attention(turned, k, k, causal, 0.0), want)
        self.assertEqual(torch.ops.scout.linear(torch.randn(0, 24), torch.randn(13, 24)).shape, (0, 13))

    def test_they_keep_the_rules_of_operators(self):
        x, w, b = torch.randn(3, 24), torch.randn(13, 24), torch.randn(13)
        q = torch.randn(1, 2, 4, 8)
        for op, arguments in ((torch.ops.scout.linear, (x, w, b)), (torch.ops.scout.matmul, (x, w.t())),
                              (torch.ops.scout.attention, (q, q, q, True)), (torch.ops.scout.linear_where_proven, (x, w, b))):
            torch.library.opcheck(op, arguments, test_utils=("test_schema", "test_faketensor"))

    def test_compiled(self):
        w, b = torch.randn(13, 24), torch.randn(13)

        @torch.compile(fullgraph=True, backend="aot_eager")
        def layers(x):
            return torch.relu(torch.ops.scout.linear(x, w, b)) + 1

        with torch.no_grad():
            for rows in (3, 5, 7):
                x = torch.randn(rows, 24)
                self.near(layers(x), torch.relu(nn.functional.linear(x, w, b)) + 1)

    def test_tensors_that_do_not_fit(self):
        x, w = torch.randn(3, 24), torch.randn(13, 24)
        for fault, expected, a, b in (
                (TypeError, "a's type, fp32", x, w.double().t()), (ValueError, "24 rows", x, w),
                (TypeError, "dense tensor", x.to_sparse(), w.t()), (TypeError, "on meta", x.to("meta"), w.t()),
                (TypeError, "complex", x.to(torch.complex64), w.t()),
                (TypeError, "without a gradient", x.clone().requires_grad_(), w.t()),
                (TypeError, "conjugation|data type", torch.conj(x.to(torch.complex64)), w.t())):
            with self.assertRaisesRegex(fault, expected):
                scout.matmul(a, b)
        with torch.no_grad():
            self.near(scout.matmul(x.clone().requires_grad_(), w.t()), x @ w.t())


class Patching(Torch):
    def model(self):
        return nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Sequential(nn.Linear(48, 32), nn.Linear(32, 64, bias=False)))

    def test_what_is_proven_is_replaced(self):
        model, x, said = self.model(), torch.randn(16, 64), []
        with torch.no_grad():
            want = model(x)
        names = sorted(model.state_dict())
        path = self.use((gemm(16, 48, 64, bias="n"), "cpu_tiled", ""), (gemm(16, 64, 32, layout="nn"), "onednn", "weight=packed"))
        done = scout.patch(model, table=path, say=said.append)
        self.assertEqual(([r.name for r in done.replaced], [r.sizes for r in done.replaced], done.kept),
                         (["0", "2.1"], [(16,), (16,)], True))
        self.assertIn("not measured", said[0])
        self.assertEqual(([type(m) for m in (model[0], model[2][0], model[2][1])], sorted(model.state_dict())),
                         ([pytorch.Linear, nn.Linear, pytorch.Linear], names))
        with torch.no_grad():
            self.near(model(x), want)
        counts = pytorch.runner_of("cpu").counts
        self.assertEqual((counts.listed, counts.unlisted, counts.unpacked), (2, 0, 0))
        with torch.no_grad():
            model(torch.randn(5, 64))  # not proven: as before
        self.assertEqual(pytorch.runner_of("cpu").counts, counts)
        model(x).sum().backward()
        self.assertIsNotNone(model[0].weight.grad)
        done.unpatch()
        self.assertTrue(all(type(m) is not pytorch.Linear for m in model.modules()))
        self.assertTrue(model[2][1].weight.is_contiguous())
        with torch.no_grad():
            self.near(model(x), want, 1e-6)

    def test_a_weight_that_is_changed(self):
        model, x = self.model(), torch.randn(16, 64)
        scout.patch(model, table=self.use((gemm(16, 64, 32), "onednn", "weight=packed")), say=None)
        with torch.no_grad():
            before = model(x)
            model[2][1].weight.mul_(2)
            self.near(model(x), 2 * before)
            strided = torch.randn(64)[::2]
            self.near(torch.ops.scout.linear(x, torch.randn(32, 64) * 0, strided), strided.expand(16, 32))

    def test_it_is_timed(self):
        model, x = self.model(), torch.randn(16, 64)
        path = self.use((gemm(16, 48, 64, bias="n"), "onednn", "weight=packed"))
        done = scout.patch(model, (x,), table=path, seconds=0.5, say=None)
        self.assertTrue(done.before_us > 0 and done.after_us > 0 and done.ratio_ci >= 0)
        self.assertEqual(done.kept, done.ratio <= 1 + done.ratio_ci)
        self.assertRegex(repr(done), "before, .* after: ")

    def test_what_is_slower_is_put_back(self):
        model, x = self.model(), torch.randn(16, 64)
        path = self.use((gemm(16, 48, 64, bias="n"), "cpu_tiled", ""))
        forward = pytorch.Linear.forward

        def slow(module, x):
            time.sleep(0.005 if module.on else 0)
            return forward(module, x)

        pytorch.Linear.forward = slow
        self.addCleanup(setattr, pytorch.Linear, "forward", forward)
        done = scout.patch(model, x, table=path, seconds=0.5, say=None)
        self.assertEqual((done.kept, type(model[0])), (False, nn.Linear))
        self.assertRegex(repr(done), "nothing replaced: with it the model was slower")

    def test_what_is_wrong_is_put_back(self):
        model, x = self.model(), torch.randn(16, 64)
        path = self.use((gemm(16, 48, 64, bias="n"), "cpu_tiled", ""))
        forward = pytorch.Linear.forward
        pytorch.Linear.forward = lambda module, x: forward(module, x) + module.on
        self.addCleanup(setattr, pytorch.Linear, "forward", forward)
        done = scout.patch(model, x, table=path, say=None)
        self.assertEqual((done.kept, type(model[0])), (False, nn.Linear))
        self.assertIn("an output differed by", repr(done))

    def test_attention(self):
        class Heads(nn.Module):
            def forward(self, x):
                q = x.view(2, 8, 4, 16).transpose(1, 2)
                return nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)

        model, x = Heads(), torch.randn(2, 8, 64)
        model.scale = nn.Parameter(torch.ones(1))
        key = scout.key_of("attention", shape=(2, 4, 8, 16), dtype="fp32", mask="causal", layout="bshd")
        want = model(x)
        other = scout.patch(model, x, table=self.use((key.replace("causal", "none"), "onednn_composed", "")), say=None)
        self.assertRegex(repr(other), "nothing replaced: no attention of a proven size was met")
        done = scout.patch(model, x, table=self.use((key, "onednn_composed", "")), seconds=0.3, say=None)
        counts = pytorch.runner_of("cpu").counts
        self.assertTrue(counts.listed > 0 and counts.unlisted == 0, counts)
        self.assertTrue(done.kept or done.ratio > 1, repr(done))
        if done.kept:
            with torch.no_grad():
                self.near(model(x), want)
            self.assertEqual(done.replaced[0].name, "attention")
            done.unpatch()
        self.assertNotIn("forward", vars(model))

    def test_nothing_to_do(self):
        model = self.model()
        done = scout.patch(model, table=self.use((gemm(1, 1, 1), "cpu_tiled", "")), say=None)
        self.assertRegex(repr(done), "nothing replaced: the table proves a gain for none")
        other = scout.Device("Other", "9.0", "580", libraries={"onednn": "1"})
        with self.assertLogs("ceiling_scout"):
            done = scout.patch(model, table=self.use((gemm(16, 48, 64, bias="n"), "cpu_tiled", ""), device=other), say=None)
        self.assertRegex(repr(done), "nothing replaced: .*measured with device Other")
        scout.use(None)
        with self.assertRaisesRegex(ValueError, "a dispatch table was expected"):
            scout.patch(model)


class Vllm(Torch):
    """Against a stand-in of the one class that it needs, and against vLLM's own where SCOUT_VLLM names its folders."""

    @unittest.skipUnless(os.environ.get("SCOUT_VLLM"), "SCOUT_VLLM names no vLLM")
    def test_with_vllm(self):
        path = self.use((gemm(16, 48, 64, bias="n"), "cpu_tiled", ""))
        program = ("import torch, vllm.plugins\n"
                   "from vllm.model_executor.layers.linear import UnquantizedLinearMethod as Method\n"
                   "vllm.plugins.load_general_plugins()\n"
                   "from ceiling_scout.runtime import runner_of\n"
                   "layer = torch.nn.Linear(64, 48)\n"
                   "with torch.no_grad():\n"
                   "    x = torch.randn(16, 64)\n"
                   "    print(float((Method().apply(layer, x, layer.bias) - layer(x)).abs().max()) < 1e-4)\n"
                   "print(runner_of('cpu').counts.listed)\n")
        folders = [os.environ["SCOUT_VLLM"], os.environ["SCOUT_SITE"]]
        said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, env={
            **os.environ, "PYTHONPATH": ":".join(folders), "CEILING_SCOUT_TABLE": path, "VLLM_TARGET_DEVICE": "cpu"}).stdout
        self.assertEqual(said.split()[-2:], ["True", "1"])

    def test_the_plugin(self):
        from importlib.metadata import entry_points

        calls = []

        class UnquantizedLinearMethod:
            def apply(self, layer, x, bias=None):
                calls.append(x.shape)
                return nn.functional.linear(x, layer.weight, bias)

        names = ["vllm", "vllm.model_executor", "vllm.model_executor.layers", "vllm.model_executor.layers.linear"]
        made = {name: types.ModuleType(name) for name in names}
        made[names[-1]].UnquantizedLinearMethod = UnquantizedLinearMethod
        sys.modules.update(made)
        self.addCleanup(lambda: [sys.modules.pop(name) for name in names])
        register, = [e for e in entry_points(group="vllm.general_plugins") if e.name == "ceiling_scout"]
        register = register.load()
        scout.use(None)
        register()  # without a table it does nothing
        self.assertFalse(hasattr(UnquantizedLinearMethod.apply, "of_ceiling_scout"))
        scout.use(os.path.join(self.folder.name, "none.json"))
        with self.assertLogs("ceiling_scout", "WARNING"):
            register()  # nor with one that is none
        self.assertFalse(hasattr(UnquantizedLinearMethod.apply, "of_ceiling_scout"))
        self.use((gemm(16, 48, 64, bias="n"), "cpu_tiled", ""))
        register()
        wrapped = UnquantizedLinearMethod.apply
        register()
        self.assertIs(UnquantizedLinearMethod.apply, wrapped)
        layer, other, method = nn.Linear(64, 48), nn.Linear(64, 40), UnquantizedLinearMethod()
        with torch.no_grad():
            for rows, of in ((16, layer), (5, layer), (16, other)):
                x = torch.randn(rows, 64)
                self.near(method.apply(of, x, of.bias), of(x))
            self.near(method.apply(layer, torch.ones(16, 64)), nn.functional.linear(torch.ones(16, 64), layer.weight))
        self.assertEqual((calls, pytorch.runner_of("cpu").counts.listed), ([(16, 64), (16, 64)], 1))


@unittest.skipUnless(torch and torch.cuda.is_available(), "there is no CUDA device")
class Cuda(Torch):
    def setUp(self):
        super().setUp()
        self.x, self.w, self.b = (torch.randn(*shape, device="cuda", dtype=torch.float16)
                                  for shape in ((64, 512), (256, 512), (256,)))
        self.q = torch.randn(1, 8, 64, 64, device="cuda", dtype=torch.float16)

    def test_results(self):
        self.near(torch.ops.scout.linear(self.x, self.w, self.b), nn.functional.linear(self.x, self.w, self.b), 0.1)
        self.near(scout.matmul(self.x, self.w.t()), self.x @ self.w.t(), 0.1)
        for causal in (False, True):
            want = nn.functional.scaled_dot_product_attention(self.q, self.q, self.q, is_causal=causal)
            self.near(torch.ops.scout.attention(self.q, self.q, self.q, causal), want, 0.01)

    def test_on_a_stream_in_a_graph_and_compiled(self):
        stream, want = torch.cuda.Stream(), nn.functional.linear(self.x, self.w, self.b)
        stream.wait_stream(torch.cuda.current_stream())
        with torch.no_grad(), torch.cuda.stream(stream):
            torch.ops.scout.linear(self.x, self.w, self.b)  # a launch like it, before it is captured
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                out = torch.ops.scout.linear(self.x, self.w, self.b)
            out.zero_()
            graph.replay()
        torch.cuda.synchronize()
        self.near(out, want, 0.1)
        compiled = torch.compile(lambda x: torch.ops.scout.linear(x, self.w, self.b) + 1, fullgraph=True)
        with torch.no_grad():
            self.near(compiled(self.x), want + 1, 0.1)

    def test_another_device(self):
        with self.assertRaisesRegex(TypeError, "cuda:0 was expected, where the runner is, not on cpu"):
            scout.matmul(self.x, self.w.t().cpu())
        with self.assertRaisesRegex((TypeError, RuntimeError), "device|expected"):
            torch.ops.scout.linear(self.x, self.w.cpu())

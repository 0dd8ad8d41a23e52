"""What `analyze export` writes, read by the programs that it is for: PyTorch's TunableOp, Inductor's lookup table and
Triton's autotuner, each from its package; and the names of vLLM's files, by its own functions. one_gpu.c stands for the GPU, so nothing is computed.
Usage: consumers.py ANALYZE FOLDER   with that preloaded; prints "N passed, N failed, N skipped"
"""
import ast
import contextlib
import importlib.util
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import types
import warnings

import torch

ANALYZE, SCRATCH = os.path.abspath(sys.argv[1]), sys.argv[2]
HERE = pathlib.Path(__file__).parent
TORCH = pathlib.Path(torch.__file__).parent
GPU = os.environ["GPU_NAME"]
os.chdir(SCRATCH)
counts = {"passed": 0, "failed": 0, "skipped": 0}


def check(what, good, said=""):
    counts["passed" if good else "failed"] += 1
    if not good:
        print(f"FAILED {what}: {said}")


def export(kind, folder, to, *more):
    done = subprocess.run([ANALYZE, "export", kind, folder, "-o", to, *more], capture_output=True, text=True)
    check(f"{kind} of {folder}: exported", done.returncode == 0, done.stderr)
    return pathlib.Path(to).read_text()


def make(folder, cublaslt, device=GPU):
    subprocess.run([sys.executable, "-B", HERE.parent / "cli" / "made_exports.py", folder, "plain", cublaslt, device], check=True)
    return folder


# ---- TunableOp ----

def read(text):
    """Whether the reader takes the file, and what it warned of."""
    pathlib.Path("read.csv").write_text(text)
    torch.cuda.tunable._clear_all()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        good = torch.cuda.tunable.read_file("read.csv")
    return good, " ".join(str(w.message) for w in caught)


def algorithm(solution):
    """The attributes of a solution, by the format that PyTorch itself reads it with."""
    source = (TORCH / "include/ATen/cuda/tunable/GemmCublaslt.h").read_text()
    parts = re.search(r'sscanf\(\s*name\.c_str\(\),((?:\s*"[^"]*")+)', source)[1]
    pattern = re.sub(r"%(?:h?u|d)", r"(\\d+)", "".join(re.findall(r'"([^"]*)"', parts)))
    return [int(x) for x in re.fullmatch(pattern, solution).groups()]


def tunableop():
    version = dict(torch.cuda.tunable.get_validators())
    number = int(version["CUBLASLT_VERSION"])
    make("here", f"{number // 10000}.{number // 100 % 100}.{number % 100}")
    text = export("tunableop", "here", "here.csv", "--consumer", version["PT_VERSION"])
    good, said = read(text)
    check("TunableOp takes the file", good, said)
    rows = [line.split(",") for line in text.splitlines() if not line.startswith("Validator")]
    results = {(op, size): (solution, time) for op, size, solution, time in torch.cuda.tunable.get_results()}
    check("and knows every row", results == {(op, size): (solution, float(time)) for op, size, solution, time in rows} and len(rows) == 9, results)
    tuned = [solution for solution, _ in results.values() if solution != "Default"]
    check("an algorithm is read back", [algorithm(s) for s in tuned] == [[66, 31, 35, 1, 0, 0, 7, 0, 5]] * 3, tuned)
    for name, value in version.items():
        other = text.replace(f"Validator,{name},{value}", f"Validator,{name},{value}1")
        with contextlib.redirect_stdout(io.StringIO()):
            good, said = read(other)
        check(f"another {name} is refused", other != text and not good and not torch.cuda.tunable.get_results(), said)
        check(f"{name} is what is told", name in said, said)
    measured = export("tunableop", HERE.parent / "golden/reports/llama2_7b@b1_s2048", "measured.csv", "--consumer", version["PT_VERSION"])
    good, said = read(measured)
    check("what cuBLASLt 13.1.0 measured is for it alone", good == (number == 130100) and ("CUBLASLT" in said) == (not good), said)
    limit = re.search(r"WORKSPACE = 1 << 20", (HERE.parent.parent / "analyze/export/export_tunableop.c").read_text())
    import ctypes
    default = ctypes.CDLL(str(TORCH / "lib/libtorch_cuda.so"))["_ZN2at4cuda26getCUDABlasLtWorkspaceSizeEv"]
    default.restype = ctypes.c_size_t
    check("cuBLASLt's workspace is what export takes it for", limit and default() == 1 << 20, default())


def stored_algorithms():
    """The attributes of stored reports are what the library reads from the algorithms' bytes."""
    import ctypes
    library = next(iter(TORCH.parent.glob("nvidia/**/libcublasLt.so.*")), None)
    if library is None:
        counts["skipped"] += 1
        print("skipped: libcublasLt is not installed beside PyTorch")
        return
    get = ctypes.CDLL(str(library)).cublasLtMatmulAlgoConfigGetAttribute
    seen = set()
    for file in HERE.parent.glob("golden/reports/*/*/*.json"):
        seen |= set(re.findall(r'"algo": "(\w+)",\s*"attributes": (\[[\d, ]+\])', file.read_text()))
    for algo, attributes in sorted(seen):
        values = []
        for place, size in enumerate([4] * 7 + [2] * 2):
            value, written = ctypes.c_uint32(0), ctypes.c_size_t(0)
            get(bytes.fromhex(algo), place, ctypes.byref(value), size, ctypes.byref(written))
            values.append(value.value)
        check(f"attributes of {algo[:24]}", values == json.loads(attributes), values)
    check("there are some", len(seen) > 5, seen)


# ---- Inductor ----

def choices(table, op, inputs, templates):
    """Between what Inductor would choose, by its own names."""
    from torch._inductor import config, ir
    from torch._inductor.graph import GraphLowering
    from torch._inductor.kernel_inputs import MMKernelInputs
    from torch._inductor.lookup_table import LookupTableChoices
    from torch._inductor.virtualized import V
    graph, nodes = GraphLowering(torch.fx.symbolic_trace(lambda: 0)), []
    for k, (dtype, size, stride) in enumerate(inputs):
        layout = ir.FixedLayout(torch.device("cuda", 0), dtype, size, stride)
        nodes.append(ir.TensorBox.create(ir.InputBuffer(name=f"in{k}", layout=layout)))
    handler = LookupTableChoices()
    scalars = {"alpha": 1, "beta": 1} if op == "addmm" else None
    with V.set_graph_handler(graph), V.set_choices_handler(handler), config.patch({"lookup_table.table": table, "max_autotune": True}):
        known = MMKernelInputs(nodes, scalars=scalars)
        made = {t.uid: handler.get_ktc(known, t, op, {}) for t in templates}
        return sorted({c.template.uid for c in handler._finalize_template_configs(made, known, templates, op, {})})


def inductor():
    from torch._inductor.kernel import bmm, mm
    table = json.loads(export("inductor", make("inductor", "13.1.0"), "inductor.json"))
    check("Inductor: what it keeps products apart by", all(key.startswith(GPU + "+") for key in table) and
          torch.cuda.get_device_properties(0).gcnArchName == GPU, list(table))
    of = {"mm": ([mm.aten_mm, mm.mm_template], "aten::mm"), "bmm": ([bmm.aten_bmm, bmm.bmm_template], "aten::bmm")}
    for key in table:
        op = key.rsplit("+", 1)[1]
        inputs = eval(key[len(GPU) + 1:-len(op) - 1], {"torch": torch})
        templates, library = of[op]
        check(f"Inductor: without the table there is a choice: {key}", len(choices(None, op, inputs, templates)) == 2)
        check(f"Inductor: with it there is none: {key}", choices(table, op, inputs, templates) == [library])
        other = {"NVIDIA H100" + k[len(GPU):]: v for k, v in table.items()}
        check(f"Inductor: another device's table changes nothing: {key}", len(choices(other, op, inputs, templates)) == 2)
    # Why products with a bias are left out: the templates are looked up apart from the library, and fall back.
    half = torch.float16
    inputs = ((half, [128, 256], [0, 1]), (half, [128, 512], [512, 1]), (half, [512, 256], [1, 512]))
    named = {f"{inputs}+alpha=1&beta=1+addmm": [{"template_id": "aten::addmm"}]}
    check("Inductor: a bias is tuned whatever the table says", choices(named, "addmm", inputs, [mm.mm_template]) == ["triton::mm"])


# ---- vLLM: the names that its own functions look for ----

class Looked(Exception):
    pass


def function(file, name, given):
    """A function of vLLM's sources by itself: importing all of it needs what only a deployment has."""
    tree = ast.parse(file.read_text())
    node = next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name)
    node.decorator_list, node.returns = [], None
    exec(compile(ast.Module([node], []), str(file), "exec"), given)
    return given[name]


def vllm():
    spec = importlib.util.find_spec("vllm")
    if spec is None:
        counts["skipped"] += 1
        print("skipped: vllm is not installed")
        return
    home = pathlib.Path(spec.origin).parent
    layers = home / "model_executor/layers"
    device = types.SimpleNamespace(get_device_name=lambda which=0: "NVIDIA H200")
    sys.modules["vllm.platforms"] = types.SimpleNamespace(current_platform=device)
    named = function(home / "utils/platform_utils.py", "get_device_name_as_file_name", {"re": re})
    experts = function(layers / "fused_moe/fused_moe.py", "get_config_file_name", {"get_device_name_as_file_name": named})
    looked = []

    def exists(path):
        looked.append(path)
        raise Looked

    paths = types.SimpleNamespace(exists=exists, join=os.path.join, dirname=os.path.dirname, realpath=os.path.realpath)
    block_file = layers / "quantization/utils/fp8_utils.py"
    blocks = function(block_file, "get_w8a8_block_fp8_configs", {
        "get_device_name_as_file_name": named, "os": types.SimpleNamespace(path=paths), "__file__": str(block_file)})
    for name, ways in (("deepseek", 8), ("deepseek", 16), ("mixtral", 2), ("qwen3_moe", 4)):
        config = subprocess.run([sys.executable, "-B", HERE.parent / "cli" / "made_configs.py", name], capture_output=True, text=True).stdout
        pathlib.Path("config.json").write_text(config)
        said = subprocess.run([ANALYZE, "export", "--missing", "vllm", "config.json", "--device", "NVIDIA H200", "--configs", home,
                               "--tensor-parallel", str(ways)], capture_output=True, text=True).stdout
        rows = re.findall(r"^  (found|missing) .* (\S+)$", said, re.MULTILINE)
        check(f"vLLM: {name} on {ways}: files", len(rows) == (9 if name == "deepseek" else 1), said)
        for state, path in rows:
            file = path.rsplit("/", 1)[-1]
            sizes = dict(re.findall(r"\b([ENK])=(\d+)", file))
            quantised = "fp8_w8a8" if "fp8" in file else None
            if "E" in sizes:
                mine = layers / "fused_moe/configs" / experts(int(sizes["E"]), int(sizes["N"]), quantised, [128, 128] if quantised else None)
            else:
                looked.clear()
                with contextlib.suppress(Looked):
                    blocks(int(sizes["N"]), int(sizes["K"]), 128, 128)
                mine = pathlib.Path(looked[0])
            check(f"vLLM: {name} on {ways}: {file}", mine.name == file and mine.exists() == (state == "found"), (mine, state))
        # A release has all files of DeepSeek-V3 on 8 of these: so the sizes are vLLM's own.
        if (name, ways) == ("deepseek", 8):
            check("vLLM: DeepSeek-V3 on 8 lacks nothing", all(state == "found" for state, _ in rows), said)


# ---- Triton ----

def triton():
    spec = importlib.util.find_spec("triton")
    if spec is None:
        counts["skipped"] += 1
        print("skipped: triton is not installed")
        return
    import triton as package
    import triton.language as tl
    globals()["tl"] = tl  # where the kernel's annotations look
    export("triton", make("triton_reports", "13.1.0"), "scout_triton.py")
    sys.path.insert(0, ".")
    import scout_triton as scout
    every = scout.configs()
    check("Triton: configurations", len(every) == 16 and all(isinstance(c, package.Config) for c in every), every)

    timed, ran = [], []

    def bench(call, quantiles):
        timed.append(call)
        return [1.0, 1.0, 1.0]

    def tuned():
        @scout.autotune(key=["M", "N", "K"], do_bench=bench)
        @package.jit
        def product(a, b, M, N, K, BLOCK_M: "tl.constexpr", BLOCK_N: "tl.constexpr", BLOCK_K: "tl.constexpr"):
            pass

        product.fn = types.SimpleNamespace(run=lambda *args, **named: ran.append(named))
        return product

    def run(dtype, *sizes, device=GPU):
        timed.clear(), ran.clear()
        torch.cuda.get_device_name = lambda which=None: device
        tensor = types.SimpleNamespace(dtype=dtype, device="cuda:0")
        tuned().run(tensor, tensor, *sizes)
        return len(timed), tuple(ran[-1][name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))

    check("Triton: at the ceiling nothing is timed", run(torch.float16, 128, 256, 512) == (0, (128, 128, 64)), (timed, ran))
    count, block = run(torch.float64, 128, 256, 512)
    check("Triton: blocks worth trying, and no others", (count, block) == (12, (64, 16, 128)), (count, block))
    check("Triton: what is not known is tuned over all", run(torch.float16, 1, 2, 3)[0] == 16)
    check("Triton: another type is another product", run(torch.bfloat16, 128, 256, 512)[0] == 16)
    check("Triton: another device is tuned over all", run(torch.float16, 128, 256, 512, device="NVIDIA H100")[0] == 16)


for part in (tunableop, stored_algorithms, inductor, triton, vllm):
    part()
print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % counts)
sys.exit(counts["failed"] > 0)

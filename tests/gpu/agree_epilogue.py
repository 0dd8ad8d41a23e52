"""Times the fused products of reports once more, with PyTorch: agree_epilogue.py OPERATIONS.json REPORTS RESULT.json

As agree.py, whose measurement this is: rotating buffers under a CUDA graph, whole seconds in turns. Compared are the
operations called ffn_…: a product with bias and activation is torch._addmm_activation, which hands both to cuBLASLt
as an epilogue; beside it the same work in separate kernels is timed (matmul, add, gelu), for what fusing saves. A residual
PyTorch copies into the output first, so there only the replayed algorithm can be compared. Whatever has another
baseline than cuBLASLt (the gelu by the error function) is none of this.
"""
import json
import sys

import torch

from agree import algorithm_of, compare, covered, plain, rotation, run

RELU, BIAS, GELU = 2, 4, 32  # cublasLtEpilogue_t, which are added


def behind(fields, m, n):
    """What is read beside a, b and c: a bias, a matrix that is added."""
    make = lambda *dims: torch.randn(*dims, device="cuda", dtype=torch.half)
    return ([make(n)] if fields.get("bias") else []) + ([make(m, n)] if fields.get("residual") else [])


def activate(name, x):
    if name == "gelu_tanh":
        return torch.nn.functional.gelu(x, approximate="tanh")
    return torch.relu(x) if name == "relu" else x


def separately(name):
    def launch(a, b, c, bias):
        torch.matmul(a, b, out=c)
        c.add_(bias)
        if name == "gelu_tanh":
            torch.ops.aten.gelu_(c, approximate="tanh")
        else:
            c.relu_()
    return launch


def fused(fields):
    def with_bias(a, b, c, bias):
        torch._addmm_activation(bias, a, b, use_gelu=fields["activation"] == "gelu_tanh", out=c)

    def with_residual(a, b, c, residual):
        torch.addmm(residual, a, b, out=c)
    return with_residual if fields.get("residual") else with_bias


def epilogue(report, fields, lt):
    m, n, k = report["shape"]
    name, residual = fields.get("activation"), bool(fields.get("residual"))
    code = (BIAS if fields.get("bias") else 0) + {"gelu_tanh": GELU, "relu": RELU, None: 0}[name]
    replay = lt.product(m, n, k, algorithm_of(report), code, bool(fields.get("bias")), residual)
    sets = [buffers + tuple(behind(fields, m, n)) for buffers in rotation(m, n, k, covered(report))]
    a, b, _, more = sets[0]
    want = activate(name, torch.matmul(a.float(), b.float()) + more.float())
    others = {"separate": separately(name)} if name else {}
    return compare(report, fused(fields), replay, sets, want, others, comparable=not residual)


def main(operations, folder, result):
    with open(operations, encoding="utf-8") as file:
        named = json.load(file)

    def one(report, lt):
        fields = named.get(report["name"], {})
        if not report["name"].startswith("ffn_") or report["baseline"] != "cublaslt":
            return None
        return epilogue(report, fields, lt) if "bias" in fields or "residual" in fields else plain(report, lt)
    run(folder, result, one)


if __name__ == "__main__":
    main(*sys.argv[1:4])

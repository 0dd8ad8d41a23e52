#!/usr/bin/env bash
# What `analyze export` writes, read by PyTorch and Triton, where a Python has them: without a GPU, which one_gpu.c stands
# for. Usage: CONSUMER_PYTHON=/path/to/python tests/export/run.sh BIN/analyze
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python=${CONSUMER_PYTHON:-out/venv/bin/python3}
skip() {
    echo "skipped: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# The CUDA build of 2.14 or later: readers of before know no algorithm on NVIDIA GPUs. It tells where its headers are.
headers=$("$python" -B -c '
import pathlib, torch
home = pathlib.Path(torch.__file__).parent
assert torch.version.cuda and (home / "include/ATen/cuda/tunable/GemmCublaslt.h").exists()
print(next(home.parent.glob("nvidia/**/cuda_runtime_api.h")).parent)' 2>/dev/null) ||
    skip "PyTorch 2.14 or later for CUDA is not installed for ${python##*/} (CONSUMER_PYTHON)"
gcc -shared -fPIC -Wall -Wextra -Werror -Wl,-soname,libcuda.so.1 -isystem "$headers" -o "$scratch/one_gpu.so" tests/export/one_gpu.c
LD_PRELOAD=$scratch/one_gpu.so GPU_NAME="NVIDIA H200" GPU_CAPABILITY=9.0 TORCHINDUCTOR_CACHE_DIR=$scratch/inductor \
    "$python" -B tests/export/consumers.py "${1:-bin/analyze}" "$scratch"

#!/usr/bin/env bash
# Keeps what tests/gpu/run.sh left, as the programs wrote it: tests/gpu/keep.sh RESULTS [FOLDER]
# RESULTS: an unpacked reports.tar.gz; FOLDER: docs/results/h200. Parts that did not run leave what is kept of them alone.
set -euo pipefail
from=${1:?RESULTS, an unpacked reports.tar.gz}
to=${2:-$(dirname "${BASH_SOURCE[0]}")/../../docs/results/h200}

keep() { # FROM TO
    if [[ -s $from/$1 ]]; then cp "$from/$1" "$to/$2"; fi
}
if [[ -d $from/sustained ]]; then keep summary.txt figures.txt; fi
if [[ -d $from/repeat ]]; then keep summary.txt agreement.txt; fi
keep sustained/fp8.txt ceilings_sustained.txt # the last of its calls knows all precisions
keep sustained/fp8.json ceilings_sustained.json
keep burst/fp8.txt ceilings_burst.txt
keep sweep/sweep.txt k_sweep.txt
keep stream/stream.txt gemm_stream.txt
keep llama/without.txt llama2_7b_gemms.txt
keep llama/with.txt llama2_7b_gemms_cached.txt
for run in 1 2 3 4 5; do keep "repeat/run_$run.txt" "repeat_$run.txt"; done
keep agree/torch.txt agree.txt
keep faults/with.txt faults.txt
keep trace/clock_trace.txt clock_trace.txt
keep sparse/mlp.txt mlp_sparse.txt
for block in 64 128; do keep "sparse/sweep_$block.txt" "sparsity_sweep_$block.txt"; done

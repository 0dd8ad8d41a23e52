#!/usr/bin/env bash
# The documents' claims (tests/gpu/claims.json): well formed, their calls are right, docs/claims.md has all of them, and
# the verdicts follow from made reports. What the figures are only a machine with a GPU can say.
set -euo pipefail
# shellcheck source=tests/cli/lib.sh
source "$ROOT/tests/cli/lib.sh"
claims=$ROOT/tests/gpu/claims.sh
batch=$(dirname "$EXTRACT_OPS")/scout_batch

run "$claims" --list
check "the claims are well formed, and listed without a GPU" exits 0
cp stdout.txt listed.txt
check "its calls are listed" test "$(grep -c 'scout_batch --device cuda:0 ' listed.txt)" -gt 5

# Usage and lists are looked at before a device is asked for: 4 is "no such device", what is wrong would be 2 or 3.
ln -s "$ROOT/tests" tests # calls name their lists from the root of the tree
while IFS=$'\t' read -r name arguments; do
    read -r -a words <<<"$arguments"
    run "$batch" "${words[@]}" --device cuda:99 --cache-dir cache -o none
    check "call $name is right but for the device" exits 4
done < <(python3 "$ROOT/tests/gpu/claims.py" --calls)

# A slip in a candidate's name would measure nothing.
named=$(python3 - "$ROOT/tests/gpu" <<'P'
import re, sys
sys.path.insert(0, sys.argv[1])
import claims
data = claims.load(f"{sys.argv[1]}/claims.json")
names = {name for claim in data["claims"] for member in ("candidate", "over") for name in claims.several(claim.get(member))}
names |= {name for call in data["calls"].values() for names in re.findall(r"--candidate (\S+)", call) for name in names.split(",")}
print(*sorted((names | {name for group in claims.GROUPS.values() for name in group}) - {None, "baseline", *claims.GROUPS}))
P
)
for name in $named; do
    check "candidate $name exists" grep -rqF "\"$name\"" "$ROOT/scout/cuda"
done

run "$claims" --write
cp stdout.txt without.md
check "every claim stands in docs/claims.md as in the data" same \
    <(grep -E '^\| [A-Z][0-9]+ ' without.md | cut -d'|' -f2-6) <(grep -E '^\| [A-Z][0-9]+ ' "$ROOT/docs/claims.md" | cut -d'|' -f2-6)
check "its table without figures has no verdict" test -z "$(grep -E '\| (holds|refuted|open|other hardware) \|$' without.md || true)"

# Made reports: of one product, of blocks of zeros, of a fusion and of ceilings.
python3 - "$ROOT" <<'P'
import json, os
def save(path, value):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    json.dump(value, open(path, "w"))
def row(name, us, ci, **more):
    return {"name": name, "variant": "", "status": "OK", "time_us": {"median": us, "rel_ci95": ci}, "tflops": 1000 / us, **more}
def report(name, efficiency, ci, rows, **more):
    return {"name": name, "op": "gemm", "precision": "fp16", "baseline": rows[0]["name"], "best": rows[0]["name"], "taken": "2030-01-02T",
            "baseline_variant": "", "best_variant": "", "efficiency": efficiency, "ceiling_ci": ci, "ceiling_from": "probe",
            "device": {"model": "NVIDIA H200", "driver": "1"}, "libraries": [{"name": "cublaslt", "version": "13"}], "candidates": rows, "sparsity": 0, **more}
lt = row("cublaslt", 100.0, 0.01)
save("made/dense/reports/a.json", report("cube_4096", 0.95, 0.02, [lt, {"name": "x", "variant": "", "status": "WRONG", "reason": {}}]))
save("made/dense/reports/b.json", report("rows_2048", 0.945, 0.01, [lt]))
save("made/dense/reports/c.json", report("deep_147456", 0.98, 0.002, [row("cublaslt", 1.6, 0.01)]))
save("made/sparse/reports/a.json", report("blocks_4096", 1, 0.01, [
    lt, row("gemm_block_sparse", 40, 0.01, ratio=0.4, ratio_ci=0.01), row("cusparse_bsr", 2520, 0.02, ratio=25.2, ratio_ci=0.02),
    {"name": "cusparse_ell", "variant": "", "status": "WRONG", "reason": {"code": "samples", "text": "it differs"}}]))
save("made/fusions/fusions/a.json", {"name": "f", "op": "gemm", "fusion": {
    "pattern": "gemm+relu", "speedup": 1.29, "speedup_ci": 0.02, "kernels_parts": 3, "kernels_fused": 1}})
points = [{"shape": [8192, 8192, k], "tflops": 600 + k / 16384, "rel_ci95": 0.001} for k in range(65536, 147457, 16384)]
save("made/ceilings/ceilings_cuda0_sustained-graph.json", {"peaks": [{"precision": "fp16", "tflops": 630, "rel_ci95": 0.01}],
                                                           "sweep": {"points": points}})
P
run "$claims" --write "$PWD/made"
cp stdout.txt made.md
verdict() { # ID VERDICT [FIGURE]
    check "$1 is $2" grep -qE "^\| $1 \|.*${3:-}.*\| $2 \|\$" made.md
}
verdict D1 "other hardware" "625 TFLOP/s"
verdict D3 refuted "98.0 %"
verdict D5 refuted "0.9951 x"
verdict D13 refuted "95.0 % \| 93.1 % to 96.9 %"
verdict T19 open "94.5 %"
verdict P2 holds "63 x; no figure: blocks_4096 cusparse_ell: cusparse_ell: WRONG, it differs"
verdict P4 open "63 x" # every format is meant, and one has no figure
verdict P9 refuted
verdict F1 open "1.29 x"
verdict F2 holds "2 kernels \| exact"
verdict A10 open "attention/causal_2048 was not measured"
check "says what it was measured on" contains made.md "Measured on NVIDIA H200, driver 1, cublaslt 13, 2030-01-02: "
finish

#!/usr/bin/env bash
# Compares extract_ops with other readings of the format: onnxruntime, the outputs stored beside onnx's own test models, and
# published or analytic figures. Usage: tests/oracle/run.sh [PROGRAM [PART]…]
# MODELS_DIR names the folder of real models (default: shared/models beside the repository).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
program=${1:-bin/extract_ops}
shift $(($# > 0))
parts=("$@")
if ((${#parts[@]} == 0)); then parts=(operations operands records shared stripped patterns backend cases contrib blocked bounds runtime plans random chains moves); fi
export MODELS_DIR=${MODELS_DIR:-../shared/models}
export PYTHONDONTWRITEBYTECODE=1

python=
for candidate in out/venv/bin/python "$(python3 -c 'import sys; print(sys.executable)')"; do # with its site
    if "$candidate" -c 'import numpy, onnx, onnxruntime' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [[ -z $python ]]; then
    echo "skipped: no python with numpy, onnx and onnxruntime (tests/requirements.txt)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi

passed=0 failed=0 skipped=0
for part in "${parts[@]}"; do
    code=0
    start=$SECONDS
    script=("tests/oracle/check_$part.py")
    case $part in # these are programs of their own, too
        contrib) script=(tests/oracle/contrib_ops.py) ;;
        random) script=(tests/oracle/random_graphs.py) ;;
        chains) script=(tests/oracle/random_graphs.py --chains --graphs 1500) ;;
        moves) script=(tests/oracle/random_graphs.py --moves --graphs 1500) ;;
    esac
    output=$("$python" "${script[@]}" "$program" 2>&1) || code=$?
    printf '%s\n%s took %d s\n\n' "$output" "$part" $((SECONDS - start))
    last=${output##*$'\n'}
    if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
        passed=$((passed + BASH_REMATCH[1]))
        failed=$((failed + BASH_REMATCH[2] + (code != 0 && BASH_REMATCH[2] == 0)))
        skipped=$((skipped + BASH_REMATCH[3]))
    else
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))

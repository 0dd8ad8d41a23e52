#!/usr/bin/env bash
# Nothing is counted twice and nothing left out: the promises of docs/formats.md, on every model within reach.
source "${ROOT:?}/tests/cli/lib.sh"
if ! command -v python3 >/dev/null; then
    skip "python3 is not installed"
    finish
    exit
fi

count_all() { # WHAT MODEL…   every model that can be read keeps the promises
    local what=$1 read=0 number=0 model
    shift
    mkdir -p ops
    for model in "$@"; do
        number=$((number + 1))
        if timeout 60 "$EXTRACT_OPS" "$model" -o "ops/$number.json" --batch 2 --quiet 2>stderr.txt || (($? == 1)); then
            read=$((read + 1))
        else
            echo "$model: $(tail -n 1 stderr.txt)"
        fi
    done
    run python3 "$ROOT/tests/cli/counting.py" ops/*.json
    check "$what: counted once" exits 0
    if [[ -x $ROOT/out/venv/bin/python ]]; then
        run "$ROOT/out/venv/bin/python" "$ROOT/tests/cli/schema.py" "$ROOT/docs/schema" ops/*1.json
        check "$what: every tenth by the schema" exits 0
    fi
    check "$what: all read" test "$read" = "$#"
    rm -rf ops
}

count_all "the project's own models" "$ROOT"/models/*.onnx
models=$(realpath -m "${MODELS_DIR:-$ROOT/../shared/models}")
if compgen -G "$models/*.onnx" >/dev/null; then
    count_all "real models" "$models"/*.onnx
else
    skip "no real models in MODELS_DIR"
fi
backend=/usr/share/libonnx-testdata/data
if [[ -d $backend ]]; then
    mapfile -t cases < <(find "$backend" -name '*.onnx' | sort)
    count_all "onnx's own test models" "${cases[@]}"
else
    skip "libonnx-testdata is not installed"
fi
finish

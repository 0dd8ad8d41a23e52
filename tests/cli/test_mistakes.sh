#!/usr/bin/env bash
# What people type wrongly in their first hour. Each is answered by one line that names the cause and what to type
# instead, before anything is made. All answers are in mistakes.txt, to be read as a whole (UPDATE=1 writes it anew).
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
export LC_ALL=C # make's own words
ANALYZE=$(dirname "$EXTRACT_OPS")/analyze

lines() { grep -cv -e '^make' <<<"$STDERR" || true; } # make's own word on what failed comes last
mistake() { # CODE CAUSE REMEDY COMMAND…
    local code=$1 cause=$2 remedy=$3
    shift 3
    rm -rf made
    run "$@"
    check "${*##*/}: exit $code" exits "$code"
    check "${*##*/}: the cause ($cause)" says "$cause"
    check "${*##*/}: what to type ($remedy)" says "$remedy"
    check "${*##*/}: one line" test "$(lines)" -le 1
    check "${*##*/}: nothing is made" absent made
    local answer
    answer=$(printf '\n$ %s\n%s\n' "${*##*/}" "$(grep -v -e '^make' <<<"$STDERR")")
    answer=${answer//"$ROOT/"/}
    sed 's# -C [^ ]*##; s#Makefile:[0-9]*#Makefile#; s#say cpu, which is .*#say cpu, which is …#' <<<"${answer//"$PWD/"/}" >>answers.txt
}
echo "# What is answered to each mistake of test_mistakes.sh; exit codes are there." >answers.txt

# ---- files that are no ONNX models ----
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n' >lfs.onnx
printf 'PK\3\4rest of a zip' >model.pt
printf '\200\2}q\0.' >old.pt
printf '\20\0\0\0\0\0\0\0{"a":{"dtype":"F32"}}' >model.safetensors
printf 'GGUF\3\0\0\0' >model.gguf
printf '\211HDF\r\n\32\n' >model.h5
printf '\34\0\0\0TFL3' >model.tflite
printf 'ptrt\0\0\0\0' >model.engine
printf '\37\213\10\0' >model.onnx.gz
printf '<!DOCTYPE html><title>404</title>' >page.onnx
printf '{"operations": {}}' >ops.json
: >empty.onnx
extract=("$EXTRACT_OPS" -o made)
mistake 3 "pointer of git-lfs" "git lfs pull" "${extract[@]}" lfs.onnx
mistake 3 "PyTorch" "torch.onnx.export" "${extract[@]}" model.pt
mistake 3 "pickle" "torch.onnx.export" "${extract[@]}" old.pt
mistake 3 "weights alone" "torch.onnx.export" "${extract[@]}" model.safetensors
mistake 3 "GGUF" "to ONNX" "${extract[@]}" model.gguf
mistake 3 "Keras" "tf2onnx" "${extract[@]}" model.h5
mistake 3 "TensorFlow Lite" "tf2onnx" "${extract[@]}" model.tflite
mistake 3 "TensorRT engine" "the ONNX model" "${extract[@]}" model.engine
mistake 3 "gzip" "unpack" "${extract[@]}" model.onnx.gz
mistake 3 "HTML" "downloaded" "${extract[@]}" page.onnx
mistake 3 "JSON" "scout_batch" "${extract[@]}" ops.json
mistake 3 "empty" "downloaded" "${extract[@]}" empty.onnx
mistake 3 "cannot be opened" "missing.onnx" "${extract[@]}" missing.onnx
mistake 2 "unknown option --bach" "--batch" "${extract[@]}" "$MODEL" --bach 1

# ---- devices, times, places ----
single=("$SCOUT" --op gemm --shape "8,8,8" --precision fp32 -o made)
mistake 2 "--device CPU" "say cpu" "${single[@]}" --device CPU
mistake 2 "--device tpu" "--list-devices" "${single[@]}" --device tpu
mistake 2 "--device SCRIPTED" "say scripted:0" "${single[@]}" --custom-kernel "$SCRIPTED/device.so" --device SCRIPTED
mistake 2 "'10x' is not a time" "2m" "${single[@]}" --budget 10x
mistake 2 "0 seconds" "--budget" "${single[@]}" --budget 0s
mistake 2 "not one of" "sustained" "${single[@]}" --regime steady
mistake 2 "needs --shape" "M,N,K" "$SCOUT" --op gemm
mistake 2 "unknown option --shap" "--shape" "$SCOUT" --op gemm --shap 1,2,3
mistake 3 "missing.json" "cannot be opened" "$SCOUT" missing.json -o made
mistake 2 "is not a path" "./mine.so" "${single[@]}" --custom-kernel mine.so

mistake 4 "there is no folder made" "mkdir -p" "${extract[@]::2}" made/ops.json "$MODEL" --batch 1 --seq 8
mistake 4 "there is no folder made/in" "mkdir -p" "${single[@]::7}" -o made/in/report.json
mistake 4 "there is no folder made" "mkdir -p" "$ANALYZE" dispatch "$ROOT/tests/golden/reports/llama2_7b@b1_s2048" -o made/table.json

# ---- analyze ----
mistake 2 "explan" "did you mean explain" "$ANALYZE" explan out/model
mistake 2 "dispach" "did you mean dispatch" "$ANALYZE" dispach out/model
mistake 3 "is not a folder" "a model's folder" "$ANALYZE" out/model

# ---- make ----
if command -v make >/dev/null; then
    unset MAKEFLAGS MFLAGS MAKELEVEL
    make_it=(make -s -C "$ROOT" "PROGRAM=$EXTRACT_OPS" "SCOUT=$SCOUT" "ANALYZE=$ANALYZE" PROGRAMS= "OUT=$PWD/made")
    mistake 2 "MODEL is for a goal" "make MODEL=$MODEL profile" "${make_it[@]}" "MODEL=$MODEL"
    mistake 2 "BATCHSIZE is no variable" "did you mean BATCH" "${make_it[@]}" "MODEL=$MODEL" BATCHSIZE=8 profile
    mistake 2 "FROBNICATE is no variable" "make help" "${make_it[@]}" "MODEL=$MODEL" FROBNICATE=1 profile
    mistake 2 "Which model?" "profile" "${make_it[@]}" profile
    mistake 2 "--device CPU" "say cpu" "${make_it[@]}" "MODEL=$MODEL" BATCH=1 SEQ=8 DEVICE=CPU profile
else
    skip "make is not installed"
fi

# ---- one command for all ----
front=$(dirname "$EXTRACT_OPS")/ceiling-scout reports=$ROOT/tests/golden/reports/llama2_7b@b1_s2048
mistake 2 "no command profil" "did you mean profile" "$front" profil "$MODEL"
mistake 2 "which command" "profile MODEL.onnx" "$front"
mistake 2 "no command exlpain" "did you mean explain" "$front" help exlpain
profile=("$front" profile "$MODEL" --out made)
mistake 2 "MODEL.onnx is missing" "profile --help" "$front" profile --out made
mistake 2 "one argument too many" "profile --help" "${profile[@]}" "$MODEL"
mistake 2 "unknown option --devcie" "did you mean --device" "${profile[@]}" --devcie cpu
mistake 2 "no device has this name" "--list-devices" "${profile[@]}" --device H9000
mistake 2 "0 is less than 1" "--batch" "${profile[@]}" --batch 0
mistake 2 "'eight' is not a whole number" "--batch" "${profile[@]}" --batch eight
mistake 2 "'ten' is not a time" "90s" "${profile[@]}" --budget ten
measure=("$front" measure --device cpu -o made)
mistake 2 "gem is not known" "gemm" "${measure[@]}" --op gem --shape 1,2,3
mistake 2 "'1x2x3'" "commas" "${measure[@]}" --op gemm --shape 1x2x3
mistake 2 "'float16' is not one of" "fp16" "${measure[@]}" --op gemm --shape 8,8,8 --precision float16
mistake 2 "'openblass' is not known on cpu" "--list-candidates" "${measure[@]}" --op gemm --shape 8,8,8 --candidate openblass
mistake 2 '"Q" is not known' "M, N, K" "${measure[@]}" --op gemm --shape 8,8,8 --axis Q=1,2
mistake 2 "'M' is not of the form" "M=1,16,64" "${measure[@]}" --op gemm --shape 8,8,8 --axis M
mistake 2 "'9..1' runs downwards" "1..9" "${measure[@]}" --op gemm --shape 9..1,8,8
mistake 2 "'200%' is not a half width" "2%" "${measure[@]}" --op gemm --shape 8,8,8 --target-ci 200%
mistake 2 "kv_heads is 7" "divide the 32 heads" "${measure[@]}" --op attention --shape 1,32,128,64 --kv-heads 7
mistake 2 "is impossible" "999999999" "${measure[@]}" --op gemm --shape 999999999,999999999,999999999
mistake 2 "begins with 'nosuch'" "the nearest are" "$front" explain "$reports" nosuch
mistake 2 "RUN is missing" "compare --help" "$front" compare "$reports"
mistake 2 "'slow' is not one of" "slower" "$front" compare "$reports" "$reports" --fail-on slow
mistake 2 "'htm' is not one of" "html" "$front" analyze "$reports" --format htm -o made
mistake 2 "tunable: no such format" "tunableop" "$front" export tunable "$reports" -o made
mistake 3 "nowhere.json: cannot be opened" "No such file" "$front" zoo nowhere.json -o made
mistake 2 "--shape is missing" "--shape 4096,4096,4096" "$front" validate --after mine.so

answers=$ROOT/tests/cli/mistakes.txt
if command -v make >/dev/null; then
    if [[ -n ${UPDATE:-} ]]; then cp answers.txt "$answers"; fi
    EXIT=0 STDOUT=$(diff "$answers" answers.txt) || EXIT=$?
    check "all answers are as in mistakes.txt" exits 0
fi
check "50 mistakes at least" test "$(grep -c '^\$ ' answers.txt)" -ge 50

# ---- what is no mistake ----
run "${single[@]}" --custom-kernel "$SCRIPTED/device.so" --device scripted:0 --budget 1m
check "--budget 1m: a minute" exits 0
printf '{"a": {"op": "gemm", "shape": [8, 8, 8], "dtype": "fp32"}}' >few.json
scripted few.json --budget 5
check "a file without -o: exit 0" exits 0
check "a file without -o: it says so first" test "$(grep -n 'no -o: no report is kept' stderr.txt | cut -d: -f1)" -le 2
finish

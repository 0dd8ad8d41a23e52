#!/usr/bin/env bash
# analyze export: what each format holds, what is left out and counted, and what is refused.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
source "$ROOT/tests/cli/analyze.sh"

for kind in plain host hostile; do python3 "$ROOT/tests/cli/made_exports.py" $kind $kind; done
export_refused() { # WHAT CODE ARGUMENTS…
    local what=$1 code=$2
    shift 2
    rm -f refused
    analyze_refused "$what" "$code" export "$@"
    check "$what: nothing is written" absent refused
}
line() { grep -cxF -- "$2" "$1" || true; } # FILE LINE
left_out() { [[ $STDERR == "analyze: left out: "*"$1"* && $STDERR != *$'\n'* ]]; }

# ---- tunableop ----
analyze export tunableop plain --consumer 2.15.0 -o results.csv
check "tunableop: exit 0" exits 0
check "tunableop: says how many" prints "results.csv: 9 entries for tunableop"
check "tunableop: and in one line what is left out" left_out "10 of 20 operations: "
for reason in "more than a product and a bias (1)" "mixed types (1)" "no product of two matrices (1)" "an older program's report, which names no attributes (1)" \
    "fastest by another implementation than cuBLASLt (1)" "a weight whose zeros decide, which no shape tells (1)" \
    "more workspace than the 1 MiB that PyTorch gives cuBLASLt (1)" "decided in two ways under one key of the consumer (2)"; do
    check "tunableop: left out: $reason" left_out "$reason"
done
algorithm=Gemm_Cublaslt_id_66_tile_31_stages_35_splitk_1_red_0_swizzle_0_custom_7_inner_0_cluster_5
for row in "Validator,PT_VERSION,2.15.0" "Validator,CUBLASLT_VERSION,130100" "Validator,CUDA_DEVICE,9.0:Test GPU" \
    GemmTunableOp_Half_NN,nn_256_128_512_ld_256_512_256,Default,0.100000 \
    GemmTunableOp_BFloat16_TN,tn_256_128_512_ld_512_512_256,$algorithm,0.090000 \
    GemmTunableOp_BFloat16_TN,tn_256_64_512_ld_512_512_256,$algorithm,0.090000 \
    GemmTunableOp_float_NT,nt_256_128_512_ld_256_128_256,Default,0.100000 \
    GemmTunableOp_tf32_NN,nn_256_128_512_ld_256_512_256,Default,0.100000 \
    GemmStridedBatchedTunableOp_Half_TN,tn_256_128_512_B_12_ld_512_512_256,Default,0.100000 \
    GemmAndBiasTunableOp_Half_TN,tn_256_128_512_ld_512_512_256,Default,0.100000; do
    check "tunableop: $row" test "$(line results.csv "$row")" = 1
done
check "tunableop: nothing of those decided in two ways" test "$(grep -c _32_32_32 results.csv)" = 0
analyze export tunableop plain --consumer 2.15.0
check "tunableop: the same on standard output" same results.csv stdout.txt
mkdir -p again/reports
for file in $(find plain/reports -name '*.json' | sort -r); do cp "$file" "again/reports/z${RANDOM}_${file##*/}"; done
analyze export tunableop again --consumer 2.15.0
check "tunableop: the same bytes, whatever the files are called" same results.csv stdout.txt
analyze export tunableop plain --consumer 2.15.0 --margin 0.15
check "tunableop: the margin decides" test "$(grep -c "BFloat16.*Default" stdout.txt)" = 2
export_refused "tunableop: a processor" 3 tunableop host --consumer 2.15.0 -o refused
check "tunableop: a processor: says why" says "tell no version of cuBLASLt"

# ---- inductor ----
analyze export inductor plain
check "inductor: exit 0" exits 0
for key in "(torch.float16, [128, 512], [512, 1]), (torch.float16, [512, 256], [256, 1]))+mm aten::mm" \
    "(torch.float32, [128, 512], [1, 128]), (torch.float32, [512, 256], [256, 1]))+mm aten::mm" \
    "(torch.float16, [12, 128, 512], [65536, 512, 1]), (torch.float16, [12, 512, 256], [131072, 1, 512]))+bmm aten::bmm"; do
    check "inductor: $key" test "$(field stdout.txt "r['Test GPU+(${key% *}']")" = "[{'template_id': '${key##* }'}]"
done
check "inductor: no others but tf32's" test "$(field stdout.txt 'len(r)')" = 4
check "inductor: with what is faster, nothing" left_out "something faster than the library's default (7)"
check "inductor: below the ceiling, nothing" left_out "below the ceiling, so that tuning may gain something (1)"
analyze export inductor plain --ceiling 0.99
check "inductor: the ceiling decides: exit 1, nothing is left" exits 1
check "inductor: an empty table is one" test "$(field stdout.txt r)" = "{}"

# ---- triton ----
analyze export triton plain -o scout_triton.py
check "triton: exit 0" exits 0
products() { python3 -c 'import sys, types; sys.dont_write_bytecode = True; sys.modules["triton"] = types.ModuleType("triton")
sys.path.insert(0, "."); import scout_triton as s; print(s.DEVICE.encode().hex() if sys.argv[1:] else (s.DEVICE, s.PRODUCTS))' "$@"; }
check "triton: nothing to gain, and blocks to try" test "$(products)" = "('Test GPU', {(128, 256, 512, 'torch.float16'): [], \
(128, 256, 512, 'torch.float32'): [], (128, 256, 512, 'torch.float64'): [(64, 16, 128), (16, 64, 128), (64, 32, 128)]})"
check "triton: batches are left out" left_out "a batch of products (1)"

# ---- hostile ----
for format in "tunableop --consumer 2.15.0" inductor triton; do
    # shellcheck disable=SC2086 # words
    analyze export ${format%% *} hostile ${format#"${format%% *}"}
    check "hostile: $format: exit 0" exits 0
    check "hostile: $format: one is left" left_out "42 of 43 operations: "
    check "hostile: $format: the terminal is left alone" test -z "$(LC_ALL=C grep -n '[[:cntrl:]]' stderr.txt stdout.txt)"
done
check "hostile: numbers that are no attributes" test "$(
    analyze export tunableop hostile --consumer 2.15.0
    grep -c 'attributes of an algorithm that are no numbers (4)' stderr.txt
)" = 1
for name in 'a,b' $'a\nb' $'\x1b[31m' '"; import os; "' $'\\' 'é'; do
    rm -rf odd && python3 "$ROOT/tests/cli/made_exports.py" odd plain 13.1.0 "$name"
    analyze export tunableop odd --consumer 2.15.0 -o odd.csv
    case $name in
        *[,$'\n\x1b']*) check "hostile: a device that no CSV can tell: $(printf %q "$name")" exits 3 ;;
        *) check "hostile: a device: $name" test "$(line odd.csv "Validator,CUDA_DEVICE,9.0:$name")" = 1 ;;
    esac
    analyze export inductor odd
    check "hostile: a device as JSON: $(printf %q "$name")" test "$(field stdout.txt 'list(r)[0].split("+(")[0].encode().hex()')" = \
        "$(printf %s "$name" | od -An -tx1 | tr -d ' \n')"
    analyze export triton odd -o scout_triton.py
    check "hostile: a device as Python: $(printf %q "$name")" test "$(products hex)" = "$(printf %s "$name" | od -An -tx1 | tr -d ' \n')"
done

# ---- refused ----
export_refused "no format" 2
export_refused "no such format" 2 vllm plain -o refused
check "no such format: says which there are" says "there are tunableop, inductor, triton"
export_refused "no folder" 2 inductor -o refused
export_refused "no version of the consumer" 2 tunableop plain -o refused
check "no version: what to give" says "give --consumer VERSION"
export_refused "a version where none is told" 2 inductor plain --consumer 2.15.0 -o refused
export_refused "a version that is no version" 2 tunableop plain --consumer '2,x' -o refused
export_refused "a version with a line's end" 2 tunableop plain --consumer $'2\n3' -o refused
export_refused "a folder that is not there" 3 inductor nowhere -o refused
mkdir -p empty/reports
export_refused "an empty folder" 3 inductor empty -o refused
python3 "$ROOT/tests/cli/made_exports.py" another plain 12.9.0
export_refused "devices that differ" 3 inductor plain another -o refused
check "devices that differ: what to do" says "export each by itself"
export_refused "a report in the file's place" 2 inductor plain -o plain/reports/default.json
export_refused "a folder that is not there to write to" 4 inductor plain -o nowhere/refused
finish

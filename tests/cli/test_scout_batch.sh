#!/usr/bin/env bash
# scout_batch on the scripted device: reports, what a person sees, cache, --resume, --only, --budget, Ctrl-C.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
cat >block.json <<'END'
{"qkv": {"op": "gemm", "shape": [64, 96, 96]},
 "up": {"op": "gemm", "shape": [64, 96, 32], "sparsity": 0.875},
 "down": {"op": "gemm", "shape": [64, 32, 96], "precision": "fp32"},
 "out": {"op": "gemm", "shape": [4, 64, 64]},
 "attention": {"op": "attention", "shape": [1, 4, 64, 16], "causal": true},
 "norm": {"op": "layernorm", "shape": [64]}}
END
batch() { scripted block.json --precision fp32 -o out "$@"; } # [OPTION…]

# ---- the block of six ----

batch
check "a block: exit 1, for two kinds have no candidates" exits 1
for name in qkv up down out attention norm; do check "a block: report of $name" present "out/reports/$name.json"; done
check "a block: nothing else in reports" test "$(find out/reports -type f | wc -l)" = 6
check "a block: reports and run.json fit their schemas" fits_schema out/reports/*.json out/run.json
check "a block: the table" prints "CUSTOM_KERNEL"
check "a block: largest time first" test "$(grep -nE '^(qkv|up|down|out) ' stdout.txt | sort -n | sed -n 1p | grep -c qkv)" = 1
check "a block: what has no candidates is told" prints "2 SKIPPED (no_candidate)"
check "a block: plain lines meanwhile" says "% of the ceiling"
if command -v python3 >/dev/null; then
    check "no candidates: UNMEASURED" test "$(field out/reports/norm.json 'r["status"], r["approach"], r["reason"]["code"]')" = \
        "('SKIPPED', 'UNMEASURED', 'no_candidate')"
    check "an own kernel wins for few rows" test "$(field out/reports/out.json 'r["best"], r["approach"]')" = \
        "('scripted_stream', 'CUSTOM_KERNEL')"
    check "the baseline is the library's default" test "$(field out/reports/qkv.json 'r["baseline"], r["baseline_variant"]')" = \
        "('scripted_blas', 'algo=0')"
    check "efficiency is the ceiling over the baseline" test \
        "$(field out/reports/qkv.json 'abs(r["efficiency"] - r["ceiling_time_us"] / r["baseline_time_us"]) < 1e-12')" = True
    check "every row but OK has a reason" test \
        "$(field out/reports/qkv.json 'all((c["status"] == "OK") == (c["reason"] is None) for c in r["candidates"])')" = True
    check "sparsity and pattern are told" test "$(field out/reports/up.json 'r["sparsity"], r["pattern"]')" = "(0.875, 'BLOCK_SPARSE')"
    check "run.json counts" test "$(field out/run.json 'r["state"], r["sources"]["measured"], r["statuses"]["OK"]')" = "('complete', 4, 4)"
    check "run.json has the ceilings" test "$(field out/run.json 'r["devices"][0]["ceilings"]["peaks"][0]["precision"]')" = fp32
    check "run.json has clock and power" test "$(field out/run.json 'r["clock_mhz"]["median"], r["power_w"]["max"]')" = "(1000.0, 90.0)"
fi

# ---- again ----

cp -r out first
batch
check "again: exit 1" exits 1
check "again: nothing is measured" test -z "$STDERR"
check "again: the same bytes" diff -qr first/reports out/reports
rm -r out
batch
check "again, the folder gone: the same bytes" diff -qr first/reports out/reports
check "again, the folder gone: nothing is measured" test -z "$STDERR"
batch --no-cache
check "--no-cache measures" says "% of the ceiling"
check "--no-cache: the ceilings stay" test "$(grep -c ceilings stderr.txt)" = 0
batch --quiet
check "--quiet: silent" silent
check "--quiet: exit 1" exits 1
batch --regime burst --cache hot
check "another regime is measured" says "its ceilings"
check "another regime is told" contains out/reports/qkv.json '"regime": "burst-hot-graph"'
check "another regime: exit 1" exits 1

# ---- --resume ----

rm -r out && cp -r first out
rm out/reports/down.json
echo "garbage" >out/reports/up.json
batch --resume --no-cache
check "--resume: measures what is missing or broken" test "$(grep -cE '^scout_batch: (up|down)  ' stderr.txt)" = 2
check "--resume: keeps the rest" test "$(grep -cE '^scout_batch: (qkv|out)  ' stderr.txt)" = 0
check "--resume: says what was broken" says "up.json"
for name in qkv out attention norm; do
    check "--resume: $name is as it was" same "first/reports/$name.json" "out/reports/$name.json"
done
check "--resume: all of it" test "$(find out/reports -name '*.json' | wc -l)" = 6
batch --resume --regime burst --cache-dir empty
check "--resume under another regime measures everything" test "$(grep -cE '^scout_batch: (qkv|up|down|out)  ' stderr.txt)" = 4

# ---- what is no longer in the list ----

rm -r out && cp -r first out
sed 's/"qkv"/"new"/' block.json >fewer.json
echo '{"schema": "somebody/else/1"}' >out/reports/foreign.json
scripted fewer.json --precision fp32 -o out
check "renamed: its report" present out/reports/new.json
check "renamed: the old one is gone" absent out/reports/qkv.json
check "what is not ours stays" present out/reports/foreign.json
rm out/reports/foreign.json

# ---- --only, one report, one operation ----

rm -r out && cp -r first out
scripted block.json --precision fp32 -o out --only norm
check "--only KIND: exit 1" exits 1
scripted block.json --precision fp32 -o out --only down
check "--only NAME: exit 0" exits 0
check "--only NAME: others stay" diff -qr -x down.json first/reports out/reports
scripted block.json --precision fp32 --only down -o down.json
check "one report in a file" present down.json
check "one report in a file: fits" fits_schema down.json
scripted --op gemm --shape 4,64,64 --precision fp32 -o one.json
check "one operation: exit 0" exits 0
check "one operation: fits" fits_schema one.json
for text in "Scripted One" "sustained, cold cache, graph" "gemm 4 x 64 x 64" "baseline    scripted_blas default" \
    "best        scripted_stream" "ceiling " "efficiency " "priority NONE" "approach CUSTOM_KERNEL" \
    "Bound by launching: scripted_stream takes"; do
    check "one operation: prints '$text'" prints "$text"
done
check "no --table, no table" test "$(grep -c 'all variants' stdout.txt)" = 0

# ---- all variants beside each other, and what is known less well than is wanted ----

scripted --op gemm --shape 4,64,64 --precision fp32 --table
check "--table: its head" test "$(grep -cE '^  candidate +time, us interval +TFLOP/s +TB/s  ratio +quality$' stdout.txt)" = 1
check "--table: the baseline" test "$(grep -cE '^  scripted_blas algo=0 +[0-9.]+ ± .* 1( +good)?$' stdout.txt)" = 1
check "--table: the others by their reasons" prints "  UNSUPPORTED "
echo '{"a": {"op": "gemm", "shape": [64, 64, 64]}}' >table.json
scripted table.json --precision fp32 -o table --table
check "--table of a list: below the summary" test "$(grep -nE '^(together|a, all variants)' stdout.txt | cut -d: -f2 | cut -c1-8 | tr '\n' ,)" = "together,a, all v,"
scripted table.json --precision fp32 -o table --resume --strict
check "--strict: exit 0 where all is known well" exits 0
sed -i 's/"rel_ci95": [0-9.e-]*/"rel_ci95": 0.03/; s/"passes": [0-9][0-9]*/"passes": 26/; s/"quality": "good"/"quality": "wide"/' table/reports/a.json
scripted table.json --precision fp32 -o table --resume
check "a wide interval: exit 0" exits 0
check "a wide interval: is told of the total" prints "together "
check "a wide interval: is counted" test "$(field table/run.json 'r["wide"], r["without_figure"], r["totals"]["model_ci"] > 0.029')" = "(1, 0, True)"
check "a wide interval: fits" fits_schema table/run.json
scripted table.json --precision fp32 -o table --resume --strict
check "a wide interval, --strict: exit 1" exits 1

scripted --op gemm --shape 1,1,64 --precision fp32 --k-sweep -o sweep.json
check "--k-sweep: prints it" prints "K sweep     65536 "
check "--k-sweep: its peak" test "$(grep -cE '^  K sweep peak [0-9.]+ [GT]FLOP/s ± [0-9.]+ % at K = [0-9]+$' stdout.txt)" = 1
check "--k-sweep: its range" test "$(grep -cE '^  65536 to 262144: between [0-9.]+ and [0-9.]+ [GT]FLOP/s$' stdout.txt)" = 1
check "--k-sweep: is in the report" contains sweep.json '"sweep": {'
check "--k-sweep: fits" fits_schema sweep.json
scripted --op gemm --shape 64,96,96 --precision fp32 --k-sweep -o other.json
check "--k-sweep that does not fit: says so" prints "K sweep     not measured"
check "--k-sweep that does not fit: not that of another product" test "$(grep -c '"sweep"' other.json)" = 0
scripted --op gemm --shape 4,64,64 --precision fp32 --candidate scripted_absent -o two.json
check "--candidate: the others are not run" contains two.json '"not_asked"'
check "--candidate: the baseline is" prints "scripted_blas default"
scripted --op gemm --shape 4,64,64 --precision fp32 --sparsity 0.5 --pattern UNSTRUCTURED -o out
check "one operation in a model's folder: the others stay" diff -qr -x down.json -x 'gemm_*' first/reports out/reports
check "one operation in a model's folder: its report" test "$(find out/reports -name 'gemm_4x64x64*' | wc -l)" = 1
check "one operation in a model's folder: run.json tells its options" contains out/run.json '"pattern": "UNSTRUCTURED"'
check "one operation in a model's folder: fits" fits_schema out/run.json
scripted --op gemm --shape 32,128,128 --precision fp32 --sparsity-sweep --sparse-block 16 -o zeros
check "--sparsity-sweep: exit 0" exits 0
check "--sparsity-sweep: a report for each" test "$(find zeros/reports -name '*_zeros*.json' | wc -l)" = 9
check "--sparsity-sweep: fits" fits_schema zeros/run.json zeros/reports/*.json
check "--sparsity-sweep: says of what" prints "32 x 128 x 128, zeros as blocks of 16"
check "--sparsity-sweep: prints the crossover" prints "zeros (at "
crossover=$(field zeros/run.json 'r["crossovers"][0]["behind"] == 0.75 and abs(r["crossovers"][0]["from"] - 0.8) < 0.01')
check "--sparsity-sweep: it is where the sparse one overtakes the fastest dense one" test "$crossover" = True
scripted --op gemm --shape 32,128,128 --precision fp32 --sparsity 0.9 --pattern UNSTRUCTURED --weight-threshold 0.5 -o below.json
check "a sparse weight: says what it is" prints "weight      made up: "
check "a sparse weight: both rates" prints "as if dense"
check "--weight-threshold: says what would be" prints "values below 0.5 in magnitude"
check "--weight-threshold: fits" fits_schema below.json
below=$(field below.json '(lambda c: c["threshold"] == 0.5 and r["weight"]["zeros"] < c["below"] < 1 and c["norm_lost"]["128"] <= c["norm_lost"]["16"])(r["weight"]["convert_to_bsr"])')
check "--weight-threshold: is in the report" test "$below" = True
check "--weight-threshold: measures the weight as it is" test "$(field below.json '0.88 < r["weight"]["zeros"] < 0.92')" = True
check "one product: no crossover" test "$(grep -c crossover below.json)" = 0
scripted --op gemm --shape 4,64,64 --precision fp32 --budget 0.01 --no-cache
check "one operation, no time: exit 1" exits 1
check "one operation, no time: what to do" prints "run again with a larger --budget"
check "one operation, no time: no word of --resume" test "$(grep -c -e --resume stdout.txt)" = 0
"$EXTRACT_OPS" "$ROOT/models/transformer_block.onnx" --batch 1 --seq 16 -q -o parts.json
scripted parts.json --no-fusions
check "parts of others are not measured" prints "; --exhaustive measures it"
scripted parts.json --exhaustive
check "--exhaustive: parts are measured" test "$(grep -c not_asked stdout.txt)" = 0
scripted --op gemm --shape 4,64,64 --precision fp16
check "a precision that nothing computes: exit 1" exits 1
check "a precision that nothing computes: says so" prints "computes in fp32 only"
scripted --ceilings --precision fp32 -o ceilings.json
check "--ceilings: exit 0" exits 0
check "--ceilings: fits" fits_schema ceilings.json
check "--ceilings: peak" prints "fp32"
check "--ceilings: bandwidth" prints "copy"
check "--ceilings: from the cache" test -z "$STDERR"
anew=("$SCOUT" --custom-kernel "$SCRIPTED/device.so" --device scripted:0 --ceilings --precision fp32 --no-cache)
run "${anew[@]}"
check "--ceilings --no-cache: how long it may take, without a terminal" test "$(grep -cE '^scout_batch: scripted:0: measuring its ceilings \(once, then cached\), 0:0[78] left at most$' stderr.txt)" = 1
run "${anew[@]}" --budget 3
check "--ceilings --budget: no longer than that" test "$(grep -cE 'cached\), 0:0[23] left at most$' stderr.txt)" = 1
run "${anew[@]}" --exhaustive
check "--ceilings --exhaustive: longer" test "$(grep -cE 'cached\), 0:[1-3][0-9] left at most$' stderr.txt)" = 1

# ---- on a terminal ----

if command -v python3 >/dev/null; then
    export CEILING_SCOUT_SCRIPTED_SLOW_US=2000
    run python3 -B "$ROOT/tests/cli/terminal_scout.py" "$SCOUT" --custom-kernel "$SCRIPTED/device.so" --device scripted:0 block.json \
        --precision fp32 --no-cache
    check "on a terminal: a bar, and lines that fit" exits 0
    export CEILING_SCOUT_SCRIPTED_SLOW_US=50000
    run python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$SCOUT" --custom-kernel "$SCRIPTED/device.so" --device scripted:0 \
        --op gemm --shape 64,96,96 --precision fp32 --no-cache
    unset CEILING_SCOUT_SCRIPTED_SLOW_US
    check "on a terminal: time left of a single operation" test "$(grep -cE '\[#+\.+\] operations 0/1  0:0[0-9] left  gemm: ' stdout.txt)" -gt 0
    for try in 1 2 3; do # a machine that stands still for a second draws no bar at the beginning
        CEILING_SCOUT_SCRIPTED_SLOW_US=500 run python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "${anew[@]}"
        grep -oE '\[[#.]{20}\] ceilings [0-9]/2  0:[0-9][0-9] left  scripted:0: ' stdout.txt >bars.txt || true
        if grep -qE '\[#?\.+\] ceilings 0/2  0:0[678] left' bars.txt; then break; fi
    done
    check "on a terminal: time left of ceilings, try $try" grep -qE '\[#?\.+\] ceilings 0/2  0:0[678] left' bars.txt
    check "on a terminal: time left of ceilings, further on" grep -qE '\[#+\.+\] ceilings 1/2  0:0[1-5] left' bars.txt
else
    skip "python3 is not installed: no terminal"
fi

# ---- --budget and Ctrl-C ----

rm -rf out
CEILING_SCOUT_SCRIPTED_SLOW_US=50000 batch --budget 1 --no-cache
check "--budget: exit 1" exits 1
check "--budget: the run is complete" contains out/run.json '"complete"'
check "--budget: says what was left out" prints "(budget)"
check "--budget: the report says so too" contains <(cat out/reports/*.json) '"code": "budget"'
check "--budget: a report for each" test "$(find out/reports -name '*.json' | wc -l)" = 6
check "--budget: fits" fits_schema out/reports/*.json out/run.json
rm -rf out
run timeout --preserve-status -s INT 4 env CEILING_SCOUT_SCRIPTED_SLOW_US=50000 "$SCOUT" --custom-kernel "$SCRIPTED/device.so" \
    --device scripted:0 block.json --precision fp32 -o out --no-cache
check "Ctrl-C: exit 1" exits 1
check "Ctrl-C: says how to go on" says "--resume continues"
check "Ctrl-C: run.json tells" contains out/run.json '"interrupted"'
check "Ctrl-C: fits" fits_schema out/run.json out/reports/*.json
batch --resume
check "Ctrl-C, then --resume: whole" contains out/run.json '"complete"'
check "Ctrl-C, then --resume: no worker is left" test -z "$(pgrep -f "worker.*$PWD" || true)"
for name in attention norm; do # ceilings were taken anew in between, and with them what these take at least
    check "Ctrl-C, then --resume: $name" diff <(grep -v least_time_us "first/reports/$name.json") \
        <(grep -v least_time_us "out/reports/$name.json")
done
finish

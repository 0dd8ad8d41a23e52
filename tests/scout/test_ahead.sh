#!/usr/bin/env bash
# What comes next is prepared beside what is measured: the figures are the same, and what fails there alone is
# blamed for it.
source "$ROOT/tests/scout/lib.sh"
write_ops ops.json
warm_up scripted:0
scout ops.json -o clean --device scripted:0 --no-cache
check "one thread does all: exit 0" exits 0
order_of() { sed -nE 's/^scout_batch: ([a-z]+)  .*/\1/p' stderr.txt | tr '\n' ' '; }
last_is() { [[ $(order_of) == *" $1 " ]]; }
check "one thread does all: the heaviest come first" test "$(order_of)" = "square deep wide few row "

beside() { # FOLDER [ARGUMENT]…
    local folder=$1
    shift
    rm -rf "$folder" prepared
    CEILING_SCOUT_SCRIPTED_BESIDE=$PWD/prepared scout "$@" ops.json -o "$folder" --device scripted:0 --no-cache
}
plans_beside() { [[ $(sort -u prepared 2>/dev/null | wc -l) -ge $1 ]]; }
unprepared() { [[ ! -e prepared ]]; }

CEILING_SCOUT_SCRIPTED_SLOW_US=1000 beside ahead # so that a loaded machine's other threads have their turn
check "others prepare: exit 0" exits 0
check "others prepare: the first operation is prepared by the thread that measures it, and some of the rest beside it" \
    plans_beside 1
check "others prepare: every row is as without them" same_but_time clean ahead
check "others prepare: what was waited for is told" grep -rq '"waiting":' ahead/reports

# what is not prepared beside, as sparse weights, need not wait for what is
cat >ops.json <<'END'
{"square": {"op": "gemm", "shape": [64, 64, 64], "dtype": "fp32"},
 "deep": {"op": "gemm", "shape": [24, 40, 200], "dtype": "fp32"},
 "thin": {"op": "gemm", "shape": [8, 64, 96], "dtype": "fp32", "sparsity": 0.5}}
END
scout ops.json -o clean --device scripted:0 --no-cache
check "one thread does all: the lightest comes last" last_is thin
CEILING_SCOUT_SCRIPTED_SLOW_BESIDE=24:400000 beside slow
check "what is still being prepared gives way to what is ready" last_is deep
check "what is still being prepared gives way: every row is as without" same_but_time clean slow
write_ops ops.json
scout ops.json -o clean --device scripted:0 --no-cache

# one thread prepares, and is at one operation for longer than the budget: the others do not wait for it
CEILING_SCOUT_AHEAD=1 CEILING_SCOUT_SCRIPTED_SLOW_BESIDE=24:12000000 beside hurried --budget 6
without_figure() { grep -L '"baseline_time_us"' hurried/reports/*.json | sed 's|.*/||; s|[.]json||' | tr '\n' ' '; }
check "a budget that one preparation takes: each other operation has a figure" \
    test "$(without_figure | sed 's/^deep $//')" = ""

# what turns out far heavier than its size lets expect is searched again, and prepared beside again
python3 - >heavy.json <<'END'
import json
shapes = {f"op{k}": [16, 64 + k, 64] for k in range(8)} | {"heavy": [3, 64, 64]}
count = lambda name: 1 if name == "heavy" else 40 # so that the others are worth passes, and it is prepared beside these
print(json.dumps({name: {"op": "gemm", "shape": shape, "dtype": "fp32", "count": count(name)}
                  for name, shape in shapes.items()}))
END
searched_beside() { # twice as many plans as of one search; a machine that is loaded has no thread free each time
    local k once
    for ((k = 0; k < 5; k++)); do
        rm -rf heavy twice
        CEILING_SCOUT_SCRIPTED_BESIDE=$PWD/twice CEILING_SCOUT_SCRIPTED_HEAVY=3 CEILING_SCOUT_SCRIPTED_SLOW_US=1000 \
            scout heavy.json -o heavy --device scripted:2 --no-cache
        once=$(grep -cx 16,65,64 twice || true)
        if ((once > 0 && $(grep -cx 3,64,64 twice || true) == 2 * once)); then return; fi
    done
    return 1
}
check "a second search: its plans are made beside, as those of the first" searched_beside
check "a second search: it is made" test "$(grep -cE '^scout_batch: heavy ' stderr.txt)" = 2

# fusions of other operations have their first pass while a second search is prepared, and its own wait for it
joined() { # FUSED…   the operations that there are fusions of, what saves most first
    python3 - "$@" >joined.json <<'END'
import json, sys
def product(name, m, n, k, count):
    return {"id": name, "op": "gemm", "shape": [m, n, k], "layout": "nn", "dtype": "fp32", "weight_dtype": "fp32",
            "weight_side": "b", "count": count, "macs": m * n * k, "flops": 2 * m * n * k,
            "bytes_read": 4 * (m * k + k * n), "bytes_written": 4 * m * n}
ops = [product("heavy", 3, 64, 64, 2)] + [product(f"op{k}", 16, 64 + k, 64, 2) for k in range(8)]
print(json.dumps({"schema": "ceiling-scout/ops/1", "model": {"name": "m"}, "ops": ops, "fusions": [
    {"pattern": "gemm+gemm shared input", "ops": [part, part], "count": 1, "selected": 1, "saved_bytes": 9000 - 99 * k}
    for k, part in enumerate(sys.argv[1:])]}))
END
}
among_fusions() { # ORDER FUSED…   a machine that is loaded may have prepared it in time
    local k order wanted=$1
    shift
    joined "$@"
    for ((k = 0; k < 5; k++)); do
        rm -rf joined
        CEILING_SCOUT_SCRIPTED_BESIDE=$PWD/prepared CEILING_SCOUT_SCRIPTED_HEAVY=3 \
            CEILING_SCOUT_SCRIPTED_SLOW_BESIDE=3:700000 \
            scout joined.json -o joined --device scripted:2 --no-cache --no-replay
        order=$(sed -nE 's/^scout_batch: (heavy|gemm_gemm_shared_input_[0-9]+).*/\1/p' stderr.txt | tr "\n" " ")
        if [[ ${order//gemm_gemm_shared_input_/of_} == "$wanted "* ]]; then return; fi
    done
    echo "    in the order $order"
    return 1
}
check "a second search: a fusion of others comes before it" among_fusions "heavy of_16 heavy" op1
check "a second search: its own fusion comes behind it" among_fusions "heavy heavy of_3" heavy
check "a second search: fusions of both" among_fusions "heavy of_16 heavy of_3" heavy op1
check "a second search: fusions of both in the other order" among_fusions "heavy of_16 heavy of_3" op1 heavy

flawed_row() { # of the one operation that it fails for
    rm -rf only && mkdir -p only/reports && cp flawed/reports/few.json only/reports/ && row_is only scripted_stream "$@"
}
flawed() { # HOW STATUS CODE
    export CEILING_SCOUT_SCRIPTED_FLAW=$1
    rm -rf known
    scout ops.json -o known --device scripted:0 --no-cache
    beside flawed
    check "$1 beside: exit 1" exits 1
    check "$1 beside: it is done again alone, before anything is blamed" says "repeated alone"
    check "$1 beside: it is $2 $3" flawed_row "$2" "$3"
    check "$1 beside: every row is as where one thread does all" same_but_time known flawed
    unset CEILING_SCOUT_SCRIPTED_FLAW
}
flawed crash CRASHED signal
flawed hang TIMEOUT deadline

# a plugin's code is run by one thread
CEILING_SCOUT_FAULTS=wrong beside foreign "${FAULTS[@]}"
check "with a plugin: exit 1" exits 1
check "with a plugin: nothing is prepared beside" unprepared
check "nothing of it is left running" alone "$SCRIPTED/device.so"
finish

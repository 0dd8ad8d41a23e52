#!/usr/bin/env bash
# A zoo on several GPUs of a host: items beside each other, each where it was before, a GPU that is lost, one that is
# slower than its sibling, and ends of every kind. On the scripted device, which has two.
# shellcheck disable=SC2016 # it is the text of a script
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"

# Each run of scout_batch says which GPU it sees and what it measures. A file `pair` keeps it until two have come; `gone_1`
# makes GPU 1 fail, `bad` a model, `once` the next two; `slow` makes its ceilings of reading 10 % lower; `hold` keeps it for
# as long as it is there; `link` puts a link in the place of the folder's mark. What is auto would be the CPU here: it fails.
make_house "cd ${PWD@Q}"'
gpu=${CUDA_VISIBLE_DEVICES:-none} words=() out=
for w; do
    case $w in
    --device=cuda:0 | --device=cpu) w=--device=scripted:${gpu/none/0} ;;
    --output=*) out=${w#*=} ;;
    esac
    words+=("$w")
done
if [[ $* == --list-devices ]]; then
    printf "cpu      AMD EPYC\n         class name=AMD EPYC\ncuda:0   NVIDIA H200\n         class name=x\ncuda:1   NVIDIA H200\n"
    exit
fi
if [[ $* != *ops.json* || $* == *--list-devices* ]]; then
    exec '"${SCOUT@Q}"' --custom-kernel '"${SCRIPTED@Q}"'/device.so "${words[@]}"
fi
name=${1%/ops.json}
name=${name##*/}
if [[ $* == *--only* ]]; then echo "$gpu ${name%%@*} again" >>runs.txt; else echo "$gpu ${name%%@*} begin" >>runs.txt; fi
if [[ -e pair ]]; then
    echo >>came.txt
    for ((k = 0; k < 400; k++)); do if (($(wc -l <came.txt) >= 2)); then break; fi; sleep 0.05; done
fi
while [[ -e hold ]]; do touch "held_$gpu"; sleep 0.05; done
if [[ -e link ]]; then ln -sf "$PWD/outside" "${1%/ops.json}/.gpu"; fi
if [[ -e gone_$gpu || (-e once && $(grep -c begin runs.txt) -le 2) || (-e bad && $name == $(<bad)*) ]]; then
    echo "scout_batch: scripted:0: the GPU is gone; look at its driver" >&2
    exit 4
fi
code=0
'"${SCOUT@Q}"' --custom-kernel '"${SCRIPTED@Q}"'/device.so "${words[@]}" || code=$?
if [[ -e slow && $gpu == 1 ]]; then
    python3 -c "import json, sys; r = json.load(open(sys.argv[1])); r[\"devices\"][0][\"ceilings\"][\"read_tbps\"] *= 0.9; json.dump(r, open(sys.argv[1], \"w\"))" "${1%/ops.json}/run.json"
fi
echo "$gpu ${name%%@*} end" >>runs.txt
exit "$code"
'
mkdir m
cp "$ROOT/models/transformer_block.onnx" m/long.onnx
for name in one two; do python3 -B "$ROOT/tests/cli/product_model.py" m/$name.onnx; done
cp "$ROOT/models/pruned_mlp.onnx" m/other.onnx
list() { # MODELS
    printf '{"schema": "ceiling-scout/zoo/1", "defaults": {"device": "auto", "regime": "burst"}, "models": [%s]}' "$1" >m/zoo.json
}
all='{"model": "one.onnx"}, {"model": "two.onnx"}, {"model": "long.onnx", "dims": [{"batch": 1, "seq": 8}]}, {"model": "other.onnx", "dims": [{"batch": 4}]}'
list "$all"
zoo() { rm -f runs.txt came.txt && run house/bin/ceiling-scout zoo m/zoo.json "$@"; }
where() { grep -h ' begin' runs.txt | sort -k 2 | awk '{print $2, $1}' | tr '\n' ','; }

# ---- what is refused ----
for list_of in '0,' ',0' '0 1' '0;1' -1 x '$(id)' GPU-a/../b\; "GPU-$(printf 'x%.0s' {1..80})"; do
    zoo "--gpus=$list_of"
    check "--gpus ${list_of@Q}: exit 2" exits 2
    check "--gpus ${list_of@Q}: how they are named" says '--gpus: GPUs are named as 0,1 or GPU-… or MIG-…, with commas between; --gpus all takes all'
done
zoo --gpus 0,1,0
check "a GPU twice: exit 2" exits 2
check "a GPU twice: which" says '--gpus: 0 is there twice'
zoo --gpus "$(seq -s, 0 64)"
check "65 GPUs: exit 2" exits 2
check "65 GPUs: how many" says '--gpus: 64 GPUs at most'
for other in --part=1/4 --tell; do
    zoo --night first "$other" --gpus 0,1
    check "--gpus with $other: exit 2" exits 2
    check "--gpus with $other: why" says 'a part is measured on one device'
done
list "$all, {\"model\": \"long.onnx\", \"name\": \"third\", \"device\": \"cuda:1\"}"
zoo --gpus 0,1
check "a GPU's number in the list: exit 3" exits 3
check "a GPU's number in the list: what to do" says 'm/zoo.json: models[4]: device "cuda:1": with --gpus a model sees one GPU; leave the number out'
zoo --gpus 0,1 --only one
check "... of a model that is not wanted: it runs" exits 0
check "nothing else was measured" test "$(where)" = "one 0,"
rm -rf out
list "$all"
CUDA_VISIBLE_DEVICES='0, 1' zoo --gpus all
check "the variable is bent: exit 2" exits 2
check "the variable is bent: it is named" says 'CUDA_VISIBLE_DEVICES: GPUs are named as '
CUDA_VISIBLE_DEVICES=2,3 zoo --gpus 2,1
check "a GPU that is not shown: exit 2" exits 2
check "a GPU that is not shown: is named" says '--gpus: 1 is not among CUDA_VISIBLE_DEVICES, which is 2,3'
zoo --gpus '0 1' --again
check "nothing began where something was refused" absent out

# ---- beside each other ----
list "$all"
touch pair
zoo --gpus 0,1
rm pair
check "two GPUs: not complete" exits 1
check "two GPUs: two begin before one ends" test "$(head -n 2 runs.txt | grep -c begin)" = 2
check "two GPUs: each has one of them" test "$(head -n 2 runs.txt | cut -c 1 | sort | tr -d '\n')" = 01
check "two GPUs: each model is measured once" test "$(grep -c begin runs.txt)" = 4
check "two GPUs: the larger model is first" contains <(head -n 2 runs.txt) ' long begin'
check "two GPUs: a line says where" grep -qE '^zoo: [1-4] of 4 done, .*; long@b1_s8_auto_burst: 4 measured, 0 from the cache on GPU [01]$' stdout.txt
check "two GPUs: all is counted" contains stdout.txt 'zoo: 4 of 4 done, 4 measured, 0 up to date; '
check "two GPUs: alike" test "$(grep -c sibling out/zoo/digest.md)" = 0
zoo --gpus 0,1
check "again: nothing is measured" absent runs.txt
check "again: all is up to date" contains stdout.txt '0 measured, 4 up to date'

# ---- each where it was, the longest first ----
before=$(for folder in out/*@*; do name=${folder##*/} && echo "${name%%@*} $(<"$folder/.gpu"),"; done | sort | tr -d '\n')
zoo --gpus 1,0 --again
check "a night: each on its GPU" test "$(where)" = "$before"
seconds() { sed -i "s/^  \"seconds\": .*/  \"seconds\": $2,/" out/"$1"@*/run.json; }
seconds one 40 && seconds two 500 && seconds long 30 && seconds other 300
zoo --gpus 0 --again
check "one GPU: what took longest is first" test "$(grep begin runs.txt | awk '{print $2}' | tr '\n' ' ')" = "two other one long "
check "one GPU: it has all of them" test "$(cut -c 1 runs.txt | sort -u)" = 0
rm -f out/*/.gpu && touch link
zoo --gpus 1 --again --only one
rm link
check "a link in the mark's place: it is measured" contains stdout.txt '1 measured, 0 up to date'
check "a link in the mark's place: nothing is written through it" absent outside
rm -f out/*/.gpu
zoo --gpus 1
check "what is up to date has no GPU by that" test -z "$(find out -name .gpu)"

# ---- all ----
zoo --gpus all --again
check "all: as many as the driver shows" test "$(cut -c 1 runs.txt | sort -u | tr -d '\n')" = 01
rm -rf out
CUDA_VISIBLE_DEVICES=1 zoo --gpus all
check "all of CUDA_VISIBLE_DEVICES" test "$(cut -c 1 runs.txt | sort -u)" = 1

# ---- a GPU that is lost, and a model that fails anywhere ----
rm -rf out && touch gone_1
zoo --gpus 1,0
check "a lost GPU: the night is as long as it can be" exits 1
check "a lost GPU: is told twice, and why" test "$(grep -cE '^ceiling-scout: .* ended on GPU 1 with: scout_batch: scripted:0: the GPU is gone; look at its driver; on GPU 0 it did not' stderr.txt)" -ge 2
check "a lost GPU: is used no more then" test "$(grep -c '; the former is used no more$' stderr.txt)" = 1
check "a lost GPU: all models have results" contains stdout.txt 'zoo: 4 of 4 done, 4 measured'
check "a lost GPU: nothing is wrong" test "$(grep -c wrong out/zoo/digest.md)" = 0
rm -rf out gone_1 && touch once pair
zoo --gpus 0,1
rm once pair
check "each GPU fails once: both go on" test "$(grep -c 'used no more' stderr.txt)" = 0
check "each GPU fails once: told of both" test "$(grep -c 'it did not$' stderr.txt)" = 2
check "each GPU fails once: all models have results" contains stdout.txt 'zoo: 4 of 4 done, 4 measured'
check "each GPU fails once: each run sees one" test "$(cut -d ' ' -f 1 runs.txt | sort -u | tr -d '\n')" = 01
rm -rf out && echo long >bad
zoo --gpus 0,1
check "a model that fails on both: exit 4" exits 4
check "a model that fails on both: was tried on both" test "$(grep -c 'long begin' runs.txt)" = 2
check "a model that fails on both: is told once" test "$(grep -c 'long@b1_s8_auto_burst: ended with 4: ' stderr.txt)" = 1
check "a model that fails on both: no GPU is at fault" test "$(grep -c 'used no more' stderr.txt)" = 0
check "a model that fails on both: the others have results" contains stdout.txt 'zoo: 4 of 4 done, 3 measured'
rm bad
touch gone_0
rm -rf out
zoo --gpus 0
check "the only GPU is lost: exit 4" exits 4
check "the only GPU is lost: each model is told" test "$(grep -c ': ended with 4: ' stderr.txt)" = 4
rm gone_0

# ---- what is on the CPU has nothing beside it ----
rm -rf out
list '{"model": "one.onnx", "device": "cpu"}, {"model": "two.onnx"}, {"model": "long.onnx", "dims": [{"batch": 1, "seq": 8}]}'
zoo --gpus 0,1
check "on the CPU: last" test "$(tail -n 2 runs.txt | tr '\n' ',')" = "none one begin,none one end,"

# ---- a GPU that is slower than its sibling ----
rm -rf out && touch slow pair
list "$all"
zoo --gpus 0,1
rm slow pair
check "a slower GPU: is named" says 'ceiling-scout: GPU 1 (Scripted One, scripted-1) is 10.0 % below its sibling by its ceiling of read'
check "a slower GPU: in the digest" contains out/zoo/digest.md '- `GPU 1 (Scripted One, scripted-1) is 10.0 % below its sibling by its ceiling of read`'
check "a slower GPU: the other one is not" test "$(grep -c sibling stderr.txt)" = 1

# ---- what got slower is measured again where it was ----
rm -rf out
zoo --gpus 1 --again --only one
python3 - out/zoo/history.db <<'END'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
columns = [row[1] for row in db.execute("PRAGMA table_info(point)")]
for night in range(2, 10): # eight nights before, in which it took a tenth less
    was = {"night": str(night), "taken": f"taken - 86400 * (11 - {night})", "us": "0.9 * us"}
    db.execute("INSERT INTO night(id, at) SELECT ?, at - 86400 * (11 - ?) FROM night WHERE id = 1", (night, night))
    chosen = ", ".join(was.get(name, name) for name in columns)
    db.execute(f"INSERT INTO point({', '.join(columns)}) SELECT {chosen} FROM point WHERE night = 1")
db.execute("DELETE FROM point WHERE night = 1")
db.commit()
END
zoo --gpus 0,1 --again --only one
check "a suspect: it is told, with how many there are" contains stdout.txt ' again, 8 times, 1 of 1'
check "a suspect: it is measured again" test "$(grep -c again runs.txt)" -ge 8
check "a suspect: on its own GPU alone" test "$(cut -d ' ' -f 1 runs.txt | sort -u)" = 1

# ---- ends ----
kept() { # WHAT   the next one goes on
    rm -f hold held_*
    zoo --gpus 0,1
    check "$1: the next one measures the rest" contains stdout.txt 'zoo: 4 of 4 done, '
    check "$1: all have results" test "$(find out -name summary.json | wc -l)" = 4
}
going() { pgrep -fc "$(realpath house/bin)/scout_batch" || true; }
start_held() { # its number
    rm -rf out runs.txt held_* && touch hold
    env --default-signal=INT house/bin/ceiling-scout zoo m/zoo.json --gpus 0,1 >first.txt 2>&1 &
    night=$!
    for ((k = 0; k < 400; k++)); do if [[ -e held_0 && -e held_1 ]]; then break; fi; sleep 0.05; done
    check "two are held" test "$(going)" -ge 2
}
for signal in INT TERM; do
    start_held
    kill -s "$signal" "$night" # as Ctrl-C does where the zoo leads
    EXIT=0 && wait "$night" || EXIT=$?
    check "SIG$signal: exit 1" exits 1
    check "SIG$signal: says what is next" contains first.txt 'the same command goes on where it was'
    check "SIG$signal: nothing goes on" test "$(going)" = 0
    kept "SIG$signal"
done
start_held
kill -9 "$night"
EXIT=0 && wait "$night" 2>/dev/null || EXIT=$?
for ((k = 0; k < 400; k++)); do if (($(going) == 0)); then break; fi; sleep 0.05; done
check "a killed zoo: nothing goes on" test "$(going)" = 0
kept "a killed zoo"
start_held
kill -9 "$(pgrep -P "$night" | sed -n 1p)"
rm hold
EXIT=0 && wait "$night" || EXIT=$?
check "a process that is killed: the night is whole" contains first.txt 'zoo: 4 of 4 done, 4 measured'
check "a process that is killed: no GPU is at fault" test "$(grep -c 'used no more\|it did not' first.txt)" = 0
check "a process that is killed: its model ran elsewhere" contains first.txt 'on GPU '
finish

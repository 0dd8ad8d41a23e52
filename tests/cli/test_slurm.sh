#!/usr/bin/env bash
# scripts/slurm/submit.sh: what is wrong in its arguments, what it submits, and a Slurm of one node with two made-up GPUs
# that runs it: a task that is requeued, one that is cancelled, and the same night by one process. Skipped where Slurm
# is not installed or cannot be started; what was started is stopped, however this ends.
# shellcheck disable=SC2016 # a name holds a dollar
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"

make_house "echo \"\${CUDA_VISIBLE_DEVICES:-none}\" >>${PWD@Q}/gpus.txt
$(holding_at held)"
mkdir tools m
export PATH=$PWD/house/bin:$PATH:/usr/sbin # where the daemons are
submit() { run "$ROOT/scripts/slurm/submit.sh" "$@"; }
cp "$ROOT/models/transformer_block.onnx" m/first.onnx
cp "$ROOT/models/pruned_mlp.onnx" m/held.onnx
cp "$ROOT/models/small_conv.onnx" m/third.onnx
zoo='m/a "zoo" of 5 % $HOME.json'
echo '{"schema": "ceiling-scout/zoo/1", "defaults": {"device": "scripted:0", "regime": "burst"}, "models": [
    {"model": "first.onnx", "dims": [{"batch": 1, "seq": 8}]}, {"model": "held.onnx", "dims": [{"batch": 4}]},
    {"model": "third.onnx", "dims": [{"batch": 1}]}]}' >"$zoo"

# ---- arguments ----
submit
check "no arguments: exit 2" exits 2
submit --partition=gpu "$zoo" out
check "an option before the list: exit 2" exits 2
submit missing.json out
check "no list: exit 3" exits 3
check "no list: says what to name" says 'missing.json: is not there; name the list of models'
submit --print "$zoo" 'the nights'
check "--print: exit 0" exits 0
check "--print: nothing is made" absent 'the nights'
check "--print: a part of three" contains stdout.txt '--part "$SLURM_ARRAY_TASK_ID/3" -- '
check "--print: what tells of them" contains stdout.txt '--tell --digest -- '
check "--print: both are scripts" bash -n stdout.txt
printf '#!/bin/sh\necho "$@" >>%q\ncat >>%q\necho "$@" | grep dependency >/dev/null && exit 1\necho "17;cluster"\n' "$PWD/asked.txt" "$PWD/jobs.txt" >tools/sbatch
printf '#!/bin/sh\necho "$@" >>%q\n' "$PWD/cancelled.txt" >tools/scancel
chmod +x tools/*
PATH=$PWD/tools:$PATH submit "$zoo" 'ni%ghts' --gres=gpu:1
check "no second job: exit 4" exits 4
check "no second job: the first is taken back" test "$(<cancelled.txt)" = "--clusters=cluster 17"
check "a percent sign in the folder is none of sbatch's" contains asked.txt "ni%%ghts/zoo/slurm/%A_%a.log"
rm -f cancelled.txt
printf '#!/bin/sh\nexit 1\n' >tools/scancel
PATH=$PWD/tools:$PATH submit "$zoo" nights
check "the first cannot be taken back: exit 4" exits 4
check "the first cannot be taken back: what to do" says 'job 17 could not be taken back; say scancel 17'
check "both jobs get the options" test "$(grep -c -- '--gres=gpu:1' asked.txt)" = 2
check "the second waits for all parts" contains asked.txt '--dependency=afterany:17 '
rm -f asked.txt
AT_ONCE=2 PATH=$PWD/tools:$PATH submit "$zoo" nights
check "AT_ONCE: so many at a time" contains asked.txt '--array=1-3%2 '
for option in --dependency=singleton -dsingleton --array=1-4 -a1 --output=x -ox --wrap=x; do
    submit --print "$zoo" nights "$option"
    check "$option: exit 2" exits 2
    check "$option: what to do instead" says 'this script says that itself'
done
AT_ONCE=none submit --print "$zoo" nights
check "AT_ONCE that is none: exit 2" exits 2
submit --print "$zoo" 'nights\of mine'
check "a backslash in the folder: exit 2" exits 2
submit --help
check "--help: exit 0" exits 0

make_nightly() { run env PATH="$PWD/tools:$PATH" make -C "$ROOT" -s nightly "$@"; }
make_nightly CLUSTER=slurm ONLY=first
check "make: no part of a night: exit 2" exits 2
check "make: no part of a night: what to do" says 'give it a list of your own (ZOO=)'
rm -f asked.txt
make_nightly CLUSTER=slurm ZOO="$PWD/$zoo" OUT="$PWD/made" SBATCH="--gres=gpu:1" FRONT="$PWD/house/bin/ceiling-scout" PROGRAMS=
check "make: submits" contains asked.txt "--gres=gpu:1 --array=1-3 --output=$PWD/made/zoo/slurm/%A_%a.log"
make_nightly CLUSTER=slurm AGAIN=no
check "make: what has changed alone: exit 2" exits 2
make_nightly CLUSTER=other
check "make: another cluster: exit 2" exits 2

# ---- a Slurm of this machine ----
place=$(mktemp -d) # short, and its files are not for others
export SLURM_CONF=$place/slurm.conf
daemons=()
# shellcheck disable=SC2317 # called at the end
stop_slurm() {
    for pid in "${daemons[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
    for ((k = 0; k < 100; k++)); do if ! pgrep -f -- "$place" >/dev/null; then break; fi; sleep 0.1; done
    pkill -KILL -f -- "$place" || true
    rm -rf -- "$place"
}
trap 'tell_end $? "$BASH_COMMAND" "${BASH_LINENO[@]}"; stop_slurm' EXIT
free_ports() { # N   that nothing listens on now
    python3 -c 'import socket, sys
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(s.getsockname()[1] for s in held))' "$1"
}
start_slurm() { # says why it cannot
    local host user ports need
    for need in slurmctld slurmd sbatch squeue scontrol scancel sinfo; do
        command -v "$need" >/dev/null || { echo "$need is not installed (scripts/setup.sh does that)" && return 1; }
    done
    host=$(hostname -s) user=$(id -un)
    read -r -a ports <<<"$(free_ports 2)"
    mkdir "$place/state" "$place/spool"
    cat >"$SLURM_CONF" <<CONF
ClusterName=scout
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/none
CredType=cred/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
ReturnToService=2
KillWait=2
SlurmctldPort=${ports[0]}
SlurmdPort=${ports[1]}
StateSaveLocation=$place/state
SlurmdSpoolDir=$place/spool
SlurmctldPidFile=$place/slurmctld.pid
SlurmdPidFile=$place/slurmd.pid
SlurmctldLogFile=$place/slurmctld.log
SlurmdLogFile=$place/slurmd.log
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) Gres=gpu:2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
    # A GPU is a device's file for Slurm; these are two that any machine has.
    printf 'NodeName=%s Name=gpu File=%s\n' "$host" /dev/null "$host" /dev/zero >"$place/gres.conf"
    slurmctld -D -f "$SLURM_CONF" &>"$place/slurmctld.out" &
    daemons+=($!)
    slurmd -D -f "$SLURM_CONF" -N "$host" &>"$place/slurmd.out" &
    daemons+=($!)
    for ((k = 0; k < 150; k++)); do
        if [[ $(sinfo -h -o %T 2>/dev/null) == idle ]]; then return 0; fi
        if ! kill -0 "${daemons[@]}" 2>/dev/null; then break; fi
        sleep 0.2
    done
    echo "it did not start: $(cat "$place"/*.log "$place"/*.out 2>/dev/null | grep -iE 'error|fatal' | tail -n 1 | cut -c 1-200)"
    return 1
}
if ! start_slurm >why.txt; then
    skip "a real Slurm: $(<why.txt)"
    finish
fi

queue_is_empty() { # within 90 s
    for ((k = 0; k < 450; k++)); do
        if [[ -z $(squeue -h 2>/dev/null) ]]; then return 0; fi
        sleep 0.2
    done
    squeue >&2
    return 1
}
wait_until_held() { for ((k = 0; k < 300; k++)); do if [[ -e held ]]; then return 0; fi; sleep 0.1; done; return 1; }
state_of() { scontrol -o show job "$1" | grep -oE ' JobState=[A-Z]+' | cut -d= -f2; }
job() { grep -oE '^job [0-9]+' stdout.txt | cut -d' ' -f2; }

# One task is put back into the queue while it measures, and goes on in the same night.
touch hold
submit "$zoo" requeued --gres=gpu:1
check "submitted: exit 0" exits 0
parts=$(job)
check "submitted: says what, and where its logs are" grep -qE "^job $parts measures 3 models and sizes; behind it job [0-9]+ tells of them in .*/requeued/zoo/digest.md" stdout.txt
check "a task is measured" wait_until_held
rm -f held
check "a task is requeued" scontrol requeue "${parts}_2"
for ((k = 0; k < 200; k++)); do if [[ $(state_of "${parts}_2") == PENDING ]]; then break; fi; sleep 0.1; done
check "what it measured has ended with it" test -z "$(pgrep -f -- "requeued/held@.*/ops.json")"
rm -f held
scontrol update "jobid=${parts}_2" starttime=now
check "the requeued task is measured again" wait_until_held
night=$(ls requeued/zoo/nights)
rm -f hold held
check "all of it ends" queue_is_empty
check "nothing is missing" test -s requeued/zoo/digest.md -a "$(grep -c 'did not end in' requeued/zoo/digest.md)" = 0
check "all are of one night" test "$(cat requeued/*@*/.night | sort | uniq -c | tr -s ' ')" = " 3 $night"
check "each task had one GPU" test "$(sort gpus.txt | uniq | grep -vE '^[01]$')" = ''
check "the last log has the digest" grep -qr '^# Zoo of ' requeued/zoo/slurm
check "parts say what they did in their logs" test "$(cat requeued/zoo/slurm/"${parts}"_*.log | grep -c '^zoo: 1 of 1 done')" = 3
run ceiling-scout zoo "$zoo" --again -o whole
check "by one process: the same" python3 - <<'CODE'
import json

def read(folder):
    index = json.load(open(folder + "/zoo/index.json"))
    return index["nights"], index["operations"], [(m["model"], m["operations"]) for m in index["models"]], [m["time_us"] for m in index["models"]]

many, whole = read("requeued"), read("whole")
assert many[:3] == whole[:3] and many[0] == 1 and len(many[2]) > 1, (many, whole)
assert all(abs(a / b - 1) < 0.01 for a, b in zip(many[3], whole[3])), (many, whole)
CODE

# One task is cancelled: the night is told nevertheless, with what is missing.
touch hold
submit "$zoo" cancelled --gres=gpu:1
parts=$(job)
check "another night: a task is measured" wait_until_held
check "a task is cancelled" scancel "${parts}_2"
check "all of the night ends" queue_is_empty
rm -f hold held
check "what is missing is told" contains cancelled/zoo/digest.md '`held@b4_scripted:0_burst`: its part did not end in this night'
check "the others have their rows" test "$(grep -c '^| `' cancelled/zoo/digest.md)" = 2
stop_slurm
check "nothing of Slurm is left running" test -z "$(pgrep -f -- "$place")"
finish

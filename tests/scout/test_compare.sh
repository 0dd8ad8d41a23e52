#!/usr/bin/env bash
# Custom kernels beside the device's library: what is kept and what is reverted, whose files are not loaded at all, and
# `make validate`.
source "$ROOT/tests/scout/lib.sh"
umask 022 # what is built and copied here may be written by no other user
warm_up scripted:0
CUSTOM=(--custom-kernel "$SCRIPTED/custom.so")
prints() { [[ $STDOUT == *"$1"* ]]; }
one_line() { [[ -n $STDERR && $STDERR != *$'\n'* ]]; }
said() { grep -qE -- "$1" <<<"$STDERR"; } # PATTERN
field() { python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"; }
compare() { # ARGUMENTS…
    rm -f r.json
    scout --device scripted:0 --op gemm --shape 64,64,64 --precision fp32 -o r.json --compare "$@"
}
decides() { # WHAT DECISION STATUS EXIT   of the last comparison
    check "$1: exit $4" exits "$4"
    check "$1: says $2" prints "  $2 "
    check "$1: in the report $2" test "$(field r.json 'r["comparison"]["decision"]')" = "${2^^}"
    check "$1: it is $3" test "$(field r.json 'r["comparison"]["after"]["status"]')" = "$3"
}

compare "${CUSTOM[@]}"
decides "the best of several" keep OK 0
check "the best of several: before is the library" test "$(field r.json 'r["comparison"]["before"]["name"]')" = scripted_blas
check "the best of several: it is named" test "$(field r.json 'r["comparison"]["after"]["name"]')" = custom_better
check "the best of several: the ratio is known" test "$(field r.json '0.78 < r["comparison"]["ratio"] < 0.795 and 0 < r["comparison"]["ratio_ci"] < 0.01')" = True
hash_of() { field r.json '[c["plugin_hash"] for c in r["candidates"] if c["name"] == "custom_better"][0]'; }
first=$(hash_of)
cp "$SCRIPTED/custom.so" copy.so
compare --custom-kernel ./copy.so
check "the file's hash is in the report: a copy has the same" test "$(hash_of)" = "$first"
printf 'x' >>copy.so
compare --custom-kernel ./copy.so
check "the file's hash is in the report: another byte gives another one" test "$(hash_of)" != "$first"
compare "${CUSTOM[@]}" --candidate custom_slower
decides "a slower one" revert OK 5
check "a slower one: one line says so" says "revert; gemm: "
compare "${CUSTOM[@]}" --candidate custom_same
decides "one that changes nothing" revert OK 5
touch noise
export CEILING_SCOUT_SCRIPTED_DISTURBED=$PWD/noise
compare "${CUSTOM[@]}" --candidate custom_near
decides "one at the margin, on a restless machine" undecided OK 1
unset CEILING_SCOUT_SCRIPTED_DISTURBED
rm noise
compare "${CUSTOM[@]}" --candidate custom_slower --before custom_better
decides "one custom kernel against another" revert OK 5
check "one against another: which stands before" test "$(field r.json 'r["baseline"]')" = custom_better
compare "${CUSTOM[@]}" --candidate custom_better --before scriptlib
decides "a library's name" keep OK 0
compare "${CUSTOM[@]}" --candidate scripted_stream
check "one that does not do it: exit 1" exits 1
check "one that does not do it: nothing" prints "  nothing "
for fault in "wrong WRONG" "crash CRASHED" "hang TIMEOUT" "late_crash CRASHED"; do
    CEILING_SCOUT_FAULTS=${fault% *} compare "${FAULTS[@]}"
    decides "${fault% *}" revert "${fault#* }" 5
done

if [[ -x $ROOT/out/venv/bin/python ]]; then
    check "the report fits its schema" "$ROOT/out/venv/bin/python" -B "$ROOT/tests/cli/schema.py" "$ROOT/docs/schema" r.json
else
    skip "schemas: $ROOT/out/venv/bin/python is not there"
fi

# a whole list: a line for each, and the worst of them is the exit code
write_few_ops ops.json
scout ops.json --device scripted:0 "${CUSTOM[@]}" --candidate custom_slower --compare -o list
check "a list: exit 5" exits 5
check "a list: each operation" test "$(grep -cE '^(square|row): revert: ' stdout.txt)" = 2
check "a list: said in one line" says "revert in 2 operations; "
scout ops.json --device scripted:0 "${CUSTOM[@]}" --candidate custom_slower -o list --resume
check "a list: an ordinary run measures again what was compared with something else" exits 0
scout ops.json --device scripted:0 "${CUSTOM[@]}" --candidate custom_slower --compare --before custom_better -o list --resume
check "a list: another baseline is measured anew" test "$(field list/reports/square.json 'r["baseline"]')" = custom_better

# ---- what does not go together ----
refused() { # WHAT CODE SAYS ARGUMENTS…
    local what=$1 code=$2 words=$3
    shift 3
    scout --device scripted:0 --op gemm --shape 64,64,64 --precision fp32 "$@"
    check "$what: exit $code" exits "$code"
    check "$what: one line" one_line
    check "$what: says $words" said "$words"
}
refused "nothing to compare with" 2 "--custom-kernel" --compare
refused "--before alone" 2 "--compare" "${CUSTOM[@]}" --before scripted_blas
refused "an unknown before" 2 "'blas'" "${CUSTOM[@]}" --compare --before blas
refused "a library that is not the default's" 2 "'cublas'" "${CUSTOM[@]}" --compare --before cublas
refused "an unknown candidate among several" 2 "'nobody'" "${CUSTOM[@]}" --compare --candidate custom_better,nobody

# ---- files that are not loaded ----
loads() { # WHAT CODE SAYS FILE
    refused "$1" "$2" "$3" --custom-kernel "$4"
}
cp "$SCRIPTED/custom.so" mine.so
loads "a bare name" 2 "./mine.so" mine.so
loads "a missing file" 3 "No such file" ./nothing.so
mkdir folder
loads "a folder" 3 "is not a file" ./folder
chmod o+w mine.so
loads "a file that every user may write" 3 "chmod go-w" ./mine.so
chmod o-w,g+w mine.so
loads "a file that its group may write" 3 "chmod go-w" ./mine.so
chmod g-w mine.so
if ((EUID == 0)); then
    chown 12345 mine.so
    loads "another user's file" 3 "another user" ./mine.so
    chown 0 mine.so
else
    skip "only root can give a file away: another user's file"
fi
echo "no object" >text.so
loads "a text" 3 "not a shared object" ./text.so
for bytes in 3 40 64 500 5000 "$(($(stat -c %s mine.so) - 1))"; do
    head -c "$bytes" mine.so >cut.so
    loads "cut to $bytes bytes" 3 "shared object|is cut short" ./cut.so
done
build() { # NAME   from standard input
    cc -shared -fPIC -I"$ROOT" -o "$1" -x c - 2>cc.txt || cat cc.txt
    chmod go-w "$1"
}
echo 'int nothing;' | build ./empty.so
loads "no entry" 3 "exports no scout_plugin_entry" ./empty.so
echo '#include "scout/plugin.h"
const scout_plugin *scout_plugin_entry(uint32_t abi) { (void)abi; return NULL; }' | build ./other.so
loads "another version of the interface" 3 "scout/plugin.h" ./other.so
echo '#include "scout/plugin.h"
const scout_plugin *scout_plugin_entry(uint32_t abi) { static scout_plugin p = {sizeof p, 99, "p", "1"}; (void)abi; return &p; }' |
    build ./ninetynine.so
loads "a version that it makes up" 3 "another version" ./ninetynine.so
# one that ends the worker which loads it is named, whatever else is loaded before and after it
ends() { # WHAT SAYS STATEMENT…   of its constructor
    local what=$1 words=$2
    shift 2
    printf '#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n__attribute__((constructor)) static void start(void) { %s }\n' "$*" |
        build ./ends.so
    refused "$what" 3 "^scout_batch: \./ends\.so: $words while this plugin was being loaded: correct it, or leave it out" \
        "${CUSTOM[@]}" --custom-kernel ./ends.so --custom-kernel ./mine.so
}
ends "one that crashes when it is loaded" 'its process was ended by signal [0-9]+ \([A-Za-z ]+\)' '__builtin_trap();'
ends "one that leaves when it is loaded" 'its process ended by itself with code 0' '_Exit(0);'
ends "one that hangs when it is loaded" 'sent no heartbeat for 1\.5[0-9]* s and was ended' 'pause();'
ends "one that says why it leaves" 'its process ended by itself with code 7' 'fputs("no licence\n", stderr); _Exit(7);'
check "one that says why it leaves: what it said" says "leave it out; its last message: no licence"
run "$SCOUT" --list-candidates --custom-kernel ./ends.so
check "one that leaves, in a list: exit 3" exits 3
check "one that leaves, in a list: it is named" says "./ends.so: its process ended"
# loaded once, and never again: the device is given up, for it would be so in every worker that comes
cat >again.c <<'END'
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void start(void) {
    if (access("loaded", F_OK) == 0) __builtin_trap();
    close(open("loaded", O_CREAT | O_WRONLY, 0600));
}
END
cc -shared -fPIC -o again.so again.c -Wl,--no-as-needed ./mine.so # which is the plugin
scout --device scripted:0 --op gemm --shape 64,64,64 --precision fp32 --custom-kernel ./again.so
check "one that crashes when it is loaded again: exit 4" exits 4
check "one that crashes when it is loaded again: it is named" says "was lost: ./again.so: its process was ended by signal"
scout --device scripted:0 --op gemm --shape 64,64,64 --precision fp32 --custom-kernel ./mine.so --candidate custom_same
check "a relative path: exit 0" exits 0
finish

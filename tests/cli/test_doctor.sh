#!/usr/bin/env bash
# scout_batch --doctor: a line for each check, what to do where one is not good, and 4 where nothing can be measured.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"

line() { grep -qE "^$1 +$2 +.*$3" stdout.txt; } # MARK CHECK WORDS

scout --doctor
check "this machine: exit 0" exits 0
check "this machine: nothing on stderr" test -z "$STDERR"
for what in build device libraries memory governor turbo load cache disk; do
    check "this machine: $what" grep -qE "^(ok|note) +$what +[^ ]" stdout.txt
done
check "every line is a check" test -z "$(grep -vE '^(ok     |note   |FAILED ) [a-z]+ +[^ ]' stdout.txt)"
check "notes say what to do" test -z "$(grep '^note' stdout.txt | grep -v '; ' || true)"
check "the CPU is a device" line ok device "cpu: "
check "nothing is made" test ! -e out -a ! -e cache

scripted --doctor
check "a plugin's device: exit 0" exits 0
check "a plugin's device: it is the one that a run takes" line ok device "scripted:0: Scripted One, which a run takes"
check "a plugin's device: little memory, and what to do" line note memory "scripted:0: .*; end what holds it"
check "a plugin's device: its clock" line ok clock "scripted:0: [1-9]"

mkdir folder && touch folder/file
scout --doctor -o folder/file/out
check "results into a file's place: exit 4" exits 4
check "results into a file's place: what fails" line FAILED disk "folder/file"
check "results into a file's place: what to do" line FAILED disk "; .*-o"
check "results into a file's place: one line on stderr" one_line
scout --doctor --cache-dir folder/file/cache
check "no place for the cache: exit 0" exits 0
check "no place for the cache: what to do" line note cache "; .*--cache-dir"
scout --doctor --device cuda:63
check "a device that is not there: exit 4" exits 4
check "a device that is not there: what fails" line FAILED device "cuda:63"
scout --doctor --device tpu
check "no device: exit 2" exits 2
check "no device: one line" one_line
check "no device: nothing is looked at" test -z "$STDOUT"

mkdir alone && cp "$SCOUT" alone/scout_batch
run alone/scout_batch --doctor --device cpu
check "a program alone: exit 0" exits 0
check "a program alone: what to build" line note build "extract_ops is not there; run make"

scout --doctor --budget 5
check "--doctor and --budget" says "no effect with --doctor"
scout ops.json --doctor
check "--doctor and a file" says "do not go together"
finish

#!/usr/bin/env bash
# Packs the results of a model into one archive, for a bug report or a paper: what was measured, on what, by what, and how.
# The archive appears whole or not at all. What `ceiling-scout evidence` does.
# Usage: EVIDENCE_MODEL=FOLDER [EVIDENCE_OUT=FILE.tar.gz] scripts/collect_evidence.sh ANALYZE
set -euo pipefail
export LC_ALL=C
unset CDPATH
folder=${EVIDENCE_MODEL:-} out=${EVIDENCE_OUT:-}
if (($# < 1)) || [[ -z $folder ]]; then
    echo "usage: EVIDENCE_MODEL=FOLDER ${0##*/} ANALYZE" >&2
    exit 2
fi
bin=$(cd "$(dirname -- "$1")" && pwd)
die() { # CODE TEXT
    printf 'ceiling-scout evidence: %s\n' "$2" | tr '\000-\011\013-\037\177' '?' >&2
    exit "$1"
}
case $folder in -*) folder=./$folder ;; esac
plain() { [[ -f $1 && ! -L $1 ]]; } # a folder that came from elsewhere may hold links to anything
if ! plain "$folder/run.json"; then die 3 "$folder: has no run.json; name a folder that ceiling-scout profile wrote"; fi
name=$(basename -- "$(realpath -- "$folder")")
out=${out:-${name//:/_}-evidence.tar.gz} # with a colon tar takes it for a host
case $out in -*) out=./$out ;; esac
if [[ -e $out && ! -f $out ]]; then die 2 "$out: is no file; name one that is, or a new one (-o)"; fi

scratch=$(mktemp -d) || die 4 "no temporary folder can be made; give /tmp room, or set TMPDIR"
trap 'rm -rf -- "$scratch" "${temporary:-$scratch}"' EXIT
top=$scratch/evidence results=$scratch/evidence/results/$name
mkdir -p -- "$results" || die 4 "$scratch cannot be written; give it room"
copied() {
    if ! mkdir -p -- "$(dirname -- "$2")" || ! cp --no-dereference -p -- "$1" "$2"; then
        die 4 "$1 cannot be copied to $scratch; is it readable, and is there room?"
    fi
}
if ! (cd -- "$folder" && find . -maxdepth 2 -type f \( -path './reports/*.json' -o -path './fusions/*.json' -o -path './counters/*.csv' \
    -o \( ! -path './*/*' -name '[!.]*' \( -name '*.json' -o -name 'summary.*' -o -name dispatch.h -o -name junit.xml \
    -o -name report.html \) \) \) -print0) >"$scratch/files" 2>"$scratch/said"; then
    die 4 "$folder cannot be read: $(sed -n 1p "$scratch/said")"
fi
while IFS= read -r -d '' file; do copied "$folder/$file" "$results/$file"; done <"$scratch/files"
{
    echo "# as they were called; run.json has all options that were measured with"
    if plain "$folder/.extract"; then printf 'extract_ops %s\n' "$(sed -n 2p -- "$folder/.extract")"; fi
    if plain "$folder/.measure"; then printf 'scout_batch %q -o %q %s\n' "$folder/ops.json" "$folder" "$(sed -n 3p -- "$folder/.measure")"; fi
} >"$top/commands.txt" || die 4 "commands.txt cannot be written; give $scratch room"
told() { # COMMAND…   and what it says, at most so long
    printf '$ %s\n' "$*"
    timeout 60 "$@" 2>&1 </dev/null | sed -n '1,400p' || true
    echo
}
(
    cd -- "$bin"
    for program in extract_ops scout_batch analyze; do told "./$program" --version; done
    sha256sum extract_ops scout_batch analyze scout_cuda.so ../lib/ceiling-scout/scout_cuda.so 2>/dev/null || true
    echo
    told ./scout_batch --list-devices
    told ./scout_batch --doctor
    told uname -srvm
    told sed -n 's/^PRETTY_NAME=//p' /etc/os-release
    told lscpu
    if command -v nvidia-smi >/dev/null; then
        told nvidia-smi --query-gpu=index,name,uuid,driver_version,vbios_version,power.limit,clocks.max.sm,clocks.max.mem,ecc.mode.current,mig.mode.current --format=csv
    fi
    if command -v ncu >/dev/null; then told ncu --version; fi
) >"$top/machine.txt" || die 4 "machine.txt cannot be written; give $scratch room"
cat >"$top/README.txt" <<END || die 4 "README.txt cannot be written; give $scratch room"
Results of Ceiling Scout, packed $(date -u +%Y-%m-%dT%H:%M:%SZ).

results/$name/
    ops.json                    the operations of the model
    run.json                    the run: its options, devices, versions, libraries and ceilings
    reports/, fusions/          a report for each operation and each group: every candidate, its times and why
    counters/                   what Nsight Compute counted, as it wrote it
    model.json                  the model measured as a whole
    summary.*, report.html      what follows from them; dispatch.*: the table for deployment
commands.txt                    what was called
machine.txt                     programs, devices, libraries, system
sha256.txt                      a checksum of each file: sha256sum -c sha256.txt

ceiling-scout analyze FOLDER reads a folder again. The model and its weights are not here.
END
if ! (cd -- "$top" && find . -type f -print0 | sort -z | xargs -0 sha256sum >"$scratch/sums") ||
    ! mv -- "$scratch/sums" "$top/sha256.txt"; then
    die 4 "no checksums; give $scratch room"
fi

directory=$(dirname -- "$out")
temporary=$(mktemp -- "$directory/.evidence.XXXXXX" 2>/dev/null) || die 4 "$out: cannot be written; name another file (-o)"
if ! tar -C "$scratch" --force-local --sort=name --owner=0 --group=0 --numeric-owner -czf "$temporary" evidence 2>"$scratch/said" ||
    ! chmod "$(printf %o $((0666 & ~8#$(umask))))" -- "$temporary" || ! mv -fT -- "$temporary" "$out"; then
    die 4 "$out: cannot be written: $(sed -n 1p "$scratch/said")"
fi
printf 'wrote %s: %d files, %d KB; paths and names of this machine are in it, look at it before you send it\n' "$out" \
    "$(find "$top" -type f | wc -l)" "$((($(stat -L -c %s -- "$out") + 1023) / 1024))" | tr '\000-\011\013-\037\177' '?'

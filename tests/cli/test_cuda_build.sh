#!/usr/bin/env bash
# The CUDA device's shared object, as far as a machine without a GPU can tell: it is built where the toolkit is, exports
# its entry and nothing else, names no CUDA library as needed, and without a driver says so instead of failing to load.
set -euo pipefail
# shellcheck source=tests/cli/lib.sh
source "$ROOT/tests/cli/lib.sh"
built=$ROOT/out/build/release-gcc/quick/scout_cuda.so
object=$(dirname "$EXTRACT_OPS")/scout_cuda.so
if [[ $built -nt $object ]]; then object=$built; fi # the one for tests

if [[ ! -e $object ]]; then
    skip "no scout_cuda.so: the CUDA toolkit is not there"
    finish
    exit
fi

exports() { nm -D --defined-only "$object" | awk '{print $3}' | sort | tr '\n' ' '; }
needed() { readelf -d "$object" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | tr '\n' ' '; }

run true
STDOUT=$(exports)
check "exports its entry and nothing else" test "$STDOUT" = "scout_plugin_entry "
STDOUT=$(needed)
check "needs no CUDA library" test -z "$(tr ' ' '\n' <<<"$STDOUT" | grep -E 'cuda|cublas|nvidia|stdc' || true)"

cat >open.c <<'C'
#include "scout/plugin.h"
#include <dlfcn.h>
#include <string.h>
int main(int argc, char **argv) {
    scout_plugin_entry_fn *entry = NULL;
    scout_why why = {"", ""};
    void *object = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW), *symbol = object ? dlsym(object, SCOUT_PLUGIN_ENTRY) : NULL;
    memcpy(&entry, &symbol, sizeof entry);
    if (!entry) return fprintf(stderr, "%s\n", dlerror()), 1;
    const scout_plugin *p = entry(SCOUT_ABI);
    const int count = p->device->count(&why);
    printf("%s %d devices, other ABI %s, %u candidates, first %s\n%s: %s\n", p->device->name, count,
           entry(SCOUT_ABI + 1) ? "served" : "refused", p->device->candidate_count, p->device->candidates[0]->name, why.code,
           why.text);
    return count > 0 ? 2 : 0;
}
C
if ! command -v "${CC:-gcc}" >/dev/null; then
    skip "no C compiler"
    finish
    exit
fi
"${CC:-gcc}" -std=gnu11 -I"$ROOT" -o open open.c -ldl
run ./open "$object"
check "another ABI is refused" contains stdout.txt "other ABI refused"
check "the library's candidate is the first" contains stdout.txt "first cublaslt"
if ((EXIT == 2)); then
    skip "a GPU is here: what is said without one cannot be seen"
else
    check "loads without a driver" exits 0
    check "says why there is no device" contains stdout.txt "NVIDIA driver"
    check "counts none" contains stdout.txt "cuda 0 devices"
fi
finish

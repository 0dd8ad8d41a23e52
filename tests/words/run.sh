#!/usr/bin/env bash
# Sentences of the documents, of --help and of the manual pages are short, things are called things, and the check finds
# each sort of breach. Usage: tests/words/run.sh [--docs] [FOLDER]   --docs: without the sources; FOLDER: of the programs
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
extent=()
if [[ ${1:-} == --docs ]]; then extent=(--docs) && shift; fi
bin=${1:-bin}
passed=0 failed=0
count() { # STATUS WHAT
    if (($1 == 0)); then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAILED $2"; fi
}
code=0
python3 -B tests/words/check.py "${extent[@]}" . "$bin/extract_ops" "$bin/scout_batch" "$bin/analyze" "$bin/ceiling-scout" || code=$?
count $code "the tree"

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
reset() {
    rm -rf "${copy:?}"/*
    mkdir -p "$copy/docs" "$copy/common" "$copy/bin" "$copy/mk" "$copy/scripts" "$copy/tests/cli" "$copy/tests/unit"
    echo 'static const char *const data = "nobody"; /* any word */' >"$copy/tests/unit/fine.c"
    # shellcheck disable=SC2016 # no comment begins within a word
    echo 'who=${#nobody} # fine' >"$copy/scripts/fine.sh"
    printf '# Fine\n\nA fine document has short sentences. This is one.\n' >"$copy/docs/fine.md"
    # shellcheck disable=SC2028 # the backslash is for C
    echo 'static const char *text = "fine\n", quote = '\''"'\''; /* fine, too */ int whoever_is_no_comment;' >"$copy/common/fine.c"
    program 'Measures what there is.'
}
program() { # ABOUT   a program with that in its help
    # shellcheck disable=SC2016 # its own parameter
    printf '#!/bin/sh\n[ "$1" = --version ] && echo "tool 1 (fine)" && exit\ncat <<END\nusage: tool FILE\n\n%s\n\noptions:\n  -h, --help   print this\nEND\n' "$1" >"$copy/bin/tool"
    chmod +x "$copy/bin/tool"
}
said() { python3 -B tests/words/check.py "$copy" "$copy/bin/tool"; }
told() { # WORDS COMMAND…   what the command does to the copy is told in these words
    local words=$1 code=0 all
    shift
    reset
    "$@"
    all=$(said) && code=1
    grep -qF -- "$words" <<<"$all" || code=1
    count $code "$words"
}
add() { printf '%s\n' "$2" >>"$copy/$1"; } # FILE TEXT
many() { printf "$1 %.0s" $(seq "$2"); }   # WORD TIMES
code=0
reset
said >/dev/null || code=1
count $code "a fine tree passes"
told "docs/fine.md:5: 41 words" add docs/fine.md $'\n'"$(many word 40)end."
told "docs/fine.md: sentences have 21.0 words on average" bash -c "printf '%s. ' '$(many a 21)' '$(many b 21)' >'$copy/docs/fine.md'"
told "docs/fine.md:4: the word whom" add docs/fine.md 'It knows whom it serves.'
told "docs/fine.md:4: the word Nobody" add docs/fine.md '| Nobody | in a table |'
told "the link ../docs/none.md leads nowhere" add docs/fine.md '[lost](../docs/none.md) and [found](fine.md#fine)'
told "the link fine.md#finer leads nowhere" add docs/fine.md 'see [finer](fine.md#finer)'
told "tool --help: sentences have 20.5 words" program "$(many word 39)."
told "tool --help:3: the word who" program 'Says who ran.'
told "tool.1:" program "$(many word 41)."
told "common/fine.c:3: the word nobody" add common/fine.c $'/* one line\n * nobody reads */'
told "common/fine.c:2: the word somebody" add common/fine.c '// somebody does'
told "common/fine.c:2: the word Whoever" add common/fine.c 'const char *x = "\"Whoever";'
told "mk/fine.mk:1: the word who" add mk/fine.mk '# knows who does'
told "scripts/fine.sh:2: the word nobody" add scripts/fine.sh 'x=1 # nobody reads it'
told "tests/cli/fine.sh:1: the word whoever" add tests/cli/fine.sh 'check "whoever wins" true'
told "tests/cli/fine.py:1: the word Nobody" add tests/cli/fine.py '"""Nobody reads it."""'
told "tests/unit/fine.c:2: the word whom" add tests/unit/fine.c '/* whom it blames */'
code=0
reset
add common/fine.c '/* nobody */'
all=$(python3 -B tests/words/check.py --docs "$copy") || code=1
grep -qx 'sources: 1 banned words in comments and texts' <<<"$all" || code=1
count $code "--docs only counts those of the sources"
echo "$passed passed, $failed failed"
((failed == 0))

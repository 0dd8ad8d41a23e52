#!/usr/bin/env bash
# make install into an empty folder: programs, manual pages that know every option, completions that complete.
source "${ROOT:?}/tests/cli/lib.sh"
: "${ANALYZE:=$(dirname "$EXTRACT_OPS")/analyze}"
export ANALYZE

dest=$PWD/dest
run env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u MODE -u CC -u BUILD make -s -C "$ROOT" install DESTDIR="$dest" PREFIX=/usr
check "make install: exit 0" exits 0
share=$dest/usr/share

for document in LICENSE README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs/method.md; do
    check "$document is installed" cmp "$ROOT/$document" "$share/doc/ceiling-scout/$document"
done
for program in extract_ops scout_batch analyze; do
    check "$program is installed" test -x "$dest/usr/bin/$program"
    check "$program has the version of VERSION" test "$("$dest/usr/bin/$program" --version)" = "$program $(<"$ROOT/VERSION") (ceiling-scout)"
    page=$share/man/man1/$program.1 words=$share/bash-completion/completions/$program
    check "$program has a manual page" present "$page"
    if command -v groff >/dev/null; then
        run groff -man -ww -Tutf8 -K utf8 "$page"
        check "$program.1: no warnings" test -z "$STDERR"
        cp stdout.txt "$program.txt"
    else
        skip "$program.1: groff is not installed"
    fi
    check "$program.1: its name" contains "$page" "$program \\- "
    check "$program.1: exit status" contains "$page" ".SH EXIT STATUS"
    run "$dest/usr/bin/$program" --list-options
    cut -f 1 stdout.txt >options.txt
    check "$program lists its options" test "$(wc -l <options.txt)" -gt 5
    while IFS= read -r option; do
        check "$program.1 has $option" contains "$page" "\\fB${option//-/\\-}\\fR"
    done <options.txt
    run bash --norc --noprofile -c 'source "$0"; complete -p "$1"' "$words" "$program"
    check "$program: completions are loaded" exits 0
done
check "analyze.1: explain" contains "$share/man/man1/analyze.1" ".SS analyze explain"

# What bash would offer behind these words; the last one is what was begun.
offers() { # WORD…
    run bash --norc --noprofile -c '
        source "$0"
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        "_$1"
        printf "%s\n" "${COMPREPLY[@]}"' "$share/bash-completion/completions/$1" "$@"
    STDOUT=$(sort <<<"$STDOUT" | tr '\n' ' ')
}
is() { [[ $STDOUT == "$1" ]]; }

offers scout_batch --reg
check "an option's start" is "--regime "
offers scout_batch --regime ''
check "the words of an option" is "burst sustained "
offers scout_batch --regime = b
check "the same behind =" is "burst "
offers scout_batch --regime =
check "all of them behind =" is "burst sustained "
offers extract_ops model.onnx --precision f
check "words that begin so" is "fp16 fp32 "
offers analyze --format js
check "a word of a list" is "json "
offers analyze compare --fail-on slower,v
check "the next word of a list" is "slower,verdict "
mkdir -p 'made folder/reports' && touch ops.json other.json 'made folder/reports/gemm_1.json' 'made folder/reports/gemm_2.json'
touch "made folder/reports/gemm_\$(touch pwned).json"
offers scout_batch op
check "files" is "ops.json options.txt "
offers scout_batch --output made
check "folders" is "made folder "
offers scout_batch --budget ''
check "nothing where nothing can be guessed" is " "
offers analyze expl
check "a command" is "explain "
offers analyze explain 'made folder' gem
check "operations of a folder, and no name that a shell would run" is "gemm_1 gemm_2 "
offers analyze explain --top 3 --margin = 0.1 'made folder' gem
check "the same behind options" is "gemm_1 gemm_2 "
offers analyze explain --to
check "a command's own options" is "--top "
check "nothing ran" absent pwned
finish

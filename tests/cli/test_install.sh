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
for program in extract_ops scout_batch analyze ceiling-scout; do
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
    for other in extract_ops scout_batch analyze ceiling-scout; do
        check "$program.1 names $other" contains "$page" "$other"
    done
    check "$program.1: exit status" contains "$page" ".SH EXIT STATUS"
    command=()
    if [[ $program == ceiling-scout ]]; then command=(profile); fi
    run "$dest/usr/bin/$program" "${command[@]}" --list-options
    cut -f 1 stdout.txt >options.txt
    check "$program lists its options" test "$(wc -l <options.txt)" -gt 5
    while IFS= read -r option; do
        check "$program.1 has $option" contains "$page" "\\fB${option//-/\\-}\\fR"
    done <options.txt
    run bash --norc --noprofile -c 'source "$0"; complete -p "$1"' "$words" "$program"
    check "$program: completions are loaded" exits 0
    for shell in zsh:zsh/site-functions/_$program fish:fish/vendor_completions.d/$program.fish; do
        check "$program: a completion for ${shell%%:*}" present "$share/${shell#*:}"
        if command -v "${shell%%:*}" >/dev/null; then
            run "${shell%%:*}" -n "$share/${shell#*:}"
            check "$program: ${shell%%:*} can read it" silent
        else
            skip "${shell%%:*} is not installed"
        fi
    done
done
check "ceiling-scout.1: profile" contains "$share/man/man1/ceiling-scout.1" ".SS ceiling-scout profile"
check "ceiling-scout.1: what has a page of its own is not said again" test "$(grep -c '^.SS' "$share/man/man1/ceiling-scout.1")" = 4
check "analyze.1: explain" contains "$share/man/man1/analyze.1" ".SS analyze explain"

# What bash would offer behind these words; the last one is what was begun.
offers() { # WORD…
    run bash --norc --noprofile -c '
        source "$0"
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        "_${1//-/_}"
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

# The command in front: a command first, then what the program behind it takes.
export PATH=$dest/usr/bin:$PATH
all="analyze ceilings compare dispatch doctor evidence explain export extract help history measure profile validate zoo "
offers ceiling-scout ''
check "commands, and no files" is "$all"
offers ceiling-scout help ''
check "help: commands" is "$all"
offers ceiling-scout pro
check "one that begins so" is "profile "
offers ceiling-scout profile op
check "behind it files" is "ops.json options.txt "
offers ceiling-scout profile --bu
check "its options" is "--budget "
offers ceiling-scout extract --te
check "those of a program behind it" is "--tensors "
offers ceiling-scout measure --regime ''
check "their words" is "burst sustained "
offers ceiling-scout explain 'made folder' gem
check "operations of a folder" is "gemm_1 gemm_2 "
for command in profile measure ceilings doctor; do
    offers ceiling-scout "$command" --device c
    check "$command --device: those that are there" is "cpu "
done
offers scout_batch --device ''
check "scout_batch --device: those that are there, and what stands for several" is "all auto cpu "
# shellcheck disable=SC2016 # that script's own
mkdir gpus && printf '#!/bin/sh\necho "cpu      A"\nfor k in 0 1; do echo "cuda:$k   B"; echo "         class name=B"; done\n' >gpus/scout_batch
chmod +x gpus/scout_batch
PATH=$PWD/gpus:$PATH offers scout_batch --device cu
check "several of a kind" is "cuda:0 cuda:1 "
PATH=$PWD/gpus:$PATH offers scout_batch --device cuda :
check "their numbers behind the colon" is "0 1 "
PATH=$PWD/gpus:$PATH offers scout_batch --device cuda : 1
check "a number that was begun" is "1 "
if command -v fish >/dev/null; then
    fish_offers() { # LINE
        run fish -N -c "source \$argv[1]; complete -C \$argv[2]" "$share/fish/vendor_completions.d/${1%% *}.fish" "$1"
        STDOUT=$(cut -f 1 stdout.txt | sort | tr '\n' ' ')
    }
    fish_offers "ceiling-scout "
    check "fish: commands, and no files" is "$all"
    fish_offers "ceiling-scout profile --reg"
    check "fish: options" is "--regime "
    fish_offers "ceiling-scout profile --regime "
    check "fish: their words" is "burst sustained "
    fish_offers "ceiling-scout profile --device "
    check "fish: devices" is "all auto cpu "
    fish_offers "extract_ops --output other"
    check "fish: files" is "other.json "
    fish_offers "ceiling-scout help v"
    check "fish: help" is "validate "
fi
# zsh completes on a terminal alone: here its own functions say what they were given.
if command -v zsh >/dev/null; then
    zsh_offers() { # WORD…
        run zsh -f -c '_arguments() { print -rl -- "$@"; }; compadd() { shift; print -rl -- "$@"; }; file=$1; shift
            words=("$@") CURRENT=$#; source $file' zsh "$share/zsh/site-functions/_$1" "$@"
    }
    zsh_offers ceiling-scout ''
    check "zsh: commands" test "$(tr '\n' ' ' <stdout.txt)" = "$all"
    zsh_offers ceiling-scout profile ''
    check "zsh: options and their words" contains stdout.txt "*--regime=:R:(sustained burst)"
    check "zsh: those of one command alone" test "$(grep -c tensors stdout.txt)" = 0
    check "zsh: folders" contains stdout.txt "*--out=:DIR:_files"
    check "zsh: devices" contains stdout.txt "{compadd -- \$(_ceiling_scout_devices)}"
    run zsh -f -c "$(grep '^_ceiling_scout_devices' "$share/zsh/site-functions/_ceiling-scout"); print -l \$(_ceiling_scout_devices)"
    check "zsh: those that are there" test "$(sort stdout.txt | tr '\n' ' ')" = "all auto cpu "
fi
check "nothing ran" absent pwned
finish

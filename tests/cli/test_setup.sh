#!/usr/bin/env bash
# scripts/setup.sh on systems that are made up: what it asks apt for, and the list that it ends with elsewhere. And the
# Dockerfile: its images have a tag, and each of its lines is a command of this tree, of make or of apt.
source "${ROOT:?}/tests/cli/lib.sh"

# ---- a made-up system: its name, its programs, and an apt that writes down what it was asked ----
mkdir -p tools root/scripts root/tests
ln -s "$ROOT/scripts/setup.sh" root/scripts/
ln -s "$ROOT"/tests/requirements*.txt root/tests/
for name in bash env sed dirname cat grep mkdir rm cp; do ln -s "$(command -v "$name")" tools/; done
tool() { # NAME   a program that does what stands on standard input
    { echo '#!/bin/bash' && cat; } >"tools/$1"
    chmod +x "tools/$1"
}
# A link would lead out of the made-up tree: the script goes to the folder above its own.
rm root/scripts/setup.sh && cp "$ROOT/scripts/setup.sh" root/scripts/
setup() { # ID VERSION NAME ARGUMENT…
    printf 'NAME=x\nID=%s\nVERSION_ID="%s"\nPRETTY_NAME="%s"\n' "$1" "$2" "$3" >os-release
    rm -f asked
    run env -i "PATH=$PWD/tools" "OS_RELEASE=$PWD/os-release" bash root/scripts/setup.sh "${@:4}"
}
asked() { grep -q "apt-get install.* $1\( \|\$\)" asked; }
not_asked() { ! asked "$1"; }

tool sudo <<<'exec "$@"'
tool dpkg-query <<<'exit 1'
tool apt-get <<<"echo \"apt-get \$*\" >>${PWD@Q}/asked"
# shellcheck disable=SC2016 # that script's own
tool apt-cache <<<'case $2 in zsh | libclang-rt-dev) ;; *) echo "  Candidate: 1.2-3" ;; esac'
tool python3 <<<'exit 1'
for system in 'debian 12' 'debian 13' 'ubuntu 22.04' 'ubuntu 24.04'; do
    read -r id version <<<"$system"
    setup "$id" "$version" "$system" --build-only
    check "$system: exit 0" exits 0
    for package in gcc make libjansson-dev libsqlite3-dev protobuf-c-compiler libdnnl-dev libopenblas-openmp-dev; do
        check "$system: asks for $package" asked "$package"
    done
    check "$system, --build-only: nothing for the tests" not_asked shellcheck
    setup "$id" "$version" "$system"
    check "$system, with the tests: exit 0" exits 0
    check "$system, with the tests: asks for shellcheck" asked shellcheck
    check "$system: what this release does not have is left out" not_asked zsh
    check "$system: and said" contains stdout.txt "no package zsh here"
    if [[ $id == debian ]]; then asks=asked; else asks=not_asked; fi # Ubuntu's is a snap
    check "$system: chromium" $asks chromium
done
tool dpkg-query <<<'echo "install ok installed"'
setup debian 13 'Debian 13' --build-only
check "all is there: nothing is asked for" absent asked

rm tools/apt-get tools/apt-cache tools/dpkg-query
for system in 'fedora 42' 'arch ' 'debian 11' 'linuxmint 22'; do
    read -r id version <<<"$system"
    setup "$id" "$version" "The $system" --build-only
    check "$system: exit 4" exits 4
    check "$system: which system this is" says "this is The $system"
    for need in "C11 compiler" jansson xxHash protoc-c oneDNN OpenBLAS; do check "$system: $need" says "$need"; done
    check "$system: nothing for the tests" test "$(grep -c shellcheck stderr.txt)" = 0
done
rm os-release
run env -i "PATH=$PWD/tools" "OS_RELEASE=$PWD/os-release" bash root/scripts/setup.sh
check "no name at all: exit 4" exits 4
check "no name at all: the list" says "shellcheck"
for name in gcc cc make pkg-config protoc-c; do tool "$name" <<<'exit 0'; done
setup fedora 42 Fedora --build-only
check "elsewhere, all is there: exit 0" exits 0
setup fedora 42 Fedora --bild-only
check "an unknown option: exit 2" exits 2

# ---- the Dockerfile ----
file=$ROOT/Dockerfile
pinned() { [[ $1 =~ ^[a-z0-9./-]+:[0-9][A-Za-z0-9._-]*$ ]]; }
mapfile -t images < <(sed -n -e 's/^FROM \([^$ ][^ ]*\).*/\1/p' -e 's/^ARG [A-Z]*=\(.*\)/\1/p' -e 's/.*--build-arg [A-Z]*=\([^ ]*\).*/\1/p' "$file")
check "the Dockerfile has two images" test "${#images[@]}" = 2
for image in "${images[@]}"; do check "$image has a tag" pinned "$image"; done
for image in debian debian:latest debian:slim; do check "$image would be found" eval "! pinned $image"; done
goals=" all $(sed -n 's/^\([a-z][a-z ]*\):.*/\1/p' "$ROOT/Makefile" "$ROOT"/mk/*.mk | tr '\n' ' ')"
known() { # LINE   of RUN
    local part words
    while IFS= read -r part; do
        read -r -a words <<<"$part"
        case ${words[0]} in
        apt-get) ;;
        make) for word in "${words[@]:1}"; do [[ $goals == *" $word "* || $word == *=* ]] || return 1; done ;;
        ceiling-scout) "$(dirname "$EXTRACT_OPS")/ceiling-scout" help "${words[1]}" >/dev/null 2>&1 || return 1 ;;
        *) [[ -x $ROOT/${words[0]} ]] || return 1 ;;
        esac
    done <<<"${1//&&/$'\n'}"
}
mapfile -t lines < <(sed -n 's/^RUN //p' "$file")
check "the Dockerfile runs something" test "${#lines[@]}" -gt 2
for line in "${lines[@]}"; do check "RUN $line" known "$line"; done
for line in 'scripts/step.sh' 'make instal' 'curl x | sh' 'make && wget x' 'ceiling-scout doktor'; do
    check "RUN $line would be found" eval "! known ${line@Q}"
done
check "a line is a whole command" test -z "$(grep '\\$' "$file" || true)"
check "nothing is fetched by ADD" test -z "$(grep -i '^ADD' "$file" || true)"
finish

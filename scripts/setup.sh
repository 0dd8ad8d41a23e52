#!/usr/bin/env bash
# Makes a bare Debian 12 or 13, Ubuntu 22.04 or 24.04 ready: installs what the build needs and, unless --build-only is
# given, what the tests need. Safe to run again: what is there is left alone. Run as root, or as a user that may use sudo.
# Elsewhere it looks for what is needed and ends with the list of what to install.
# It needs nothing but bash, apt and dpkg, because on a bare machine there is nothing else.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Debian's package, what it is elsewhere, and a command that finds it there.
build_needs=(
    "gcc|a C11 compiler called gcc|command -v gcc"
    "libc6-dev|the C library's headers|has_header stdio.h"
    "make|GNU make 4.3 or newer|make --version"
    "pkg-config|pkg-config|command -v pkg-config"
    "libjansson-dev|jansson, with its headers|pkg-config --exists jansson"
    "libsqlite3-dev|SQLite 3.37 or newer, with its headers|pkg-config --atleast-version=3.37 sqlite3"
    "libxxhash-dev|xxHash, with its headers|pkg-config --exists libxxhash"
    "libprotobuf-c-dev|protobuf-c, with its headers|pkg-config --exists libprotobuf-c"
    "protobuf-c-compiler|protoc-c, the compiler of protobuf-c|command -v protoc-c"
    "libdnnl-dev|oneDNN 2 or 3, with its headers|has_header oneapi/dnnl/dnnl.h"
    "libopenblas-openmp-dev|OpenBLAS with OpenMP, with its headers|has_header cblas.h"
)
test_needs=(
    "clang|clang, the second compiler|command -v clang"
    "clang-format|clang-format|command -v clang-format"
    "clang-tidy|clang-tidy|command -v clang-tidy"
    "libclang-rt-dev|clang's sanitizers and libFuzzer|true"
    "shellcheck|shellcheck|command -v shellcheck"
    "g++|a C++ compiler called g++|command -v g++"
    "groff-base|groff, for the manual pages|command -v groff"
    "zsh|zsh, for its completions|command -v zsh"
    "fish|fish, for its completions|command -v fish"
    "cargo|cargo and rustc 1.63 or newer, for rust/|command -v cargo"
    "libonnx-testdata|onnx's own test models|true"
    "python3|Python 3.11 or newer|command -v python3"
    "python3-venv|Python's venv and ensurepip|python3 -c 'import ensurepip, venv'"
    "curl|curl, which loads the models of a zoo|command -v curl"
    "openssl|openssl, for the server that they are loaded from|command -v openssl"
    "openssh-client|ssh-keygen, which signs tables|command -v ssh-keygen"
    "slurmctld|Slurm's controller, for scripts/slurm/|command -v slurmctld"
    "slurmd|Slurm's daemon of a node|command -v slurmd"
    "slurm-client|Slurm's commands|command -v sbatch"
    "chromium|Chromium, which opens report.html|command -v chromium"
    "fonts-liberation|a font for it|true"
)

usage() {
    echo "usage: scripts/setup.sh [--build-only]"
    echo "  --build-only   only what the build needs, not what the tests need"
}

say() { printf 'setup: %s\n' "$*"; }
die() {
    printf 'setup: %s\n' "$*" >&2
    exit 4
}

as_root() {
    if ((EUID == 0)); then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "not root and no sudo; run as root: $*"
    fi
}

# ---- Debian and Ubuntu ----

installed() { [[ "$(dpkg-query -W -f '${Status}' "$1" 2>/dev/null)" == "install ok installed" ]]; }
# A Python from elsewhere does as well.
there() { # NEED
    installed "${1%%|*}" || [[ $1 == python3* && $(eval "${1##*|}" >/dev/null 2>&1 && echo yes) ]]
}
offered() { [[ -n $(apt-cache policy "$1" 2>/dev/null | sed -n 's/^  Candidate: \([^(]\)/\1/p') ]]; }

# What only tests want and this release does not have is left out, and the tests of it are skipped. Ubuntu has Chromium as
# a snap alone, which a package of that name would install.
apt_install() {
    local missing=() chosen=() need package
    for need in "${needs[@]}"; do
        if ! there "$need"; then missing+=("${need%%|*}"); fi
    done
    if ((${#missing[@]} == 0)); then
        say "all ${#needs[@]} packages are there"
        return
    fi
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    for package in "${missing[@]}"; do
        if [[ " ${build_needs[*]/|*/} " == *" $package "* ]] || { offered "$package" && [[ $package != chromium || $id == debian ]]; }; then
            chosen+=("$package")
        else
            say "there is no package $package here: the tests that want it are skipped"
        fi
    done
    if ((${#chosen[@]} == 0)); then return; fi
    say "installing ${chosen[*]}"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${chosen[@]}" </dev/null >/dev/null
}

# ---- elsewhere ----

has_header() { "${CC:-cc}" -E - <<<"#include <$1>" >/dev/null; } # no pipe: a compiler that is done early would break it
look_for() {
    local missing=() need package
    for need in "${needs[@]}"; do
        if ! eval "${need##*|}" >/dev/null 2>&1; then missing+=("$need"); fi
    done
    if ((${#missing[@]} == 0)); then
        say "this is $system, where nothing is installed by this script; what is needed was found"
        return
    fi
    say "this is $system, where nothing is installed by this script. Install:" >&2
    for need in "${missing[@]}"; do
        package=${need#*|}
        printf '  %-42s (%s in Debian)\n' "${package%%|*}" "${need%%|*}" >&2
    done
    exit 4
}

# The tests compare with other people's tools; those live in a folder of their own and never touch the system's Python.
install_venv() {
    local wanted=tests/requirements.txt alone=tests/requirements_alone.txt have=out/venv/installed.txt
    if [[ -x out/venv/bin/python ]] && cat "$wanted" "$alone" | cmp -s - "$have" && out/venv/bin/python -c '' 2>/dev/null; then
        say "out/venv is there"
        return
    fi
    if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        say "the tests' Python packages need Python 3.11: the tests that want them are skipped"
        return
    fi
    say "installing the tests' Python packages into out/venv"
    rm -rf out/venv
    mkdir -p out
    python3 -m venv out/venv
    out/venv/bin/python -m pip install --quiet --disable-pip-version-check -r "$wanted"
    out/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r "$alone"
    cat "$wanted" "$alone" >"$have"
}

report_cuda() {
    local nvcc=
    if [[ -n ${CUDA_HOME:-} && -x $CUDA_HOME/bin/nvcc ]]; then
        nvcc=$CUDA_HOME/bin/nvcc
    elif ! nvcc=$(command -v nvcc); then
        nvcc=
        if [[ -x /usr/local/cuda/bin/nvcc ]]; then nvcc=/usr/local/cuda/bin/nvcc; fi
    fi
    if [[ -n $nvcc ]]; then
        say "CUDA toolkit $("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p') found at ${nvcc%/bin/nvcc}"
    else
        say "no CUDA toolkit found: the CUDA device is left out, everything else works"
    fi
}

needs=("${build_needs[@]}")
with_tests=1
for argument in "$@"; do
    case $argument in
        --build-only) with_tests=0 ;;
        -h | --help)
            usage
            exit 0
            ;;
        *)
            usage >&2
            exit 2
            ;;
    esac
done

# ID, VERSION_ID and PRETTY_NAME; a test names another file.
about() { sed -n "s/^$1=\"\{0,1\}\([^\"]*\)\"\{0,1\}\$/\1/p" "${OS_RELEASE:-/etc/os-release}" 2>/dev/null || true; }
id=$(about ID) system=$(about PRETTY_NAME)
system=${system:-a system without /etc/os-release}
if ((with_tests)); then needs+=("${test_needs[@]}"); fi
case $id-$(about VERSION_ID) in
debian-12 | debian-13 | ubuntu-22.04 | ubuntu-24.04) apt_install ;;
*) look_for ;;
esac
if ((with_tests)); then install_venv; fi
report_cuda

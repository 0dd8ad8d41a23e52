#!/usr/bin/env bash
# Makes a bare Debian 12 or Ubuntu 24.04 ready: installs what the build needs and, unless --build-only is given, what the
# tests need. Safe to run again: what is there is left alone. Run as root, or as a user who may use sudo.
# It needs nothing but bash, apt and dpkg, because on a bare machine there is nothing else.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build_packages=(
    gcc libc6-dev make pkg-config             # the compiler and what drives it
    libjansson-dev libxxhash-dev              # JSON, hashes
    libprotobuf-c-dev protobuf-c-compiler     # protocol buffers: the library, and the compiler of schemas
    libdnnl-dev libopenblas-openmp-dev        # headers of what the CPU device opens at run time, and the libraries
)
test_packages=(
    clang clang-format clang-tidy libclang-rt-dev # the second compiler, its checks, its sanitizers and fuzzer
    shellcheck                                    # checks of the scripts
    g++                                           # a table's header is C++ too
    groff-base                                    # renders the manual pages
    libonnx-testdata                              # the operators' own test models
)
# What opens report.html, and a font for it. Ubuntu has it as a snap alone; there these tests are skipped.
if grep -qs '^ID=debian' /etc/os-release; then test_packages+=(chromium fonts-liberation); fi

usage() {
    echo "usage: scripts/setup.sh [--build-only]"
    echo "  --build-only   only what the build needs, not what the tests need"
}

say() { printf 'setup: %s\n' "$*"; }
die() {
    printf 'setup: %s\n' "$*" >&2
    exit 4
}

installed() { [[ "$(dpkg-query -W -f '${Status}' "$1" 2>/dev/null)" == "install ok installed" ]]; }

as_root() {
    if ((EUID == 0)); then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "not root and no sudo; run as root: $*"
    fi
}

install_packages() {
    local missing=() package
    for package in "$@"; do
        if ! installed "$package"; then missing+=("$package"); fi
    done
    if ((${#missing[@]} == 0)); then
        say "all $# packages are there"
        return
    fi
    command -v apt-get >/dev/null || die "this system has no apt-get; install by hand what these are: ${missing[*]}"
    say "installing ${missing[*]}"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >/dev/null
}

# The tests compare with other people's tools; those live in a folder of their own and never touch the system's Python.
install_venv() {
    local wanted=tests/requirements.txt have=out/venv/installed.txt
    if [[ -x out/venv/bin/python ]] && cmp -s "$wanted" "$have" && out/venv/bin/python -c '' 2>/dev/null; then
        say "out/venv is there"
        return
    fi
    say "installing the tests' Python packages into out/venv"
    rm -rf out/venv
    mkdir -p out
    python3 -m venv out/venv
    out/venv/bin/python -m pip install --quiet --disable-pip-version-check -r "$wanted"
    cp "$wanted" "$have"
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

packages=("${build_packages[@]}")
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

if ((with_tests)); then
    packages+=("${test_packages[@]}")
    if ! command -v python3 >/dev/null || ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
        packages+=(python3 python3-venv)
    fi
fi
install_packages "${packages[@]}"
if ((with_tests)); then install_venv; fi
report_cuda

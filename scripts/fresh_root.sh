#!/usr/bin/env bash
# Proves the README's two commands on a machine with git alone: makes a fresh Debian 12 root with debootstrap (--suite
# trixie: Debian 13; DEBIAN_MIRROR: from there), installs git, clones this repository's HEAD (--worktree: its files as they
# are now) and runs there what the README says, each command in a clone of its own; --user: as a user with sudo, and not
# as root. What the first one built is then installed (`make install`) and used as a newcomer would: manual pages,
# completions, and a C program that pkg-config finds the library for. Then the RUN lines of the Dockerfile (docker).
# Needs root, debootstrap, and a network as this machine's own apt and pip are set up to use it: their settings, proxies and
# certificates are handed on. The folder is removed at the end unless --keep is given.
# Takes 5 to 10 minutes for the first command, 20 to 30 for the second. CI leaves it out.
# Usage: scripts/fresh_root.sh [--worktree] [--user] [--keep] [--suite NAME] [--only 1|2|docker] [FOLDER]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

worktree=0 keep=0 user='' root='' suite=bookworm numbers=(1 2 docker)
while (($# > 0)); do
    case $1 in
        --worktree) worktree=1 ;;
        --keep) keep=1 ;;
        --user) user=newcomer ;;
        --only)
            numbers=("${2:?--only wants 1, 2 or docker}")
            shift
            ;;
        --suite)
            suite=${2:?--suite wants the name of a release, such as trixie}
            shift
            ;;
        -*)
            echo "usage: scripts/fresh_root.sh [--worktree] [--user] [--keep] [--suite NAME] [--only 1|2|docker] [FOLDER]" >&2
            exit 2
            ;;
        *) root=$1 ;;
    esac
    shift
done
root=$(realpath -m "${root:-out/fresh_root}")
if ((EUID != 0)) || ! command -v debootstrap >/dev/null; then
    echo "fresh_root: needs root and debootstrap (apt-get install debootstrap)" >&2
    exit 4
fi
if [[ -e $root ]]; then
    echo "fresh_root: $root exists; remove it or name another folder" >&2
    exit 4
fi

leave() {
    if mountpoint -q "$root/dev/pts"; then umount "$root/dev/pts"; fi
    if mountpoint -q "$root/proc"; then umount "$root/proc"; fi
    if mountpoint -q "$root/dev"; then umount "$root/dev"; fi
    if ((!keep)); then rm -rf --one-file-system "$root"; fi
}
trap leave EXIT

# Only what a network needs is handed on; PATH, HOME and the rest are those of a fresh machine.
inside() { inside_as /root "$@"; }
inside_as() { # HOME COMMAND…
    local home=$1 settings=() name
    shift
    while IFS= read -r name; do
        case $name in
            PIP_FIND_LINKS) ;; # a folder of this machine
            *_proxy | *_PROXY | PIP_* | SSL_CERT_* | REQUESTS_CA_BUNDLE | CURL_CA_BUNDLE | GIT_SSL_*)
                settings+=("$name=${!name}")
                ;;
        esac
    done < <(compgen -e)
    chroot "$root" /usr/bin/env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "HOME=$home" LANG=C.UTF-8 "${settings[@]}" "$@"
}

copy_settings() {
    local path
    for path in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt /usr/local/share/ca-certificates; do
        if [[ -e $path ]]; then
            mkdir -p "$root${path%/*}"
            cp -rL "$path" "$root${path%/*}/"
        fi
    done
    # apt's proxy and certificate settings, in whatever file they are
    apt-config dump | grep -E '^Acquire::(http|https|ftp)[: ]' >"$root/etc/apt/apt.conf.d/90host" || true
}

clone() { # FOLDER
    if ((worktree)); then
        inside mkdir -p "/$1"
        git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- --ignore-failed-read -c | tar -x -C "$root/$1"
        inside git -C "/$1" init -q
        inside git -C "/$1" add -A
        inside git -C "/$1" -c user.name=proof -c user.email=proof@localhost commit -q -m proof
    else
        inside git -c advice.detachedHead=false clone -q /repository.bundle "/$1"
    fi
    if [[ -n $user ]]; then inside chown -R "$user:" "/$1"; fi
}

# The user that follows the README: root, or one that needs sudo.
newcomer() {
    if [[ -n $user ]]; then
        inside_as "/home/$user" setpriv --reuid "$user" --regid "$user" --init-groups "$@"
    else
        inside "$@"
    fi
}

# `make install` in the folder of a build, and what one does with it. Tools that the build does not need come only now.
use_installed() { # FOLDER
    inside env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends man-db bash-completion >/dev/null 2>&1
    inside bash -euo pipefail -s "/$1" <<'INSIDE'
cd "$1"
make -s install PREFIX=/usr/local
ldconfig
cd /root
for program in ceiling-scout extract_ops scout_batch analyze; do
    "$program" --version
    page=$(man "$program" 2>&1)
    grep -q "^SYNOPSIS" <<<"$page"
    bash --norc --noprofile -c 'source /usr/share/bash-completion/bash_completion; _completion_loader "$0"; complete -p "$0"' "$program"
done
cat >opens.c <<'C'
#include <dispatch/scout_dispatch.h>
#include <stdio.h>
int main(int argc, char **argv) {
    const scout_dispatch_device device = {.name = "another", .capability = "1.0", .driver = "1.0"};
    scout_dispatch_note note;
    scout_dispatch *table;
    if (argc != 2 || scout_dispatch_open(&table, argv[1], &device, &note) == SCOUT_DISPATCH_OK) return 1;
    puts(note.text);
    return 0;
}
C
read -r -a flags < <(pkg-config --cflags --libs scout_dispatch)
gcc -Wall -Werror -o opens opens.c "${flags[@]}"
analyze dispatch "$1/tests/golden/reports/llama2_7b@b1_s2048" -o dispatch.json >/dev/null
said=$(./opens dispatch.json)
printf '%s\n' "$said"
grep -q "NVIDIA H200.*another" <<<"$said"
INSIDE
}

echo "fresh_root: making a root of Debian's $suite in $root"
mkdir -p "$root"
debootstrap --variant=minbase "$suite" "$root" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >"$root.log" 2>&1 || {
    tail -n 20 "$root.log" >&2
    exit 4
}
rm -f "$root.log"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
copy_settings
inside apt-get update -qq
inside env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends git >/dev/null
if [[ -n $user ]]; then
    inside env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends sudo >/dev/null
    inside useradd -m -s /bin/bash "$user"
    echo "$user ALL=(ALL) NOPASSWD: ALL" >"$root/etc/sudoers.d/$user"
fi
copy_settings # a package's own certificates must not replace this machine's
if ((!worktree)); then git bundle create -q "$root/repository.bundle" HEAD; fi

# The lines of the Dockerfile as one command; each is a line of its own there (tests/cli/test_setup.sh).
docker_command() { sed -n 's/^RUN //p' Dockerfile | paste -s -d '~' | sed 's/~/ \&\& /g'; }

passed=0 failed=0
for number in "${numbers[@]}"; do
    case $number in
    docker) command=$(docker_command) as=inside ;;
    *) command=$(scripts/readme_command.sh "$number") as=newcomer ;;
    esac
    clone "clone$number"
    printf '\nfresh_root: $ %s\n' "$command"
    start=$SECONDS code=0
    $as bash -c "cd /clone$number && $command" </dev/null || code=$?
    # A profile that is complete ends with 1 while some kinds cannot be measured, and make says 2 for that.
    if [[ $number == 1 && $code == 2 ]] && inside bash -c "grep -qs '\"state\": \"complete\"' /clone1/out/*/run.json"; then code=0; fi
    if ((code == 0)); then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    printf 'fresh_root: exit %d after %d s\n' "$code" $((SECONDS - start))
    if [[ $number == 1 && $code == 0 ]]; then
        printf '\nfresh_root: what make install puts there\n'
        use_installed clone1 && passed=$((passed + 1)) || failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
((failed == 0))

#!/usr/bin/env bash
# A model of a zoo: loads it, where it has a URL, and checks its sha256, so that nothing else is used in its place. What was
# loaded in part goes on where it was. A file is read again only when its size or time has changed since it was checked;
# MARK keeps when that was.
# Usage: scripts/zoo_fetch.sh URL|'' FILE SHA256 MARK
set -euo pipefail
umask go-w # what others could change would be taken for checked
url=${1?usage: scripts/zoo_fetch.sh URL FILE SHA256 MARK} file=$2 sha256=$3 mark=$4
part=$file.part most_gib=64
fail() { # CODE WHY
    printf '%s\n' "$2" >&2
    exit "$1"
}
drop() { rm -f -- "$1" || fail 4 "$1: cannot be removed; remove it, or name another folder (-o)"; }

about() { printf '%s %s %s' "$sha256" "$file" "$(stat -L -c '%s %y %i' -- "$1")"; }
sum='' seen=''
is_right() { # FILE   its sum stays in `sum`, and in `seen` what it was of
    seen=$(about "$1")
    sum=$(sha256sum <"$1") || fail 4 "$1: cannot be read"
    sum=${sum%% *}
    [[ "$(about "$1")" == "$seen" ]] || fail 4 "$1: has changed while it was read; run again"
    [[ $sum == "$sha256" ]]
}
differs() { fail 3 "$1: its sha256 is $sum, not $sha256 as in the zoo; correct the one that is wrong"; }

load() { # all of it, or what is missing of $part
    local code=0 said answer
    answer=$(curl -q -fsSL -g --proto '=https' --proto-redir '=https' --max-redirs 5 --connect-timeout 30 --speed-limit 1000 \
        --speed-time 60 --max-filesize $((most_gib << 30)) --retry 2 -w '%{http_code}' -C - -o "$part" --url "$url" 2>"$part.said") || code=$?
    said=$(tail -n 1 -- "$part.said" 2>/dev/null) || true
    drop "$part.said"
    case $code:$answer in
    0:*) ;;
    33:* | 22:416) return 1 ;; # it cannot be gone on with
    22:*) fail 3 "$url: is not to be had: $said; correct the URL" ;;
    23:*) fail 4 "$part: cannot be written: $said; make room, or name another folder (-o)" ;;
    63:*) fail 3 "$url: is larger than $most_gib GiB; load it yourself, and give the model as a file" ;;
    127:*) fail 4 "$url: curl is not installed; install it, or give the model as a file" ;;
    *) fail 4 "$url: could not be loaded: $said; run again, and it goes on where it was" ;;
    esac
}

# Parts of a night may want one model at once: the second finds it loaded. Without locks both load it, and its sum tells.
if exec {held}>>"$(dirname -- "$mark")/.$(basename -- "$mark").lock" && command -v flock; then flock "$held" || true; fi &>/dev/null
if [[ -e $file && -e $mark && "$(<"$mark")" == "$(about "$file")" ]]; then exit 0; fi
if [[ -n $url ]]; then
    if [[ ! -e $file ]] || ! is_right "$file"; then
        drop "$mark"
        drop "$file"
        # What lies there may be whole already, or the beginning of something else.
        begun=
        if [[ -s $part ]]; then begun=yes; fi
        if [[ -z $begun ]] || ! is_right "$part"; then
            if ! load || { [[ -n $begun ]] && ! is_right "$part"; }; then
                drop "$part"
                load || fail 3 "$url: is not to be had; correct the URL"
            fi
            if ! is_right "$part"; then
                drop "$part"
                differs "$url"
            fi
        fi
        mv -f -- "$part" "$file" || fail 4 "$file: cannot be written"
    fi
else
    [[ -f $file ]] || fail 3 "$file: is not there; correct the model's path in the zoo"
    is_right "$file" || differs "$file"
fi
printf %s "$seen" >"$mark" || fail 4 "$mark: cannot be written"

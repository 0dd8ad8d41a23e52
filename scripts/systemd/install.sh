#!/usr/bin/env bash
# A zoo every night by systemd, as this user: writes a service and a timer into the user's units, and starts the timer.
# The unit fails where something got slower, for the zoo ends with 1 then. With --print it writes nothing and prints both.
# Usage: scripts/systemd/install.sh [--print] ZOO.json FOLDER [TIME]   TIME: of the night, 02:00
set -euo pipefail
usage="usage: ${0##*/} [--print] ZOO.json FOLDER [TIME]"
print=
if [[ ${1:-} == --help || ${1:-} == -h ]]; then echo "$usage" && exit 0; fi
if [[ ${1:-} == --print ]]; then print=yes && shift; fi
if (($# < 2 || $# > 3)) || [[ $1 == -* ]]; then
    echo "$usage" >&2
    exit 2
fi
zoo=$(realpath -- "$1") folder=$(realpath -m -- "$2") at=${3:-02:00}
if [[ ! -f $zoo ]]; then
    echo "$zoo: is not there; name the list of models" >&2
    exit 3
fi
if [[ ! $at =~ ^([01][0-9]|2[0-3]):[0-5][0-9]$ ]]; then
    echo "$at: is no time of day; say 02:00" >&2
    exit 2
fi
program=$(realpath -se -- "$(command -v ceiling-scout)" 2>/dev/null || realpath -e -- "$(dirname -- "${BASH_SOURCE[0]}")/../../bin/ceiling-scout" 2>/dev/null) || {
    echo "ceiling-scout is neither in the path nor built here; say make install" >&2
    exit 4
}

# As a unit's file writes a word: in quotes, with its own signs doubled.
quoted() {
    local text=${1//\\/\\\\}
    text=${text//\"/\\\"}
    text=${text//%/%%}
    printf '"%s"' "${text//\$/\$\$}"
}
service() {
    printf '[Unit]\nDescription=The models of a zoo, measured every night\n\n[Service]\nType=oneshot\n'
    printf 'ExecStart=%s zoo %s --out=%s --again --digest\n' "$(quoted "$program")" "$(quoted "$zoo")" "$(quoted "$folder")"
}
timer() {
    printf '[Unit]\nDescription=A zoo every night\n\n[Timer]\nOnCalendar=*-*-* %s:00\nPersistent=true\n\n[Install]\nWantedBy=timers.target\n' "$at"
}

if [[ -n $print ]]; then
    service
    echo
    timer
    exit
fi
units=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user
mkdir -p -- "$units"
service >"$units/ceiling-scout.service"
timer >"$units/ceiling-scout.timer"
echo "wrote $units/ceiling-scout.service and .timer"
if ! command -v systemctl >/dev/null || ! systemctl --user daemon-reload || ! systemctl --user enable --now ceiling-scout.timer; then
    echo "systemd does not run here for this user; a line of cron does the same:" >&2
    line=$(printf '%q zoo %q -o %q --again --digest' "$program" "$zoo" "$folder")
    printf '%d %d * * * %s\n' "$((10#${at#*:}))" "$((10#${at%:*}))" "${line//%/\\%}" >&2 # cron takes a bare % for a newline
    exit 4
fi
echo "it runs while you are logged in; loginctl enable-linger lets it run at any time"

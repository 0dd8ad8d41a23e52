#!/usr/bin/env bash
# scripts/systemd/install.sh: the units that it writes, checked by systemd-analyze where that is there; a name with signs of
# a unit's own; what is wrong in its arguments; no systemd.
# shellcheck disable=SC2016 # names hold a dollar, and a unit doubles it
source "${ROOT:?}/tests/cli/lib.sh"

install=$ROOT/scripts/systemd/install.sh
mkdir -p tools
printf '#!/bin/sh\n' >tools/ceiling-scout
chmod +x tools/ceiling-scout
export PATH=$PWD/tools:$PATH HOME=$PWD/home
echo '{}' >'a "zoo" of 5 % \ $HOME.json'
units() { run "$install" "$@"; }

units --help
check "--help: exit 0" exits 0
check "--help: how it is called" contains stdout.txt "usage: install.sh [--print] ZOO.json FOLDER [TIME]"
units --print 'a "zoo" of 5 % \ $HOME.json' 'the nights' 03:30
check "--print: exit 0" exits 0
check "--print: nothing is written" absent home
check "--print: when" contains stdout.txt "OnCalendar=*-*-* 03:30:00"
check "--print: what" contains stdout.txt '" zoo "'"$PWD"'/a \"zoo\" of 5 %% \\ $$HOME.json" --out="'"$PWD"'/the nights" --again --digest'
echo '{}' >zoo.json
printf '#!/bin/sh\nexit 1\n' >tools/systemctl
chmod +x tools/systemctl
units zoo.json nights
check "no systemd: exit 4" exits 4
check "no systemd: the line of cron" says "0 2 * * * $PWD/tools/ceiling-scout zoo $PWD/zoo.json -o $PWD/nights --again --digest"
units 'a "zoo" of 5 % \ $HOME.json' nights
check "no systemd: a percent sign of cron's own" says '\ of\ 5\ \%\ '
check "no systemd: the units are there" present home/.config/systemd/user/ceiling-scout.timer
printf '#!/bin/sh\necho "$@" >>%q\n' "$PWD/asked.txt" >tools/systemctl
units zoo.json nights 23:05
check "systemd: exit 0" exits 0
check "systemd: the timer is enabled" contains asked.txt "--user enable --now ceiling-scout.timer"
if command -v systemd-analyze >/dev/null; then
    mkdir -m 700 run
    check "systemd takes both units" env XDG_RUNTIME_DIR="$PWD/run" systemd-analyze --user verify "$PWD"/home/.config/systemd/user/ceiling-scout.{service,timer}
else
    skip "systemd-analyze is not installed: the units are not checked by it"
fi
units nowhere.json nights
check "no list: exit 3" exits 3
units zoo.json nights 25:00
check "no time of day: exit 2" exits 2
units zoo.json
check "no folder: exit 2" exits 2
finish

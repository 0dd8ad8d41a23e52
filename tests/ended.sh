# shellcheck shell=bash
# Sourced by what test scripts share: one that `set -e` ends before `finish` says at which command, which no check does.
finished=0
tell_end() { # CODE COMMAND LINES…   innermost first
    if ((finished == 0)); then echo "FAILED the script ended with $1 before its end, at lines ${*:3}: $2"; fi
}
trap 'tell_end $? "$BASH_COMMAND" "${BASH_LINENO[@]}"' EXIT

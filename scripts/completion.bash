#!/usr/bin/env bash
# shellcheck disable=SC2154 # the file that this becomes a part of has them in its first lines
# PROGRAM stands for a program's name; _PROGRAM_options has a line for each option: the command that it is of (empty: of
# none), its name, its letter, what its argument is called (empty: it has none), the words that may stand there.
# _PROGRAM_alone is not empty where a command must come first; _PROGRAM_devices prints the names of devices.

# The line of the option called $2 of the command $1.
_PROGRAM_option() {
    local command name letter argument choices
    while IFS=$'\x1f' read -r command name letter argument choices; do
        if [[ $command == "$1" && ($name == "$2" || (-n $letter && $letter == "$2")) ]]; then
            printf '%s\x1f%s' "$argument" "$choices"
            return 0
        fi
    done <<<"${_PROGRAM_options//$'\t'/$'\x1f'}"
    return 1
}

_PROGRAM_files() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

# What may stand behind an option: its words, files, or nothing that could be guessed.
_PROGRAM_value() { # LINE BEGUN OPTION HEAD   the head: what stands before a colon, which divides words too
    local argument=${1%%$'\x1f'*} choices=${1#*$'\x1f'}
    if [[ $3 == --device ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_PROGRAM_devices)" -- "$4$2")
        COMPREPLY=("${COMPREPLY[@]#"$4"}")
    elif [[ -n $choices && $argument == LIST && $2 == *,* ]]; then
        mapfile -t COMPREPLY < <(compgen -P "${2%,*}," -W "$choices" -- "${2##*,}")
    elif [[ -n $choices ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$2")
    elif [[ $argument == *FILE* || $argument == *DIR* || $argument == *.json ]]; then
        _PROGRAM_files "$2"
    fi
}

# Operations of a folder: a report is called after its operation.
_PROGRAM_operations() { # FOLDER BEGUN
    local file
    for file in "$1"/reports/"$2"*.json "$1"/fusions/"$2"*.json "$1"/"$2"*_*.json; do
        file=${file##*/} file=${file%.json}
        # What a shell would take for its own is not put on a command line: somebody else may have named the file.
        if [[ $file =~ ^[A-Za-z0-9_.@+-]+$ ]]; then COMPREPLY+=("$file"); fi
    done
}

_PROGRAM() {
    local current=${COMP_WORDS[COMP_CWORD]} previous='' command='' line names='' word at head=''
    local -a words=()
    COMPREPLY=()
    if ((COMP_CWORD > 0)); then previous=${COMP_WORDS[COMP_CWORD - 1]}; fi
    # cuda:0 comes as three words, and so does --name=value
    if [[ $current == ':' ]]; then
        head=$previous: current='' previous=${COMP_WORDS[COMP_CWORD - 2]}
    elif [[ $previous == ':' ]]; then
        head=${COMP_WORDS[COMP_CWORD - 2]}: previous=${COMP_WORDS[COMP_CWORD - 3]}
    elif [[ $current == '=' ]]; then
        current=''
    elif [[ $previous == '=' ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    for word in $_PROGRAM_commands; do
        if ((COMP_CWORD > 1)) && [[ ${COMP_WORDS[1]} == "$word" ]]; then command=$word; fi
    done
    if [[ $previous == -* ]] && line=$(_PROGRAM_option "$command" "$previous") && [[ -n ${line%%$'\x1f'*} ]]; then
        _PROGRAM_value "$line" "$current" "$previous" "$head"
        return
    fi
    if [[ $current == -* ]]; then
        while IFS=$'\x1f' read -r word line _; do
            if [[ $word == "$command" ]]; then names+=" $line"; fi
        done <<<"${_PROGRAM_options//$'\t'/$'\x1f'}"
        mapfile -t COMPREPLY < <(compgen -W "$names" -- "$current")
        return
    fi
    for ((at = 2; at < COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]} previous=${COMP_WORDS[at - 1]}
        if [[ $word == -* || $word == '=' || $previous == '=' ]]; then continue; fi
        if [[ $previous == -* ]] && line=$(_PROGRAM_option "$command" "$previous") && [[ -n ${line%%$'\x1f'*} ]]; then continue; fi
        words+=("$word")
    done
    if [[ $command == explain ]] && ((${#words[@]} == 1)); then
        _PROGRAM_operations "${words[0]}" "$current"
        return
    fi
    if [[ $command != help && ($COMP_CWORD -gt 1 || -z $_PROGRAM_alone) ]]; then _PROGRAM_files "$current"; fi
    if ((COMP_CWORD == 1)) || [[ $command == help ]]; then
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$_PROGRAM_commands" -- "$current")
    fi
}

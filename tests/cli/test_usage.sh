#!/usr/bin/env bash
# Options: what is wrong is said in one line with exit 2, and --help knows every option.
source "${ROOT:?}/tests/cli/lib.sh"

extract --help
check "--help: exit 0" exits 0
for option in --output --dim --batch --seq --config --tokens --past --precision --tensors --quiet --help --version; do
    check "--help names $option" contains stdout.txt "$option"
done
extract --version
check "--version: exit 0" exits 0
check "--version: says something" present stdout.txt

refused "no model" 2
refused "an empty name" 2 ""
refused "two models" 2 "$MODEL" "$MODEL"
refused "unknown option" 2 "$MODEL" -o refused.json --frobnicate
refused "option without its argument" 2 "$MODEL" -o
refused "batch 0" 2 "$MODEL" -o refused.json --batch 0
refused "batch -1" 2 "$MODEL" -o refused.json --batch -1
refused "batch x" 2 "$MODEL" -o refused.json --batch x
refused "batch 1x" 2 "$MODEL" -o refused.json --batch 1x
refused "batch too large" 2 "$MODEL" -o refused.json --batch 99999999999999999999
refused "seq empty" 2 "$MODEL" -o refused.json --seq ""
refused "dim without a number" 2 "$MODEL" -o refused.json --dim sequence_length
refused "dim without a name" 2 "$MODEL" -o refused.json --dim =3
refused "dim negative" 2 "$MODEL" -o refused.json --dim sequence_length=-3
refused "unknown precision" 2 "$MODEL" -o refused.json --precision fp12
refused "newline in an option" 2 "$MODEL" $'--fro\nb'
finish

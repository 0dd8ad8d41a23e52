#!/usr/bin/env bash
# Files that are no models: exit 3, one line that names the file, no output, and an older output file stays as it was.
source "${ROOT:?}/tests/cli/lib.sh"

refused "missing file" 3 missing.onnx -o refused.json
check "missing file is named" says missing.onnx
refused "a folder" 3 . -o refused.json
: >empty.onnx
refused "empty file" 3 empty.onnx -o refused.json
echo "this is no model" >text.onnx
refused "text" 3 text.onnx -o refused.json
mkfifo pipe.onnx
refused "a pipe" 3 pipe.onnx -o refused.json
head -c 40000 "$MODEL" >short.onnx
refused "truncated model" 3 short.onnx -o refused.json
check "truncated model is named" says short.onnx
refused "empty name" 2 "" -o refused.json

echo "older" >older.json
extract short.onnx -o older.json --tensors refused.json
check "an older file survives a failure" contains older.json older
check "no tensors file after a failure" absent refused.json
check "nothing half-written is left" test "$(find . -name '*.json*' | sort | tr '\n' ' ')" = "./older.json "
finish

#!/usr/bin/env bash
# A slip of the hand never replaces a model or its weights by what is said about them.
source "${ROOT:?}/tests/cli/lib.sh"

cp "$ROOT/models/small_conv.onnx" model.onnx
cp model.onnx before.onnx
ln -s model.onnx link.onnx
for target in model.onnx ./model.onnx link.onnx; do
    extract model.onnx -o "$target" --dim N=1 --quiet
    check "-o $target: exit 2" exits 2
    check "-o $target: one line" one_line
    extract model.onnx --tensors "$target" --dim N=1 --quiet
    check "--tensors $target: exit 2" exits 2
    check "the model is as it was" same model.onnx before.onnx
done
ln -s same.json same.link
for other in same.json ./same.json same.link; do
    extract model.onnx -o same.json --tensors "$other" --dim N=1 --quiet
    check "one file for both outputs, $other: exit 2" exits 2
    check "one file for both outputs, $other: nothing is written" absent same.json
done
finish

"""What a model states about its tensors is never needed: without any of it, the shapes are the same."""

import os
import tempfile

import onnx

import oracle


def stripped_copies(model):
    """(what was taken away, the model without it)"""
    without_info = onnx.ModelProto()
    without_info.CopyFrom(model)
    del without_info.graph.value_info[:]
    yield "value_info", without_info
    for o in without_info.graph.output:
        if o.type.HasField("tensor_type"):
            o.type.tensor_type.ClearField("shape")
    yield "value_info and shapes of outputs", without_info


def main():
    tally = oracle.Tally()
    bindings = (("--batch", 1, "--seq", 128), ("--batch", 2, "--seq", 17))
    with oracle.need_models(tally) as there:
        for path in oracle.models() if there else []:
            name = os.path.basename(path)
            model = onnx.load(path, load_external_data=False)
            plain = [oracle.Run(oracle.program(), path, *b) for b in bindings]
            for what, copy in stripped_copies(model):
                with tempfile.TemporaryDirectory() as folder:
                    copy_path = os.path.join(folder, name)
                    with open(copy_path, "wb") as f:
                        f.write(copy.SerializeToString())
                    for b, whole in zip(bindings, plain):
                        run = oracle.Run(oracle.program(), copy_path, *b)
                        tally.check(run.code == 0 and run.tensors_text and run.tensors_text == whole.tensors_text,
                                    f"{name} {b} without {what}: exit {run.code} {run.last_line()}")
    tally.end()


main()

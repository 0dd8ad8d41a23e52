"""Every tensor's dtype and shape of every real model, as onnxruntime finds them when it runs the model at two bindings."""

import tempfile
import time

import onnx

import oracle
import zero_run

BINDINGS = ({"batch": 1, "seq": 128}, {"batch": 2, "seq": 17})
WHOLE_LIMIT = 4 << 30  # bytes of weights; beyond it nodes are run one by one


def reference(model, binding, path):
    if path:
        return zero_run.whole(path, model, binding), "run whole"
    found, count = zero_run.node_by_node(model, binding)
    return found, f"run node by node, {count} distinct"


def compare(tally, name, found, run):
    wrong = []
    for tensor, (kind, shape) in found.items():
        got = run.tensors.get(tensor)
        if got is None:
            wrong.append(f"{tensor}: not in the tensors file, is {oracle.DTYPES[kind]}{shape}")
        elif (got["dtype"], got["shape"]) != (oracle.DTYPES[kind], shape):
            wrong.append(f"{tensor}: {got['dtype']}{got['shape']}, is {oracle.DTYPES[kind]}{shape}")
    wrong += [f"{tensor}: not in the model" for tensor in run.tensors if tensor not in found]
    tally.check(not wrong and run.code == 0, f"{name}: exit {run.code}, {len(wrong)} of {len(found)} tensors differ {run.last_line()}")
    for line in wrong:
        print(f"    {line}")


def check_model(tally, program, path):
    model = onnx.load(path, load_external_data=False)
    name = path.rsplit("/", 1)[-1]
    symbols = {d.dim_param for i in zero_run.graph_inputs(model) for d in i.type.tensor_type.shape.dim if d.dim_param}
    if not symbols <= {"batch", "seq"}:
        tally.skip(f"{name}: its symbols are {sorted(symbols)}, and no binding is known for them")
        return
    with tempfile.TemporaryDirectory() as folder:
        whole = zero_run.weight_bytes(model) <= WHOLE_LIMIT
        zeros = zero_run.write_with_zeros(model, folder) if whole else None
        for binding in BINDINGS if symbols else BINDINGS[:1]:
            start = time.monotonic()
            where = f"{name} at batch {binding['batch']}, seq {binding['seq']}"
            try:
                found, how = reference(model, binding, zeros)
            except Exception as problem:  # every model of the folder is known to run: a broken oracle must not pass
                tally.check(False, f"{where}: {type(problem).__name__}: {str(problem).splitlines()[0][:200]}")
                continue
            run = oracle.Run(program, path, "--batch", binding["batch"], "--seq", binding["seq"])
            compare(tally, where, found, run)
            print(f"{where}: {len(found)} tensors, {how}, {time.monotonic() - start:.1f} s", flush=True)


def main():
    tally = oracle.Tally()
    with oracle.need_models(tally) as there:
        for path in oracle.models() if there else []:
            check_model(tally, oracle.program(), path)
    tally.end()


main()

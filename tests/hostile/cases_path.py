"""Hostile surroundings: what the model is on the disk, and where its external data is said to lie."""
import os
import socket

from case import BAD, FINE, LOOSE, ODD, Case
from wire import blob, external, net, node, num, tensor

SIZE = 16


def uses(location, **more):
    return net([node("Add", "x w")], [external("w", [4], location, **more)])


def put(folder, name, data=bytes(SIZE)):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as out:
        out.write(data)
    return path


def data(size=SIZE):
    return lambda folder: put(folder, "w.bin", bytes(size))


def link_out(folder):
    put(folder, "../outside/w.bin")
    os.symlink("../outside/w.bin", os.path.join(folder, "w.bin"))


def link_absolute(folder):
    os.symlink("/etc/hostname", os.path.join(folder, "w.bin"))


def link_folder_out(folder):
    put(folder, "../outside/w.bin")
    os.symlink("../outside", os.path.join(folder, "sub"))


def link_inside(folder):
    put(folder, "real/w.bin")
    os.symlink("real/w.bin", os.path.join(folder, "w.bin"))


def link_to_itself(folder):
    os.symlink("w.bin", os.path.join(folder, "w.bin"))


def link_to_nothing(folder):
    os.symlink("../outside/nothing", os.path.join(folder, "w.bin"))


def link_to_proc(folder):
    os.symlink("/proc/self/mem", os.path.join(folder, "w.bin"))


def hard_link_out(folder):
    put(folder, "../outside/w.bin")
    os.link(os.path.join(folder, "../outside/w.bin"), os.path.join(folder, "w.bin"))


def linked_copy(count, model_too=True):
    """A folder of one file per tensor that was copied by linking."""
    def lay(folder):
        made = net([node("Add", "x w%d" % i, "z%d" % i) for i in range(count)] + [node("Relu")],
                   [external("w%d" % i, [4], "w%d" % i) for i in range(count)])
        put(folder, "../store/model.onnx" if model_too else "model.onnx", made)
        for name in ["w%d" % i for i in range(count)]:
            put(folder, "../store/" + name)
        for name in os.listdir(os.path.join(folder, "../store")):
            os.link(os.path.join(folder, "../store", name), os.path.join(folder, name))
    return lay


def linked_deep(folder):
    """The other name lies deeper than is looked."""
    put(folder, "/".join("abcdefghijkl") + "/w.bin")
    os.link(os.path.join(folder, "/".join("abcdefghijkl"), "w.bin"), os.path.join(folder, "w.bin"))


def fifo(folder):
    os.mkfifo(os.path.join(folder, "w.bin"))


def subfolder(folder):
    os.mkdir(os.path.join(folder, "w.bin"))


def named_socket(folder):
    here = os.getcwd()
    os.chdir(folder)  # the path of a socket must be short
    s = socket.socket(socket.AF_UNIX)
    s.bind("w.bin")
    s.close()
    os.chdir(here)


def device(folder):
    try:
        os.mknod(os.path.join(folder, "w.bin"), 0o020666, os.makedev(1, 5))
    except PermissionError:
        os.mkfifo(os.path.join(folder, "w.bin"))


def store(folder):
    """As model hubs lay a model out: a folder of links into one store of blobs."""
    blobs = os.path.join(folder, "blobs")
    put(folder, "blobs/1a2b", uses("w.bin"))
    put(folder, "blobs/3c4d")
    snapshot = os.path.join(folder, "snapshots", "main")
    os.makedirs(snapshot)
    os.symlink(os.path.relpath(os.path.join(blobs, "1a2b"), snapshot), os.path.join(snapshot, "model.onnx"))
    os.symlink(os.path.relpath(os.path.join(blobs, "3c4d"), snapshot), os.path.join(snapshot, "w.bin"))


def store_escape(folder):
    """The same, but the data's link leaves the store."""
    store(folder)
    put(folder, "secret/w.bin")
    link = os.path.join(folder, "snapshots", "main", "w.bin")
    os.unlink(link)
    os.symlink("../../secret/w.bin", link)


def model_fifo(folder):
    os.mkfifo(os.path.join(folder, "model.onnx"))


def model_folder(folder):
    os.mkdir(os.path.join(folder, "model.onnx"))


def model_link_loop(folder):
    os.symlink("model.onnx", os.path.join(folder, "model.onnx"))


def places():
    where = lambda name, exits, location, layout=None, pattern="w|external", **more: Case(
        "external_" + name, exits, uses(location, **more), pattern=pattern, layout=layout)
    return [
        where("missing", FINE, "nowhere.bin"),
        where("right", FINE, "w.bin", data(), offset=0, length=SIZE),
        where("right_in_subfolder", FINE, "sub/w.bin", lambda f: put(f, "sub/w.bin"), offset=0, length=SIZE),
        where("dot_slash", FINE, "./w.bin", data(), offset=0, length=SIZE),
        where("link_inside", FINE, "w.bin", link_inside),
        where("absolute", BAD, "/etc/hostname"),
        where("absolute_missing", BAD, "/nowhere/w.bin"),
        where("dot_dot", BAD, "../outside/w.bin", lambda f: put(f, "../outside/w.bin")),
        where("dot_dot_missing", BAD, "../nowhere.bin"),
        where("dot_dot_inside", BAD, "sub/../w.bin", data()),
        where("dot_dot_deep", BAD, "a/b/../../../../../../../etc/passwd"),
        where("empty_location", BAD, ""),
        where("only_dot", BAD, "."),
        where("backslashes", LOOSE, "..\\..\\w.bin"),
        where("nul_in_location", BAD, b"w.bin\0/../../x"),
        where("newline_in_location", LOOSE, b"w\n\x1b[31m.bin"),
        where("broken_utf8", LOOSE, b"w\xff\xfe.bin"),
        where("location_megabyte", LOOSE, "w" * 1000000),
        where("location_deep", LOOSE, "a/" * 100000 + "w"),
        where("proc", BAD, "/proc/self/environ"),
        where("symlink_out", BAD, "w.bin", link_out),
        where("symlink_absolute", BAD, "w.bin", link_absolute),
        where("symlink_folder_out", BAD, "sub/w.bin", link_folder_out),
        where("symlink_loop", BAD, "w.bin", link_to_itself),
        where("symlink_to_nothing", ODD, "w.bin", link_to_nothing),
        where("symlink_to_proc", BAD, "w.bin", link_to_proc),
        where("hard_link_out", BAD, "w.bin", hard_link_out),
        where("fifo", BAD, "w.bin", fifo),
        where("folder", BAD, "w.bin", subfolder),
        where("socket", BAD, "w.bin", named_socket),
        where("device", BAD, "w.bin", device),
        where("the_model_itself", LOOSE, "model.onnx", offset=0, length=SIZE),
    ]


def spans():
    big = 1 << 62
    span = lambda name, exits, size=SIZE, **more: Case("span_" + name, exits, uses("w.bin", **more), pattern="w|external",
                                                       layout=data(size))
    entries = lambda es: net([node("Add", "x w")], [tensor("w", [4], extra=b"".join(
        blob(13, blob(1, k) + blob(2, v)) for k, v in es) + num(14, 1))])
    return [
        span("file_short", BAD, 15),
        span("file_empty", BAD, 0),
        span("file_long", FINE, 32),
        span("offset_past_end", BAD, offset=SIZE + 1, length=SIZE),
        span("offset_at_end", BAD, offset=SIZE, length=SIZE),
        span("offset_negative", BAD, offset=-1, length=SIZE),
        span("length_negative", BAD, offset=0, length=-16),
        span("length_past_end", BAD, offset=8, length=SIZE),
        span("length_other_than_dims", BAD, 64, offset=0, length=20),
        span("length_0", LOOSE, offset=0, length=0),
        span("overflow", BAD, offset=(1 << 63) - 8, length=SIZE),
        span("offset_2_62", BAD, offset=big, length=big),
        span("offset_2_64", BAD, offset=1 << 64, length=SIZE),
        span("offset_2_64_and_0", BAD, offset=(1 << 64), length=SIZE),
        span("offset_text", BAD, offset="zero", length=SIZE),
        span("offset_hex", BAD, offset="0x0", length=SIZE),
        span("offset_empty", LOOSE, offset="", length=SIZE),
        span("offset_spaces", LOOSE, offset=" 0", length=SIZE),
        span("offset_trailing", BAD, offset="0abc", length=SIZE),
        span("offset_1000_digits", BAD, offset="9" * 1000, length=SIZE),
        span("offset_float", BAD, offset="0.0", length=SIZE),
        span("missing_file_offset_bad", LOOSE, offset="zero"),
        Case("entries_none", BAD, entries([]), pattern="w|external"),
        Case("entries_without_location", BAD, entries([("offset", "0")]), pattern="w|external"),
        Case("entries_twice", LOOSE, entries([("location", "w.bin"), ("location", "../x")]), layout=data()),
        Case("entries_100k", LOOSE, lambda: entries([("location", "w.bin")] + [("k%d" % i, "v") for i in range(100000)]),
             layout=data()),
        Case("entries_unknown", FINE, entries([("location", "w.bin"), ("checksum", "abc")]), layout=data()),
        Case("external_and_raw", LOOSE, net([node("Add", "x w")], [tensor("w", [4], raw=bytes(16), extra=blob(
            13, blob(1, "location") + blob(2, "w.bin")) + num(14, 1))]), layout=data()),
        Case("external_strings", LOOSE, net([node("Add", "x w")], [external("w", [4], "w.bin", kind=8)]), layout=data()),
        Case("external_as_shape_short", BAD, net([node("Reshape", "x s")], [external("s", [4], "w.bin", kind=7)]),
             layout=data()),
        Case("external_as_shape_missing", LOOSE, net([node("Reshape", "x s")], [external("s", [4], "nowhere", kind=7)])),
        Case("external_10k_files", FINE, lambda: net([node("Add", "x w0")], [
            external("w%d" % i, [4], "f%d.bin" % i) for i in range(10000)])),
        Case("external_10k_in_one", FINE, lambda: net([node("Add", "x w0")], [
            external("w%d" % i, [4], "w.bin", offset=16 * i, length=16) for i in range(10000)]), layout=data(160000)),
    ]


def models():
    good = net([node("Relu")])
    return [
        Case("model_missing", (3, 4), None, path="nowhere.onnx", layout=lambda f: None),
        Case("model_is_fifo", (3, 4), None, layout=model_fifo),
        Case("model_is_folder", (3, 4), None, layout=model_folder),
        Case("model_is_link_loop", (3, 4), None, layout=model_link_loop),
        Case("model_is_dev_zero", (3, 4), None, path="/dev/zero", layout=lambda f: None),
        Case("model_is_dev_null", (3, 4), None, path="/dev/null", layout=lambda f: None),
        Case("model_is_proc_mem", (3, 4), None, path="/proc/self/mem", layout=lambda f: None),
        Case("model_path_empty", (2, 3, 4), None, path="", layout=lambda f: None),
        Case("model_path_too_long", (2, 3, 4), None, path="d/" * 5000 + "model.onnx", layout=lambda f: None),
        Case("model_through_file", (3, 4), good, path="model.onnx/model.onnx"),
        Case("model_name_nasty", FINE, None, path="a\x1b[31m\n\"*.onnx", layout=lambda f: put(f, "a\x1b[31m\n\"*.onnx", good)),
        Case("model_name_nasty_refused", BAD, None, path="a\x1b[31m\n\"*.onnx", layout=lambda f: put(f, "a\x1b[31m\n\"*.onnx", b"no")),
        Case("linked_copy_4000", FINE, None, layout=linked_copy(4000)),
        Case("linked_copy_but_not_the_model", BAD, None, layout=linked_copy(4, False), pattern="outside the model's folder"),
        Case("linked_deep", BAD, uses("w.bin"), layout=linked_deep, pattern="other names"),
        Case("store_of_links", FINE, None, path="snapshots/main/model.onnx", layout=store),
        Case("store_escape", BAD, None, path="snapshots/main/model.onnx", layout=store_escape, pattern="w|external"),
    ]


def cases():
    return places() + spans() + models()

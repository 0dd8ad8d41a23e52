"""Writes the wheel of this package, of an installed tree (make install, make dist). Nothing but the standard library and
readelf is needed, and the same tree gives the same bytes. Usage: make_wheel.py TREE FOLDER

The tree's programs and shared libraries lie in the package, with the scripts behind `ceiling-scout profile`; headers and
manual pages do not. Where they need nothing but the C library the wheel is one for every Linux with that C library or a
newer one (manylinux), else for this machine's own kind of system alone (linux)."""
import base64
import hashlib
import pathlib
import platform
import re
import subprocess
import sys
import zipfile

NAME = "ceiling_scout"
HERE = pathlib.Path(__file__).resolve().parent
LITTLE = re.compile(r"(libc|libm|libdl|librt|libpthread|libgcc_s|ld-linux-[a-z0-9-]+)\.so\.[0-9]+")
LONG_AGO = (1980, 1, 1, 0, 0, 0)
METADATA = """\
Metadata-Version: 2.1
Name: ceiling-scout
Version: {version}
Summary: Measured verdicts on ONNX models, dispatch tables, and what they name, run
License: Apache-2.0
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Requires-Python: >=3.9
Description-Content-Type: text/markdown

{readme}"""
ENTRY_POINTS = """\
[console_scripts]
ceiling-scout = ceiling_scout.command:main

[vllm.general_plugins]
ceiling_scout = ceiling_scout.vllm_plugin:register
"""


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, str(path)], check=True, capture_output=True, text=True).stdout


def platform_tag(binaries):
    """The oldest system that has what the files ask for."""
    needed, versions = set(), [(2, 17)]
    for path in binaries:
        needed.update(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", path)))
        versions += [tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9]+\.[0-9]+)", readelf("--version-info", path))]
    machine = platform.machine()
    if all(LITTLE.fullmatch(name) for name in needed):
        return "manylinux_{}_{}_{}".format(*max(versions), machine)
    return f"linux_{machine}"


def contents(tree, package):
    """(place in the wheel, file) of everything in it, in one order. Of libraries the file that programs load."""
    for path in sorted(package.glob("*")):
        if path.is_file():
            yield f"{NAME}/{path.name}", path
    wanted = [*tree.glob("bin/*"), *tree.glob("lib/*.so.[0-9]"), *tree.glob("lib/ceiling-scout/*")]
    for path in sorted(path for path in wanted if path.is_file()):
        yield f"{NAME}/tree/{path.relative_to(tree)}", path
    yield f"{NAME}/tree/LICENSE", HERE.parent / "LICENSE"


def main():
    tree, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    version = (HERE.parent / "VERSION").read_text().strip()
    files = list(contents(tree, HERE / NAME))
    binaries = [path for place, path in files if path.read_bytes()[:4] == b"\x7fELF"]
    for needed in ("bin/extract_ops", "bin/scout_batch", "bin/analyze", "lib/libscout_dispatch.so.1"):
        if not (tree / needed).is_file():
            sys.exit(f"make_wheel: {tree / needed} is missing; make install or make dist makes such a tree")
    tag = f"py3-none-{platform_tag(binaries)}"
    about = f"{NAME}-{version}.dist-info"
    texts = {
        f"{about}/METADATA": METADATA.format(version=version, readme=(HERE / "README.md").read_text()),
        f"{about}/WHEEL": f"Wheel-Version: 1.0\nGenerator: make_wheel\nRoot-Is-Purelib: false\nTag: {tag}\n",
        f"{about}/entry_points.txt": ENTRY_POINTS,
    }
    parts = [(place, path.read_bytes(), path.stat().st_mode & 0o111) for place, path in files]
    parts += [(place, text.encode(), 0) for place, text in texts.items()]
    record = "".join("{},sha256={},{}\n".format(
        place, base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode(), len(data))
        for place, data, _ in parts) + f"{about}/RECORD,,\n"
    parts.append((f"{about}/RECORD", record.encode(), 0))
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{NAME}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for place, data, runs in parts:
            entry = zipfile.ZipInfo(place, LONG_AGO)
            entry.external_attr = (0o100755 if runs else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB")


main()

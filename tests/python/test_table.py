"""Dispatch tables: the same keys and lookups as a generated dispatch.h, and what is refused."""
import ctypes
import json
import os
import pathlib
import random
import re
import tempfile
import threading
import unittest
import warnings

import ceiling_scout as scout
from ceiling_scout import _dispatch, table

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOM, NUMBERS = 1024, 32


class Key(ctypes.Structure):
    _fields_ = [("form_hash", ctypes.c_uint64), ("form_length", ctypes.c_uint32), ("count", ctypes.c_uint32),
                ("numbers", ctypes.c_int64 * NUMBERS), ("form", ctypes.c_char * ROOM)]


shim = ctypes.CDLL(os.environ["SCOUT_SHIM"])
shim.shim_parse.argtypes = [ctypes.POINTER(Key), ctypes.c_char_p, ctypes.c_size_t]
shim.shim_write.restype = ctypes.c_size_t
shim.shim_write.argtypes = [ctypes.POINTER(_dispatch.Op), ctypes.c_char_p, ctypes.c_size_t]
for lookup in (shim.shim_find, shim.shim_near):
    lookup.restype = ctypes.c_int64


def question(chance, keys):
    """A key of the table, another size of it, or something like a key."""
    key = chance.choice(keys)
    places = [m.span() for m in re.finditer(r"(?<=[=,])-?\d+(?=[,;]|$)", key)]
    first, last = chance.choice(places[:1] * 3 + places)
    number = int(key[first:last])
    kind = chance.randrange(8)
    if kind < 3:
        return key
    if kind < 5:
        number += 16 * chance.randint(1, 64)
    elif kind == 5:
        number += chance.randint(-1, 1)
    elif kind == 6:
        number = chance.choice([0, -1, 2**63 - 1, -(2**63), 1 << 32])
    else:
        at = chance.randrange(len(key))
        return key[:at] + chance.choice("0,;=- %x\x01") + key[at + 1:]
    return key[:first] + str(number) + key[last:]


class Lookups(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.table = scout.load(os.environ["SCOUT_TABLE"])
        cls.entries = list(cls.table)

    def test_entries_are_those_of_the_file(self):
        with open(os.environ["SCOUT_TABLE"], encoding="utf-8") as file:
            written = json.load(file)
        self.assertEqual(len(self.table), 10000)
        self.assertEqual(self.table.device_class, written["device"]["class"])
        for entry, told in zip(self.entries, written["entries"]):
            self.assertEqual((entry.key, entry.choice, entry.implementation, entry.variant, entry.algo.hex(), entry.config,
                              entry.expected_us, entry.ratio, entry.launches, (entry.library, entry.version)),
                             (told["key"], told["choice"], told["implementation"], told["variant"], told["algo"],
                              told["config"], told["expected_us"], told["proof"]["ratio"], told["proof"]["launches"],
                              (told["library"]["name"], told["library"]["version"])))

    def test_ten_thousand_lookups_are_equal(self):
        chance, key, upper = random.Random(88172645463325252), Key(), ctypes.c_int64()
        keys, numbers = [e.key for e in self.entries], {e.key: k for k, e in enumerate(self.entries)}
        seen = {"found": 0, "between": 0, "no key": 0}
        for _ in range(10000):
            asked = question(chance, keys)
            found, ends = self.table.find(asked), self.table.find_near(asked)
            if not shim.shim_parse(ctypes.byref(key), asked.encode(), len(asked)):
                self.assertEqual((found, ends), (None, None), asked)
                seen["no key"] += 1
                continue
            self.assertEqual(numbers[found.key] if found else -1, shim.shim_find(ctypes.byref(key)), asked)
            lower = shim.shim_near(ctypes.byref(key), ctypes.byref(upper))
            self.assertEqual((numbers[ends.lower.key], numbers[ends.upper.key]) if ends else -1,
                             (lower, upper.value) if lower >= 0 else -1, asked)
            seen["found"] += found is not None
            seen["between"] += ends is not None
        self.assertTrue(seen["found"] > 3000 and seen["between"] > 300 and seen["no key"] > 100, seen)

    def test_ten_thousand_operations_have_equal_keys(self):
        header = (ROOT / "dispatch/scout_dispatch_key.h").read_text()
        names = re.findall(r'\{"(\w+)", +\d+\}', header.split("known[] = {")[1].split("};")[0])
        self.assertGreater(len(names), 20)
        chance, made = random.Random(362436069), 0
        texts = ["gemm", "rms", "a;b", "50%", "=", "é", "\t", "", "fp16", "x\x7fy", None, None, None]
        values = [0, 1, -1, 7, 4096, -(2**63), 2**63 - 1]
        for _ in range(10000):
            op = {name: chance.choice(texts) for name in ("what", "layout", "mask", "dtype", "weight_dtype", "out_dtype",
                                                          "weight_side")}
            kind, shape = chance.choice(texts[:10]), [chance.choice(values) for _ in range(chance.randrange(5))]
            fields = {chance.choice(names + ["kv_len", "a b", "zz"]): chance.choice(
                [chance.choice(texts), chance.choice(values), [chance.choice(values) for _ in range(3)]])
                for _ in range(chance.randrange(5))}
            if chance.randrange(20) == 0:
                fields["long"] = "x%" * chance.randrange(500)
            numbers = (ctypes.c_int64 * len(shape))(*shape)
            try:
                ours = table.write_key(kind, numbers, op, fields)
                made += 1
            except ValueError:
                ours = ""
            self.assertEqual(ours, self.written(kind, numbers, op, fields))
        self.assertGreater(made, 9000)

    @staticmethod
    def written(kind, shape, op, fields):
        """By the header."""
        kept = {name: value for name, value in fields.items() if value is not None}
        rows, keep = (_dispatch.Field * max(1, len(kept)))(), []
        for row, (name, value) in zip(rows, kept.items()):
            row.name = name.encode()
            if isinstance(value, str):
                row.text = value.encode()
            elif isinstance(value, int):
                row.number = value
            else:
                keep.append((ctypes.c_int64 * len(value))(*value))
                row.numbers, row.count = keep[-1], len(value)
        text = [None if op[name] is None else op[name].encode()
                for name in ("layout", "mask", "dtype", "weight_dtype", "out_dtype", "weight_side")]
        what = None if op["what"] is None else op["what"].encode()
        asked = _dispatch.Op(kind.encode(), what, shape, len(shape), *text, rows, len(kept))
        room = ctypes.create_string_buffer(ROOM)
        length = shim.shim_write(ctypes.byref(asked), room, ROOM)
        return room.raw[:length].decode()

    def test_what_is_not_said_is_as_in_lists(self):
        for asked, key in (
                (("gemm", dict(shape=(1, 2, 3), dtype="float16")),
                 "gemm;shape=1,2,3;layout=nn;type=fp16;weight=fp16;weight_side=b"),
                (("gemm", dict(shape=(1, 2, 3), dtype="int8", out_dtype="int32")),
                 "gemm;shape=1,2,3;layout=nt;type=int8;weight=int8;out=int32;weight_side=b"),
                (("gemm", dict(shape=(1, 2, 3), dtype="fp16", weight_side="none", batch=12, bias=0, alpha=0.125)),
                 "gemm;shape=1,2,3;layout=nn;type=fp16;alpha=0.125;batch=12"),
                (("attention", dict(shape=(1, 32, 16, 64), dtype="bf16", mask="causal", kv_heads=8)),
                 "attention;shape=1,32,16,64;mask=causal;type=bf16;kv_heads=8;kv_len=16"),
                (("norm", dict(shape=[8, 64], dtype="fp16", what="rms")), "norm;what=rms;shape=8,64;type=fp16;weight=fp16")):
            self.assertEqual(scout.key_of(asked[0], **asked[1]), key)
        found = self.table.lookup("gemm", shape=(16, 768, 768), dtype="bf16", bias="n")
        self.assertEqual(found.key, "gemm;shape=16,768,768;layout=nn;type=bf16;weight=bf16;bias=n;weight_side=b")

    def test_arguments_of_a_wrong_type(self):
        for fault, expected, arguments in (
                (TypeError, "integers of 64 bits", dict(shape=(1.5, 2, 3), dtype="fp16")),
                (TypeError, "integers of 64 bits", dict(shape=(2**63, 2, 3), dtype="fp16")),
                (TypeError, "a data type", dict(shape=(1, 2, 3), dtype=object())),
                (TypeError, "a text", dict(shape=(1, 2, 3), dtype="fp16", layout=3)),
                (ValueError, "NUL", dict(shape=(1, 2, 3), dtype="fp16", bias="n\0")),
                (ValueError, "1023 bytes", dict(shape=(1, 2, 3), dtype="fp16", chain="x" * 2000))):
            with self.assertRaisesRegex(fault, expected):
                self.table.lookup("gemm", **arguments)

    def test_it_shows_itself(self):
        self.assertIn("10000 operations of Made Up 1, 5000 of them proven", repr(self.table))
        self.assertEqual(self.table._repr_html_().count("<tr>"), 41)


class Tables(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "table.json")
        with open(os.environ["SCOUT_TABLE"], encoding="utf-8") as file:
            self.written = json.load(file)
        self.written["entries"] = self.written["entries"][:2]
        for entry in self.written["entries"]:
            entry.pop("ranges", None)
        self.device = scout.Device.of_class(self.written["device"]["class"])

    def tearDown(self):
        self.folder.cleanup()

    def write(self, **device):
        self.written["device"].update(device)
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump(self.written, file)
        return self.path

    def test_of_this_device(self):
        self.assertEqual(len(scout.load(self.write(), self.device)), 2)

    def test_of_another_device(self):
        for members in ({"name": "Other"}, {"capability": "8.0"}, {"driver": "570"}, {"units": 78},
                        {"libraries": {**self.device.libraries, "cublaslt": "12.9.0"}}, {"libraries": {}}):
            other = scout.Device(**{**self.device.__dict__, **members})
            with self.assertRaisesRegex(scout.TableRefused, "here it is"):
                scout.load(self.write(), other)

    def test_a_driver_of_another_patch_warns(self):
        path = self.write(driver="580.1")
        with self.assertWarnsRegex(UserWarning, "the same branch, it is used"):
            scout.load(path, scout.Device(**{**self.device.__dict__, "driver": "580.2"}))
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of the branch alone no patch is known
            scout.load(path, self.device)

    def test_files_that_are_none(self):
        for text in ("", "{}", "[" * 100, json.dumps(self.written)[:-20]):
            with open(self.path, "w", encoding="utf-8") as file:
                file.write(text)
            with self.assertRaises(scout.TableBad):
                scout.load(self.path)
        for path in (self.folder.name, self.folder.name + "/none"):
            with self.assertRaises(scout.TableBad):
                scout.load(path)

    def test_reloading_while_others_read(self):
        table, faults, stop = scout.load(self.write()), [], threading.Event()

        def read():
            while not stop.is_set():
                if len(list(table)) not in (2, 10000):
                    faults.append("torn")

        readers = [threading.Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        for k in range(20):
            table.reload(self.path if k % 2 else os.environ["SCOUT_TABLE"])
        with self.assertRaises(scout.TableBad):
            table.reload("/nowhere")
        stop.set()
        for reader in readers:
            reader.join()
        self.assertEqual((faults, len(table)), ([], 2))

    def test_closed(self):
        with scout.load(self.write()) as table:
            pass
        for use in (lambda: len(table), lambda: table.find("x"), lambda: table.reload(self.path)):
            with self.assertRaisesRegex(ValueError, "closed"):
                use()

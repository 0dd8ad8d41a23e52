"""What other readers see of escaped text. Each line of the file: kind, text, what was written of it (both in hex).

Cleaning is done again here in another way; then the reader of each format has to see exactly the cleaned text.
"""
import csv
import html
import re
import sys
import xml.etree.ElementTree as etree
from html.parser import HTMLParser

CONTROLS = set(range(0x20)) | set(range(0x7F, 0xA0)) | {0x061C, 0x200E, 0x200F, 0xFEFF}
CONTROLS |= set(range(0x2028, 0x202F)) | set(range(0x2066, 0x206A))


def cleaned(raw):
    text, at = "", 0
    while at < len(raw):
        for n in range(1, 5):
            try:
                character = raw[at : at + n].decode("utf-8")
            except UnicodeDecodeError:
                continue
            text += "?" if ord(character) in CONTROLS else character
            at += n
            break
        else:
            text += "\ufffd"
            at += 1
    return text


class Seen(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.parts, self.tags = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, attributes))

    def handle_data(self, data):
        self.parts.append(data)


def markup(raw, text, out):
    want = text.replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")
    element = etree.fromstring(f"<a b=\"{out}\" c='{out}'>{out}</a>")
    seen = Seen()
    seen.feed(f"<i b=\"{out}\" c='{out}'>{out}</i>")
    seen.close()
    return (
        [element.get("b"), element.get("c"), element.text or ""] == [want] * 3
        and html.unescape(out) == want
        and seen.tags == [("i", [("b", want), ("c", want)])]
        and "".join(seen.parts) == want
    )


def markdown(raw, text, out):
    plain = re.sub("&#[0-9]+;", "", out)
    outside = re.sub("[A-Za-z0-9\x80-\U0010ffff_](_+)(?=[A-Za-z0-9\x80-\U0010ffff])", "", plain)
    links = re.search("https?:/|www\\.", plain)
    return html.unescape(out).replace("\u200b", "") == text and not set(outside) & set("<>|`*~[]{}\\$^") and not links


def code(raw, text, out):
    if len(out) > 1 and out[0] == "`" and out[-1] == "`":
        return out[1:-1] == text and not set(text) & set("`|\\") and text.strip(" ") == text
    return markdown(raw, text, out)


def csv_field(raw, text, out):
    (row,) = csv.reader([f"{out},1"], strict=True)
    first = text.lstrip(" \u00a0")[:1]
    if first and first in "=+-@\uff1d\uff0b\uff0d\uff20":
        text = "'" + text
    return row == [text, "1"] and ("," not in out or out[0] == '"')


def terminal(raw, text, out):
    return out == text


def c_string(raw, text, out):
    return out.isascii() and out.isprintable() and "??" not in out


def c_comment(raw, text, out):
    return "*/" not in out and "/*" not in out and not out.endswith("\\") and out.replace(" ", "").rstrip(".") == text.replace(" ", "").rstrip(".")


KINDS = {
    "terminal": terminal,
    "markup": markup,
    "markdown": markdown,
    "code": code,
    "csv": csv_field,
    "string": c_string,
    "comment": c_comment,
}

bad = 0
with open(sys.argv[1], encoding="ascii") as lines:
    for line in lines:
        kind, raw, out = (line.rstrip("\n") + "  ").split(" ")[:3]
        raw, out = bytes.fromhex(raw), bytes.fromhex(out).decode("utf-8")
        if not KINDS[kind](raw, cleaned(raw), out):
            bad += 1
            print(f"{kind}: {raw!r} became {out!r}")
            if bad > 20:
                break
sys.exit(bad > 0)

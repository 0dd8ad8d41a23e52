"""Holds every #include of the product against the table of rooms in docs/architecture.md, and the table against the
folders. Prints a line for each breach, and exits 1 where there is one. Usage: check.py [ROOT]"""
import pathlib
import re
import sys

MOST_FILES = 40  # of a room
PRODUCT = ("common", "dispatch", "extract", "scout", "kernels", "analyze", "runtime", "front")
GENERATED = (".inc", ".pb-c.h")
SUFFIXES = {".c", ".h", ".cu", ".cuh"}


def read_table(text):
    """Room → the rooms it may include, in the order of the table."""
    table = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and re.fullmatch(r"`[\w./]+`", cells[0]):
            table[cells[0].strip("`")] = re.findall(r"`([\w./]+)`", cells[2])
    return table


def look(root):
    breaches = []
    table = read_table((root / "docs/architecture.md").read_text(encoding="utf-8"))
    files = sorted(path.relative_to(root) for top in PRODUCT for path in (root / top).rglob("*") if path.suffix in SUFFIXES)
    room_of = {str(file): str(file) if str(file) in table else str(file.parent) for file in files}
    names = {}
    for file in files:
        names.setdefault(file.name, []).append(str(file))
    breaches += [f"{' and '.join(same)}: one name for two files" for same in names.values() if len(same) > 1]

    above, used = set(), set()
    for room, allowed in table.items():
        count = sum(of == room for of in room_of.values())
        breaches += [f"{room}: stands in the table and has no file"] * (count == 0)
        breaches += [f"{room}: {count} files; a room has at most {MOST_FILES}"] * (count > MOST_FILES)
        breaches += [f"{room}: may include {other}, which does not stand above it" for other in allowed if other not in above]
        above.add(room)
    breaches += [f"{room}: has no line in the table" for room in sorted(set(room_of.values()) - set(table))]

    for file in files:
        room = room_of[str(file)]
        for number, line in enumerate((root / file).read_text(encoding="utf-8").splitlines(), 1):
            found = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
            other = room_of.get(found[2]) if found else None
            if found and other is None and found[1] == '"' and not found[2].endswith(GENERATED):
                breaches.append(f"{file}:{number}: {found[2]} is no file of the product; name it from the root")
            if other is None or other == room:
                continue
            used.add((room, other))
            if other not in table.get(room, []):
                breaches.append(f"{file}:{number}: {room} may not include {found[2]}")
    breaches += [f"{room}: may include {other}, and does not" for room in table for other in table[room] if (room, other) not in used]
    return breaches, len(table), len(files), len(used)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    breaches, rooms, files, arrows = look(root)
    for breach in breaches:
        print(breach)
    print(f"{rooms} rooms, {files} files, {arrows} arrows, {len(breaches)} breaches")
    sys.exit(bool(breaches))


main()

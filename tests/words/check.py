"""Counts the words of each sentence in the documents, in --help and in the manual pages, and looks for banned words
there, in the sources and in the comments of scripts and tests, and links that lead nowhere. Prints a line for each
text and each fault, and exits 1 where there is a fault.
Usage: check.py [--docs] ROOT [PROGRAM…]   --docs: of the sources only the number of banned words

A sentence ends at a full stop, question mark or exclamation mark before a blank. Paragraphs, list items, options and
cells end one, too. Tables, headings and blocks of code have no sentences; code within a sentence is one word."""
import pathlib
import re
import subprocess
import sys

MOST_MEAN, MOST_WORDS = 20, 40
BANNED = re.compile(r"\b(who|whoever|whom|nobody|somebody|anybody|everybody)\b", re.IGNORECASE)
COUNTED = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs/**/*.md", "rust/*/*.md", "python/*.md")
READ = COUNTED + ("docs/schema/*.json",)
PRODUCT = ("common", "dispatch", "extract", "scout", "kernels", "analyze", "runtime", "front")
SUFFIXES = {".c", ".h", ".cu", ".cuh"}
# Beside the product: comments alone, and what a shell test is called. Its data may hold any word.
BESIDE = ("Makefile", "mk/*.mk", "scripts/*", "tests/**/*", "docs/examples/**/*", "rust/**/*", "python/**/*", ".ci/run")
REMARKS = {suffix: r"//[^\n]*|/\*.*?\*/" for suffix in SUFFIXES} | {
    ".py": r'"""(?:.*?)"""|(?<![^\s])#[^\n]*', "": r'(?<![^\s])#[^\n]*|(?<=check )"[^"\n]*"'}
REMARKS |= {".sh": REMARKS[""], ".mk": REMARKS[""], ".rs": r"//[^\n]*"}
# What a compiler sees as one piece: comments and string literals, and characters so that '"' opens no string.
PIECES = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)


def sentences(paragraphs):
    """(line, words, text) of each sentence of (line, text) pairs."""
    for line, text in paragraphs:
        plain = re.sub(r"`+[^`]+`+", "code", text)
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", plain)
        for sentence in re.split(r"(?<=[.!?])[)*]*\s+", plain):
            words = sum(bool(re.search(r"\w", word)) for word in sentence.split())
            if words:
                yield line, words, sentence


def markdown(text):
    """The paragraphs and list items of a document. A paragraph that is links alone is a table of contents."""
    found, fenced, blank = [], False, True
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if bare.startswith("```"):
            fenced = not fenced
        code = line.startswith("    ") and blank
        if fenced or code or not bare or bare.startswith(("|", "#", "```")):
            blank = not bare or code
            found.append((number, ""))
            continue
        item = re.match(r"(?:[-*]|\d+\.)\s+(.*)", bare)
        if item or not found or not found[-1][1]:
            found.append((number, item[1] if item else bare))
        else:
            found[-1] = (found[-1][0], found[-1][1] + " " + bare)
        blank = False
    links = re.compile(r"\[[^\]]*\]\([^)]*\)")
    return [(line, text) for line, text in found if re.search(r"\w", links.sub("", text))]


def headings(text):
    """The anchors that a reader of Markdown makes of headings."""
    heads = [line.lstrip("# ").lower() for line in text.splitlines() if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", head).replace(" ", "-") for head in heads}


def help_text(text):
    """What a program does, each option, each exit code and what is said behind: no usage, examples or lists of names."""
    found, part, names = [], "usage", False
    for number, line in enumerate(text.splitlines(), 1):
        head = re.fullmatch(r"([a-z ]+):|(Commands), .*:", line)
        if head:
            part = head[1] or head[2]
            continue
        if not line:
            part = part if part not in ("usage", "exit codes", "examples") else "about"
            found.append((number, ""))
        elif part == "options":
            option = re.match(r"  (?:    |-.,)(?: )?-.*?(?:  |$)\s*(.*)", line)
            if option:
                found.append((number, option[1]))
            else:
                found[-1] = (found[-1][0], found[-1][1] + " " + line.strip())
        elif part == "exit codes":
            code = re.match(r"  \d  (.*)", line)
            if code:
                found.append((number, code[1]))
            else:
                found[-1] = (found[-1][0], found[-1][1] + " " + line.strip())
        elif part == "Commands":
            found.append((number, re.split(r"   +", line.strip())[-1]))
        elif part == "about":
            names = line.startswith("--") or names and line.startswith("  ")  # --batch binds batch, …
            if not names:
                found[-1] = (found[-1][0], found[-1][1] + " " + line)
    return found


def manual(roff):
    """A manual page: its paragraphs without headings, heads of options and lines as they were typed."""
    found, raw, head = [], False, False
    for number, line in enumerate(roff.splitlines(), 1):
        if line.startswith("."):
            raw = line == ".nf" or raw and line != ".fi"
            head = line == ".TP"
            found.append((number, ""))
        elif head:
            head = False
        elif not raw:
            found[-1] = (found[-1][0], found[-1][1] + " " + re.sub(r"\\f.|\\&", "", line).replace("\\-", "-"))
    return found


class Check:
    def __init__(self):
        self.faults = []

    def count(self, name, paragraphs):
        counted = list(sentences(paragraphs))
        if not counted:
            return
        mean = sum(words for _, words, _ in counted) / len(counted)
        longest = max(words for _, words, _ in counted)
        print(f"{name}: {len(counted)} sentences, mean {mean:.1f}, longest {longest}")
        if mean > MOST_MEAN:
            self.faults.append(f"{name}: sentences have {mean:.1f} words on average; at most {MOST_MEAN}")
        for line, words, text in counted:
            if words > MOST_WORDS:
                self.faults.append(f"{name}:{line}: {words} words; at most {MOST_WORDS}: {text[:90]}")

    def ban(self, name, text, first=1):
        for number, line in enumerate(text.splitlines(), first):
            self.faults += [f"{name}:{number}: the word {found[0]}: {line.strip()[:110]}" for found in BANNED.finditer(line)]

    def follow(self, root, path, text):
        """Links within the repository, to files and to headings."""
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]+`|^    .*", "", text, flags=re.MULTILINE)):
            place, _, heading = target.partition("#")
            if place.startswith("http"):
                continue
            other = path.parent / place if place else path
            if not other.exists() or heading and heading not in headings(other.read_text(encoding="utf-8")):
                self.faults.append(f"{path.relative_to(root)}: the link {target} leads nowhere")

    def documents(self, root):
        for pattern in COUNTED:
            for path in sorted(root.glob(pattern)):
                self.count(str(path.relative_to(root)), markdown(path.read_text(encoding="utf-8")))
        for path in sorted({path for pattern in READ for path in root.glob(pattern)}):
            text = path.read_text(encoding="utf-8")
            self.ban(str(path.relative_to(root)), text)
            self.follow(root, path, text)

    def program(self, path):
        name = path.name
        whole = run(path, "--help")
        commands = re.findall(rf"^  {name} ([a-z]+) [A-Z]", whole, re.MULTILINE)
        for command in [None] + sorted(set(commands)):
            text = run(path, command, "--help") if command else whole
            title = f"{name} {command} --help" if command else f"{name} --help"
            self.count(title, help_text(text))
            self.ban(title, text)
        page = run(pathlib.Path(__file__).parents[2] / "scripts/make_man.sh", path)
        self.count(f"{name}.1", manual(page))
        self.ban(f"{name}.1", page)

    def sources(self, root):
        files = [path for top in PRODUCT for path in sorted((root / top).rglob("*")) if path.suffix in SUFFIXES]
        remarks = {suffix: re.compile(pattern, re.DOTALL) for suffix, pattern in REMARKS.items()}
        beside = [path for pattern in BESIDE for path in sorted(root.glob(pattern))
                  if path.is_file() and path.suffix in remarks and path.parent.name != "words"]
        for path, pieces in [(path, PIECES) for path in files] + [(path, remarks[path.suffix]) for path in beside]:
            text = path.read_text(encoding="utf-8")
            for piece in pieces.finditer(text):
                if BANNED.search(piece[0]):
                    self.ban(str(path.relative_to(root)), piece[0], text.count("\n", 0, piece.start()) + 1)


def run(*words):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout


def main():
    words = sys.argv[1:]
    documents_alone = words[:1] == ["--docs"]
    root, *programs = [pathlib.Path(word) for word in words[documents_alone:]]
    check, sources = Check(), Check()
    check.documents(root)
    for program in programs:
        check.program(program)
    sources.sources(root)
    print(f"sources: {len(sources.faults)} banned words in comments and texts")
    faults = check.faults + ([] if documents_alone else sources.faults)
    print(*faults, sep="\n", end="\n" if faults else "")
    sys.exit(bool(faults))


main()

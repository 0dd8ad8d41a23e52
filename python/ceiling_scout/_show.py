"""Results as tables: text for a terminal, HTML for a notebook. Names in them come from models and reports, so what could
drive a terminal becomes a "?", and HTML is escaped."""
from __future__ import annotations

import html
import shutil
import unicodedata
from typing import List, NamedTuple, Sequence, Tuple

MOST_ROWS = 40
_CONTROLS = ("Cc", "Cf", "Zl", "Zp", "Cs")


class Column(NamedTuple):
    head: str
    right: bool = False


def plain(text: str) -> str:
    return "".join("?" if unicodedata.category(c) in _CONTROLS else c for c in text)


def times(us: float) -> str:
    """A time in the unit in which it has few digits."""
    for unit, scale in (("s", 1e6), ("ms", 1e3)):
        if us >= scale:
            return f"{us / scale:.4g} {unit}"
    return f"{us:.4g} us"


def percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"


class Shown:
    """What shows itself as a title and a table."""

    def _shown(self) -> Tuple[str, List[Column], List[List[str]]]:
        raise NotImplementedError

    def __repr__(self) -> str:
        title, columns, rows = self._shown()
        return as_text(title, columns, rows)

    def _repr_html_(self) -> str:
        title, columns, rows = self._shown()
        return as_html(title, columns, rows)


def _left_out(rows: Sequence[object]) -> str:
    return f"and {len(rows) - MOST_ROWS} more" if len(rows) > MOST_ROWS else ""


def as_text(title: str, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    """As wide as the terminal: the first column, which holds names, gives way."""
    cells = [[plain(cell) for cell in row] for row in rows[:MOST_ROWS]]
    widths = [max(len(line[k]) for line in [[c.head for c in columns], *cells]) for k in range(len(columns))]
    over = sum(widths) + 2 * (len(widths) - 1) - max(60, shutil.get_terminal_size((120, 24)).columns)
    if over > 0:
        widths[0] = max(12, widths[0] - over)

    def line(row: Sequence[str]) -> str:
        parts = []
        for cell, width, column in zip(row, widths, columns):
            cut = cell if len(cell) <= width else cell[: width // 2 - 1] + "…" + cell[len(cell) - (width - width // 2):]
            parts.append(cut.rjust(width) if column.right else cut.ljust(width))
        return "  ".join(parts).rstrip()

    body = [line([c.head for c in columns]), *map(line, cells)] if rows else []
    return "\n".join(part for part in [plain(title), *body, _left_out(rows)] if part)


def as_html(title: str, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    def row(tag: str, cells: Sequence[str]) -> str:
        each = (f'<{tag} style="text-align: {"right" if c.right else "left"}">{html.escape(plain(cell))}</{tag}>'
                for c, cell in zip(columns, cells))
        return f"<tr>{''.join(each)}</tr>"

    body = "".join(row("td", cells) for cells in rows[:MOST_ROWS])
    head = row("th", [c.head for c in columns]) if rows else ""
    more = f"<p>{_left_out(rows)}</p>" if _left_out(rows) else ""
    return f"<div><p>{html.escape(plain(title))}</p><table>{head}{body}</table>{more}</div>"

"""Fits tables and texts to the width of a terminal: order of dropped columns, shortening of words.

Nothing is broken inside a word or a shape. A cell that is too long has shorter forms of its kind: a shape lets go of its
layout, a path of its folders, a scope of its outer parts. Where that is not enough, the least important column goes, and the
table says so. Without a width, as in pipes, everything stays as it is.
"""

from __future__ import annotations

import enum
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence

import attrs

from hlotext.findings.shape_texts import bare_shape, shape_forms, uncommented, with_space

INDENT, GAP = 2, 2
"""Blanks before a row, and between two cells."""
_DOTS = "…"


class Kind(enum.Enum):
    """Kind of a column's cells, which determines how they are shortened."""

    NAME = "name"
    """A name: its middle goes."""
    SHAPE = "shape"
    """A shape: first its layout goes, then the last elements of a tuple."""
    PLACE = "place"
    """A path, with a line and a function: folders go first."""
    SCOPE = "scope"
    """A path of scopes: outer ones go first."""
    PROSE = "prose"
    """A sentence: it goes on in the next line."""
    WORD = "word"
    """Short words and numbers that stay as they are."""


_NUMBER, _OTHER = 6, 5
_FIRST = 3
"""By how much the first column, by which rows are told apart, is more important than elsewhere."""
_ALIKE = 2
"""By how much a column is less important where it is the same in every row."""
_KNOWN = {
    **dict.fromkeys(
        ("name", "instruction", "operation", "value", "transfer", "critical path", "pass"), (Kind.NAME, 9)
    ),
    **dict.fromkeys(("shape", "one device"), (Kind.SHAPE, 8)),
    **dict.fromkeys(("line", "from", "source"), (Kind.PLACE, 7)),
    "scope": (Kind.SCOPE, 5),
    "op_name": (Kind.SCOPE, 5),
    "file": (Kind.PLACE, 9),
    "opcode": (Kind.NAME, 4),
    "computation": (Kind.NAME, 4),
    **dict.fromkeys(("seconds", "bytes_accessed", "flops"), (Kind.WORD, 7)),
    "transcendentals": (Kind.WORD, 4),
    "age": (Kind.PROSE, 5),
    "family": (Kind.PROSE, 4),
    **dict.fromkeys(("kind", "along"), (Kind.WORD, 8)),
    **dict.fromkeys(
        ("summary", "problem", "finding", "finds", "answers", "reason", "why", "because", "meaning", "note"),
        (Kind.PROSE, 7),
    ),
    **dict.fromkeys(("what", "evidence", "printed"), (Kind.PROSE, 6)),
}
"""Kind and importance of columns by title: a title means the same in all tables."""


@attrs.frozen
class TerminalColumn:
    """A column of a table."""

    title: str
    style: str = ""
    """A colour for terminals, or `bold`, `dim`."""
    is_number: bool = False
    """Aligned to the right, and never shortened."""
    _kind: Kind | None = None
    _rank: int | None = None
    least: int = 0
    """Columns that it takes at least, where its cells are that long."""

    @property
    def kind(self) -> Kind:
        """Kind of its cells: as given, else that of columns with this title."""
        if self.is_number:
            return Kind.WORD
        return self._kind or _KNOWN.get(self.title, (Kind.NAME, 0))[0]

    @property
    def rank(self) -> int:
        """Importance: in a narrow terminal, columns of lowest rank are dropped first, from the right."""
        if self._rank is not None:
            return self._rank
        return _KNOWN.get(self.title, (Kind.NAME, _NUMBER if self.is_number else _OTHER))[1]


@attrs.frozen
class Fitted:
    """The columns and cells of a table that are shown."""

    columns: tuple[int, ...]
    """The numbers of the columns that stay."""
    widths: tuple[int, ...]
    """The width of each of these."""
    rows: tuple[tuple[tuple[str, ...], ...], ...]
    """Row by row the cells of these columns, each as its lines."""
    below: tuple[int, ...] = ()
    """The numbers of columns without room that tell rows apart: their cells go below each row."""


_LONG_ARRAY = 36
"""Columns for an array's shape without its layout; only longer ones are cut."""
_PIPED = 120
"""Columns for a shape in a pipe."""
_LEAST = {Kind.NAME: 16, Kind.SHAPE: 16, Kind.PLACE: 18, Kind.SCOPE: 16, Kind.PROSE: 24}
_GOOD = {Kind.NAME: 28, Kind.SHAPE: 34, Kind.PLACE: 24, Kind.SCOPE: 30, Kind.PROSE: 36}
"""Columns for a kind of cell: with less nobody knows what is meant; with these nearly everything can be read."""


def fit(columns: Sequence[TerminalColumn], rows: Sequence[Sequence[str]], width: int | None) -> Fitted:
    """Selects and shortens columns and cells to fit into `width`; None keeps all of them. At least one column remains."""
    numbers = range(len(columns))
    if width is None:
        # Only shapes of long tuples: one would fill every row with kilobytes of blanks.
        shapes = {n for n in numbers if columns[n].kind is Kind.SHAPE}
        rows = [
            [shorter(cell, _PIPED, Kind.SHAPE) if n in shapes else cell for n, cell in enumerate(row)]
            for row in rows
        ]
    natural = [max([cell_width(row[n]) for row in rows], default=0) for n in numbers]
    natural = [max(size, cell_width(columns[n].title)) for n, size in enumerate(natural)]
    if width is None:
        return Fitted(tuple(numbers), tuple(natural), tuple(tuple((cell,) for cell in row) for row in rows))
    columns = [_roomy(column, [row[n] for row in rows], width) for n, column in enumerate(columns)]
    # What no row has is not missed.
    kept = [n for n in numbers if not rows or any(row[n] for row in rows)] or [0]
    below: list[int] = []
    while len(kept) > 1 and sum(_least(columns[n], natural[n]) for n in kept) > _budget(width, kept):
        number, is_needed = _expendable(columns, rows, kept, below)
        kept.remove(number)
        if is_needed:
            below.append(number)
    budget = _budget(width, kept)
    caps = _caps([columns[n] for n in kept], [natural[n] for n in kept], budget)
    forms: dict[int, list[tuple[str, ...]]] = {}
    sizes: dict[int, int] = {}

    def form(place: int) -> None:
        """The cells of one column under its cap, and how wide they are then."""
        number = kept[place]
        column = columns[number]
        cells = [row[number] for row in rows]
        if column.kind in _LEVELS:
            cells = _alike(cells, caps[place], column.kind)
        forms[number] = [_lines(cell, caps[place], column) for cell in cells]
        longest = max((cell_width(line) for lines in forms[number] for line in lines), default=0)
        sizes[number] = max(longest, cell_width(column.title))

    for place in range(len(kept)):
        form(place)
    # Shorter forms are often shorter than they must be: what they leave goes to the most important ones.
    for place in sorted(range(len(kept)), key=lambda place: -columns[kept[place]].rank):
        left = budget - sum(sizes.values())
        if left > 0 and caps[place] < natural[kept[place]]:
            caps[place] = sizes[kept[place]] + left
            form(place)
    shown = tuple(tuple(forms[n][row] for n in kept) for row in range(len(rows)))
    alike: dict[tuple[tuple[str, ...], ...], int] = {}
    for number, cells in enumerate(shown):
        first = alike.setdefault(cells, number)
        below += [n for n in kept if rows[first][n] != rows[number][n] and n not in below]
    return Fitted(tuple(kept), tuple(sizes[n] for n in kept), shown, tuple(below))


def _expendable(
    columns: Sequence[TerminalColumn], rows: Sequence[Sequence[str]], kept: list[int], below: list[int]
) -> tuple[int, bool]:
    """The column to drop: the least important one without which rows stay distinct; True if there is none such.

    One that is the same in every row is less important than its title says: it tells nothing apart.
    """
    alike = {n for n in kept if len(rows) > 1 and len({row[n] for row in rows}) == 1}
    order = sorted(
        kept, key=lambda n: (columns[n].rank + (0 if n else _FIRST) - (_ALIKE if n in alike else 0), -n)
    )
    wanted = _distinct(rows, [*kept, *below])
    for number in order:
        if _distinct(rows, [n for n in (*kept, *below) if n != number]) == wanted:
            return number, False
    return order[0], True


def _distinct(rows: Sequence[Sequence[str]], numbers: Sequence[int]) -> int:
    return len({tuple(row[n] for n in numbers) for row in rows})


def _budget(width: int, kept: Sequence[int]) -> int:
    return width - INDENT - GAP * (len(kept) - 1)


def _bound(column: TerminalColumn, natural: int, bounds: dict[Kind, int]) -> int:
    if column.is_number or column.kind is Kind.WORD:
        return natural
    return min(natural, max(bounds[column.kind], cell_width(column.title), column.least))


def _roomy(column: TerminalColumn, cells: Sequence[str], width: int) -> TerminalColumn:
    """The column, with room for what is of no use in part: names that one passes on, and every dimension of an array."""
    if column.kind is Kind.NAME and column.rank >= _PASSED_ON:
        names = [cell_width(_own_name(cell)) for cell in cells]
        return attrs.evolve(column, least=max([column.least, *(size for size in names if 2 * size <= width)]))
    if column.kind is not Kind.SHAPE:
        return column
    arrays = [cell_width(bare_shape(cell)) for cell in cells if not cell.startswith("(")]
    return attrs.evolve(column, least=max([column.least, *(size for size in arrays if size <= _LONG_ARRAY)]))


_PASSED_ON = 8
"""Importance of columns of names from which on these are names of the module."""
_WRITER = " < "
"""Between a value and what writes it."""


def _own_name(text: str) -> str:
    """The name without what writes it."""
    return text.partition(_WRITER)[0]


def _least(column: TerminalColumn, natural: int) -> int:
    return _bound(column, natural, _LEAST)


def _caps(columns: Sequence[TerminalColumn], natural: Sequence[int], budget: int) -> list[int]:
    """The widths that columns may have: less important ones give first, down to what is good, then to what is least."""
    caps = list(natural)
    order = sorted(range(len(columns)), key=lambda place: (columns[place].rank, -place))
    for bounds in (_GOOD, _LEAST):
        for place in order:
            excess = sum(caps) - budget
            if excess <= 0:
                return caps
            least = _bound(columns[place], natural[place], bounds)
            caps[place] = max(min(caps[place], least), caps[place] - excess)
    return caps


def _lines(text: str, width: int, column: TerminalColumn) -> tuple[str, ...]:
    if cell_width(text) <= width or column.is_number:
        return (text,)
    if column.kind is Kind.PROSE:
        return tuple(wrapped(text, width))
    return (shorter(text, width, column.kind),)


# ---- shorter forms


def shorter(text: str, width: int, kind: Kind) -> str:
    """Returns the longest form of a text that fits; if none does, the end of the shortest."""
    if cell_width(text) <= width:
        return text
    form = text
    for form in _FORMS.get(kind, _name_forms)(text, width):
        if cell_width(form) <= width:
            return form
    while cell_width(form) > width and len(form) > 2:  # characters that take two columns
        form = f"{_DOTS}{form.removeprefix(_DOTS)[1:]}"
    return form


def _name_forms(text: str, width: int) -> Iterator[str]:
    """First what writes it goes, then the middle; more of the end stays, since numbers stand there."""
    if _WRITER in text:
        yield _own_name(text)
    keep = max(width - 1, 2)
    head = keep // 2
    yield f"{text[:head]}{_DOTS}{text[len(text) - (keep - head) :]}"


def _place_forms(text: str, width: int) -> Iterator[str]:
    """`folder/file.py:12 module.function`: folders go, then all but the function's last word, then the function."""
    place, _, function = text.partition(" ")
    name = place.replace("\\", "/").rpartition("/")[2]
    last = function.rpartition(".")[2]
    if not function:
        yield f"{_DOTS}/{name}"
        yield name
    else:
        yield f"{name} {function}"
        yield f"{name} {last}"
        yield name
    yield f"{_DOTS}{name[len(name) - max(width - 1, 1) :]}"


def _scope_forms(text: str, width: int) -> Iterator[str]:
    """`a/b/c`: the outer scopes go."""
    parts = text.split("/")
    for start in range(1, len(parts)):
        yield f"{_DOTS}/{'/'.join(parts[start:])}"
    yield f"{_DOTS}{text[len(text) - max(width - 1, 1) :]}"


def _file(text: str) -> str:
    """A place without its folders."""
    place, blank, function = text.partition(" ")
    return f"{place.replace(chr(92), '/').rpartition('/')[2]}{blank}{function}"


def _file_and_last(text: str) -> str:
    place, blank, function = _file(text).partition(" ")
    return f"{place}{blank}{function.rpartition('.')[2]}"


def _file_alone(text: str) -> str:
    return _file(text).partition(" ")[0]


_LEVELS: dict[Kind, tuple[Callable[[str], str], ...]] = {
    Kind.SHAPE: (str, uncommented, with_space, bare_shape),
    Kind.PLACE: (str, _file, _file_and_last, _file_alone),
}


def _alike(cells: Sequence[str], width: int, kind: Kind) -> list[str]:
    """The cells of a column, all in the same form: shapes with layouts and without would mislead. Tuples do not count."""
    *forms, last = _LEVELS[kind]
    for form in forms:
        found = [form(cell) for cell in cells]
        if kind is Kind.PLACE and len(set(found)) < len(set(cells)):
            break  # shorter forms tell even fewer rows apart
        if all(cell_width(cell) <= width for cell in found if not cell.startswith("(")):
            return found
    found = [last(cell) for cell in cells]
    if kind is Kind.PLACE and (
        len(set(found)) < len(set(cells))
        or any(cell_width(cell) > width for cell in _without_common_end(found))
    ):
        return _with_folders(cells, width) or _without_common_end(found)
    if kind is Kind.PLACE and any(cell_width(cell) > width for cell in found):
        return _without_common_end(found)
    return found


def _with_folders(cells: Sequence[str], width: int) -> list[str]:
    """Files by the first folder that differs, with as much of their names as fits; empty if folders tell no rows apart.

    >>> _with_folders(["out/a/module_0000.jit_f.after.txt", "out/b/module_0000.jit_f.after.txt"], 16)
    ['a/module_0000…', 'b/module_0000…']
    """
    paths = [cell.partition(" ")[0].replace("\\", "/").split("/") for cell in cells if cell]
    common = 0
    while all(len(path) > common + 1 for path in paths) and len({path[common] for path in paths}) == 1:
        common += 1
    if len({path[common] for path in paths if len(path) > common + 1}) < 2:
        return []
    files = iter(zip(paths, _without_common_end([path[-1] for path in paths]), strict=True))
    found: list[str] = []
    for cell in cells:
        if not cell:
            found.append(cell)
            continue
        path, name = next(files)
        path = path[common:]
        if len(path) > 1:
            folder = path[0] if len(path) == 2 else f"{path[0]}/{_DOTS}"
            name = f"{folder}/{name}"
        while cell_width(name) > width and "." in name:
            name = f"{name.removesuffix(_DOTS).rpartition('.')[0]}{_DOTS}"
        if cell_width(name) > width and len(path) > 1:
            name = f"{path[0]}/{_DOTS}"
        found.append(name)
    return found


def _without_common_end(names: list[str]) -> list[str]:
    """File names without the extensions that all share, which is all that is left of a cut name and tells no rows apart.

    >>> _without_common_end(["module_0040.jit_f.cpu_after_optimizations.txt", "module_42.jit_f.cpu_after_optimizations.txt"])
    ['module_0040…', 'module_42…']
    """
    parts = [name.split(".") for name in names if name]
    shared = 0
    while all(len(one) > shared + 1 for one in parts) and len({one[-shared - 1] for one in parts}) == 1:
        shared += 1
    if not shared or len(set(names)) < 2:
        return names
    return [f"{'.'.join(name.split('.')[:-shared])}{_DOTS}" if name else name for name in names]


_FORMS: dict[Kind, Callable[[str, int], Iterator[str]]] = {
    Kind.NAME: _name_forms,
    Kind.SHAPE: shape_forms,
    Kind.PLACE: _place_forms,
    Kind.SCOPE: _scope_forms,
}


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Wraps a text into lines of at most `width`; all but the first begin with `indent`.

    Lines break at blanks, in long words after commas and slashes, and in long names after underscores; other words are
    not broken.
    """
    if cell_width(text) <= width:
        return [text]
    lines: list[str] = []
    line, used = "", 0
    for word in _pieces(text, width - len(indent)):
        size = cell_width(word.rstrip(" "))
        if line.strip() and used + size > width:
            lines.append(line.rstrip(" "))
            line, used = indent, len(indent)
        line += word
        used += cell_width(word)
    return [*lines, line.rstrip(" ")]


_ARGUMENTS = re.compile(r"(?:'[^']*'|\"[^\"]*\"|[^ '\"])+")


def command_lines(text: str, width: int) -> list[str]:
    """Wraps a shell command line with backslashes, so that it can be copied; options stay next to their values."""
    words: list[str] = []
    for word in _ARGUMENTS.findall(text):
        is_value = bool(words) and words[-1].startswith("-") and " " not in words[-1] and word[0] != "-"
        if is_value and cell_width(words[-1]) + cell_width(word) + len("  \\") <= width:
            words[-1] += f" {word}"
        else:
            words.append(word)
    lines: list[str] = []
    for word in words:
        if lines and cell_width(lines[-1]) + cell_width(word) + len("  \\") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def _pieces(text: str, width: int) -> Iterator[str]:
    """The words, each with the blanks behind it; what is too long for a line in parts."""
    for word in _WORDS.findall(text):
        if cell_width(word) <= width or word.rstrip().endswith("'"):
            yield word
        else:
            for part in _PARTS.findall(word):
                yield from [part] if cell_width(part) <= width else _WORDS_OF_NAMES.findall(part)


_UNIT = r"(?:%|[kKMGTP]i?B?(?:/s)?|B|[nmu]?s|[kMGTP]?FLOP(?:/s|s)?)(?![A-Za-z0-9])"
_WORDS = re.compile(rf"[A-Z_]+='[^']*' *|[^ ]*[0-9] {_UNIT}[^ ]* *|[^ ]* +|[^ ]+")
"""Words with the blanks behind them; a number with its unit is one, as is a variable of the shell in quotes."""
_PARTS = re.compile(r"[^,/]*[,/]+ *|[^,/]+")
_WORDS_OF_NAMES = re.compile(r"[^_]*_+|[^_]+")


def cell_width(text: str) -> int:
    """Returns the number of terminal columns that a text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)

"""Texts in every style of source: one module of the corpus, written and read in a way that a seed chooses."""

from __future__ import annotations

import functools
import itertools
import random
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import attrs

import hlotext as hlo
from hlotext import proto
from hlotext.ir.values.print_options import PrintOptions, SubcomputationMode
from tests import support


@attrs.frozen
class Written:
    """A module, how it came to be, and how its text is read again."""

    module: hlo.Module
    style: str
    read: Callable[[str], hlo.Module]
    is_whole: bool = True
    """Whether all of the text could be read."""


# ---- the words of the text, each given back where it cannot be left out

_LAST_ROOT = re.compile(r"^(\s*)ROOT (?=[^\n]*\n\s*\})", re.MULTILINE)
_WIDE = PrintOptions(print_large_constants=True, print_operand_shape=True)
_SHORT = attrs.evolve(PrintOptions.short_parsable(), print_control_dependencies=True, print_metadata=True)
_INSIDE = attrs.evolve(_SHORT, print_subcomputation_mode=SubcomputationMode.FULL_BODIES)
_PLAIN = attrs.evolve(_SHORT, include_layout_in_shapes=False, syntax_sugar_async_ops=False)


def without_header(text: str, chance: random.Random) -> str:
    """The text without its header line and tables."""
    return text[hlo.parse(text)._header_end :].lstrip()


def without_root(text: str, chance: random.Random) -> str:
    """The text without the word ROOT in some of the computations that end with their root."""
    return _LAST_ROOT.sub(lambda match: match[1] if chance.random() < 0.8 else match[0], text)


def without_entry(text: str, chance: random.Random) -> str:
    """The text without the word ENTRY, where the last computation is the entry."""
    before, word, entry = text.rpartition("ENTRY ")
    return before + entry if word and "\n}\n\n" not in entry.rstrip() else text


def with_comments(text: str, chance: random.Random) -> str:
    """The text with comments before, between and behind its lines."""
    lines = []
    for line in text.split("\n"):
        drawn = chance.random()
        if drawn < 0.1 and not line.startswith(
            ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
        ):
            lines.append("// CHECK: comment { ROOT }")
        elif drawn < 0.15 and line.startswith("  "):
            line = f"  /* a, b */ {line.strip()} // behind"
        lines.append(line)
    return ("// RUN: tool %s\n" if chance.random() < 0.5 else "/* two\n lines */") + "\n".join(lines)


def on_one_line(text: str, chance: random.Random) -> str:
    """The text without line ends."""
    return " ".join(line.strip() for line in text.split("\n"))


def with_crlf(text: str, chance: random.Random) -> str:
    """The text with the line ends of Windows, or of old Macs."""
    return text.replace("\n", chance.choice(("\r\n", "\r\n", "\r")))


def printed(text: str, chance: random.Random) -> str:
    """The text in another style of XLA's printer."""
    return hlo.parse(text).to_text(chance.choice((_WIDE, _SHORT, _INSIDE, _PLAIN)))


REWRITES = (printed, without_header, without_root, without_entry, with_comments, on_one_line, with_crlf)
"""In the order in which they are done."""


# ---- ways of reading


def _parsed(text: str, chance: random.Random) -> Written:
    return Written(hlo.parse(text), "", hlo.parse)


@functools.cache
def _folder() -> Path:
    return Path(_HELD.name)


_HELD = tempfile.TemporaryDirectory(prefix="hlotext-styles-")
_NUMBERS = itertools.count()


def _lazy(text: str, chance: random.Random) -> Written:
    """Read as it is touched (as a whole where the form of the text does not allow that)."""
    path = _folder() / f"{next(_NUMBERS)}.hlo"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    module = hlo.load(path, lazy=True)
    path.unlink()  # an open file goes on
    return Written(module, "lazy", hlo.parse)


def _tolerant(text: str, chance: random.Random) -> Written:
    """Read with a line damaged."""
    lines = [match.start(1) for match in re.finditer(r"= \S+ ([a-z])", text)]
    place = chance.choice(lines) if lines else 0
    damaged = f"{text[:place]}?{text[place:]}"
    module = hlo.parse_tolerant(damaged).module

    def again(text: str) -> hlo.Module:
        return hlo.parse_tolerant(text).module

    return Written(module, "tolerant", again, is_whole=False)


def _of_two(text: str, chance: random.Random) -> Written:
    """One of two modules in a text; the other's text stays what it is."""
    modules = hlo.parse_all(f"{text}\n\n{_SECOND}")
    place = chance.randrange(2) if len(modules) == 2 else 0
    others = [str(module) for module in modules]

    def again(text: str) -> hlo.Module:
        found = hlo.parse_all("".join([*others[:place], text, *others[place + 1 :]]))
        assert len(found) == len(others), "another number of modules"
        assert [str(m) for i, m in enumerate(found) if i != place] == [
            other for i, other in enumerate(others) if i != place
        ]
        return found[place]

    return Written(modules[place], f"module {place} of two", again)


_SECOND = """HloModule second

ENTRY main {
  p = f32[2,3] parameter(0)
  n = f32[2,3] negate(p)
  s = f32[2,3] sine(n)
  t = (f32[2,3], f32[2,3]) tuple(n, s)
}
"""


def _op_line(text: str, chance: random.Random) -> Written:
    """One op line of the text, as somebody pastes it."""
    instructions = [
        i for i in hlo.parse(text).instructions() if i.opcode != "parameter" and i.span is not None
    ]
    line = str(chance.choice(instructions))
    module = hlo.parse(line)
    return Written(module, "op line", hlo.parse)


def _proto(text: str, chance: random.Random) -> Written:
    """Read from a proto."""
    return Written(proto.read_module(hlo.parse(text).to_proto(fill_elided=True)), "proto", hlo.parse)


def _copied(text: str, chance: random.Random) -> Written:
    """A copy of what was read, or what XLA makes of it."""
    module = hlo.parse(text)
    return Written(module.clone() if chance.random() < 0.5 else hlo.reread(module), "copy", hlo.parse)


READERS = (_parsed, _parsed, _parsed, _lazy, _tolerant, _of_two, _op_line, _proto, _copied)


# ---- what is drawn


@functools.cache
def sources(most: int) -> tuple[str, ...]:
    """The texts of the corpus and of tests/data/ok that hold one whole module and are no longer than that."""
    paths = [*support.corpus_files(), *sorted((support.DATA / "ok").glob("*.hlo"))]
    texts = [support.read_text(path).decode("utf-8", "surrogateescape") for path in paths]
    found = []
    for text in texts:
        if len(text) <= most:
            modules = hlo.parse_all(text)
            if len(modules) == 1 and not modules[0].entry.is_sugared:
                found.append(text)
    return tuple(found)


def written(seed: int, most: int = 4000) -> Written:
    """A module in a style, both chosen by a seed."""
    chance = random.Random(seed)
    text = chance.choice(sources(most))
    names = []
    for rewrite in REWRITES:
        if chance.random() < 0.3:
            changed = rewrite(text, chance)
            if changed != text and is_readable(changed):
                text = changed
                names.append(rewrite.__name__)
    reader = chance.choice(READERS)
    try:
        found = reader(text, chance)
    except (hlo.HloSyntaxError, ValueError, IndexError, proto.MissingProtobuf):
        # a pasted line that names what is not there; no protos where their package is not installed
        found = _parsed(text, chance)
    return attrs.evolve(found, style=", ".join([*names, found.style or "parsed"]))


def is_readable(text: str) -> bool:
    """Whether a text is one module."""
    try:
        return len(hlo.parse_all(text)) == 1
    except hlo.HloSyntaxError:
        return False

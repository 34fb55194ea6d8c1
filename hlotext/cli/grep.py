"""`hlotext grep`: finds instructions by a pattern: an instruction with wildcards."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs
import click

import hlotext as hlo
from hlotext.analysis import (
    MetadataSource,
    SourceLocations,
    byte_text,
    call_graph,
    communications,
    total_of,
    written_bytes,
)
from hlotext.analysis.formatting import pluralize
from hlotext.analysis.meant import NamesMeant
from hlotext.analysis.scopes import scopes, source_locations
from hlotext.analysis.selection import Selection
from hlotext.analysis.sizes import parse_bytes
from hlotext.cli.chip_options import place_text
from hlotext.cli.common import FORMAT, NOT_FOUND, Inputs, say, which_option, write_json
from hlotext.cli.output import echo, emit_report, is_colourful, printable, styled, terminal_width
from hlotext.cli.table_layout import Kind, cell_width, shorter
from hlotext.cli.usage import is_instruction_name
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.source import Span
from hlotext.ir.values.print_options import PrintOptions
from hlotext.matchers import Match, Pattern, PatternError, parse_pattern
from hlotext.syntax.printing.xla_styles import TextPrinter

if TYPE_CHECKING:
    from hlotext.dumps.texts import Which

_SHORT = PrintOptions(
    print_metadata=False,
    print_backend_config=False,
    print_original_value=False,
    print_frontend_attributes=False,
)


_MOST_SHOWN = 100
"""Matches that a text shows unless asked for more."""


@attrs.frozen
class _Asked:
    """The query and the output options."""

    pattern: Pattern
    selection: Selection
    min_bytes: int
    own: bool
    """True to exclude inferred sources."""
    full: bool
    width: int | None
    is_coloured: bool
    inside: list[str] = attrs.field(factory=list)
    """Names of matches that `min_bytes` leaves out because they stand in fusions and functions of elements."""
    near: list[Instruction] = attrs.field(factory=list)
    """Instructions that the pattern matches but the other options leave out; without any, those of its opcode."""

    @property
    def restrictions(self) -> list[str]:
        """The options that leave out what the pattern matches."""
        asked = self.selection
        given = {
            "line": asked.line,
            "function": asked.function,
            "scope": asked.scope,
            "min-bytes": self.min_bytes,
        }
        return [f"--{name}" for name, value in given.items() if value]

    def note_near(self, module: hlo.Module) -> None:
        """Keeps what a module without a match has of the pattern, for the message that there is none."""
        found = [one for one in module.instructions() if self.pattern.match(one) is not None]
        if not found and self.pattern.opcode is not None:
            found = [one for one in module.instructions() if one.opcode == self.pattern.opcode]
        self.near.extend(found)


@click.command()
@click.argument("pattern")
@click.argument("files", nargs=-1, required=True, metavar="FILE|DIR...")
@click.option("-c", "--count", is_flag=True, help="Print only the count per FILE.")
@click.option(
    "-l",
    "--files-with-matches",
    "names_only",
    is_flag=True,
    help="Print only the names of FILEs with a match.",
)
@click.option("--full", is_flag=True, help="Print whole lines, with metadata and configs.")
@click.option(
    "--line", metavar="FILE[:LINE[-LINE]]", help="Only instructions from these source lines: model.py:12-30."
)
@click.option("--function", metavar="NAME", help="Only instructions from this function; * matches any text.")
@click.option(
    "--scope",
    metavar="SCOPE",
    help="Only instructions in this op_name scope: layer_0/attention; * matches any text.",
)
@click.option(
    "--min-bytes",
    metavar="SIZE",
    help="Only instructions that write at least this many bytes to memory: 4096, 1MiB.",
)
@click.option("--why", metavar="NAME", help="Explain why the instruction with this name does not match.")
@click.option(
    "--own",
    is_flag=True,
    help="With --line, --function, --scope: skip instructions whose metadata is inferred.",
)
@click.option(
    "--allow-unknown",
    is_flag=True,
    help="Accept unknown opcodes, attributes and element types.",
)
@which_option("last")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    help=f"Maximum number of matches (0 for no limit).  [default: {_MOST_SHOWN} as text, all as json]",
)
@FORMAT
def command(
    pattern: str,
    files: tuple[str, ...],
    count: bool,
    names_only: bool,
    full: bool,
    line: str | None,
    function: str | None,
    scope: str | None,
    min_bytes: str | None,
    why: str | None,
    own: bool,
    allow_unknown: bool,
    which: Which,
    limit: int | None,
    output_format: str,
) -> None:
    """Find instructions that match PATTERN: an instruction with wildcards.

    \b
    %x, $A        any instruction, the same for every use of the name
    _  ...        any operand; any further operands
    f32[*]  $S    shapes, with * for any text; $S takes the whole shape
    all-*         opcodes, with * for any text
    add(%a, negate(%b))
                  operands and their definitions
    dimensions={0}, channel_id=*, metadata=*relu*
                  required attributes, in any order
    constant(200), parameter(0)
                  a constant with that value in every element, a parameter by number
    fusion(...), calls={convolution(...)}
                  called computations, by their contents

    \b
    Examples:
      hlotext grep '%x = $S all-gather($A), dimensions={0}' dump.txt
      hlotext grep 'convert(convert(_))' *.after_optimizations.txt
      hlotext grep -c 'all-*(...)' dumps/
      hlotext grep 'all-gather(...)' dumps/ --min-bytes 1MiB
      hlotext grep _ dump.txt --scope 'layer_*/attention'
      hlotext grep 'bf16[*] dot(...)' --why dot.4 dump.txt

    Many instructions, such as copies inserted by the compiler, have no metadata. --line, --function and --scope infer
    it from neighbors, and mark the match as inferred; --own excludes them. The Python line of a match follows //.

    Exit status: 0 matches, 1 no match, 2 usage error or unreadable input.
    """
    try:
        wanted = parse_pattern(pattern, allow_unknown=allow_unknown)
        selection = Selection(line, function, scope)
        least = parse_bytes(min_bytes) if min_bytes is not None else 0
    except PatternError as error:
        if os.path.exists(pattern):
            raise click.UsageError(f"PATTERN comes first: hlotext grep 'dot(...)' {pattern}") from None
        if is_instruction_name(pattern):
            raise click.UsageError(f"{pattern!r} is not a pattern; {_by_name(pattern, files)}") from None
        # One that matches nothing in silence would be a success to whoever asks that there be none.
        raise click.UsageError(f"{pattern!r} is not a pattern: {error}") from None
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if is_instruction_name(pattern) and pattern.startswith("%"):
        say(f"{pattern} is a variable, which matches any instruction; {_by_name(pattern, files)}")
    if count and names_only:
        raise click.UsageError("-c and -l cannot be combined")
    asked = _Asked(wanted, selection, least, own, full, terminal_width(), is_colourful())
    inputs = Inputs(files, which=which)
    if why is not None:
        found = _explain(inputs, asked, why.removeprefix("%"), output_format)
    else:
        found = _search(inputs, asked, count, names_only, limit, output_format)
    inputs.finish()
    if count and which == "last" and inputs.has_folders and output_format == "text":
        say(
            "only the last text of each compilation in a folder is searched (--which all searches every pass)"
        )
    if not found and not count and output_format == "text" and why is None:
        say(
            f"no match in {pluralize(len(inputs.places) - inputs.unreadable, 'file')}{_nearly(asked, allow_unknown)}"
        )
    if not found:
        raise click.exceptions.Exit(NOT_FOUND)


def _search(
    inputs: Inputs, asked: _Asked, count: bool, names_only: bool, limit: int | None, output_format: str
) -> bool:
    """Writes what matches; gives whether there is anything."""
    matches: list[dict[str, Any]] = []
    counts: dict[str, int] = {}
    inferred = total = 0
    is_json = output_format == "json"
    most = (sys.maxsize if is_json else _MOST_SHOWN) if limit is None else limit or sys.maxsize
    for place, result in inputs:
        counts[place] = 0
        for module in result.modules:
            printer = _Lines(asked, place)
            for instruction, match, source in _matching(module, asked):
                counts[place] += 1
                total += 1
                inferred += source is not MetadataSource.OWN
                if total > most and not (count or names_only):
                    continue
                if is_json:
                    matches.append(_as_json(place, instruction, match, source))
                elif not (count or names_only):
                    printer.show(instruction, source)
            if not total and not is_json:
                asked.note_near(module)
        if output_format == "text" and count:
            echo(f"{printable(place)}:{counts[place]}")
        elif output_format == "text" and names_only and counts[place]:
            echo(printable(place))
    if output_format == "json":
        cut = {} if limit is None else {"total": total, "truncated": total > most}
        write_json({"matches": matches, **cut})
        return bool(total)
    if total > most and not (count or names_only):
        say(f"{most:,} of {total:,} matches shown (all: --limit 0, count: -c)")
    if asked.inside:
        many = pluralize(len(asked.inside), "match", "matches")
        say(f"--min-bytes excludes {many} in fusions and reducers, whose values are not in memory")
    if inferred:
        say(f"inferred from neighbors: {inferred:,} of {total:,}; --own excludes these")
    return any(counts.values())


def _matching(module: hlo.Module, asked: _Asked) -> Iterator[tuple[Instruction, Match, MetadataSource]]:
    """Yields matches, with the origin of their source metadata."""
    said = None if asked.selection.is_everything else asked.selection.sources(module)
    stepped = call_graph(module).stepped if asked.min_bytes else frozenset()
    # What an asynchronous fusion of the TPU compiler receives is in memory like any other collective's result.
    received = {one.instruction for one in communications(module)} if asked.min_bytes else frozenset()
    for instruction in module.instructions():
        match = asked.pattern.match(instruction)
        if match is None or (asked.min_bytes and _result_bytes(instruction) < asked.min_bytes):
            continue
        if asked.min_bytes and instruction.computation not in stepped and instruction not in received:
            asked.inside.append(instruction.name)
            continue
        source = MetadataSource.OWN if said is None else said(instruction)
        if source is not None and (source is MetadataSource.OWN or not asked.own):
            yield instruction, match, source


def _result_bytes(instruction: Instruction) -> int:
    """Bytes that it writes; of what only views memory those of its result."""
    return written_bytes(instruction) or total_of(instruction.shape).allocated_bytes


def _nearly(asked: _Asked, is_tolerant: bool) -> str:
    """The end of the message that nothing matches: what an option leaves out, or which instructions have the opcode."""
    opcode = asked.pattern.opcode
    if not asked.near:
        return f"; no instruction has the opcode {opcode}" if opcode is not None and not is_tolerant else ""
    first, many = asked.near[0], len(asked.near)
    if asked.pattern.match(first) is None:
        which = (
            f"the only {opcode}, {first.name}, does"
            if many == 1
            else f"{many:,} have the opcode {opcode}, but do"
        )
        return f"; {which} not fit: --why {shlex.quote(first.name)} explains"
    options = asked.restrictions
    where = f", {told}" if len(options) == 1 and (told := _origin(first, options[0])) else ""
    return (
        f"; without {' and '.join(options)} {'there is one' if many == 1 else f'there are {many:,}'}{where}"
    )


def _origin(instruction: Instruction, option: str) -> str:
    """The value of what an option asks for, as it is for this instruction."""
    home = instruction.computation
    if option == "--min-bytes":
        return f"{instruction.name} of {byte_text(_result_bytes(instruction))}"
    if home is None or home.module is None:
        return ""
    if option == "--scope":
        scope = str(scopes(home.module).of(instruction))
        return f"{instruction.name} in the scope {scope}" if scope else f"{instruction.name} without a scope"
    known = source_locations(home.module).get(instruction)
    if known is None:
        return f"{instruction.name} without a source line"
    place = known[0]
    if option == "--function":
        return (
            f"{instruction.name} of {place.function}"
            if place.function
            else f"{instruction.name} without a function"
        )
    return f"{instruction.name} of {place.file}:{place.line}"


def _by_name(name: str, files: tuple[str, ...]) -> str:
    """Advice on finding the instruction of a name."""
    return f"to show an instruction, use `hlotext show {shlex.join(files)} -i {name.removeprefix('%')}`"


def _explain(inputs: Inputs, asked: _Asked, name: str, output_format: str) -> bool:
    """Writes why the instructions of a name do not match; gives whether there are any."""
    found = []
    hints = NamesMeant(name)
    for place, result in inputs:
        for module in result.modules:
            hints.add(module)
        for instruction in (i for module in result.modules for i in module.instructions() if i.name == name):
            reason = asked.pattern.explain(instruction)
            found.append({"file": place, "instruction": name, "matches": not reason, "why": reason})
            if output_format == "text":
                echo(f"{printable(place)}: {reason or f'{name} matches'}")
    if output_format == "json":
        write_json({"explanations": found})
    elif not found:
        say(f"no instruction is named {name}{hints}")
    return bool(found)


class _Lines:
    """Writes op lines without what is long and seldom asked for.

    In pipes each is `FILE:LINE:COLUMN: op line`; on a terminal the file stands above its lines, which are as wide as that.
    """

    def __init__(self, asked: _Asked, place: str) -> None:
        self._asked = asked
        self._place = place
        self._printer = TextPrinter(_SHORT)
        self._is_first = True
        self._locations = SourceLocations()

    def show(self, instruction: Instruction, source: MetadataSource) -> None:
        asked, span = self._asked, _span(instruction)
        text = printable(str(instruction) if asked.full else self._short(instruction))
        size = f"  // {byte_text(_result_bytes(instruction))}" if asked.min_bytes else ""
        place = "" if asked.full else place_text(self._locations.place(instruction))
        size += f"  // {printable(place)}" if place else ""
        mark = size + ("" if source is MetadataSource.OWN else f"  // inferred: {source.value}")
        if asked.width is None:
            echo(f"{printable(f'{self._place}:{span}' if span is not None else self._place)}: {text}{mark}")
            return
        if self._is_first:
            emit_report(self._styled(printable(self._place), "cyan"))
            self._is_first = False
        number = f"{span.line if span is not None else '':>6}"
        if not asked.full:
            mark = size + ("" if source is MetadataSource.OWN else "  // inferred")
            room = asked.width - len(number) - 2 - len(mark)
            text = _fitted(text, printable(str(instruction.shape)), f" {instruction.opcode}(", room)
        line = self._highlighted(text, instruction) + (self._styled(mark, "dim") if mark else "")
        emit_report(f"{self._styled(number, 'dim')}  {line}")

    def _short(self, instruction: Instruction) -> str:
        computation = instruction.computation
        if computation is None:
            return str(instruction)
        text = self._printer.instruction(instruction, self._printer.names(computation))
        return f"ROOT {text}" if instruction.is_root and not text.startswith("ROOT ") else text

    def _highlighted(self, text: str, instruction: Instruction) -> str:
        """The opcode in front of its operands stands out, as what a pattern is mostly about."""
        head, mark, rest = text.partition(f" {instruction.opcode}(")
        return f"{head} {self._styled(instruction.opcode, 'bold red')}({rest}" if mark else text

    def _styled(self, text: str, style: str) -> str:
        return styled(text, style) if self._asked.is_coloured else text


def _fitted(text: str, shape: str, opcode: str, width: int) -> str:
    """The line in so many columns: a long shape gets shorter, then the end goes, behind a blank or the opcode."""
    excess = cell_width(text) - width
    if excess > 0 and len(shape) > width // 3:
        text = text.replace(shape, shorter(shape, max(len(shape) - excess, width // 3), Kind.SHAPE), 1)
    if cell_width(text) <= width:
        return text
    kept = text[: width - 2].rpartition(" ")[0] or text[: width - 2]
    head = text.partition(opcode)[0] + opcode
    if len(kept) < len(head) < width:
        return f"{head}…"
    return f"{kept} …"


def _span(instruction: Instruction) -> Span | None:
    """Place of an instruction in the text. One that the text leaves out is at its operand, as `x#0` is an element of `x`, or
    at the start of the asynchronous operation whose computation holds it."""
    while instruction.span is None and instruction.opcode == "get-tuple-element" and instruction.operands:
        instruction = instruction.operands[0]
    home = instruction.computation
    if instruction.span is None and home is not None and home.is_sugared:
        return next((caller.span for caller in home.callers if caller.span is not None), None)
    return instruction.span


def _as_json(place: str, instruction: Instruction, match: Match, source: MetadataSource) -> dict[str, Any]:
    span, computation = _span(instruction), instruction.computation
    source_line = SourceLocations().place(instruction)
    return {
        "file": place,
        "line": span.line if span is not None else None,
        "computation": computation.name if computation is not None else None,
        "instruction": instruction.name,
        "text": str(instruction),
        "bytes": _result_bytes(instruction),
        "place": attrs.asdict(source_line) if source_line is not None else None,
        "inferred_from": None if source is MetadataSource.OWN else source.value,
        "captures": {
            name: value.name if isinstance(value, Instruction) else value for name, value in match.items()
        },
    }

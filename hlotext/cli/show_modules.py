"""The modules of a folder as one table, a row for each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import attrs

from hlotext.analysis.formatting import format_count, pluralize
from hlotext.analysis.sizes import byte_text
from hlotext.cli.listing import Listing, Row
from hlotext.cli.output import Output
from hlotext.cli.run_totals import ModuleFacts


def show_modules(
    report: Output,
    title: str,
    found: Sequence[tuple[str, ModuleFacts]],
    again: Sequence[str],
    notes: Iterable[str],
    limit: int | None,
) -> None:
    """Prints one row per module, in file order, at most `limit` rows; None prints all."""
    names = _short_names([place for place, _ in found[:limit]])
    rows = [(name, place, summary) for name, (place, summary) in zip(names, found[:limit], strict=True)]
    report.heading(f"{title}: {pluralize(len(found), 'module')}")
    table = Listing("show.modules", _cells).table("Modules", rows)
    report.table(attrs.evolve(table, left_out=len(found) - len(rows)))
    for line in again:
        report.note(line)
    unknown = list(notes)
    if unknown:
        report.note(f"{pluralize(len(unknown), 'word')} unknown to this release (listed by hlotext check)")
    report.note("--full shows each in full.")


Signature = tuple[tuple[str, str], ...]
"""Names and shapes of a module's arguments."""

Machine = tuple[str, int | None]
"""The platform that a module is for, empty if unknown, and its number of devices, None if unknown."""


@attrs.frozen
class Recompiled:
    """Function that was compiled for several argument shapes. `str()` is a line about it."""

    module: str
    machine: Machine
    compilations: int
    argument: str
    """The argument with the most shapes."""
    shapes: tuple[str, ...]
    """Of that argument."""
    other_arguments: int
    """Number of further arguments whose shapes differ."""
    is_of_several: bool
    """True if the function was compiled for other machines as well."""

    def __str__(self) -> str:
        own, more = self.shapes, self.other_arguments
        where = f" ({_machine_text(self.machine)})" if self.is_of_several else ""
        others = f", and shapes of {pluralize(more, 'other argument')}" if more else ""
        return (
            f"{self.module}{where} was compiled {self.compilations} times, for {len(own)} shapes of {self.argument}: "
            f"{', '.join(own[:_SHAPES])}{f' and {len(own) - _SHAPES} more' if len(own) > _SHAPES else ''}{others}"
        )


def recompiled(modules: Iterable[tuple[str, Machine, Signature]]) -> Iterator[Recompiled]:
    """Yields each function that was compiled for several argument shapes, with the argument that differs most.

    Compilations for different platforms or numbers of devices are not compared.
    """
    groups: dict[tuple[str, Machine, tuple[str, ...]], list[tuple[str, ...]]] = {}
    for name, machine, signature in modules:
        groups.setdefault((name, machine, tuple(label for label, _ in signature)), []).append(
            tuple(shape for _, shape in signature)
        )
    machines: dict[str, set[Machine]] = {}
    for name, machine, _ in groups:
        machines.setdefault(name, set()).add(machine)
    for (name, machine, labels), rows in groups.items():
        shapes = [tuple(dict.fromkeys(column)) for column in zip(*rows, strict=True)]
        differing = [(label, own) for label, own in zip(labels, shapes, strict=True) if len(own) > 1]
        if differing:
            label, own = max(differing, key=lambda one: len(one[1]))
            is_of_several = len(machines[name]) > 1
            yield Recompiled(name, machine, len(rows), label, own, len(differing) - 1, is_of_several)


def _machine_text(machine: Machine) -> str:
    platform, devices = machine
    count = pluralize(devices, "device") if devices is not None else "unknown devices"
    return f"{platform or 'unknown platform'}, {count}"


_SHAPES = 6
_ENDING = re.compile(r"(\.txt|\.hlo)?(\.gz|\.xz|\.zst)?$")


def _short_names(places: Sequence[str]) -> list[str]:
    """Short distinct names of texts: file names without their common suffix, with a folder where two are equal."""
    names = [place.replace("\\", "/").split("/") for place in places]
    parts = 1
    while len({"/".join(name[-parts:]) for name in names}) < len(names) and parts < max(map(len, names)):
        parts += 1
    short = [_ENDING.sub("", "/".join(name[-parts:])) for name in names]
    while (
        len(short) > 1
        and all("." in name for name in short)
        and len({name.rpartition(".")[2] for name in short}) == 1
    ):
        short = [name.rpartition(".")[0] for name in short]
    return [name.removeprefix("module_") for name in short]


_BOUNDS = {"": "", "at least": ">= ", "at most": "<= ", "about": "~ "}


def _cells(named: tuple[str, str, ModuleFacts]) -> Row:
    name, place, summary = named
    run, peak = summary.run, summary.peak_memory
    more = _BOUNDS[run.bound] if run is not None else ""
    return (
        name,
        summary.name,
        summary.instructions,
        summary.arguments.allocated_bytes,
        summary.results.allocated_bytes,
        peak.bytes if peak is not None else None,
        f"{more}{format_count(run.flops)}" if run is not None else None,
        f"{more}{byte_text(int(run.bytes_accessed))}" if run is not None else None,
        len(summary.loops),
        sum(not one.is_host_transfer for one in summary.collectives),
        place,
    )

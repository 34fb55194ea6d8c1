"""Modules that do not fit into the memory of their chip: said beside the findings, which are about waste."""

from __future__ import annotations

from collections.abc import Iterable

from hlotext import memory
from hlotext.analysis import array_bytes, arrays_of, backend_of, call_graph, choose_chip, written_bytes
from hlotext.analysis.chips import chip
from hlotext.dumps.compilation import Compilation
from hlotext.findings import escape
from hlotext.ir.nodes.module import Module
from hlotext.lint.config import Config
from hlotext.memory import usage


def excess_lines(
    modules: Iterable[Module], config: Config, compilation: Compilation | None
) -> tuple[str, ...]:
    """A line for each module that does not fit; where anything else is wrong with one, its findings say so."""
    found = []
    for module in modules:
        try:
            text = _excess_of(module, config, compilation)
        except Exception:
            continue
        if text:
            found.append(f"{escape.line(module.name)} does not fit: {text}")
    return tuple(found)


def _excess_of(module: Module, config: Config, compilation: Compilation | None) -> str:
    """By how much a module does not fit; empty for one without a schedule, and where the chip is not known."""
    backend = config.profile or backend_of(module)
    given = chip(config.chip) if config.chip else None
    choice = choose_chip(module, given, compilation.chip if compilation is not None else None, backend)
    usable = choice.chip.usable_bytes(0) if choice is not None and choice.is_known else None
    # Most modules are too small to ask how their memory is assigned.
    if choice is None or usable is None or not module.is_scheduled or _at_most(module) <= usable:
        return ""
    return usage.excess_text(memory.assign(module, backend, choice.chip, places_fast_memory=False))


def _at_most(module: Module) -> int:
    """Bytes of the arguments and of all that is ever written, which no memory exceeds."""
    written = sum(map(written_bytes, call_graph(module).sequential_instructions()))
    arguments = (array for one in module.entry.parameters for _, array in arrays_of(one.shape))
    return written + sum((array_bytes(array) or (0, 0))[0] for array in arguments)

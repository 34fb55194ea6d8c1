"""Header lists with an entry for each argument or result: its layout mode and memory space for PJRT.

`arg_layout_modes`, `arg_memory_spaces`, `out_layout_modes` and `out_memory_spaces` are frontend attributes of the module,
each with one entry for every argument or result, joined by semicolons; a single tuple counts by its elements. PJRT refuses
lists of another length and takes the default for all where there is none (`GetLayoutModes`, `GetMemoryKinds` in
pjrt/utils.cc).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hlotext.ir.nodes.module import Module
from hlotext.ir.values.configs import FrontendAttributes
from hlotext.ir.values.shape import Shape

PER_ARGUMENT = {"arg_layout_modes": "default", "arg_memory_spaces": "0"}
"""The lists that count arguments, and what an argument has that nothing was said of."""
OF_RESULTS = {"out_layout_modes": "default", "out_memory_spaces": "0"}

_NAME = "frontend_attributes"
FLAGS_OF_ARGUMENTS = "allow_spmd_sharding_propagation_to_parameters"
_FLAGS_OF_RESULTS = "allow_spmd_sharding_propagation_to_output"
"""Header lists with an entry for each argument or result, or one for all of them."""


def argument_added(module: Module) -> None:
    """Appends an entry for a new parameter to every per-argument list. Call it before the edit."""
    flags = _more_flags(module.attributes.get(FLAGS_OF_ARGUMENTS), len(module.entry.parameters), 1)
    if flags is not None:
        module.attributes[FLAGS_OF_ARGUMENTS] = flags
    _change(module, PER_ARGUMENT, lambda name, entries: [*entries, PER_ARGUMENT[name]])


def argument_removed(module: Module, number: int) -> None:
    """Removes the entry of a parameter from every per-argument list. Call it before the edit."""
    _change(module, PER_ARGUMENT, lambda _, entries: [*entries[:number], *entries[number + 1 :]])


def results_resized(attributes: Mapping[str, Any], before: int, after: int) -> dict[str, Any]:
    """Returns the header attributes for another number of results, with default entries for new ones.

    If there are fewer results, it is unknown which were removed, so the lists are dropped. A list whose length is not
    `before` is kept.
    """
    found = dict(attributes)
    notes = found.get(_NAME)
    if isinstance(notes, FrontendAttributes):
        kept = {
            name: ";".join([text, *[OF_RESULTS[name]] * (after - before)]) if fits else text
            for name, text in notes.items()
            if not (fits := name in OF_RESULTS and _length(text) == before) or after > before
        }
        if kept:
            found[_NAME] = FrontendAttributes(kept)
        else:
            del found[_NAME]
    flags = _more_flags(found.get(_FLAGS_OF_RESULTS), before, after - before)
    if flags is not None and after > before:
        found[_FLAGS_OF_RESULTS] = flags
    elif flags is not None:
        del found[_FLAGS_OF_RESULTS]
    return found


def result_removed(attributes: Mapping[str, Any], number: int, count: int) -> dict[str, Any]:
    """Returns the header attributes without the entries of one of `count` results. A list of another length is kept."""
    found = dict(attributes)
    notes = found.get(_NAME)
    if isinstance(notes, FrontendAttributes):
        kept = dict(notes)
        for name in OF_RESULTS.keys() & kept.keys():
            entries = kept[name].split(";")
            if len(entries) == count:
                kept[name] = ";".join(entries[:number] + entries[number + 1 :])
        found[_NAME] = FrontendAttributes(kept)
    flags = found.get(_FLAGS_OF_RESULTS)
    if isinstance(flags, tuple) and len(flags) == count > 1:
        found[_FLAGS_OF_RESULTS] = (*flags[:number], *flags[number + 1 :])
        if found[_FLAGS_OF_RESULTS] == (False,):  # as its absence says
            del found[_FLAGS_OF_RESULTS]
    return found


def _more_flags(flags: object, count: int, more: int) -> tuple[bool, ...] | None:
    """Flags of so many with False for those that come; None for a list that counts others, or says what its absence says."""
    if not isinstance(flags, tuple) or len(flags) != count or flags == (False,):
        return None
    return *flags, *[False] * more


def resize_lists(module: Module) -> None:
    """Removes the lists whose length no longer fits the entry."""
    entry = module.entry
    shapes = [parameter.shape for parameter in entry.parameters]
    counts = {
        **dict.fromkeys(PER_ARGUMENT, _count(shapes)),
        **dict.fromkeys(OF_RESULTS, _count([entry.shape])),
    }
    notes = _notes(module)
    _set(module, {n: v for n, v in notes.items() if n not in counts or counts[n] in (None, _length(v))})


def drop_lists(module: Module) -> None:
    """Removes all per-argument and per-result lists, which do not apply to another entry."""
    _set(module, {n: v for n, v in _notes(module).items() if n not in PER_ARGUMENT and n not in OF_RESULTS})


def counts_arguments(module: Module) -> bool:
    """Returns True if the header has a per-argument list."""
    return any(name in PER_ARGUMENT for name in _notes(module))


def _count(shapes: Sequence[Shape | None]) -> int | None:
    """Number of arrays by PJRT's count; None if unknown."""
    if len(shapes) == 1 and shapes[0] is not None and shapes[0].is_tuple:
        return len(shapes[0].tuple_shapes)
    return None if None in shapes else len(shapes)


def _length(text: str) -> int:
    return len(text.split(";")) if text else 0


def _change(module: Module, names: dict[str, str], change: Callable[[str, list[str]], Sequence[str]]) -> None:
    """Changes the lists that count the entry's parameters as they are now, and takes out those that do not."""
    parameters = module.entry.parameters
    is_one_tuple = len(parameters) == 1 and parameters[0].shape is not None and parameters[0].shape.is_tuple
    notes = _notes(module)
    changed = dict(notes)
    for name in names:
        if name not in notes:
            continue
        entries = notes[name].split(";") if notes[name] else []
        if is_one_tuple or len(entries) != len(parameters):
            del changed[name]
        else:
            changed[name] = ";".join(change(name, entries))
    _set(module, changed)


def _notes(module: Module) -> dict[str, str]:
    found = module.attributes.get(_NAME)
    return dict(found) if isinstance(found, FrontendAttributes) else {}


def _set(module: Module, notes: dict[str, str]) -> None:
    if notes == _notes(module):
        return
    if notes:
        module.attributes[_NAME] = FrontendAttributes(notes)
    else:
        del module.attributes[_NAME]

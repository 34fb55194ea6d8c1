"""`hlotext memory` of a log: a message that a program does not fit, and with the dump what would save it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

import hlotext as hlo
from hlotext import dumps, memory, messages
from hlotext.analysis import byte_text
from hlotext.analysis.sizes import array_bytes, arrays_of
from hlotext.cli.common import Unreadable, is_folder
from hlotext.cli.folders import opened, without_clones
from hlotext.cli.listing import Listing, Row
from hlotext.cli.output import Output, shortened
from hlotext.memory import out_of_memory, usage
from hlotext.syntax.source.inputs import InputError, decode, is_binary, read_data


def message_in(place: str) -> messages.Message | None:
    """Returns the first message about memory in a log; None if there is none, or for a module, a folder or another
    file.
    """
    if place == "-" or is_folder(place):
        return None
    try:
        data, _ = read_data(place)
    except InputError:
        return None  # whoever reads it as a module says why that is impossible
    if is_binary(data):
        return None
    text = data if isinstance(data, str) else decode(data)
    if text.lstrip().startswith("HloModule"):
        return None
    return next((one for one in messages.read(text) if one.memory is not None), None)


@attrs.frozen
class Explained:
    """A message about memory, with the assignment of its module if a dump is given."""

    place: str
    message: messages.Message
    assignment: memory.Assignment | None
    step: dumps.Step | None


def explained(place: str, message: messages.Message, dump: str | None) -> Explained:
    """Finds the module of a message in a dump folder. Raises Unreadable if it, or its scheduled text, is missing."""
    if dump is None:
        return Explained(place, message, None, None)
    whole = without_clones(opened(dump).compilations)
    fitting = [one for one in whole if one.name == message.module] or (
        whole if message.module is None else []
    )
    if len(fitting) > 1 and message.memory is not None and message.memory.used is not None:
        asked = message.memory.used
        fitting = [one for one in fitting if _has_array(one, asked)] or fitting
    if len(fitting) != 1:
        known = ", ".join(one.name for one in whole[:5])
        if message.module:
            raise Unreadable(f"{dump} does not contain module {message.module}: {known}")
        raise Unreadable(
            f"the message names no module, and {dump} holds several: {known}; give one file to --dump"
        )
    compilation = fitting[0]
    for step in reversed(compilation.steps):
        try:
            if step.module.is_scheduled:
                chip = compilation.chip
                platform = compilation.platform
                return Explained(
                    place, message, memory.assign(step.module, platform, chip, age=compilation.age), step
                )
        except (InputError, hlo.HloSyntaxError):
            continue
        except memory.MemoryModelError as error:
            raise Unreadable(f"{step.path}: {error}") from None
        step.release()
    raise Unreadable(f"no text of {compilation.name} in {dump} has a schedule; dump every pass")


def _has_array(compilation: dumps.Compilation, asked: float) -> bool:
    """True if the final HLO has an array of the size that was asked for, as exactly as messages print it."""
    try:
        module = compilation.after or compilation.before
    except (InputError, hlo.HloSyntaxError):
        return False
    if module is None:
        return False
    sizes = (array_bytes(array) for one in module.instructions() for _, array in arrays_of(one.shape))
    return any(size is not None and abs(size[0] - asked) <= _ROUNDING * asked for size in sizes)


_ROUNDING = 0.001


def show(out: Output, found: Explained, limit: int) -> None:
    """Prints what to reduce, what uses the memory, and what would save some."""
    message, held = found.message, found.message.memory
    assert held is not None
    out.heading(f"{found.place}: {message.text}")
    sizes = (("requested", held.used), ("available", held.capacity), ("over by", held.must_go))
    facts = [(title, byte_text(size)) for title, size in sizes if size is not None]
    if message.module:
        facts.append(("module", message.module))
    if message.file is not None and message.line is not None:
        facts.append(("line", f"{message.file}:{message.line}"))
    if found.assignment is None or held.has_parts or message.kind in ("vmem", "smem"):
        facts += [("remedy", text) for text in messages.remedies(message)]
    out.facts(facts)
    for title, shares in (
        ("By operation", out_of_memory.shares(message, lambda row: row.op_name or row.instruction)),
        ("By shape", out_of_memory.shares(message, lambda row: row.shape)),
    ):
        listing: Listing[out_of_memory.Share] = Listing(
            "memory.shares", lambda one: (one.bytes, one.count, one.padding, one.name or "not named")
        )
        out.table(listing.table(title, shares, limit))
    if held.is_cut:
        out.note("the log ends inside the table; rows may be missing")
    if found.assignment is None:
        out.note("use --dump DIR for source lines, the peak, and changes that lower it")
        return
    _show_module(out, found, limit)


def _at_peak(row: usage.RepeatedArray) -> Row:
    """Equal arrays, of all layers for example, in one row."""
    one = row.array
    each = f"{row.count} x {byte_text(one.bytes)}" if row.count > 1 else ""
    more = " ..." if row.count > 1 else ""
    return row.bytes, each, one.shape, one.shown + more, one.place or one.op_name


def _show_module(out: Output, found: Explained, limit: int) -> None:
    assignment = found.assignment
    assert assignment is not None
    assert found.step is not None
    peak = assignment.peak(0)
    if found.message.kind in ("vmem", "smem"):
        out.facts([("text", found.step.path)])
        out.note(
            f"a kernel's use of {found.message.kind} is determined by the kernel, not the module: its blocks (pipelined "
            "ones count twice) and scratch arrays; hlotext show FILE -i NAME prints the kernel"
        )
        return
    arrays = usage.live_arrays(assignment, 0, peak.time)
    out.facts([("text", found.step.path), ("peak computed", byte_text(peak.bytes))])
    listing: Listing[usage.RepeatedArray] = Listing("memory.at_peak", _at_peak)
    out.table(listing.table("At the peak", usage.repeated(arrays), limit))
    must = _must_go(found)
    saved = [
        one for one in out_of_memory.savings(assignment) if must is None or one.saved >= _LEAST_PART * must
    ]
    apart = out_of_memory.not_estimated(assignment)
    carried = [one for one in apart if one.opcode in _OF_LOOPS]
    if carried:
        out.note(
            f"not estimated: {_sizes(carried)} carried by loops; jax.checkpoint on the body of a scan avoids most of what "
            "it saves for the backward pass"
        )
    if saved:
        savings: Listing[out_of_memory.Saving] = Listing(
            "memory.savings", lambda one: (one.saved, _enough(one, must), one.what, one.line)
        )
        out.table(savings.table("Changes that would lower the peak (each alone; estimates)", saved, limit))
    else:
        out.note(
            "none of the estimated changes (donation, rematerialization) lowers the peak"
            f"{'' if must is None else ' by 1% of the excess'}; `hlotext lint {found.step.path}` looks for others"
        )
    others = [one for one in apart if one.opcode not in _OF_LOOPS]
    if others and (must is None or sum(one.bytes for one in others) >= _LEAST_PART * must):
        out.note(f"not estimated: rematerializing calls or communication that produced {_sizes(others)}")


_LEAST_PART = 0.01
"""Part of the excess that a change must save to be named."""
_OF_LOOPS = ("while", "parameter")
"""Opcodes of the values that loops carry: outside, and in their bodies."""


def _sizes(arrays: Sequence[usage.LiveArray]) -> str:
    names = ", ".join(dict.fromkeys(array.name for array in arrays))
    return f"{byte_text(sum(array.bytes for array in arrays))} of {shortened(names)}"


def _must_go(found: Explained) -> float | None:
    """Bytes to save: by the message, else the excess of the computed peak."""
    held = found.message.memory
    return held.must_go if held is not None else None


def _enough(saving: out_of_memory.Saving, must_go: float | None) -> str:
    if must_go is None:
        return "unknown"
    return "yes" if saving.saved >= must_go else "no"


def json_of(found: Explained, limit: int) -> dict[str, Any]:
    """Returns the explanation as JSON values."""
    held = found.message.memory
    assert held is not None
    assignment = found.assignment
    document: dict[str, Any] = {
        "file": found.place,
        "module": found.message.module,
        "kind": found.message.kind,
        "used": held.used,
        "capacity": held.capacity,
        "must_go": held.must_go,
        "is_cut": held.is_cut,
        "by_op": [
            attrs.asdict(one)
            for one in out_of_memory.shares(found.message, lambda row: row.op_name or row.instruction)
        ],
        "by_shape": [attrs.asdict(one) for one in out_of_memory.shares(found.message, lambda row: row.shape)],
        "peak": None,
        "savings": [],
        "not_estimated": [],
    }
    if assignment is not None and found.message.kind not in ("vmem", "smem"):
        saved = out_of_memory.savings(assignment)
        document["peak"] = assignment.peak(0).bytes
        document["savings"] = [attrs.asdict(one) for one in (saved[:limit] if limit else saved)]
        document["not_estimated"] = [
            {"name": one.name, "bytes": one.bytes, "opcode": one.opcode}
            for one in out_of_memory.not_estimated(assignment)[: limit or None]
        ]
    return document

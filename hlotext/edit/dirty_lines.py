"""Marks lines to be printed again: those that an edit changes, and all else on the same line."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hlotext import layout as layouts
from hlotext.edit.per_argument_attributes import results_resized
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Form, Instruction
from hlotext.ir.nodes.module import ENTRY_LAYOUT, Module
from hlotext.ir.values.left_out import LeftOut
from hlotext.ir.values.shape import ComputationLayout, Layout, Shape

if TYPE_CHECKING:
    from hlotext.edit.journal import Edit, Journal

INSIDE = (Form.NESTED, Form.COMPACT)
"""Forms of instructions written inside another one's line."""


def mark_dirty(journal: Journal, instruction: Instruction) -> None:
    """Marks an instruction as modified, so that it is reprinted. Instructions inside its line get lines of their own."""
    journal.note("modified", instruction)
    if instruction._is_modified and instruction._form not in INSIDE:
        module = journal.module
        if module is not None:
            module._revision += 1
        return
    journal.set(instruction, "_is_modified", True)
    if instruction._form in INSIDE:
        _split_all(journal, instruction)
    split_lines(journal, instruction._operands)
    split_bodies(journal, instruction)
    for callee in instruction.called_computations:
        if callee._is_sugared:  # what the wrapped operation calls may stand in the line too
            for inner in callee._instructions:
                split_bodies(journal, inner)
    if instruction._computation is not None:
        touch_computation(journal, instruction._computation)


def _split_all(journal: Journal, instruction: Instruction) -> None:
    """Gives an instruction written inside another's line one of its own, and with it all of its computation: at once, since a
    text may have them in every line."""
    home = instruction._computation
    others = [i for i in home._instructions if i._form in INSIDE and i is not instruction] if home else []
    for one in (instruction, *others):
        journal.set(one, "_form", Form.LINE)
        journal.set(one, "_place", None)
    if home is not None:
        # The text does not name them: a reader makes their names up, each other than those before it.
        journal.set(home, "_numbered_stems", frozenset())
    for one in (instruction, *others):
        for user in one.users:
            mark_dirty(journal, user)
    for one in others:
        mark_dirty(journal, one)
    if home is not None:
        _forget_left_out(journal, home)


def _forget_left_out(journal: Journal, computation: Computation) -> None:
    """Forgets the control predecessors that a compact text leaves out, once all elements of tuples have lines."""
    for instruction in computation._instructions:
        attributes = without_left_out(instruction._attributes)
        if attributes is not instruction._attributes:
            journal.set(instruction, "_attributes", attributes)
            mark_dirty(journal, instruction)


def with_known_names(computation: Computation, attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns attributes without control predecessors known by name only, unless the computation is compact text."""
    if "control-predecessors" not in attributes:
        return attributes
    known = without_left_out(attributes)
    if known is attributes:  # hence no look at all instructions for each new one
        return attributes
    return attributes if any(i._form is Form.COMPACT for i in computation._instructions) else known


def without_left_out(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns attributes without control predecessors omitted from compact text; the same mapping if there are none."""
    if "control-predecessors" not in attributes:
        return attributes
    before = attributes["control-predecessors"]
    kept = tuple([one for one in before if type(one) is not LeftOut])
    if len(kept) == len(before):
        return attributes
    own = {**attributes, "control-predecessors": kept}
    if not kept:
        del own["control-predecessors"]
    return own


def split_lines(journal: Journal, operands: Iterable[Instruction]) -> None:
    """Moves operands written inside a user's line to lines of their own if that line is reprinted."""
    for operand in operands:
        if operand._form in INSIDE:
            mark_dirty(journal, operand)


def give_up_names(journal: Journal, computation: Computation, names: Iterable[str]) -> None:
    """Moves inline operands to lines of their own if the parser would name them differently without these names.

    Called before lines with these names are erased, renamed or moved. Such an operand is named by a stem, or by the
    stem and the first number that no earlier line uses.
    """
    if computation._numbered_stems is None:
        inside = [i for i in computation._instructions if i._form in INSIDE]
        stems = frozenset(stem for i in inside if (stem := _stem(i)) != i._name)
        journal.set(computation, "_numbered_stems", stems)
    stems = computation._numbered_stems or frozenset()
    if stems and not stems.isdisjoint(stem for name in names for stem in (name, _unnumbered(name))):
        split_lines(journal, computation._instructions)


def _stem(instruction: Instruction) -> str:
    """The name that a reader makes up for an operand written in place, unless a line has it."""
    if instruction._form is Form.NESTED:
        return f"{instruction._head.opcode}.anon"
    return f"{instruction._operands[0]._name}_{instruction._attributes['index']}"


def _unnumbered(name: str) -> str:
    stem, _, number = name.rpartition(".")
    return stem if number.isdecimal() else name


def split_bodies(journal: Journal, instruction: Instruction) -> None:
    """Turns the bodies written inside an instruction's line into computations of their own."""
    for callee in instruction.called_computations:
        if callee._is_inline:
            split_body(journal, callee)


def touch_computation(journal: Journal, computation: Computation) -> None:
    """Marks a computation as modified. An inline body becomes a computation of its own."""
    if not computation._is_modified:
        journal.set(computation, "_is_modified", True)
    if computation._is_inline or (computation._is_sugared and computation.calls):
        split_body(journal, computation)
    if computation._module is not None:
        mark_module_dirty(journal, computation._module)


def split_body(journal: Journal, computation: Computation) -> None:
    """Turns a body written inside its caller's text (inline, or implied by a sugared operation) into a computation of
    its own.
    """
    callers = computation.callers
    values: dict[str, Any] = {
        "_is_inline": False, "_is_sugared": False, "_start": -1, "_end": -1, "_brace": -1, "_name_mark": None,
        "_removed_spans": [],
    }  # fmt: skip
    for field, value in values.items():
        journal.set(computation, field, value)
    for instruction in computation._instructions:
        journal.set(instruction, "_place", None)
        journal.set(instruction, "_form", Form.LINE)
    module = computation._module
    if module is not None and not computation._is_draft:
        _come_before_inside(journal, module, computation)
    for instruction in computation._instructions:  # bodies inside of this one's text lose their place with it
        for callee in instruction.called_computations:
            if callee._is_inline:
                split_body(journal, callee)
    for caller in callers:
        # The short spelling of each part names the body's operation.
        for part in caller.async_chain or (caller,):
            mark_dirty(journal, part)
    if module is not None and not computation._name:
        journal.set(computation, "_name", module.computation_names.unique("inline_body"))
    touch_signature(journal, computation)


def _come_before_inside(journal: Journal, module: Module, computation: Computation) -> None:
    """Moves a body, with what stands inside of its text, before the others inside of its caller's, as it will be read."""
    order, listed = module.order, module._computations
    if computation not in order:
        return
    place = start = order.index(computation)
    while start and listed[start - 1].is_printed_inline:
        start -= 1
    if start == place:
        return
    own = {computation}
    for one in reversed(listed[start:place]):
        if any(caller._computation in own for caller in one.calls):
            own.add(one)
    _put_before(journal, module, [c for c in listed[start : place + 1] if c in own], listed[start])


def _put_before(
    journal: Journal, module: Module, computations: Iterable[Computation], other: Computation
) -> None:
    """Gives computations, in this order, the place before another one (nothing happens to that one itself)."""
    order = module.order
    for one in computations:
        if one is other:
            continue
        before = order.index(one)
        order.remove(one)
        journal.push_undo(order.insert, before, one)
        order.insert(order.index(other), one)
        journal.push_undo(order.remove, one)


def bring_inside(journal: Journal, computation: Computation, moved: Instruction) -> None:
    """Moves the bodies inside a moved instruction's line to the position where they will be parsed."""
    module = computation._module
    own = _inside(moved)
    if not own or module is None or computation._is_draft:
        return
    instructions, place = computation._instructions, computation.order.index(moved) + 1
    following = next(filter(None, map(_inside, itertools.islice(instructions, place, None))), [computation])
    in_order = module.order.__getitem__
    _put_before(journal, module, sorted(own, key=in_order), min(following, key=in_order))


def _inside(instruction: Instruction) -> list[Computation]:
    """The bodies inside of an instruction's line, those inside of another body too."""
    found = [c for c in instruction.called_computations if c.is_printed_inline]
    for body in found:
        found += (c for i in body._instructions for c in i.called_computations if c.is_printed_inline)
    return found


def touch_signature(journal: Journal, computation: Computation) -> None:
    """Marks the header line of a computation as modified, and for the entry also the module's."""
    journal.note("modified", computation)
    if not computation._is_signature_touched:
        journal.set(computation, "_is_signature_touched", True)
    touch_computation(journal, computation)
    if computation.is_entry and journal.edits:
        journal.edits[-1].finish = _fit


def mark_module_dirty(journal: Journal, module: Module) -> None:
    """Marks a module as modified. Raises EditError if more than single lines of its text could not be parsed."""
    if module._is_guess:
        raise EditError(
            f"where {module._name}, or a computation, begins or ends could not be read, so the nesting is a guess"
        )
    if not module._is_modified:
        journal.set(module, "_is_modified", True)
    module._revision += 1


def touch_header(journal: Journal, module: Module) -> None:
    """Marks the header line of a module as modified."""
    journal.note("header", module)
    if not module._is_header_modified:
        journal.set(module, "_is_header_modified", True)
    mark_module_dirty(journal, module)


# ---- the entry's shapes in the module's header


def _fit(edit: Edit) -> None:
    module = edit.journal.module
    if module is not None:
        fit_entry_layout(edit.journal, module, edit.outermost.relaid or ())


def fit_entry_layout(journal: Journal, module: Module, relaid: Container[Instruction] = ()) -> None:
    """Updates `entry_computation_layout` in the header after the entry's parameters or root changed.

    Layouts are kept if shapes differ in layouts only, unless the module is scheduled, so that layouts are final, or an
    edit changed the layout of that parameter or root (`relaid`).
    """
    old = module._attributes.get(ENTRY_LAYOUT)
    if not isinstance(old, ComputationLayout) or not module._computations or not module.entry._instructions:
        return
    parameters, root = module.entry.parameters, module.entry.root
    nodes = (*parameters, root)
    shapes = [node._head.shape for node in nodes if node._head.shape is not None]
    if len(shapes) != len(nodes):
        return
    given = (
        *old.parameter_shapes[: len(parameters)],
        *[None] * (len(parameters) - len(old.parameter_shapes)),
    )
    tiled = any(map(has_tiles, (*old.parameter_shapes, old.result_shape)))
    *fitted, result = [
        laid_out(new, tiled=tiled)
        if node in relaid
        else _fitting(before, new, layouts_count=module.is_scheduled, tiled=tiled)
        for node, before, new in zip(nodes, (*given, old.result_shape), shapes, strict=True)
    ]
    new = ComputationLayout(tuple(fitted), result)
    if new != old:
        counts = [len(one.tuple_shapes) if one.is_tuple else 1 for one in (old.result_shape, result)]
        attributes = (
            module._attributes if counts[0] == counts[1] else results_resized(module._attributes, *counts)
        )
        journal.set(module, "_attributes", {**attributes, ENTRY_LAYOUT: new})
        touch_header(journal, module)


def _fitting(old: Shape | None, shape: Shape, *, layouts_count: bool, tiled: bool) -> Shape:
    """The old shape where it differs in layouts at most, else the new one with layouts filled in.

    Elements of a tuple fit those at the same place in the old one, the first the array that the tuple has replaced.
    Where layouts count: in tiles, padding and memory spaces at most, which the header of TPU text lacks.
    """
    if old == shape:
        return shape
    if shape.is_tuple and old is not None and old.text_without_layout() != shape.text_without_layout():
        parts = old.tuple_shapes if old.is_tuple else (old,)
        return Shape.tuple(
            tuple(
                _fitting(parts[n] if n < len(parts) else None, part, layouts_count=layouts_count, tiled=tiled)
                for n, part in enumerate(shape.tuple_shapes)
            )
        )
    new = laid_out(shape, tiled=tiled)
    if old is None or old.text_without_layout() != shape.text_without_layout():
        return new
    return old if not layouts_count or _ordered(old) == _ordered(new) else new


def _ordered(shape: Shape) -> list[Layout | None]:
    """The layouts inside a shape with the order of dimensions and the size of elements alone."""
    layouts = [leaf.layout for _, leaf in shape.with_default_layout().leaves()]
    return [x and Layout(x.minor_to_major, element_size_in_bits=x.element_size_in_bits) for x in layouts]


def has_tiles(shape: Shape | None) -> bool:
    """Returns True if any array in a shape has a tiled layout."""
    return shape is not None and any(
        leaf.layout is not None and leaf.layout.tiles for _, leaf in shape.leaves()
    )


def laid_out(shape: Shape, *, tiled: bool) -> Shape:
    """Returns the shape with the descending layout for arrays without one; with `tiled`, also with the TPU compiler's
    tiles.

    Scalars get no layout unless they are tiled.
    """
    if shape.is_tuple:
        return Shape.tuple(tuple(laid_out(part, tiled=tiled) for part in shape.tuple_shapes))
    if tiled and shape.is_array and not has_tiles(shape):
        try:
            return layouts.tpu_layout(shape)
        except layouts.LayoutError:
            pass  # its tiles are not known
    return shape.with_default_layout() if shape.dimensions else shape

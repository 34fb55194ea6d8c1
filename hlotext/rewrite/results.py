"""Results of a program: added and taken away, with all that the header says of them."""

from __future__ import annotations

import attrs

from hlotext.edit.per_argument_attributes import result_removed
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import ENTRY_LAYOUT, Module
from hlotext.ir.values.aliasing import InputOutputAliasConfig
from hlotext.ir.values.enums import ShardingType
from hlotext.ir.values.shape import ComputationLayout, Shape
from hlotext.ir.values.sharding import OpSharding, TupleSharding
from hlotext.rewrite.kit.builder import Builder


def add_result(module: Module, value: Instruction) -> int:
    """Appends an array of the entry to the program's results, and updates layouts and donations in the header.

    A non-tuple result becomes the first element of a tuple.

    Args:
        module: The module, modified in place.
        value: An array in the entry computation.

    Returns:
        The index of the new result.

    Raises:
        EditError: The value is not an array of the entry. Nothing is changed then.

    >>> import hlotext as hlo
    >>> module = hlo.parse("ENTRY e { x = f32[4] parameter(0)  y = f32[4] sine(x)  ROOT r = f32[4] negate(y) }")
    >>> add_result(module, module.find("y"))
    1
    >>> print(module.entry.root)
    ROOT tuple = (f32[4], f32[4]) tuple(r, y)
    """
    expect_module(module)
    entry = module.entry
    if value.computation is not entry or value.shape is None or not value.shape.is_array:
        home = value.computation
        if home is not None and home is not entry:
            raise EditError(
                f"{value.name} is in {home.name}, but results must be values of the entry: inline the call first "
                "(rewrite.inline returns the copies), or make it a result of its computation"
            )
        raise EditError(f"{value.name} is {value.shape}, which is not an array of {entry.name}")
    root, shape = entry.root, _shape(entry.root)
    parts = shape.tuple_shapes if shape.is_tuple else (shape,)
    with module.transaction(typed=False):
        _set_results(root, [*_elements(root), value])
        aliases = module.attributes.get("input_output_alias")
        if not shape.is_tuple and isinstance(aliases, InputOutputAliasConfig):
            moved = tuple(attrs.evolve(one, output_index=(0,)) for one in aliases.entries)
            module.attributes["input_output_alias"] = InputOutputAliasConfig(moved)
    return len(parts)


def remove_result(module: Module, number: int) -> None:
    """Removes an element of the program's result, with its layout, its donation and its entries in the header.

    The instructions that computed it are kept until the pass `dce`. Raises EditError, and changes nothing, if the
    result is not a tuple. Raises IndexError if there is no such element.

    >>> import hlotext as hlo
    >>> module = hlo.parse("ENTRY e { x = f32[4] parameter(0)  y = f32[4] sine(x)  ROOT r = (f32[4], f32[4]) tuple(x, y) }")
    >>> remove_result(module, 0)
    >>> print(module.entry.root)
    ROOT r = (f32[4]) tuple(y)
    """
    expect_module(module)
    root, shape = module.entry.root, _shape(module.entry.root)
    if not shape.is_tuple:
        raise EditError(f"{root.name} is {shape}, which is not a tuple of results")
    number = range(len(shape.tuple_shapes))[number]
    header = result_removed(module.attributes, number, len(shape.tuple_shapes))
    layout, aliases = header.get(ENTRY_LAYOUT), header.get("input_output_alias")
    if isinstance(layout, ComputationLayout):
        parts = layout.result_shape.tuple_shapes
        result = Shape.tuple((*parts[:number], *parts[number + 1 :]))
        header[ENTRY_LAYOUT] = attrs.evolve(layout, result_shape=result)
    if isinstance(aliases, InputOutputAliasConfig):
        kept = [one for one in aliases.entries if one.output_index[:1] != (number,)]
        header["input_output_alias"] = InputOutputAliasConfig(
            tuple(
                attrs.evolve(one, output_index=(first - (first > number), *rest))
                for one in kept
                for first, *rest in [one.output_index]
            )
        )
        if not kept:
            del header["input_output_alias"]
    with module.transaction(typed=False):
        elements = _elements(root)
        _set_results(root, [*elements[:number], *elements[number + 1 :]], without=number)
        for name in module.attributes.keys() - header.keys():
            del module.attributes[name]
        for name, value in header.items():
            module.attributes[name] = value


def _shape(root: Instruction) -> Shape:
    if root.shape is None:
        raise EditError(f"the shape of {root.name} is not known")
    return root.shape


def _elements(root: Instruction) -> list[Instruction]:
    """The instructions that give the results, one by one."""
    if root.opcode == "tuple":
        return list(root.operands)
    if not _shape(root).is_tuple:
        return [root]
    b = Builder.after(root)
    return [b.get_tuple_element(root, number) for number in range(len(_shape(root).tuple_shapes))]


def _set_results(root: Instruction, elements: list[Instruction], without: int | None = None) -> None:
    """Makes a tuple of these the root, under the old one's name if that was a tuple for nothing else."""
    entry = root.computation
    assert entry is not None
    new = entry.root = Builder(entry, None, root).tuple(*elements)
    if root.sharding is not None:
        whole = root.sharding.for_shape(_shape(root))
        kept = [s for n, s in enumerate(whole.tuple_elements or (whole,)) if n != without]
        kept += [one.sharding or OpSharding(ShardingType.REPLICATED) for one in elements[len(kept) :]]
        new.attributes["sharding"] = TupleSharding(tuple(kept))
    if root.opcode == "tuple" and not (root.users or root.control_predecessors or root.control_successors):
        name = root.name
        root.erase()
        new.name = name

"""New results of a program."""

from __future__ import annotations

import attrs

from hlotext.ir.errors import EditError
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.aliasing import InputOutputAliasConfig
from hlotext.ir.values.enums import ShardingType
from hlotext.ir.values.sharding import OpSharding, TupleSharding
from hlotext.rewrite.builder import Builder


def add_result(module: Module, value: Instruction) -> int:
    """Appends an array of the entry to the program's results; the header's layout, lists and donations follow.

    A result that is an array becomes the first element of a tuple.

    Args:
        module: Is changed in place.
        value: An array of the entry computation.

    Returns:
        The number of the new result.

    Raises:
        EditError: The value is no array of the entry; nothing is changed then.

    >>> import hlotext as hlo
    >>> module = hlo.parse("ENTRY e { x = f32[4] parameter(0)  y = f32[4] sine(x)  ROOT r = f32[4] negate(y) }")
    >>> add_result(module, module.find("y"))
    1
    >>> print(module.entry.root)
    ROOT tuple = (f32[4], f32[4]) tuple(r, y)
    """
    entry = module.entry
    if value.computation is not entry or value.shape is None or not value.shape.is_array:
        raise EditError(f"{value.name} is no array of {entry.name}")
    root = entry.root
    if root.shape is None:
        raise EditError(f"the shape of {root.name} is not known")
    parts = root.shape.tuple_shapes if root.shape.is_tuple else (root.shape,)
    with module.transaction(typed=False):
        b = Builder(entry, None, root)
        elements = [root]
        if root.opcode == "tuple":
            elements = list(root.operands)
        elif root.shape.is_tuple:
            elements = [b.get_tuple_element(root, number) for number in range(len(parts))]
        new = entry.root = b.tuple(*elements, value)
        if root.sharding is not None:
            whole = root.sharding.for_shape(root.shape)
            added = value.sharding or OpSharding(ShardingType.REPLICATED)
            new.attributes["sharding"] = TupleSharding((*(whole.tuple_elements or (whole,)), added))
        aliases = module.attributes.get("input_output_alias")
        if not root.shape.is_tuple and isinstance(aliases, InputOutputAliasConfig):
            moved = tuple(attrs.evolve(entry_, output_index=(0,)) for entry_ in aliases.entries)
            module.attributes["input_output_alias"] = InputOutputAliasConfig(moved)
        if root.opcode == "tuple" and not (
            root.users or root.control_predecessors or root.control_successors
        ):
            name = root.name
            root.erase()
            new.name = name
    return len(parts)

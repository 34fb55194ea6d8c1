"""Arguments whose buffers results take over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from hlotext.ir.errors import EditError
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.aliasing import (
    BufferDonor,
    BufferDonorConfig,
    InputOutputAlias,
    InputOutputAliasConfig,
    ShapeIndex,
)
from hlotext.ir.values.enums import AliasKind
from hlotext.ir.values.shape import Shape

Argument: TypeAlias = "int | tuple[int, ShapeIndex]"
"""Number of a parameter of the entry, with an index for an array inside a tuple."""


def donate(
    module: Module, buffers: Mapping[Argument, ShapeIndex | int | None], kind: AliasKind | str = AliasKind.MAY
) -> None:
    """Donates buffers of arguments to results: sets `input_output_alias` and `buffer_donor` in the header.

    Entries of other arguments are kept. To revoke a donation, delete or set `module.attributes[...]`.

    Args:
        module: The module, modified in place.
        buffers: For each argument, the element of the result that gets its buffer. Use `()` if the result is an array,
            and None to let XLA choose the result.
        kind: `may-alias` or `must-alias`. The latter requires callers to donate the buffer.

    Raises:
        EditError: There is no such argument or result, their types or sizes differ, or two arguments are assigned to
            one result. Nothing is changed then.
        TypeError: An argument is not given by its number.
        ValueError: The kind is unknown.

    >>> import hlotext as hlo
    >>> module = hlo.parse('''HloModule m
    ...
    ... ENTRY e {
    ...   x = f32[4] parameter(0)
    ...   y = f32[8] parameter(1)
    ...   s = f32[4] sine(x)
    ...   ROOT r = (f32[4], f32[4]) tuple(s, x)
    ... }''')
    >>> donate(module, {0: (0,), 1: None})
    >>> str(module).splitlines()[0][:90]
    'HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }, buffer_donor={ (1, {}) }, ent'
    """
    expect_module(module)
    aliases = list(getattr(module.attributes.get("input_output_alias"), "entries", ()))
    donors = list(getattr(module.attributes.get("buffer_donor"), "entries", ()))
    for argument, result in buffers.items():
        number, index = argument if isinstance(argument, tuple) else (argument, ())
        if not isinstance(number, int):
            raise TypeError(f"an argument is given by its number, not by {number!r}")
        parameters = module.entry.parameters
        given = _array(parameters[number].shape, index) if 0 <= number < len(parameters) else None
        if given is None:
            raise EditError(f"{module.entry.name} has no argument {number} with an array at {index}")
        aliases = [a for a in aliases if (a.parameter_number, a.parameter_index) != (number, index)]
        donors = [d for d in donors if (d.param_number, d.param_index) != (number, index)]
        if result is None:
            donors.append(BufferDonor(number, index))
            continue
        place = (result,) if isinstance(result, int) else tuple(result)
        taken = _array(module.entry.root.shape, place)
        if taken is None:
            raise EditError(
                f"the result of {module.entry.name} is {module.entry.root.shape}, with no array at {place}"
            )
        if taken.text_without_layout() != given.text_without_layout():
            raise EditError(f"argument {number} is {given}, but the result at {place} is {taken}")
        if any(a.output_index == place for a in aliases):
            raise EditError(f"the result at {place} already uses the buffer of another argument")
        aliases.append(InputOutputAlias(place, number, index, AliasKind(kind)))
    with module.transaction():
        if (
            "buffer_donor" in module.attributes
        ):  # an argument that gets a result is not to be in both on the way
            del module.attributes["buffer_donor"]
        for name, config in (
            ("input_output_alias", InputOutputAliasConfig(tuple(aliases)).canonical()),
            ("buffer_donor", BufferDonorConfig(tuple(donors)).canonical()),
        ):
            if config.entries:
                module.attributes[name] = config
            elif name in module.attributes:
                del module.attributes[name]


def _array(shape: Shape | None, index: ShapeIndex) -> Shape | None:
    """The array at an index of a shape; None if there is none."""
    try:
        found = shape.subshape(index) if shape is not None else None
    except IndexError:
        return None
    return found if found is not None and found.is_array else None

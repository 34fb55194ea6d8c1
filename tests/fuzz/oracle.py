"""What must hold for any text whatever."""

from __future__ import annotations

from collections.abc import Sequence

import hlotext as hlo
from hlotext.ir.nodes.compare import difference
from hlotext.syntax.read import as_source
from hlotext.syntax.source.codes import CODES

STYLES = (
    hlo.PrintOptions.default(), hlo.PrintOptions.short_parsable(), hlo.PrintOptions.canonical(),
    hlo.PrintOptions.fingerprint(), hlo.PrintOptions.module_fingerprint(),
    hlo.PrintOptions(
        print_large_constants=True, print_operand_shape=True, print_metadata_only_op_name=True, compact_gte=True,
        compact_operands=True, print_percent=False, print_name_after_closing_brace=True, sort_backend_config=True,
        print_full_replica_group_list=True, print_inline_stack_frames=True, syntax_sugar_async_ops=False,
    ),
    hlo.PrintOptions(print_only_essential_constants=True, print_result_shape=False, print_program_shape=False),
)  # fmt: skip
"""Every preset, and the other values of most options."""


def check(data: bytes | str, *, styles: Sequence[hlo.PrintOptions] = STYLES) -> bool:
    """Asserts all that must hold; True where the text is HLO.

    Reading raises nothing but HloSyntaxError, reading tolerantly nothing at all, and neither does anything that is done with
    the result. Both agree on whether something is wrong. No byte is lost.
    """
    module, error = None, None
    try:
        module = hlo.parse(data)
    except hlo.HloSyntaxError as found:
        error = found
    result = hlo.parse_tolerant(data)
    errors = [d for d in result.diagnostics if d.severity is hlo.Severity.ERROR]
    if isinstance(error, hlo.ProtoError):  # bytes that begin like a proto have no lines
        assert error.message
    elif error is not None:
        _check_diagnostic(error.diagnostic)
        assert str(error) == str(error.diagnostic)
    if error is not None:
        assert errors, f"parse says {error.message!r}, parse_tolerant nothing"
    else:
        assert module is not None
        assert not errors, f"parse says nothing, parse_tolerant {errors[0].message!r}"
        assert difference(module, result.module) is None
    for diagnostic in result.diagnostics:
        _check_diagnostic(diagnostic)
    assert "".join(map(str, result.modules)) == _text(data)
    for found_module in result.modules:
        _walk(found_module)
        for style in styles:
            found_module.to_text(style)
    return error is None


def _text(data: bytes | str) -> str:
    try:
        return as_source(data).text
    except hlo.HloSyntaxError:
        return ""


def _check_diagnostic(diagnostic: hlo.Diagnostic) -> None:
    """Place, text and code are there, and the caret stands under something."""
    assert diagnostic.code in CODES
    assert diagnostic.message
    assert diagnostic.line >= 1
    assert diagnostic.column >= 1
    assert diagnostic.source is not None
    assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(diagnostic.source.text)
    assert "^" in str(diagnostic)


def _walk(module: hlo.Module) -> None:
    """Looks at everything that a module holds."""
    repr(module)
    dict(module.attributes)
    for computation in module.computations:
        repr(computation)
        assert computation.module is module
        if len(computation):
            assert computation.root.computation is computation
            computation.shape  # noqa: B018 (looking is the point)
        computation.span, computation.callers, computation.parameters  # noqa: B018
        names = set()
        for instruction in computation:
            assert instruction.computation is computation
            names.add(instruction)
            assert all(operand in names for operand in instruction.operands)
            str(instruction)
            repr(instruction)
            repr(instruction.attributes)
            for value in instruction.attributes.values():
                if not isinstance(value, hlo.Computation | tuple):
                    str(value)
            instruction.users, instruction.span, instruction.innermost_frame  # noqa: B018
            instruction.called_computations, instruction.control_predecessors  # noqa: B018
            instruction.async_chain, instruction.async_wrapped_instruction  # noqa: B018
            if instruction.shape is not None:
                str(instruction.shape)
            if instruction.literal is not None:
                instruction.literal.abbreviated_text()

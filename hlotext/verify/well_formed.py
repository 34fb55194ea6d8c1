"""The door of a model: what breaks it in a module that XLA's verifier refuses is the module's fault, not the model's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hlotext.findings.errors import Severity
from hlotext.verify import verify

if TYPE_CHECKING:
    from hlotext.findings.finding import Diagnostic
    from hlotext.ir.nodes.module import Module


def first_error(module: Module) -> Diagnostic | None:
    """Returns the first error that the verifier finds, or None for a well-formed module."""
    return next((one for one in verify(module) if one.severity is Severity.ERROR), None)


@contextmanager
def needs_well_formed(module: Module, refusal: type[ValueError]) -> Iterator[None]:
    """Context manager for code that requires a well-formed module.

    If the block raises an exception and the module is ill-formed, raises `refusal` with the verifier's first error
    instead. The module is only verified in that case. Exceptions for well-formed modules propagate unchanged.
    """
    try:
        yield
    except refusal:
        raise
    except Exception as error:
        wrong = first_error(module)
        if wrong is None:
            raise
        name = f"{wrong.instruction.name}: " if wrong.instruction is not None else ""
        raise refusal(f"the module is ill-formed: {name}{wrong.message}") from error

"""Verification of modules, with shape inference.

`verify(module)` reports everything that XLA's verifier rejects, and suspicious code that it accepts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from hlotext.findings.finding import Diagnostic
    from hlotext.ir.nodes.computation import Computation
    from hlotext.ir.nodes.module import Module

__all__ = ["verify"]


def verify(
    module: Module,
    *,
    layout_sensitive: bool | None = None,
    mixed_precision: bool | None = None,
    within: Collection[Computation] | None = None,
) -> list[Diagnostic]:
    """Verifies a module and returns its errors in text order; an empty list means that it is valid.

    Errors are reported for everything that XLA's `HloVerifier` rejects and, in an edited module, for everything that
    the parser would reject (`X1xx`). Each diagnostic has a code (`codes`), a severity, a location and the instruction
    at fault. Never raises on a parsed module: a check that crashes yields a finding with code `X900`, and other checks
    still run.

    Args:
        module: The module to verify.
        layout_sensitive: Treat layouts as final, so that values may not change layout implicitly. None (the default)
            enables this for scheduled modules (unless the entry is a pasted op line).
        mixed_precision: Allow operands of different real floating-point types. None (the default) allows it if the
            module has tiled layouts, since only the TPU compiler mixes precisions.
        within: Check individual instructions only in these computations and their callers, to verify edits of a valid
            module. Checks across computations are not limited.
    """
    from hlotext.verify.run import run

    return run(module, layout_sensitive=layout_sensitive, mixed_precision=mixed_precision, within=within)


# The package `hlotext` shows this function under the name of this package, so `hlotext.verify` is the function. With the
# names of the package as its attributes, `import hlotext.semantics.infer` finds what it looks for behind that name.
verify.__dict__ = globals()

"""Is this HLO right? Shape inference and checks.

`verify(module)` finds everything that XLA's verifier would refuse, and some of what it accepts and nobody means.
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
    """All errors of a module, in the order of the text.

    Each diagnostic has a code (`hlotext.verify.codes`), a severity, a place, and the instruction at fault; errors are
    what XLA's verifier (`HloVerifier`) refuses. An empty list means a valid module. Never raises on a module that was read: a
    check that fails is a finding of code `X900`, and the others continue. For an edited module it also finds what the
    reader would refuse (`X1xx`).

    `layout_sensitive`: layouts are final, so that values must be passed on in the layout that they have; None: if the
    module is scheduled. `mixed_precision`: computing opcodes may take and give real floats of any precision; None: if the
    module has tiled layouts, since the TPU compiler mixes precisions and tiles, and no other does either.
    `within`: of single instructions only those of these computations are checked, and those that call them; for who knows
    where a sound module was edited. What concerns several computations is checked everywhere.
    """
    from hlotext.verify.run import run

    return run(module, layout_sensitive=layout_sensitive, mixed_precision=mixed_precision, within=within)


# The package `hlotext` shows this function under the name of this package, so `hlotext.verify` is the function. With the
# names of the package as its attributes, `import hlotext.semantics.infer` finds what it looks for behind that name.
verify.__dict__ = globals()

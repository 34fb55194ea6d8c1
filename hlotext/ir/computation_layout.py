"""The shapes of a module's entry, as its header states them."""

from __future__ import annotations

import attrs

from hlotext.ir.shape import Shape, join_indexed
from hlotext.ir.value import Value


@attrs.frozen(repr=False)
class ComputationLayout(Value):
    """`entry_computation_layout=` (`ComputationLayout`): `{(f32[2]{0}, s32[])->f32[2]{0}}`.

    Shapes may lack layouts, where the compiler is to choose them.
    """

    parameter_shapes: tuple[Shape, ...]
    result_shape: Shape

    def __str__(self) -> str:
        return f"{{({join_indexed([str(shape) for shape in self.parameter_shapes])})->{self.result_shape}}}"

"""Single operations become fusions of one operation, so that the fusion emitters compile them (`FusionWrapper`).

After `FusionWrapperBase` (`xla/codegen/emitters/fusion_wrapper_base.cc`) and the lists of opcodes of its two children,
`xla/service/cpu/fusion_wrapper.cc` and `xla/backends/gpu/transforms/fusion_wrapper.cc`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import attrs

from hlotext.analysis import Backend
from hlotext.analysis.age import age_for
from hlotext.compiler.decision import Decision, Outcome
from hlotext.compiler.gpu_emitters import is_input_fusible
from hlotext.compiler.platforms import platform_of
from hlotext.edit.cloning import own_attributes
from hlotext.ir.nodes.computation import Computation, instruction_post_order
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits, xla_changes
from hlotext.ir.values.age import XlaAge
from hlotext.ir.values.enums import FusionKind
from hlotext.ir.values.shape import Shape
from hlotext.rewrite.kit.builder import Builder
from hlotext.rewrite.kit.control import CONTROL, relay_control
from hlotext.rewrite.passes.base import Age, Pass, PassResult, is_age
from hlotext.thunks.cpu import is_library_convolution

_BOTH = (
    "abs add and atan2 bitcast-convert broadcast cbrt ceil clamp count-leading-zeros compare complex convert cosine divide "
    "dynamic-slice erf exponential exponential-minus-one floor gather imag iota is-finite log "
    "log-plus-one map maximum minimum multiply negate not or pad popcnt power real reduce reduce-precision reduce-window "
    "remainder reshape reverse round-nearest-afz round-nearest-even rsqrt scatter select shift-left "
    "shift-right-arithmetic shift-right-logical sign sine slice sqrt subtract tan tanh xor"
)
_GPU_ALONE = (
    "acos acosh asin asinh atanh concatenate convolution cosh dot dynamic-update-slice mulhi sinh stochastic-convert "
    "transpose"
)
WRAPPED = {
    Backend.CPU: frozenset(_BOTH.split()),
    Backend.GPU: frozenset(f"{_BOTH} {_GPU_ALONE}".split()),
}
"""The opcodes that each back end wraps (`MustWrapInstruction`). CPU wraps a copy too where it changes the layout."""
SINCE = {
    xla_changes.CPU_WRAPS_TRANSPOSES: frozenset({"transpose", "dynamic-update-slice"}),
    xla_changes.CPU_WRAPS_FUNCTIONS: frozenset(
        ["acos", "acosh", "asin", "asinh", "atanh", "cosh", "mulhi", "sinh"]
    ),
    xla_changes.CPU_WRAPS_CONVOLUTIONS: frozenset({"convolution"}),
}
"""Additions to CPU's list by XLA age; of convolutions those that Eigen does not compute."""
_ENTERED = traits.RUNS_CALLEE
_NOT_TILED = ("f8", "f6", "f4", "c64", "c128")
"""Beginnings of element types that CPU's tiled emitter does not copy (`IsSupportedTilingType`)."""
SOURCE = "FusionWrapperBase::RunImpl"


@attrs.frozen
class FusionWrapper(Pass):
    """Wraps each operation that the backend compiles as a fusion in a fusion of its own (`FusionWrapper`).

    If `platform` is empty, it is detected from the text, and assumed to be CPU if the text does not show it.
    """

    name: ClassVar[str] = "fusion-wrapper"
    summary: ClassVar[str] = "Wraps single operations in fusions, as XLA's CPU and GPU compilers do."

    platform: str = ""
    """`cpu` or `gpu`; empty: as the text tells."""
    age: Age = attrs.field(default="", validator=is_age)
    """XLA age whose list of opcodes applies; empty: from the text, else the newest."""

    def run(self, module: Module) -> PassResult:
        """Runs the pass on a module, which is modified in place."""
        age = age_for(module, self.age or None)
        return PassResult.of(
            {"wrapped": sum(1 for _ in _wrap_all(module, platform_of(module, self.platform), age))}
        )


def fusion_wrapper(module: Module, platform: str | None = None, *, age: Age | None = None) -> Outcome:
    """Models `FusionWrapper`, with the reason for each operation that it wraps in a fusion.

    Args:
        module: The module. It is not modified.
        platform: `cpu`, `gpu` or `tpu`. None (the default) detects it from the module text.
        age: The XLA version to model. None (the default) detects it from the module text.

    Raises:
        ValueError: The platform or age is unknown.
    """
    expect_module(module)
    copy = module.clone()
    with copy.transaction():
        decisions = tuple(_wrap_all(copy, platform_of(module, platform), age_for(module, age)))
    return Outcome(copy, decisions)


def _wrap_all(module: Module, backend: Backend, age: XlaAge) -> Iterator[Decision]:
    """Wraps what is to be wrapped in the entry and in what it enters; a decision for each."""
    seen: set[Computation] = set()
    pending = [module.entry]
    while pending:
        computation = pending.pop()
        if computation in seen:
            continue
        seen.add(computation)
        for instruction in instruction_post_order(computation):
            if instruction.opcode in _ENTERED:
                pending += instruction.called_computations
            elif must_wrap(instruction, backend, age):
                name, opcode = instruction.name, instruction.opcode
                fusion = _wrap(module, computation, instruction, backend)
                platform = backend.value.upper()
                what = f"a {opcode}, an opcode that {platform} compiles as a fusion"
                if opcode == "copy":
                    what = f"a copy that changes the layout, which {platform} compiles as a fusion"
                because = f"{name} is {what}, so it became {fusion.name}"
                yield Decision(name, "wrapped", because, (fusion.name,), SOURCE)


def must_wrap(instruction: Instruction, backend: Backend, age: XlaAge) -> bool:
    """Returns True if an operation is wrapped in a fusion (`MustWrapInstruction`)."""
    if instruction.opcode == "copy" and backend is Backend.CPU:
        shape, source = instruction.shape, instruction.operands[0].shape
        return shape != source and shape is not None and _is_tiled(shape)
    opcode = instruction.opcode
    if backend is Backend.CPU and any(opcode in more for day, more in SINCE.items() if age.has(day)):
        return opcode != "convolution" or not is_library_convolution(instruction)
    return opcode in WRAPPED.get(backend, ())


def _is_tiled(shape: Shape) -> bool:
    bits = shape.element_type.bits
    name = str(shape.element_type)
    return name == "pred" or (bits >= 8 and not name.startswith(_NOT_TILED))


def _wrap(module: Module, home: Computation, old: Instruction, backend: Backend) -> Instruction:
    """Puts one operation into a fusion in its place."""
    name = f"wrapped_{old.opcode}"
    kind = FusionKind.LOOP
    if backend is Backend.GPU and is_input_fusible(old):
        kind = FusionKind.INPUT
    builder = Builder.new(module, f"{name}_computation", before=home)
    inputs = dict.fromkeys(old.operands)
    inner = {value: builder.parameter(value.shape) for value in inputs if value.shape is not None}
    own = {key: value for key, value in own_attributes(old).items() if key != CONTROL}
    assert old.shape is not None
    root = Instruction(
        module.instruction_names.unique(old.name), old.opcode, old.shape,
        tuple(inner[o] for o in old.operands), own, old.literal or old.parameter_number,
    )  # fmt: skip
    builder.computation.add(root, typed=False)
    body = builder.finish(root)
    given = {"kind": kind, "calls": body}
    for key in ("metadata", "frontend_attributes"):
        if key in old.attributes:
            given[key] = old.attributes[key]
    fusion = Instruction(module.instruction_names.unique(name), "fusion", old.shape, tuple(inputs), given)
    home.add(fusion, old, typed=False)
    predecessors, successors = old.control_predecessors, old.control_successors
    if predecessors or successors:
        relay_control(old, fusion, predecessors, successors)
    old.replace_all_uses_with(fusion)
    home.remove(old)
    return fusion

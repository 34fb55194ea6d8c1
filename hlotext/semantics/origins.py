"""Where an instruction comes from: stack frames that exist, original values of the right structure."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.metadata import Metadata
from hlotext.ir.values.original_value import OriginalNode, OriginalValue
from hlotext.ir.values.shape import Shape
from hlotext.layout.errors import shorten
from hlotext.semantics.facts import VerifierOptions
from hlotext.semantics.message_text import plural
from hlotext.semantics.problems import Problem


def check_frame(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks that `stack_frame_id=` is a row of the module's StackFrames, if the module has any."""
    metadata = instruction.attributes.get("metadata")
    if not isinstance(metadata, Metadata) or facts.stack_frames.is_empty:
        return
    rows = len(facts.stack_frames.stack_frames)
    if metadata.stack_frame_id and not 0 < metadata.stack_frame_id <= rows:
        yield Problem(
            "V701",
            f"no frame {metadata.stack_frame_id}: StackFrames has {plural(rows, 'row')}",
            "metadata",
        )


def check_origin(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks that `origin=` has an entry for each leaf of the shape (`VerifyOriginalValue`)."""
    origin = instruction.attributes.get("origin")
    if not isinstance(origin, OriginalValue) or origin.is_synthetic_call or instruction.shape is None:
        return
    if origin.tree == () and origin.call_hierarchy == "":
        return  # a call that the compiler made
    if not _same_structure(origin.tree, instruction.shape):
        yield Problem(
            "V703",
            f"origin={shorten(str(origin))} does not match the structure of {shorten(str(instruction.shape))}",
            "origin",
        )


def _same_structure(node: OriginalNode, shape: Shape) -> bool:
    if shape.is_tuple:
        return (
            isinstance(node, tuple)
            and len(node) == len(shape.tuple_shapes)
            and all(map(_same_structure, node, shape.tuple_shapes))
        )
    return not isinstance(node, tuple)

"""Operations as places of the program: op_name and line."""

from __future__ import annotations

import re

import hlotext as hlo
from hlotext.analysis.op_names import joined_names
from hlotext.dumps.collectives.keys import Key, Text
from hlotext.dumps.collectives.records import Place
from hlotext.ir.values.frames import StackFrame


def is_constraint(node: hlo.Instruction) -> bool:
    """Returns True for a sharding constraint of the program, at any stage."""
    return node.opcode in ("copy", "custom-call") and is_named_constraint(op_name_of(node))


def is_annotation(node: hlo.Instruction) -> bool:
    """Returns True for an instruction that fixes a sharding: a constraint, or the sharding of a type on an explicit
    mesh.
    """
    return is_constraint(node) or node.attributes.get("custom_call_target") == "Sharding"


def is_named_constraint(op_name: str) -> bool:
    """Returns True for the op_name of an operation that comes from a constraint, or for explicit meshes from `reshard`."""
    return op_name.rpartition("/")[2] in ("sharding_constraint", "reshard")


def op_name_of(node: hlo.Instruction) -> str:
    """Returns the op_name; empty if there is none, and for a combined collective, which has several."""
    metadata = node.metadata
    name = metadata.op_name if metadata is not None else ""
    return "" if joined_names(name) else name


def joined_names_of(node: hlo.Instruction) -> tuple[str, ...]:
    """Returns the op_names of the collectives that were combined into this one; empty if it is not combined."""
    metadata = node.metadata
    return joined_names(metadata.op_name) if metadata is not None else ()


_PRIMITIVE = re.compile(
    r"/(?:unreduced_)?(psum|pmax|pmin|all_gather|reduce_scatter|ppermute|(?:ragged_)?all_to_all|pbroadcast)"
    r"(?:2|_dynamic|_invariant|_reduced)?(?:_start|_done)?$"
)
"""JAX's collective primitives at the end of an op_name."""
_KIND_OF = {
    "psum": "all-reduce",
    "pmax": "all-reduce",
    "pmin": "all-reduce",
    "ppermute": "collective-permute",
    "pbroadcast": "collective-broadcast",
}
"""Kinds of primitives that XLA calls otherwise."""


def asked_kind(op_name: str) -> str | None:
    """Returns the kind of collective that an op_name shows the program to request itself, as in a shard_map; else None."""
    found = _PRIMITIVE.search(op_name)
    return _KIND_OF.get(found[1], found[1].replace("_", "-")) if found is not None else None


def is_by_hand(node: hlo.Instruction) -> bool:
    """Returns True in a `shard_map`, where operations work on shards and have no shardings to change."""
    return "shard_map" in op_name_of(node).split("/")


class Places:
    """Creates `Place`s for the instructions of one module."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._files: set[str] | None = None

    def of(self, node: hlo.Instruction, is_exact: bool = True) -> Place:
        """Returns the place of an instruction; without the instruction itself unless `is_exact`."""
        frame = self.frame(node)
        return Place(
            op_name_of(node),
            frame.line if frame is not None and frame.line else None,
            frame.file if frame is not None else "",
            node.opcode,
            node if is_exact else None,
        )

    def frame(self, node: hlo.Instruction) -> StackFrame | None:
        """Returns the innermost frame; for a constraint in a helper that only annotates, the frame of its caller.

        Programs often apply constraints through one function. It is recognized by its file, in which no computing
        operation has its innermost frame.
        """
        frame = node.innermost_frame
        if (
            frame is None
            or not is_named_constraint(op_name_of(node))
            or frame.file in self._computing_files()
        ):
            return frame
        return next((one for one in node.frames if one.file in self._computing_files()), frame)

    def _computing_files(self) -> set[str]:
        if self._files is None:
            seen: set[Key] = set()
            self._files = set()
            for node in self._text.module.instructions():
                key = self._text.key_of(node)
                if key is None or key in seen or is_constraint(node):
                    continue
                seen.add(key)
                frame = node.innermost_frame
                if frame is not None:
                    self._files.add(frame.file)
        return self._files

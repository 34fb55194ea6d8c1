"""Judges why collectives are there, by compilations in which each operation has a name of its own.

    python -m tests.judges.collectives FOLDER... [--list] [--undecided]

Each FOLDER is what `tests.judges.compiling` made of one program, or holds several. The truth is looked for in the tagged
texts around the partitioner: a collective that moves data stands between the tensor and the operation that reads it, both
known by their tags, and the text before partitioning must have the operation read that tensor; one that sums stands behind
the operation that its tag names. Where the tags leave two answers nothing is judged; `--undecided` lists these, `--list`
what is wrong. A reason is right if cause, operation and tensor are.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

import hlotext as hlo
from hlotext import dumps
from hlotext.analysis import communications
from hlotext.analysis.communication import KINDS
from hlotext.dumps.collectives.steps import partitioning_of
from hlotext.dumps.collectives.walking import MOVES
from hlotext.ir.tables import opcodes
from hlotext.syntax.source.inputs import InputError
from tests.judges.compiling import untagged

RESHARD = frozenset({"reshard"})
_SUMS = ("all-reduce", "reduce-scatter")
_SUMMING = {"dot", "convolution", "reduce", "reduce-window", "gather", "scatter", "select-and-scatter"}
_EDGES = {"convolution", "reduce-window", "select-and-scatter", "slice", "concatenate", "pad"}
_WITHOUT_NAME = {"tuple", "get-tuple-element", "bitcast"}
_FAR = 200


def _tag(node: hlo.Instruction) -> str:
    """The name that an operation alone has; empty for what the compiler added without one."""
    metadata = node.metadata
    return metadata.op_name if metadata is not None and metadata.op_name else ""


@attrs.frozen
class Truth:
    """Verdict of the tags on one collective."""

    causes: frozenset[str]
    users: frozenset[str]
    """Names before partitioning: any of them is right; empty for a result of the program."""
    tensors: frozenset[str]
    """The same of tensors; empty where none is asked for."""

    def __str__(self) -> str:
        causes, users, tensors = ("/".join(sorted(one)) for one in (self.causes, self.users, self.tensors))
        return f"{causes} user {users} tensor {tensors}"


class Tagged:
    """The tagged texts around the partitioner of one compilation."""

    def __init__(self, before: hlo.Module, after: hlo.Module) -> None:
        self.before, self.after = before, after
        self.by_tag: dict[str, list[hlo.Instruction]] = defaultdict(list)
        for node in before.instructions():
            self.by_tag[_tag(node)].append(node)
        self.made = {one.instruction for one in communications(after)}
        self.left = {_tag(one) for one in after.instructions()}
        """Tags that are left after partitioning: what has others has vanished."""
        known = {
            (one.opcode, _tag(one)) for one in before.instructions() if one.opcode in opcodes.COLLECTIVES
        }
        self.asked = {one for one in self.made if (one.opcode, _tag(one)) in known}

    # ---- one collective

    def truth(self, node: hlo.Instruction) -> Truth | None:
        """None where the tags do not decide."""
        tag = _tag(node)
        named = self.by_tag[tag] if tag else []
        if node in self.asked:
            return Truth(
                frozenset({"program"}),
                self._names(one for one in named if one.opcode == node.opcode),
                frozenset(),
            )
        if KINDS.get(node.opcode) in _SUMS:
            users = [one for one in named if one.opcode in _SUMMING]
            return Truth(frozenset({"partial"}), self._names(users), frozenset()) if users else None
        makers, readers = self._around(node, is_backward=True), self._around(node, is_backward=False)
        own = [one for one in named if one.opcode not in _WITHOUT_NAME]
        is_behind, is_ahead = self._places_of_own(node, own)
        if is_behind and is_ahead:  # carried out twice: on each shard, and on what the shards gave
            return Truth(RESHARD, self._names(own), self._names([*own, *makers]))
        if is_behind:
            return self._of_result(node, own, readers)
        edges = self._edges(makers, own) if is_ahead else self._edges(makers, readers)
        if edges:
            return self._of_operand(node, edges)
        if not readers and makers and self._is_result(node):
            return Truth(RESHARD, frozenset(), self._names(makers))
        return None

    def _places_of_own(self, node: hlo.Instruction, own: list[hlo.Instruction]) -> tuple[bool, bool]:
        """Flags: the operation with the collective's tag runs before it, and after it."""
        kinds = {one.opcode for one in own}
        kinds = kinds - MOVES or kinds
        if node.opcode.startswith("collective-permute") and kinds <= MOVES and self._sends_slice(node):
            return False, True
        before, behind = (
            any(one.opcode in kinds for one in self._near(node, is_backward=b)) for b in (True, False)
        )
        if before == behind and kinds <= MOVES:  # helpers have the same opcodes
            before = bool(own) and self._elements(self._moved(node)) in self._placed(own)
            behind = bool(own) and not before
        return before, behind

    def _moved(self, node: hlo.Instruction) -> hlo.Instruction:
        """Tensor that is moved, in one step or in several."""
        one = node.operands[0]
        while one in self.made and _tag(one) == _tag(node):
            one = one.operands[0]
        return one

    def _of_result(
        self, node: hlo.Instruction, own: list[hlo.Instruction], readers: list[hlo.Instruction]
    ) -> Truth | None:
        """It moves what its own operation gave: for a reader, or since the operation was carried out in another sharding."""
        placed = self._placed(own)
        edges = self._edges(own, readers)
        users: set[str] = set()
        if self._elements(node) in placed:
            users |= self._names(own)
        if self._elements(self._moved(node)) in placed:
            users |= self._names(b for _, b in edges)
            if not edges and self._is_result(node):
                users.add("")
        return Truth(RESHARD, frozenset(users), self._names(own)) if users else None

    def _of_operand(
        self, node: hlo.Instruction, edges: list[tuple[hlo.Instruction, hlo.Instruction]]
    ) -> Truth:
        causes = RESHARD
        if node.opcode.startswith("collective-permute") and any(b.opcode in _EDGES for _, b in edges):
            causes = frozenset({"halo"}) if self._sends_slice(node) else frozenset({"reshard", "halo"})
        return Truth(causes, self._names(b for _, b in edges), self._names(a for a, _ in edges))

    @staticmethod
    def _elements(node: hlo.Instruction) -> int:
        shape = node.shape
        return sum(math.prod(leaf.dimensions) for _, leaf in shape.leaves()) if shape is not None else 0

    def _placed(self, own: list[hlo.Instruction]) -> set[int]:
        """Number of elements on one device of each result before partitioning, and of each element of a tuple."""
        found = set()
        for one in own:
            shape, sharding = one.shape, one.sharding
            if shape is not None and sharding is not None:
                shape = sharding.for_shape(shape).shard_shape(shape)
            sizes = [math.prod(leaf.dimensions) for _, leaf in shape.leaves()] if shape is not None else []
            found |= {*sizes, sum(sizes)}
        return found

    def _sends_slice(self, node: hlo.Instruction) -> bool:
        one = node.operands[0] if node.operands else None
        while one is not None and _tag(one) == _tag(node) and one.operands:
            if one.opcode in ("slice", "dynamic-slice"):
                return True
            one = one.operands[0]
        return False

    # ---- ways

    def _near(self, node: hlo.Instruction, *, is_backward: bool) -> list[hlo.Instruction]:
        """Neighbours with the collective's own tag, or none, that are not collectives."""
        found: dict[hlo.Instruction, None] = {}
        queue = [node]
        for one in queue:
            if len(queue) > _FAR:
                break
            for other in one.operands if is_backward else one.user_view:
                if other not in found and _tag(other) in ("", _tag(node)):
                    found[other] = None
                    queue.append(other)
        return [one for one in found if one not in self.made]

    def _walk(self, node: hlo.Instruction, *, is_backward: bool) -> list[hlo.Instruction]:
        """The first operations with another tag, in one direction."""
        found: dict[hlo.Instruction, None] = {}
        seen, queue = {node}, [node]
        for one in queue:
            if len(queue) > _FAR:
                break
            for other in one.operands if is_backward else one.user_view:
                if other in seen:
                    continue
                seen.add(other)
                if other.opcode in ("constant", "partition-id", "iota"):
                    continue
                if other.opcode == "parameter" or (_tag(other) != _tag(node) and self._is_of_program(other)):
                    found[other] = None
                    if other in self.made and _tag(other) != _tag(node):
                        queue.append(other)  # the same tensor, moved in two steps
                else:
                    queue.append(other)
        return list(found)

    def _is_of_program(self, node: hlo.Instruction) -> bool:
        """False for what the partitioner added, with a tag or without, to carry out an operation."""
        opcodes_of_tag = {one.opcode for one in self.by_tag[_tag(node)]} if _tag(node) else set()
        return bool(opcodes_of_tag) and (node.opcode in opcodes_of_tag or node.opcode not in MOVES)

    def _around(self, node: hlo.Instruction, *, is_backward: bool) -> list[hlo.Instruction]:
        """The operations before partitioning that the walk in one direction meets first."""
        found = [one for each in self._walk(node, is_backward=is_backward) for one in self._before(each)]
        return list(dict.fromkeys(found))

    def _before(self, node: hlo.Instruction) -> list[hlo.Instruction]:
        """Operation before partitioning of one after it."""
        if node.opcode == "parameter":
            home = node.computation
            if home is not None and home.is_entry:
                return [
                    one
                    for one in self.before.entry.parameters
                    if one.parameter_number == node.parameter_number
                ]
            return []
        return [one for one in self.by_tag[_tag(node)] if one.opcode not in _WITHOUT_NAME]

    def _edges(
        self, makers: list[hlo.Instruction], readers: list[hlo.Instruction]
    ) -> list[tuple[hlo.Instruction, hlo.Instruction]]:
        """Pairs of which the second reads the first before partitioning."""
        wanted = set(makers)
        found = []
        for reader in dict.fromkeys(readers):
            queue = list(reader.operands)
            for operand in queue:
                if operand in wanted:
                    if _tag(operand) != _tag(reader):
                        found.append((operand, reader))
                elif operand.opcode in _WITHOUT_NAME or _tag(operand) not in self.left:
                    queue += operand.operands[: _FAR - len(queue)]
        return found

    def _names(self, nodes: Iterable[hlo.Instruction]) -> frozenset[str]:
        """The names of all that came of the same operations of the program."""
        found: dict[str, None] = {}
        for node in nodes:
            for one in self.by_tag[_tag(node)] if _tag(node) else [node]:
                found[one.name] = None
                found |= {user.name: None for user in one.user_view if user.opcode == "get-tuple-element"}
        return frozenset(found)

    def _is_result(self, node: hlo.Instruction) -> bool:
        seen, queue = {node}, [node]
        for one in queue:
            if one.is_root and one.computation is not None and one.computation.is_entry:
                return True
            if len(queue) < _FAR:
                new = [user for user in one.user_view if user not in seen]
                seen.update(new)
                queue += new
        return False


# ---- answers


@attrs.frozen
class Verdict:
    """One reason against the truth."""

    where: str
    confidence: str
    truth: Truth | None
    is_right: bool
    is_cause_right: bool
    is_user_right: bool
    told: str


def _module(folder: Path) -> tuple[dumps.Compilation, hlo.Module, hlo.Module] | None:
    compilation = next((one for one in dumps.open(folder).compilations if one.after is not None), None)
    around = partitioning_of(compilation) if compilation is not None else None
    return (compilation, around.before.module, around.after.module) if compilation and around else None


def verdicts(folder: Path) -> Iterator[Verdict]:
    """The judgement of each reason of one program. Raises ValueError where its two compilations differ."""
    about = json.loads((folder / "about.json").read_text())
    plain, tagged = _module(folder / "plain"), _module(folder / "tagged")
    if plain is None or tagged is None:
        return
    compilation, _, after = plain
    if sorted(one.name for one in after.instructions()) != sorted(
        one.name for one in tagged[2].instructions()
    ):
        raise ValueError("the tagged compilation is another one")
    judge = Tagged(tagged[1], tagged[2])
    parts = {one.name: one for one in judge.made}
    mesh = ",".join(f"{name}={size}" for name, size in about["mesh"].items())
    for cause in compilation.collectives(mesh):
        for reason in cause.reasons:
            where = f"{folder.name}: {cause.instruction.name}"
            part = parts.get(reason.part)
            truth = judge.truth(part) if part is not None else None
            yield _verdict(where, reason, truth, judge)


def _verdict(where: str, reason: dumps.Reason, truth: Truth | None, judge: Tagged) -> Verdict:
    def name(place: dumps.Place | None) -> str:
        return place.instruction.name if place is not None and place.instruction is not None else ""

    user, tensor = name(reason.user), name(reason.tensor)
    if truth is not None:  # one of several alike has no name: its op_name and line count
        user = user or _alike(reason.user, truth.users, judge)
        tensor = tensor or _alike(reason.tensor, truth.tensors, judge)
    who = f"user {user or reason.user} tensor {tensor or reason.tensor}"
    told = f"{reason.part or 'no part'}: {reason.cause} {reason.wanted_by} {who}"
    if truth is None:
        return Verdict(where, reason.confidence, None, False, False, False, told)
    causes = reason.cause in truth.causes
    users = user in truth.users if user else reason.user is None and (not truth.users or "" in truth.users)
    tensors = not truth.tensors or tensor in truth.tensors
    return Verdict(where, reason.confidence, truth, causes and users and tensors, causes, users, told)


def _alike(place: dumps.Place | None, names: frozenset[str], judge: Tagged) -> str:
    """The first of some operations before partitioning that has the op_name of a place."""
    if place is None:
        return ""
    nodes = (judge.before.find(name) for name in sorted(names) if name)
    return next(
        (
            one.name
            for one in nodes
            if isinstance(one, hlo.Instruction) and untagged(_tag(one)) == place.op_name
        ),
        "",
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.judges.collectives")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--undecided", action="store_true")
    asked = parser.parse_args(argv)
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for folder in sorted(p.parent for one in asked.folders for p in one.rglob("about.json")):
        target, _, partitioner = folder.name.split(".")
        count = rows[f"{target} {partitioner}"]
        try:
            found = list(verdicts(folder))
        except (ValueError, InputError) as error:
            print(f"{folder.name}: {error}")
            continue
        for one in found:
            count["reasons"] += 1
            count["decided"] += one.truth is not None
            count["cause"] += one.is_cause_right
            count["reader"] += one.is_user_right
            count["all"] += one.is_right
            count["high"] += one.confidence == "high" and one.truth is not None
            count["high right"] += one.confidence == "high" and one.is_right
            if one.truth is None and asked.undecided:
                print(f"undecided {one.where}: {one.confidence}: {one.told}")
            elif one.truth is not None and not one.is_right and asked.list:
                print(f"wrong {one.where}: {one.confidence}: {one.told}; true: {one.truth}")
    columns = ("reasons", "decided", "cause", "reader", "all", "high", "high right")
    print(" " * 14 + "".join(f"{name:>11}" for name in columns))
    for name, row in [*sorted(rows.items()), ("all", sum(rows.values(), Counter()))]:
        print(f"{name:14}" + "".join(f"{row[column]:11}" for column in columns))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Facts about modules: bytes on the wire, what a loop does not change, which device, and when facts are found anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hlotext as hlo
from hlotext import analysis, cost, memory
from hlotext.analysis.equal_computations import equal_computations
from hlotext.analysis.origins import is_neighbors
from tests import support

COLLECTIVES = """HloModule m, num_partitions=8

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY e {
  x = f32[64]{0} parameter(0)
  reduced = f32[64]{0} all-reduce(x), channel_id=1, replica_groups=[2,4]<=[8], use_global_device_ids=true, to_apply=sum
  gathered = f32[512]{0} all-gather(x), channel_id=2, replica_groups=[1,8]<=[8], dimensions={0}, use_global_device_ids=true
  scattered = f32[8]{0} reduce-scatter(x), channel_id=3, replica_groups={}, dimensions={0}, to_apply=sum
  pieces = f32[64]{0} all-to-all(x), channel_id=4, replica_groups={{0,1},{2,3},{4,5},{6,7}}, dimensions={0}
  moved = f32[64]{0} collective-permute(x), channel_id=5, source_target_pairs={{0,1},{1,0}}
  alone = f32[64]{0} all-reduce(x), replica_groups={}, to_apply=sum
  ROOT t = tuple(reduced, gathered, scattered, pieces, moved, alone)
}
"""


@pytest.mark.parametrize(
    ("name", "participants", "wire"),
    [
        ("reduced", 4, 2 * 256 * 3 // 4),
        ("gathered", 8, 2048 * 7 // 8),
        ("scattered", 8, 256 * 7 // 8),
        ("pieces", 2, 128),
        ("moved", None, 256),
        ("alone", 1, 0),  # without a channel the groups are of replicas, of which there is one
    ],
)
def test_bytes_on_the_wire(name: str, participants: int | None, wire: int) -> None:
    """What a ring of that many devices sends, by hand."""
    found = {one.start.name: one for one in analysis.communications(hlo.parse(COLLECTIVES))}
    assert (found[name].participants, found[name].wire_bytes) == (participants, wire)


def test_facts_are_found_once_for_each_revision() -> None:
    """The answer is the same object until the module is edited."""
    module = hlo.parse(COLLECTIVES)
    first = analysis.communications(module)
    assert analysis.communications(module) is first
    module.find("moved").name = "sent"  # type: ignore[union-attr]
    again = analysis.communications(module)
    assert again is not first
    assert "sent" in [one.start.name for one in again]


def test_costs_times_and_memory_are_computed_once_for_each_revision() -> None:
    """For each chip, mesh, trip count and platform; and an edit is seen."""
    module = hlo.parse(
        "HloModule m, is_scheduled=true\nENTRY e {\n  p = f32[64]{0} parameter(0)\n  n = f32[64]{0} negate(p)\n"
        "  ROOT r = f32[64]{0} exponential(n)\n}\n"
    )
    asked: list[Callable[[], Any]] = [
        lambda: cost.analyze(module),
        lambda: cost.estimate(module, "v5e"),
        lambda: cost.estimate(module, "v6e"),
        lambda: cost.analyze(module).as_tpu("v5e"),
        lambda: memory.assign(module, "tpu", "v5e"),
        lambda: memory.assign(module, "cpu"),
    ]
    first = [ask() for ask in asked]
    assert all(ask() is one for ask, one in zip(asked, first, strict=True))
    assert len(set(map(id, first))) == len(asked)
    before = [
        first[0].run.flops, first[1].seconds, first[3].bytes_accessed, len(first[5].values)
    ]  # fmt: skip
    parameter, negated, root = module.entry.instructions
    root.operands = [parameter]
    negated.erase()
    again = [ask() for ask in asked]
    assert not any(ask is one for ask, one in zip(again, first, strict=True))
    after = [again[0].run.flops, again[1].seconds, again[3].bytes_accessed, len(again[5].values)]
    assert all(new < old for new, old in zip(after, before, strict=True))


def test_equal_computations_are_told_apart_by_what_they_do() -> None:
    """Names and metadata aside; callees count as what they are."""

    def body(name: str, operation: str) -> str:
        line = f'  r.{name} = f32[4] {operation}(p.{name}), metadata={{op_name="{name}"}}'
        return f"{name} {{\n  p.{name} = f32[4] parameter(0)\n{line}\n}}\n"

    module = hlo.parse(
        f"HloModule m\n{body('a', 'negate')}{body('b', 'negate')}{body('c', 'sine')}"
        "x {\n  p.x = f32[4] parameter(0)\n  f.x = f32[4] fusion(p.x), kind=kLoop, calls=a\n}\n"
        "y {\n  p.y = f32[4] parameter(0)\n  f.y = f32[4] fusion(p.y), kind=kLoop, calls=b\n}\n"
        "z {\n  p.z = f32[4] parameter(0)\n  f.z = f32[4] fusion(p.z), kind=kLoop, calls=c\n}\n"
        "ENTRY e {\n  p = f32[4] parameter(0)\n  x1 = f32[4] call(p), to_apply=x\n"
        "  y1 = f32[4] call(x1), to_apply=y\n  z1 = f32[4] call(y1), to_apply=z\n}\n"
    )
    found = {one.name: first.name for one, first in equal_computations(module).items()}
    assert found == {"a": "a", "b": "a", "c": "c", "x": "x", "y": "x", "z": "z", "e": "e"}


def test_equal_collectives_are_told_apart_by_their_part_of_a_chain() -> None:
    """Ids of channels and chains aside: what begins a chain costs, what goes on with it does not."""

    def body(name: str, channel: int, chain: int) -> str:
        return (
            f"{name} {{\n  p.{name} = f32[4] parameter(0)\n  g.{name} = f32[8] all-gather(p.{name}), channel_id={channel}, "
            f'replica_groups={{{{0,1}}}}, dimensions={{0}}, frontend_attributes={{chain_id="{chain}"}}\n}}\n'
        )

    names = ("a", "b", "c")
    calls = "".join(f"  {n}1 = f32[8] fusion(p), kind=kCustom, calls={n}\n" for n in names)
    module = hlo.parse(
        f"HloModule m, num_partitions=2\n{body('a', 1, 1)}{body('b', 2, 2)}{body('c', 3, 2)}"
        f"ENTRY e {{\n  p = f32[4] parameter(0)\n{calls}}}\n"
    )
    found = {one.name: first.name for one, first in equal_computations(module).items()}
    assert found == {"a": "a", "b": "a", "c": "c", "e": "e"}


LOOP = """HloModule m

body {
  state = (s32[], f32[4], f32[4]) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  kept = f32[4] get-tuple-element(state), index=1
  changed = f32[4] get-tuple-element(state), index=2
  one = s32[] constant(1)
  next = s32[] add(n, one)
  twice = f32[4] add(kept, kept)
  mixed = f32[4] add(twice, changed)
  random = f32[4] rng(kept, kept), distribution=rng_uniform
  ROOT t = (s32[], f32[4], f32[4]) tuple(next, kept, mixed)
}

condition {
  state = (s32[], f32[4], f32[4]) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  bound = s32[] constant(3)
  ROOT c = pred[] compare(n, bound), direction=LT
}

ENTRY e {
  start = (s32[], f32[4], f32[4]) parameter(0)
  ROOT loop = (s32[], f32[4], f32[4]) while(start), condition=condition, body=body
}
"""


def test_what_a_loop_does_not_change() -> None:
    """Elements that are passed on, constants, and what follows from these alone; random numbers are new each time."""
    loop = hlo.parse(LOOP).entry.root
    assert {i.name for i in analysis.invariant_instructions(loop)} == {"kept", "one", "twice"}


@pytest.mark.parametrize("path", support.corpus_files(("cpu", "gpu", "tpu")), ids=support.corpus_id)
def test_the_device_of_optimized_modules(path: Path) -> None:
    """Every optimized module of the corpus tells for which device it is; the others never name a wrong one."""
    module = hlo.load(path)
    found = analysis.backend_of(module)
    if "after_optimizations" in path.name or "after_codegen" in path.name:
        assert analysis.is_optimized(module)
        assert found is analysis.Backend(path.parent.name)
    else:
        assert found is None or found.value == path.parent.name


def test_a_copy_comes_from_what_it_copies() -> None:
    """What a compiler inserted has no frame of its own; that of its operand counts, else that of its user."""
    module = hlo.parse(
        """HloModule m

FileNames
1 "a.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=2}
2 {file_name_id=1 function_name_id=1 line=4 end_line=4 column=1 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

ENTRY e {
  x = f32[4]{0} parameter(0)
  before = f32[4]{0} copy(x)
  y = f32[4]{0} negate(before), metadata={op_name="y" stack_frame_id=1}
  after = f32[4]{0} copy(y)
  z = f32[4]{0} abs(after), metadata={op_name="z" stack_frame_id=2}
  alone = f32[4]{0} iota(), iota_dimension=0
  ROOT t = (f32[4]{0}) tuple(z)
}
"""
    )
    frames = {i.name: analysis.responsible_frame(i) for i in module.entry}
    lines = {name: frame.line if frame is not None else None for name, frame in frames.items()}
    assert lines == {"x": 3, "before": 3, "y": 3, "after": 3, "z": 4, "alone": None, "t": 4}


def test_a_contraction_without_frames_is_told_by_its_user() -> None:
    """Its operands are computed by other lines. That the line is only near is said; a copy belongs to what it copies."""
    module = hlo.parse(
        """HloModule m

FileNames
1 "a.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=1}
2 {file_name_id=1 function_name_id=1 line=4 end_line=4 column=1 end_column=1}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

fused {
  p = f32[4,4]{1,0} parameter(0)
  ROOT inner = f32[4,4]{1,0} dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

ENTRY e {
  x = f32[4,4]{1,0} parameter(0)
  y = f32[4,4]{1,0} negate(x), metadata={op_name="y" stack_frame_id=1}
  held = f32[4,4]{1,0} copy(y)
  made = f32[4,4]{1,0} fusion(held), kind=kOutput, calls=fused
  z = f32[4,4]{1,0} abs(made), metadata={op_name="z" stack_frame_id=2}
  own = f32[4,4]{1,0} dot(z, z), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="o" stack_frame_id=1}
  ROOT t = (f32[4,4]{1,0}) tuple(own)
}
"""
    )
    found = {one.name: one for computation in module.computations for one in computation}
    told = {}
    for name in ("held", "inner", "own"):
        frame = analysis.responsible_frame(found[name])
        told[name] = (frame.line if frame is not None else None, is_neighbors(found[name]))
    assert told == {"held": (3, False), "inner": (4, True), "own": (3, False)}

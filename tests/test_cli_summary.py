"""The facts behind `hlotext show`: what counts as memory, as a collective, as a loop."""

from __future__ import annotations

import re
from typing import Any

import pytest

import hlotext as hlo
from hlotext.analysis.call_graph import call_graph
from hlotext.analysis.sizes import written_arrays
from hlotext.analysis.summary import summarize
from hlotext.analysis.summary.arrays import opcode_label
from hlotext.analysis.trip_count import trip_count
from hlotext.cli.run_totals import module_facts
from tests import support


def summary(text: str) -> Any:
    return summarize(hlo.parse(text))


# ---- loops

LOOP = """HloModule loop

body {{
  state = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  x = f32[4] get-tuple-element(state), index=1
  step = s32[] constant({step})
  next = s32[] {how}(i, step)
  y = f32[4] all-reduce(x), replica_groups={{}}, to_apply=add
  ROOT result = (s32[], f32[4]) tuple(next, y)
}}

condition {{
  state = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  end = s32[] constant({end})
  ROOT test = pred[] compare(i, end), direction={direction}
}}

add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}

ENTRY main {{
  start = s32[] constant({start})
  x = f32[4] parameter(0)
  initial = (s32[], f32[4]) tuple(start, x)
  ROOT loop = (s32[], f32[4]) while(initial), condition=condition, body=body{more}
}}
"""
COUNTED = {"start": 0, "end": 10, "step": 1, "how": "add", "direction": "LT", "more": ""}
KNOWN = ', backend_config={"known_trip_count":{"n":"7"}}'


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 10),
        ({"start": 3}, 7),
        ({"step": 3}, 4),
        ({"direction": "LE"}, 11),
        ({"direction": "LE", "step": 5}, 3),
        ({"start": 10}, 0),
        ({"start": 12}, 0),
        ({"direction": "NE"}, 10),
        ({"direction": "GT"}, 0),
        ({"step": 0}, None),
        ({"step": -1}, None),
        ({"how": "multiply"}, None),
        ({"more": KNOWN}, 7),
        ({"more": KNOWN, "how": "multiply"}, 7),
        ({"more": ', backend_config={"known_trip_count":{"n":"x"}}'}, 10),
        ({"more": ', backend_config="known_trip_count"'}, 10),
    ],
    ids=str,
)
def test_trip_counts(changes: dict[str, Any], expected: int | None) -> None:
    """A counted loop's trips follow from its numbers; the compiler's word comes first; none is made up."""
    module = hlo.parse(LOOP.format(**{**COUNTED, **changes}))
    loop = module.entry.root
    assert trip_count(loop) == expected


def test_a_loop_multiplies_what_is_in_it() -> None:
    """The all-reduce of a loop runs as often as the body; its bytes are those of one run."""
    facts = summary(LOOP.format(**COUNTED))
    (loop,) = facts.loops
    assert (loop.name, loop.body, loop.trip_count, loop.runs) == ("loop", "body", 10, 10)
    assert (loop.body_instructions, loop.state.arrays, loop.state.allocated_bytes) == (7, 2, 20)
    (group,) = facts.collective_groups
    assert (group.kind, group.count, group.runs, group.in_loops, group.operand_bytes) == (
        "all-reduce",
        1,
        10,
        1,
        16,
    )


def test_nothing_is_made_up_where_values_decide() -> None:
    """Inside a loop without a known end, and inside a branch, how often is not known."""
    facts = summary(LOOP.format(**{**COUNTED, "how": "multiply"}))
    assert facts.collectives[0].runs is None
    assert facts.collective_groups[0].runs is None


@pytest.mark.parametrize(
    ("name", "trips"),
    [
        ("tpu/transformer_train_scan.v5e_2x2x1.after_optimizations.txt.xz", [4, 4]),
        ("cpu/ring_attention.cpu_4.after_optimizations.txt", [4]),
        ("gpu/host_offload_remat.h100_1x1x1.after_optimizations.txt", [6, 6]),
    ],
)
def test_trip_counts_of_real_loops(name: str, trips: list[int]) -> None:
    """On TPU no backend configuration tells, on CPU and GPU it does."""
    assert [loop.trip_count for loop in summarize(hlo.load(support.CORPUS / name)).loops] == trips


# ---- memory


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a = f32[4]{0} add(f32[4]{0} x, f32[4]{0} y)", ["f32[4]{0}"]),
        ("a = (f32[4]{0}, s32[2]{0}) fusion(f32[4]{0} x), kind=kLoop, calls=f", ["f32[4]{0}", "s32[2]{0}"]),
        (
            "a = (f32[4]{0}, s32[2]{0}) fusion(f32[4]{0} x), kind=kLoop, calls=f, "
            "output_to_operand_aliasing={{0}: (0, {})}",
            ["s32[2]{0}"],
        ),
        ("a = f32[4]{0} bitcast(f32[4]{0} x)", []),
        ("a = (f32[4]{0}) tuple(f32[4]{0} x)", []),
        ("a = f32[4]{0} get-tuple-element((f32[4]{0}) x), index=0", []),
        ("a = (f32[4]{0:S(1)}, f32[4]{0}, u32[]) copy-start(f32[4]{0} x)", ["f32[4]{0:S(1)}"]),
        ("a = (f32[2]{0}, f32[4]{0}) all-gather-start(f32[2]{0} x), dimensions={0}", ["f32[4]{0}"]),
        ("a = (f32[4]{0}, u32[], token[]) recv(token[] t), channel_id=1", ["f32[4]{0}"]),
        ("a = (f32[4]{0}, u32[], token[]) send(f32[4]{0} x, token[] t), channel_id=1", []),
        ("a = token[] after-all()", []),
        ("a = b(f32[4]{0}) custom-call(), custom_call_target=\"CreateBuffer\"", ["f32[4]{0}"]),
        ("a = f32[<=4]{0} custom-call(), custom_call_target=\"x\"", ["f32[<=4]{0}"]),
    ],
)  # fmt: skip
def test_what_an_instruction_writes(line: str, expected: list[str]) -> None:
    """Views, operands that come along and tokens are not counted."""
    text = (
        f"f {{ p = f32[4] parameter(0) ROOT r = f32[4] negate(p) }}\nENTRY e {{ {_with_parameters(line)} }}"
    )
    root = hlo.parse(text).entry.root if "calls=" in line else hlo.parse_instruction(line)
    assert [str(array) for _, array in written_arrays(root)] == expected


def _with_parameters(line: str) -> str:
    return "x = f32[4]{0} parameter(0) ROOT " + line.replace("f32[4]{0} x", "x")


def test_unbounded_arrays_have_no_size() -> None:
    """They are counted, and said to be of unknown size; nothing is made up."""
    facts = summary("HloModule m\n\nENTRY e {\n  ROOT p = f32[?,2] parameter(0)\n}\n")
    assert (facts.arguments.arrays, facts.arguments.unsized, facts.arguments.allocated_bytes) == (1, 1, 0)
    assert facts.largest_arrays == ()


def test_results_in_the_memory_of_arguments() -> None:
    """What `input_output_alias` names."""
    facts = summarize(hlo.load(support.CORPUS / "tpu/data_parallel.v5e_2x2x1.after_codegen.txt"))
    assert facts.aliased_results == facts.results
    assert facts.aliased_results.arrays == 4


def test_alike_arrays_stand_together() -> None:
    """One row for arrays of the same shape, opcode and origin; the first one gives the name."""
    lines = ["p = f32[8] parameter(0)", "a = f32[8] negate(p)", "ROOT b = f32[8] negate(a)"]
    text = "HloModule m\n\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"
    groups = summary(text).largest_arrays
    assert [(group.name, group.opcode, group.count) for group in groups] == [
        ("a", "negate", 2),
        ("p", "parameter", 1),
    ]


def test_padding_is_told_by_shape_whatever_the_memory() -> None:
    """f32[8,1] in tiles of 8 x 128 takes 128 times its bytes, in HBM and in VMEM."""
    text = (
        "HloModule m\n\nENTRY e {\n  p = f32[8,1]{1,0:T(8,128)} parameter(0)\n"
        "  ROOT a = f32[8,1]{1,0:T(8,128)S(1)} copy(p)\n}\n"
    )
    facts = summary(text)
    (row,) = facts.most_padded
    assert (row.shape, row.count, row.unpadded_bytes, row.allocated_bytes) == (
        "f32[8,1]{1,0:T(8,128)}",
        2,
        32,
        4096,
    )
    assert row.padding_bytes == 2 * (4096 - 32)
    assert [(t.source, t.target, t.copies, t.allocated_bytes) for t in facts.transfers] == [(0, 1, 1, 4096)]
    assert [space.memory_space for space in facts.memory_spaces] == [0, 1]


# ---- communication

ASYNC_FUSION = """HloModule chain

start {
  p = f32[4] parameter(0)
  g = f32[8] all-gather(p), channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true, frontend_attributes={chain_id="5"}
  ROOT s = (f32[4], f32[8], u32[]) custom-call(g), custom_call_target="AsyncCollectiveStart"
}

done {
  p = f32[4] parameter(0)
  q = f32[8] parameter(1)
  g = f32[8] all-gather(p), channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true, frontend_attributes={chain_id="5"}
  ROOT d = f32[8] custom-call(p, q, g), custom_call_target="AsyncCollectiveDone"
}

ENTRY main {
  x = f32[4] parameter(0)
  a = (f32[4], f32[8], u32[]) fusion(x), kind=kCustom, calls=start, output_to_operand_aliasing={{0}: (0, {})}
  b = f32[4] get-tuple-element(a), index=0
  c = f32[8] get-tuple-element(a), index=1
  ROOT r = f32[8] fusion(b, c), kind=kCustom, calls=done, output_to_operand_aliasing={{}: (1, {})}
}
"""  # noqa: E501


def test_an_asynchronous_collective_fusion_counts_once() -> None:
    """The TPU compiler writes the collective into the fusion that starts it and the one that ends it."""
    (found,) = summary(ASYNC_FUSION).collectives
    assert (found.name, found.fusion, found.is_async, found.runs) == ("g", "a", True, 1)
    assert (found.group_count, found.group_size, found.operand_bytes, found.result_bytes) == (1, 2, 16, 32)


def test_wrapped_collectives_are_named_by_their_start() -> None:
    """Both spellings of a wrapped all-to-all, and a call on another thread."""
    facts = summary(
        """HloModule wrapped

other {
  p = f32[4] parameter(0)
  ROOT a = f32[4] all-to-all(p), replica_groups={{0,1}}, dimensions={0}
}

ENTRY main {
  x = f32[4] parameter(0)
  s = ((f32[4]), f32[4]) all-to-all-start(x), replica_groups={{0,1}}, dimensions={0}
  d = f32[4] all-to-all-done(s)
  c = ((f32[4]), f32[4]) call-start(d), to_apply=other
  ROOT e = f32[4] call-done(c)
}
"""
    )
    assert [(one.name, one.computation, one.is_async) for one in facts.collectives] == [
        ("a", "other", True),
        ("s", "main", True),
    ]


def test_a_pair_that_runs_synchronously_is_not_asynchronous() -> None:
    """The GPU compiler marks such pairs in the backend configuration."""
    path = support.CORPUS / "gpu" / "data_parallel.h100_1x1x4.after_optimizations.txt"
    assert '"is_sync":true' in path.read_text()
    (found,) = summarize(hlo.load(path)).collectives
    assert (found.kind, found.name, found.is_async) == ("all-reduce", "all-reduce-start", False)


PLAIN = [path for path in support.corpus_files(("cpu", "gpu")) if not path.name.endswith(".xz")]


@pytest.mark.parametrize("path", PLAIN, ids=support.corpus_id)
def test_no_collective_is_missed(path: Any) -> None:
    """As many as the text has lines that begin one."""
    names = "all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-[a-z]+"
    begun = re.findall(rf" = .*? (?:{names})(?:-start)?\(", path.read_text())
    assert len(summarize(hlo.load(path)).collectives) == len(begun)


# ---- calls


def test_what_computations_are_for() -> None:
    """Every use has its name; what nobody calls is said to be unused."""
    facts = summary(
        LOOP.format(**COUNTED).replace("ENTRY main", "lost { ROOT z = f32[] parameter(0) }\n\nENTRY main")
    )
    assert {row.use: row.computations for row in facts.computations} == {
        "entry": 1,
        "loop body": 1,
        "loop condition": 1,
        "applied": 1,
        "unused": 1,
    }


def test_deep_call_chains_are_no_problem() -> None:
    """Thousands of computations that call each other: no recursion."""
    depth = 5000
    bodies = ["body0 {\n  ROOT r = f32[] parameter(0)\n}\n"]
    for i in range(1, depth):
        bodies.append(
            f"body{i} {{\n  p = f32[] parameter(0)\n  ROOT r = f32[] call(p), to_apply=body{i - 1}\n}}\n"
        )
    facts = summary(
        "HloModule deep\n\n"
        + "\n".join(bodies)
        + f"\nENTRY {bodies[-1].replace(f'body{depth - 1} {{', 'main {')}"
    )
    assert facts.instructions == 2 * depth + 1


def test_labels_tell_kinds_apart() -> None:
    """Fusions by kind, custom calls by target, asynchronous wrappers by what they run."""
    module = hlo.parse(ASYNC_FUSION)
    assert opcode_label(module.entry.root) == "fusion kCustom"
    wrapped = hlo.load(support.CORPUS / "handmade" / "async_start.txt")
    labels = [opcode_label(i) for i in wrapped.entry if i.opcode == "async-start"]
    assert labels == ["async call", "async custom-call"]


def test_callers_are_found_in_the_order_of_the_text() -> None:
    """The first caller decides what a computation is for."""
    module = hlo.parse(ASYNC_FUSION)
    graph = call_graph(module)
    start = next(c for c in module.computations if c.name == "start")
    caller = graph.caller(start)
    assert caller is not None
    assert caller.name == "a"
    assert graph.caller(module.entry) is None
    assert graph.loop_around(start) is None


def test_callees_may_stand_behind_their_callers() -> None:
    """Whether they run instruction by instruction is then found out by a second walk."""
    header, entry, body = (
        "HloModule order\n",
        "ENTRY %main (x: f32[4]) -> f32[4] {\n  %x = f32[4]{0} parameter(0)\n"
        "  ROOT %c = f32[4]{0} call(%x), to_apply=%twice\n}\n",
        "%twice (p: f32[4]) -> f32[4] {\n  %p = f32[4]{0} parameter(0)\n  ROOT %d = f32[4]{0} add(%p, %p)\n}\n",
    )
    usual, turned = summary("\n".join((header, body, entry))), summary("\n".join((header, entry, body)))
    (add,) = (count for count in turned.opcodes if count.opcode == "add")
    assert (add.in_fusions, add.written_bytes) == (0, 16)
    assert sorted(turned.opcodes, key=str) == sorted(usual.opcodes, key=str)
    assert (turned.memory_spaces, turned.computations) == (usual.memory_spaces, usual.computations)
    assert [group.name for group in turned.largest_arrays] == ["x", "d"]


# ---- one run


def run_figures(text: str) -> Any:
    return module_facts(hlo.parse(text)).run


def test_loops_count_as_often_as_they_run() -> None:
    run = run_figures(LOOP.format(**COUNTED))
    assert run.flops == 10 * (1 + 4) + 11
    assert run.is_exact
    assert not run.is_at_least


def test_loops_of_unknown_count_are_told() -> None:
    run = run_figures(LOOP.format(**{**COUNTED, "how": "xor"}))
    assert run.flops == (1 + 4) + 1
    assert run.unknown_loops == 1
    assert run.is_at_least


def test_custom_calls_of_unknown_cost_are_told_and_count_their_bytes() -> None:
    call = 'custom-call(p), custom_call_target="mine"'
    text = f"HloModule m\n\nENTRY e {{\n  p = f32[4] parameter(0)\n  a = f32[4] {call}\n  ROOT b = f32[4] {call}\n}}\n"
    run = run_figures(text)
    assert run.flops == 0
    assert run.bytes_accessed == 2 * (16 + 16)
    assert run.unknown_calls == 2
    assert run.is_at_least

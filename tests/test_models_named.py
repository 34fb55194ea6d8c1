"""What public models showed of how things are called and what is said of texts before optimization."""

from __future__ import annotations

from types import SimpleNamespace

import hlotext as hlo
from hlotext import analysis, cost, lint, memory
from hlotext.analysis import entries
from hlotext.dumps import timeline
from hlotext.memory import usage

SPLIT = """HloModule m, num_partitions=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY e {
  x = f32[1022,4096]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}
  r = f32[1022,4096]{1,0} all-reduce(x), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add
  ROOT n = f32[1022,4096]{1,0} negate(r), sharding={devices=[4,1]<=[4]}
}
"""
"""As the partitioner leaves it: shapes of one device, shardings of the whole."""


def test_what_the_partitioner_has_left_is_not_split_again() -> None:
    """Communication without a mark of a part written by hand tells; what such a mark stands around is whole."""
    module = hlo.parse(SPLIT)
    assert analysis.is_partitioned(module)
    [argument] = entries.arguments(module)
    assert (argument.device_bytes, argument.global_bytes) == (1022 * 4096 * 4, None)
    assert not [one for one in lint.run(module) if one.code == "C111"]


def test_what_is_not_split_yet() -> None:
    """Before the partitioner: shardings on what is between, or communication that a program has by hand."""
    between = SPLIT.replace("to_apply=add", "to_apply=add, sharding={devices=[4,1]<=[4]}")
    mark = 'r = f32[1022,4096]{1,0} custom-call(q), custom_call_target="SPMDFullToShardShape"'
    by_hand = SPLIT.replace("  r = ", "  q = ").replace("  ROOT n", f"  {mark}\n  ROOT n")
    plain = SPLIT.replace(
        "all-reduce(x), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add",
        "exponential(x)",
    )
    for text in (between, by_hand, plain):
        assert not analysis.is_partitioned(hlo.parse(text))
    [argument] = entries.arguments(hlo.parse(plain))
    assert (argument.device_bytes, argument.global_bytes) == (256 * 4096 * 4, 1022 * 4096 * 4)


def test_what_has_no_scope_is_not_called_a_copy() -> None:
    """Of a text without names only copies are copies."""
    module = hlo.parse(
        "ENTRY e {\n  a = f32[8,8] parameter(0)\n  b = f32[8,8] copy(a)\n"
        "  c = f32[8,8] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  ROOT d = f32[8,8] negate(c)\n}\n"
    )
    found = cost.analyze(module).by("scope")
    assert found["(no scope)"].flops == 2 * 8**3
    assert found["(copies)"] == cost.Cost(0, 0, 2 * 256)


ASYNC = """HloModule m, is_scheduled=true

wrapped {
  p = f32[1024,1024] parameter(0)
  ROOT async_op = f32[1024,1024] negate(p)
}

ENTRY e {
  x = f32[1024,1024] parameter(0)
  begin = ((f32[1024,1024]), f32[1024,1024], s32[]) async-start(x), calls=wrapped
  ROOT end = f32[1024,1024] async-done(begin), calls=wrapped
}
"""


def test_what_runs_asynchronously_is_called_as_what_starts_it() -> None:
    """The wrapped operation's own name is the same in all of them."""
    found = cost.estimate(hlo.parse(ASYNC), "v5e")
    assert [(one.name, one.instruction.name) for one in found.beside] == [("begin", "async_op")]
    assert not any(one.instruction.name == "async_op" for one in found.instructions)


def test_what_is_counted_asynchronously_is_called_so_too() -> None:
    found = cost.analyze(hlo.parse(ASYNC))
    assert list(found.by("instruction")) == ["begin"]
    assert found.by("instruction")["begin"] == cost.Cost(
        found.run.flops, found.run.transcendentals, found.run.bytes_accessed
    )


def test_before_optimization_the_time_is_no_bound() -> None:
    """Each of a chain of operations is charged for what it writes, which a fusion does not."""
    chain = "".join(f"  x{n} = f32[1024,1024] negate(x{n - 1})\n" for n in range(1, 9))
    text = "HloModule m\n\nENTRY e {{\n  x0 = f32[1024,1024] parameter(0)\n{0}  ROOT y = f32[1024,1024] negate(x8)\n}}\n"
    assert not cost.estimate(hlo.parse(text.format(chain)), "h100").is_bound
    assert cost.estimate(hlo.parse(ASYNC), "h100").is_bound


LAYERS = """HloModule m, is_scheduled=true

ENTRY e {
  p = f32[1024,1024] parameter(0)
LINES
  s0_ = f32[1024,1024] add(x0, x1)
SUMS
  ROOT r = f32[1024,1024] negate(s30_)
}
"""


def test_arrays_of_repeated_layers_are_one_row() -> None:
    """What only numbers tell apart is one row with a count; sizes and sums stay."""
    lines = "".join(
        f'  x{n} = f32[1024,1024] negate(p), metadata={{op_name="jit(f)/layer_{n}/neg"}}\n' for n in range(32)
    )
    sums = "".join(f"  s{n}_ = f32[1024,1024] add(s{n - 1}_, x{n + 1})\n" for n in range(1, 31))
    found = memory.assign(hlo.parse(LAYERS.replace("LINES\n", lines).replace("SUMS\n", sums)))
    arrays = usage.live_arrays(found, 0, found.peak(0).time)
    rows = usage.repeated(arrays)
    assert sum(row.bytes for row in rows) == sum(array.bytes for array in arrays)
    assert rows[0].count >= 30
    assert rows[0].bytes == rows[0].count << 22
    assert len(rows) <= 4


def test_rounds_of_a_pipeline_are_taken_together() -> None:
    """The first round stands for ten of the same two passes; two rounds are no repetition."""

    def rows(names: str) -> list[timeline.TimelineEntry]:
        steps = [SimpleNamespace(stage="simplification", name=name, index=n) for n, name in enumerate(names)]
        return [timeline.TimelineEntry(step, None, None) for step in steps]  # type: ignore[arg-type]

    def folded(names: str) -> list[tuple[str, int]]:
        return [("".join(row.step.name for row in r.rows), r.count) for r in timeline.rounds(rows(names))]

    assert folded("x" + "ab" * 10 + "y") == [("x", 1), ("ab", 10), ("y", 1)]
    assert folded("abab") == [("a", 1), ("b", 1), ("a", 1), ("b", 1)]
    assert folded("aaaa") == [("a", 4)]
    assert folded("abababa") == [("ab", 3), ("a", 1)]
    assert folded("") == []

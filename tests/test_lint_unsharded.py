"""What every device holds in full is known from texts that lost the shardings of arguments, as those of XLA 0.12 do."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import lint
from hlotext.lint.equal import replicated_state
from tests import support

STEP = """HloModule step, is_scheduled=true, num_partitions=4, input_output_alias={ {0}: (0, {}), {1}: (1, {}) }

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  table = f32[65536,1024]{1,0} parameter(0)
  shard = f32[1024,1024]{1,0} parameter(1)
  batch = f32[8,4096]{1,0} parameter(2)
  ids = f32[8,65536]{1,0} parameter(3)
  whole = f32[4096,1024]{1,0} all-gather(shard), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, GLOBAL
  out = f32[8,1024]{1,0} dot(batch, whole), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  own = f32[65536,1024]{1,0} dot(ids, out), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  SUMMED
  table_next = f32[65536,1024]{1,0} subtract(table, total)
  cut = f32[1024,1024]{1,0} slice(own), slice={[0:1024], [0:1024]}
  shard_next = f32[1024,1024]{1,0} add(shard, cut)
  ROOT state = (f32[65536,1024]{1,0}, f32[1024,1024]{1,0}) tuple(table_next, shard_next)
}
""".replace("GLOBAL", "use_global_device_ids=true")
ALL = (
    "total = f32[65536,1024]{1,0} all-reduce(own), channel_id=2, replica_groups=[1,4]<=[4], "
    "use_global_device_ids=true, to_apply=sum"
)
PAIRS = ALL.replace("[1,4]<=[4]", "[2,2]<=[4]")


def names(summed: str) -> list[str]:
    return sorted(one.name for one in replicated_state(hlo.parse(STEP.replace("SUMMED", summed))))


def test_what_is_updated_from_a_sum_over_all_devices_is_held_by_all() -> None:
    assert names(ALL) == ["table"]


def test_what_is_updated_from_a_sum_over_some_is_not_known() -> None:
    assert names(PAIRS) == []


def test_a_text_with_shardings_is_not_guessed_about() -> None:
    text = STEP.replace("SUMMED", ALL).replace("parameter(2)", "parameter(2), sharding={devices=[4,1]<=[4]}")
    assert not replicated_state(hlo.parse(text))


def test_a_table_in_full_beside_shards_is_found() -> None:
    config = lint.Config(select=("C110",), **support.SAY_ALL)
    (found,) = lint.run(hlo.parse(STEP.replace("SUMMED", ALL)), config)
    assert found.name == "table"
    assert found.bytes == 3 * 65536 * 1024


NOT_DONATED = """HloModule step, is_scheduled=true, num_partitions=4

ENTRY main {
  w = f32[1024,4096]{1,0} parameter(0)
  m = f32[4096,4096]{1,0} parameter(1)
  x = f32[8,4096]{1,0} parameter(2)
  g = f32[8,1024]{1,0} parameter(3)
  whole = f32[4096,4096]{1,0} all-gather(w), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, GLOBAL
  out = f32[8,4096]{1,0} dot(x, whole), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  grad = f32[1024,4096]{1,0} dot(g, out), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  device = u32[] partition-id()
  size = u32[] constant(1024)
  place = u32[] multiply(device, size)
  zero = u32[] constant(0)
  own = f32[1024,4096]{1,0} dynamic-slice(m, place, zero), dynamic_slice_sizes={1024,4096}
  m_own = f32[1024,4096]{1,0} add(own, grad)
  w_next = f32[1024,4096]{1,0} subtract(w, m_own)
  GATHERED
  ROOT state = (f32[1024,4096]{1,0}, f32[4096,4096]{1,0}) tuple(w_next, m_next)
}
"""
WHOLE = "m_next = f32[4096,4096]{1,0} all-gather(m_own), channel_id=2, replica_groups=[1,4]<=[4], dimensions={0}, GLOBAL"
STARTED = (
    "started = ((f32[1024,4096]{1,0}), f32[4096,4096]{1,0}) all-gather-start(m_own), channel_id=2, "
    "replica_groups=[1,4]<=[4], dimensions={0}, GLOBAL\n  m_next = f32[4096,4096]{1,0} all-gather-done(started)"
)
OTHER = "m_next = f32[4096,4096]{1,0} add(whole, whole)"


def undonated(gathered: str) -> hlo.Module:
    text = NOT_DONATED.replace("GATHERED", gathered).replace("GLOBAL", "use_global_device_ids=true")
    return hlo.parse(text)


@pytest.mark.parametrize("gathered", [WHOLE, STARTED])
def test_moments_in_full_are_found_though_nothing_is_donated(gathered: str) -> None:
    config = lint.Config(select=("C110",), **support.SAY_ALL)
    (found,) = lint.run(undonated(gathered), config)
    assert found.name == "m"
    # Of 64 MiB each of the moment and its new value three fourths go: 96 of the 176 MiB at the end. The gathered weights had
    # the memory of the result, and take 64 MiB of their own beside what is left of the arguments and results.
    assert found.peak_bytes is not None
    assert found.peak_bytes >> 20 == 64
    assert found.seconds is not None
    assert found.seconds > 0


def test_what_is_not_gathered_again_is_no_update() -> None:
    assert not replicated_state(undonated(OTHER))


AVERAGED = """HloModule step, is_scheduled=true, num_partitions=4

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  p = f32[1024,4096]{1,0} parameter(0)
  m = f32[1024,4096]{1,0} parameter(1)
  x = f32[8,1024]{1,0} parameter(2)
  y = f32[8,4096]{1,0} parameter(3)
  own = f32[1024,4096]{1,0} dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  grad = f32[1024,4096]{1,0} all-reduce(own), channel_id=1, replica_groups=[1,4]<=[4], GLOBAL
  m_next = f32[1024,4096]{1,0} add(m, GRAD)
  p_own = f32[1024,4096]{1,0} subtract(p, m_next)
  p_sum = f32[1024,4096]{1,0} all-reduce(p_own), channel_id=2, replica_groups=[1,4]<=[4], GLOBAL
  quarter = f32[] constant(0.25)
  quarters = f32[1024,4096]{1,0} broadcast(quarter), dimensions={}
  p_next = f32[1024,4096]{1,0} multiply(p_sum, quarters)
  ROOT state = (f32[1024,4096]{1,0}, f32[1024,4096]{1,0}) tuple(p_next, m_next)
}
"""


def averaged(grad: str) -> hlo.Module:
    return hlo.parse(
        AVERAGED.replace("GRAD", grad).replace("GLOBAL", "use_global_device_ids=true, to_apply=sum")
    )


def test_parameters_that_are_averaged_are_updated() -> None:
    module = averaged("grad")
    assert sorted(one.name for one in replicated_state(module)) == ["m", "p"]
    (found,) = lint.run(module, lint.Config(select=("C114",), **support.SAY_ALL))
    assert found.name == "p_sum"


def test_parameters_that_are_averaged_after_own_steps_are_not_equal_before() -> None:
    """As in local SGD, where each device takes its own step first."""
    module = averaged("own")
    assert sorted(one.name for one in replicated_state(module)) == ["p"]
    assert not lint.run(module, lint.Config(select=("C114",), **support.SAY_ALL))


UPDATED = """HloModule updated, is_scheduled=true, num_partitions=8, input_output_alias={ {0}: (0, {}), {1}: (1, {}) }

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY step {
  w = f32[262144,1024]{1,0} parameter(0), sharding={replicated}
  m = f32[262144,1024]{1,0} parameter(1), sharding={replicated}
  x = bf16[1024,262144]{1,0} parameter(2), sharding={devices=[8,1]<=[8]}
  narrow = bf16[262144,1024]{1,0} convert(w)
  y = bf16[1024,1024]{1,0} dot(x, narrow), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  g = f32[262144,1024]{1,0} dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  s = f32[262144,1024]{1,0} all-reduce(g), replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=sum
  n = f32[262144,1024]{1,0} add(m, s)
  v = f32[262144,1024]{1,0} subtract(w, n)
  ROOT t = (f32[262144,1024]{1,0}, f32[262144,1024]{1,0}) tuple(v, n)
}
"""


def test_weights_that_the_forward_pass_reads_are_not_the_updates_own() -> None:
    """Also where it reads them in a narrower copy: spreading them takes a gather in each step, which ZeRO-1 does without."""
    config = lint.Config(select=("C110",), **support.SAY_ALL)
    (finding,) = lint.run(hlo.parse(UPDATED), config)
    assert finding.instruction is not None
    assert (finding.instruction.name, finding.bytes) == ("m", 4 * 262144 * 1024 * 7 // 8)
    no_moments = UPDATED.replace(", {1}: (1, {})", "")
    assert not lint.run(hlo.parse(no_moments), config)

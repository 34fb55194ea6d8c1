"""What findings about collectives say they cost, and which are not worth saying: on small modules."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext import cost, dumps, lint
from hlotext.analysis.chips import chip
from hlotext.lint.helpers import operation
from hlotext.lint.merged import reports_of
from hlotext.lint.parts.nothing_overlapped import NothingOverlapped
from hlotext.syntax.source.inputs import read_source
from tests import support
from tests.support import ON_GPU

ROUNDS = """HloModule rounds, num_partitions=8

body {
  state = (s32[], f32[131072], s32[131072,1]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  mine = f32[131072] get-tuple-element(state), index=1
  sources = s32[131072,1] get-tuple-element(state), index=2
  table = f32[1048576] all-gather(mine), replica_groups=[1,8]<=[8], dimensions={0}, channel_id=1, OP_NAME
  new = f32[131072] %s
  twice = f32[131072] add(new, mine)
  ROOT out = (s32[], f32[131072], s32[131072,1]) tuple(next, twice, sources)
}

condition {
  state = (s32[], f32[131072], s32[131072,1]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  last = s32[] constant(50)
  ROOT less = pred[] compare(i, last), direction=LT
}

ENTRY main {
  start = f32[131072] parameter(0), sharding={devices=[8]<=[8]}
  sources = s32[131072,1] parameter(1), sharding={devices=[8,1]<=[8]}
  zero = s32[] constant(0)
  state = (s32[], f32[131072], s32[131072,1]) tuple(zero, start, sources)
  loop = (s32[], f32[131072], s32[131072,1]) while(state), condition=condition, body=body
  ROOT result = f32[131072] get-tuple-element(loop), index=1
}
""".replace(
    "OP_NAME", 'use_global_device_ids=true, metadata={op_name="jit(f)/shard_map/while/body/all_gather"}'
)


def test_what_is_gathered_to_be_looked_up_must_be() -> None:
    """Each round wants any elements of what the round before has made; a part at a known place could have been sent alone."""
    config = lint.Config(select=("C101",), **support.SAY_ALL)
    picked = (
        "gather(table, sources), offset_dims={}, collapsed_slice_dims={0}, "
        "start_index_map={0}, index_vector_dim=1, slice_sizes={1}"
    )
    assert not lint.run(hlo.parse(ROUNDS % picked), config)
    by_hand = ROUNDS % picked
    assert not lint.run(hlo.parse(by_hand.replace("body/all_gather", "body/gather")), config)
    assert len(lint.run(hlo.parse(ROUNDS % "slice(table), slice={[0:131072]}"), config)) == 1


EXPERTS = """HloModule experts, is_scheduled=true, num_partitions=8, frontend_attributes={ON_GPU}

body {
  state = (s32[], bf16[8,512,1024]{2,1,0}, bf16[16,8,1024,1024]{3,2,1,0}) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  tokens = bf16[8,512,1024]{2,1,0} get-tuple-element(state), index=1
  weights = bf16[16,8,1024,1024]{3,2,1,0} get-tuple-element(state), index=2
  one = s32[] constant(1)
  zero = s32[] constant(0)
  next = s32[] add(i, one)
  sent = bf16[8,512,1024]{2,1,0} all-to-all(tokens), channel_id=1, replica_groups=[1,8]<=[8], dimensions={0}
  layer = bf16[1,8,1024,1024]{3,2,1,0} dynamic-slice(OF, i, zero, zero, zero), dynamic_slice_sizes={1,8,1024,1024}
  own = bf16[8,1024,1024]{2,1,0} bitcast(layer)
  made = bf16[8,512,1024]{2,1,0} dot(sent, own), DIMENSIONS
  back = bf16[8,512,1024]{2,1,0} all-to-all(made), channel_id=2, replica_groups=[1,8]<=[8], dimensions={0}
  ROOT out = (s32[], bf16[8,512,1024]{2,1,0}, bf16[16,8,1024,1024]{3,2,1,0}) tuple(next, back, weights)
}

condition {
  state = (s32[], bf16[8,512,1024]{2,1,0}, bf16[16,8,1024,1024]{3,2,1,0}) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  last = s32[] constant(16)
  ROOT less = pred[] compare(i, last), direction=LT
}

ENTRY main {
  tokens = bf16[8,512,1024]{2,1,0} parameter(0)
  weights = bf16[16,8,1024,1024]{3,2,1,0} parameter(1)
  other = bf16[16,8,1024,1024]{3,2,1,0} multiply(weights, weights)
  zero = s32[] constant(0)
  start = (s32[], bf16[8,512,1024]{2,1,0}, bf16[16,8,1024,1024]{3,2,1,0}) tuple(zero, tokens, GIVEN)
  loop = (s32[], bf16[8,512,1024]{2,1,0}, bf16[16,8,1024,1024]{3,2,1,0}) while(start), condition=condition, body=body
  ROOT result = bf16[8,512,1024]{2,1,0} get-tuple-element(loop), index=1
}
"""


BY_EXPERT = "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}"


@pytest.mark.parametrize(("given", "count"), [("weights", 0), ("other", 1)])
def test_tokens_go_to_their_experts(given: str, count: int) -> None:
    """What is computed before the loop and read in its rounds are saved activations, as of a batch of heads."""
    text = (
        EXPERTS.replace("ON_GPU", ON_GPU)
        .replace("OF", "weights")
        .replace("GIVEN", given)
        .replace("DIMENSIONS", BY_EXPERT)
    )
    found = lint.run(hlo.parse(text), lint.Config(select=("C101",), **support.SAY_ALL))
    assert [finding.places for finding in found] == [2] * count


SMALL_ROUNDS = """HloModule small_rounds, is_scheduled=true, num_partitions=8, frontend_attributes={ON_GPU}

tanh {
  p = f32[64,64]{1,0} parameter(0)
  ROOT t = f32[64,64]{1,0} tanh(p)
}

body {
  state = (s32[], f32[65536]{0}, f32[64,64]{1,0}) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  part = f32[65536]{0} get-tuple-element(state), index=1
  x0 = f32[64,64]{1,0} get-tuple-element(state), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  all = f32[524288]{0} all-gather(part), channel_id=1, replica_groups=[1,8]<=[8], dimensions={0}, use_global_device_ids=true
  same = f32[65536]{0} slice(all), slice={[0:65536]}
KERNELS
  ROOT out = (s32[], f32[65536]{0}, f32[64,64]{1,0}) tuple(next, same, xLAST)
}

condition {
  state = (s32[], f32[65536]{0}, f32[64,64]{1,0}) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  last = s32[] constant(100)
  ROOT less = pred[] compare(i, last), direction=LT
}

ENTRY main {
  part = f32[65536]{0} parameter(0)
  x = f32[64,64]{1,0} parameter(1)
  zero = s32[] constant(0)
  start = (s32[], f32[65536]{0}, f32[64,64]{1,0}) tuple(zero, part, x)
  loop = (s32[], f32[65536]{0}, f32[64,64]{1,0}) while(start), condition=condition, body=body
  ROOT result = f32[64,64]{1,0} get-tuple-element(loop), index=2
}
"""


EIGENVALUES = """  whole = f32[2048,2048]{0,1} broadcast(one)
  values = (f32[2048,2048]{0,1}, f32[2048]{0}) custom-call(whole), custom_call_target="cusolver_syevd_ffi"
"""


@pytest.mark.parametrize(("kernels", "solver", "count"), [(10, "", 1), (2000, "", 0), (10, EIGENVALUES, 0)])
def test_launches_and_solvers_take_time_too(kernels: int, solver: str, count: int) -> None:
    """The gather takes 9 microseconds of each round; 2,000 kernels with nothing to do take two milliseconds, and so do
    many eigenvalues, beside which it is no warning."""
    lines = [f"  x{n + 1} = f32[64,64]{{1,0}} fusion(x{n}), kind=kLoop, calls=tanh" for n in range(kernels)]
    lines.append(solver)
    text = (
        SMALL_ROUNDS.replace("ON_GPU", ON_GPU)
        .replace("KERNELS", "\n".join(lines))
        .replace("LAST", str(kernels))
    )
    found = lint.run(hlo.parse(text), lint.Config(select=("C101",)))
    warned = [finding.code for finding in found if finding.severity is hlo.Severity.WARNING]
    assert warned == ["C101"] * count


FLYING = """HloModule flying, is_scheduled=true, num_partitions=4, frontend_attributes={ON_GPU}

ENTRY main {
  small = f32[1048576]{0} parameter(0)
  large = f32[LARGE]{0} parameter(1)
  x = f32[4096,4096]{1,0} parameter(2)
  large-start = (f32[LARGE]{0}, f32[LARGE]{0}) collective-permute-start(large), channel_id=1, RING
  start = (f32[1048576]{0}, f32[1048576]{0}) collective-permute-start(small), channel_id=2, RING
  done = f32[1048576]{0} collective-permute-done(start)
  large-done = f32[LARGE]{0} collective-permute-done(large-start)
  y = f32[4096,4096]{1,0} add(x, x)
  ROOT t = (f32[1048576]{0}, f32[LARGE]{0}, f32[4096,4096]{1,0}) tuple(done, large-done, y)
}
"""


def idle(text: str) -> list[lint.Finding]:
    """The findings of C106 about pairs of start and done with nothing in between."""
    module = hlo.parse(text)
    part, context = NothingOverlapped(), lint.make_context(module)
    starts = [report.instruction for report in reports_of(part, context)]
    found = lint.run(module, lint.Config(select=("C106",), **support.SAY_ALL))
    return [one for one in found if one.instruction in starts and "does not overlap" in one.message]


@pytest.mark.parametrize(("large", "lines"), [("1048576", [8]), ("4194304", [7])])
def test_the_wait_is_for_the_longest_that_is_on_its_way(large: str, lines: list[int]) -> None:
    text = (
        FLYING.replace("ON_GPU", ON_GPU)
        .replace("RING", "source_target_pairs={{0,1},{1,2},{2,3},{3,0}}")
        .replace("LARGE", large)
    )
    found = idle(text)
    assert sorted(line for finding in found for line in (finding.line, *finding.other_lines)) == lines


SORTED = """HloModule sorted, is_scheduled=true, num_partitions=8, frontend_attributes={ON_GPU}

body {
  state = (s32[], s32[65536]{0}, s32[524288]{0}) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  x = s32[65536]{0} get-tuple-element(state), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  places = s32[65536]{0} iota(), iota_dimension=0
  device = u32[] partition-id()
  number = s32[] convert(device)
  numbers = s32[65536]{0} broadcast(number), dimensions={}
  own = s32[65536]{0} add(places, OTHERS)
  all = s32[524288]{0} all-gather(own), channel_id=1, replica_groups=[1,8]<=[8], dimensions={0}, use_global_device_ids=true
  ROOT out = (s32[], s32[65536]{0}, s32[524288]{0}) tuple(next, x, all)
}

condition {
  state = (s32[], s32[65536]{0}, s32[524288]{0}) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  last = s32[] constant(100)
  ROOT less = pred[] compare(i, last), direction=LT
}

ENTRY main {
  x = s32[65536]{0} parameter(0)
  y = s32[524288]{0} parameter(1)
  zero = s32[] constant(0)
  start = (s32[], s32[65536]{0}, s32[524288]{0}) tuple(zero, x, y)
  ROOT loop = (s32[], s32[65536]{0}, s32[524288]{0}) while(start), condition=condition, body=body
}
"""


@pytest.mark.parametrize(("others", "count"), [("numbers", 0), ("x", 1)])
def test_the_places_of_what_is_sorted_are_the_compilers(others: str, count: int) -> None:
    text = SORTED.replace("ON_GPU", ON_GPU).replace("OTHERS", others)
    assert len(lint.run(hlo.parse(text), lint.Config(select=("C102",), **support.SAY_ALL))) == count


@pytest.mark.parametrize(
    "name",
    [
        "jit(step)/jvp(f)/dot.3",
        "jit(step)/transpose(jvp(f))/dot.14",
        "jit(step)/jvp(f)/checkpoint/rematted_computation/dot",
    ],
)
def test_the_backward_pass_computes_the_same_operation_again(name: str) -> None:
    module = hlo.parse(
        'ENTRY e { ROOT p = f32[] parameter(0), metadata={op_name="NAME"} }'.replace("NAME", name)
    )
    assert operation(module.entry.root).rstrip(".") == "jit(step)/jvp(f)/dot"


SHIFTED = """HloModule shifted, is_scheduled=true, num_partitions=4, frontend_attributes={ON_GPU}

step {
  n = s32[] parameter(0)
  ROOT next = s32[] multiply(n, n)
}

condition {
  n = s32[] parameter(0)
  bound = s32[] constant(7)
  ROOT less = pred[] compare(n, bound), direction=LT
}

ENTRY main {
  x = f32[1048576]{0} parameter(0)
  n = s32[] parameter(1)
  start = (f32[1048576]{0}, f32[1048576]{0}) collective-permute-start(x), channel_id=1, RING, metadata={op_name="shift"}
  done = f32[1048576]{0} collective-permute-done(start)
  y = f32[1048576]{0} collective-permute(x), channel_id=2, RING, metadata={op_name="OTHER"}
  last = s32[] LOOP
  ROOT t = (f32[1048576]{0}, f32[1048576]{0}, s32[]) tuple(done, y, last)
}
""".replace("RING", "source_target_pairs={{0,1},{1,2},{2,3},{3,0}}").replace("ON_GPU", ON_GPU)


@pytest.mark.parametrize(
    ("other", "loop", "count"),
    [
        ("another", "negate(n)", 1),
        ("transpose(shift)", "negate(n)", 1),
        ("shift", "negate(n)", 0),
        ("another", "while(n), condition=condition, body=step", 0),
    ],
)
def test_idle_pairs_are_not_told_where_it_is_synchronous_elsewhere_or_nobody_knows(
    other: str, loop: str, count: int
) -> None:
    text = SHIFTED.replace("OTHER", other).replace("LOOP", loop)
    assert len(idle(text)) == count


TWICE = """HloModule twice, is_scheduled=true, num_partitions=4, frontend_attributes={ON_GPU}

ENTRY main {
  x = f32[1048576]{0} parameter(0)
  m = f32[4096,4096]{1,0} parameter(1)
  y = f32[1048576]{0} parameter(2)
  a = f32[4194304]{0} all-gather(x), channel_id=1, GROUPS, metadata={op_name="another"}
  b = f32[4194304]{0} all-gather(x), channel_id=2, GROUPS, metadata={op_name="gather"}
  c = f32[4194304]{0} all-gather(y), channel_id=3, GROUPS, metadata={op_name="OTHER"}
  p = f32[4096,4096]{1,0} dot(m, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[4194304]{0}, f32[4194304]{0}, f32[4194304]{0}, f32[4096,4096]{1,0}) tuple(a, b, c, p)
}
"""


@pytest.mark.parametrize(
    ("other", "codes"), [("third", ["C106", "C105", "C106"]), ("gather", ["C106", "C105"])]
)
def test_of_one_operation_the_rule_that_says_most_speaks(other: str, codes: list[str]) -> None:
    text = TWICE.replace("GROUPS", "replica_groups=[1,4]<=[4], dimensions={0}, use_global_device_ids=true")
    text = text.replace("OTHER", other).replace("ON_GPU", ON_GPU)
    found = lint.run(hlo.parse(text), lint.Config(select=("C105", "C106")))
    assert [finding.code for finding in found] == codes


@pytest.mark.parametrize(
    ("name", "count"), [("jit(f)/while/body/dot_general", 1), ("jit(f)/while/body/top_k", 0)]
)
def test_what_looks_at_all_of_an_array_needs_all_of_it(name: str, count: int) -> None:
    text = SMALL_ROUNDS.replace("ON_GPU", ON_GPU).replace("KERNELS\n", "").replace("LAST", "0")
    text = text.replace("ids=true\n", f'ids=true, metadata={{op_name="{name}"}}\n')
    assert len(lint.run(hlo.parse(text), lint.Config(select=("C101",), **support.SAY_ALL))) == count


FOLDERS = support.DATA / "collectives"


@pytest.mark.parametrize(
    ("name", "tensor", "suggested"),
    [
        (
            "cpu.mlp_second_wrong.shardy",
            "needs the result of mul (line 29) as P('dp', None), but it is P('dp', 'tp')",
            "argument w1",
        ),
        (
            "cpu.loop_constraint_inside.shardy",
            "the sharding constraint (line 465)",
            "the constraint on line 465",
        ),
        ("cpu_0.12.mlp_second_wrong.shardy", "as P('dp', None), but it is P('dp', 'tp')", "argument w1"),
    ],
)
def test_a_reshard_is_told_with_the_annotation_that_spares_it(
    name: str, tensor: str, suggested: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a folder, packed or not: tensor, both shardings, what to write. The final HLO alone tells nothing for sure, so
    that no cause is looked for."""
    config = lint.Config(select=("C111",), **support.SAY_ALL)
    packed = FOLDERS / f"{name}.tar.xz"
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path, filter="data")
    for place in (packed, tmp_path):
        (text,) = lint.texts_in(str(place))
        result = next(iter(lint.lint_files([text], config)))
        assert result.linted is not None
        (finding, *_) = [one for one in result.linted.findings if tensor in one.message]
        assert "reshards an array, each device sends" in finding.message
        assert suggested in finding.help
        assert "recompilations on" in finding.help
        assert finding.waste == "sent"
        assert finding.seconds
    final = Path(str(text))
    monkeypatch.setattr(dumps.collectives, "of_module", None)
    assert lint.lint_source(read_source(final), config).findings == ()


@pytest.mark.parametrize(
    "name", ["cpu.scan_fsdp.shardy", "gpu.train_data_parallel.shardy", "cpu.shard_map_psum.shardy"]
)
def test_what_a_scheme_or_the_program_asks_for_is_no_reshard(name: str) -> None:
    """Gathers of FSDP weights, sums of gradients, and collectives that the program calls."""
    config = lint.Config(select=("C111",), **support.SAY_ALL)
    texts = lint.texts_in(str(FOLDERS / f"{name}.tar.xz"))
    results = [result.linted for result in lint.lint_files(texts, config)]
    assert results
    assert all(linted is not None and not linted.findings for linted in results)


OWN_PART = """  p = u32[] partition-id()
  size = u32[] constant(65536)
  i = u32[] multiply(p, size)
"""


@pytest.mark.parametrize(("place", "saved"), [("  i = s32[] parameter(1)\n", 6 / 8), (OWN_PART, 7 / 8)])
def test_of_a_gather_then_sliced_what_still_moves_is_not_saved(place: str, saved: float) -> None:
    """A device's own part comes in one exchange. Before a slice at a place that the run tells pieces are exchanged, and then
    the slice is sent: compiled so for CPU, GPU and TPU, of 48 MiB 16.5 are left with slices of 9.4% on four devices."""
    text = (support.DATA / "lint" / "C108.txt").read_text().split("\n\nHloModule silent")[0]
    module = hlo.parse(text.replace("  i = s32[] parameter(1)\n", place))
    (finding,) = lint.run(module, lint.Config(select=("C108",), chip="v5e", **support.SAY_ALL))
    (transfer,) = cost.estimate(module, chip("v5e")).transfers
    assert finding.seconds == pytest.approx(transfer.seconds * saved)
    assert finding.bytes == round(7 * 65536 * 4 * saved)
    assert ("before the slice" in finding.help) == (saved == 6 / 8)


def test_the_constraint_that_asks_for_a_gather_is_named_by_whichever_rule_finds_the_gather(
    tmp_path: Path,
) -> None:
    """Compiled by XLA 0.12 for four GPUs: the final HLO has no operation of `with_sharding_constraint(h, P())`."""
    config = lint.Config(select=("C108", "C111"), **support.SAY_ALL)
    with tarfile.open(support.DATA / "lint" / "gpu.constraint_replicates.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    (text,) = lint.texts_in(str(tmp_path))
    linted = next(iter(lint.lint_files([text], config))).linted
    assert linted is not None
    (finding,) = linted.findings
    assert finding.code == "C108"
    assert finding.message.endswith(
        "; the partitioner inserted it because tanh (line 35) needs the result of dot_general (line 35) as P(None, None), "
        "but it is P('dp', None); the constraint on line 36 asks for it"
    )
    assert finding.help.startswith("write the constraint on line 36 as P('dp', None) (")
    alone = lint.lint_source(read_source(Path(str(text))), config).findings
    assert "often a with_sharding_constraint (`hlotext dump collectives DIR` names it)" in alone[0].help


LOOKED_UP = """HloModule looked_up, num_partitions=8, is_scheduled=true

ENTRY main {
  rows = f32[8192,64]{1,0} parameter(0)
  ids = s32[4096]{0} parameter(1)
  table = f32[65536,64]{1,0} all-gather(rows), channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}}, dimensions={0}, GLOBAL
  ROOT found = f32[4096,64]{1,0} gather(table, ids), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, SIZES
}
"""
LOOKED_UP = LOOKED_UP.replace("GLOBAL", "use_global_device_ids=true")
LOOKED_UP = LOOKED_UP.replace("SIZES", "index_vector_dim=1, slice_sizes={1,64}")


def test_of_a_table_rows_are_exchanged_and_nothing_is_sliced() -> None:
    """Compiled for four GPUs: XLA gathers the table where its rows take less than all that are looked up; each device needs
    at most as many of them as it has indices."""
    module = hlo.parse(LOOKED_UP)
    (finding,) = lint.run(module, lint.Config(select=("C108",), chip="h100", **support.SAY_ALL))
    assert finding.help.startswith("exchange rows instead of gathering the table")
    assert "slice" not in finding.help
    (transfer,) = cost.estimate(module, chip("h100")).transfers
    assert finding.seconds == pytest.approx(transfer.seconds * 15 / 16)


def test_a_gather_written_by_hand_has_no_sharding_to_change() -> None:
    """In a shard_map the remedy is another operation."""
    text = (support.DATA / "lint" / "C108.txt").read_text().split("\n\nHloModule silent")[0]
    config = lint.Config(select=("C108",), chip="v5e", **support.SAY_ALL)
    (finding,) = lint.run(hlo.parse(text), config)
    assert "reshard before the slice" in (finding.help or "")
    by_hand = text.replace(" // expect", ', metadata={op_name="jit(f)/shard_map/all_gather"} // expect')
    (finding,) = lint.run(hlo.parse(by_hand), config)
    assert "use lax.all_to_all instead of the all-gather and the slice" in (finding.help or "")


@pytest.mark.parametrize("rounds", [7, 50])
def test_bytes_are_of_as_many_rounds_as_seconds(rounds: int) -> None:
    """Of a loop whose rounds the text does not tell, both are for the rounds that are taken."""
    text = (support.DATA / "lint" / "C101.txt").read_text().split("\n\nHloModule silent")[0]
    module = hlo.parse(
        text.replace("bound = s32[] constant(8)", "bound = s32[] get-tuple-element(state), index=0")
    )
    config = lint.Config(select=("C101",), chip="v5e", trips={"body": rounds}, **support.SAY_ALL)
    (finding,) = lint.run(module, config)
    assert finding.bytes == 7 * 65536 * 4 * rounds
    assert finding.message.endswith("each device sends 1.75 MiB per iteration")
    assert finding.seconds == pytest.approx(
        sum(one.seconds for one in cost.estimate(module, chip("v5e"), trips={"body": rounds}).transfers)
    )


def test_only_what_stays_is_to_be_gathered_before_the_loop() -> None:
    """The state of the loop changes in each round; of several operands one may not."""
    text = (support.DATA / "lint" / "C101.txt").read_text().split("\n\nHloModule silent")[0]
    config = lint.Config(select=("C101",), **support.SAY_ALL)
    (changing,) = lint.run(hlo.parse(text), config)
    assert changing.help == "shard the operand as it is used"
    fixed = (
        text.replace("(s32[], f32[65536]{0})", "(s32[], f32[65536]{0}, f32[65536]{0})")
        .replace("  g = f32", "  w = f32[65536]{0} get-tuple-element(state), index=2\n  both = f32")
        .replace(
            "both = f32[524288]{0} all-gather(x)", "both = (f32[524288]{0}, f32[524288]{0}) all-gather(x, w)"
        )
        .replace("  y = ", "  g = f32[524288]{0} get-tuple-element(both), index=0\n  y = ")
        .replace("tuple(next, y)", "tuple(next, y, w)")
        .replace("tuple(zero, p0)", "tuple(zero, p0, p0)")
    )
    (partly,) = lint.run(hlo.parse(fixed), config)
    assert (
        partly.help
        == "shard the operand as it is used, or gather the loop-invariant operands once, before the loop"
    )


@pytest.mark.parametrize(
    ("made", "op_name", "advice"),
    [
        # x.at[1:-1].set(...): compiled for v5e and four devices, 134 ms as it is and 0.57 ms with jnp.where
        (
            "zero = s32[] constant(0)\n  new = f32[524286]{0} slice(g), slice={[0:524286]}\n"
            "  w = f32[524288]{0} dynamic-update-slice(g, new, one)\n"
            "  y = f32[65536]{0} slice(w), slice={[0:65536]}",
            "",
            "select by position instead of writing to part",
        ),
        # jnp.roll by an argument: 164 ms, by a constant 0.30 ms
        ("", "jit(f)/while/body/jit(_roll_dynamic)/concatenate", "roll by a static amount"),
        # shifts of slices: 92.9 ms on CPU, by jnp.roll 8.3 ms
        (
            "",
            "jit(f)/while/body/concatenate",
            "shard the operand as it is used, or, to shift it, use jnp.roll",
        ),
        # all of the dimension is written
        (
            "zero = s32[] constant(0)\n  w = f32[524288]{0} dynamic-update-slice(g, g, zero)\n"
            "  y = f32[65536]{0} slice(w), slice={[0:65536]}",
            "jit(f)/while/body/add",
            "shard the operand as it is used",
        ),
    ],
)
def test_what_shifts_along_a_split_dimension_is_to_be_rolled(made: str, op_name: str, advice: str) -> None:
    """Sharding the operand otherwise does not help there: rows that cross to another device are all that need be sent."""
    text = (support.DATA / "lint" / "C101.txt").read_text().split("\n\nHloModule silent")[0]
    if made:
        text = text.replace("y = f32[65536]{0} slice(g), slice={[0:65536]}", made)
    if op_name:
        text = text.replace(
            "use_global_device_ids=true //",
            f'use_global_device_ids=true, metadata={{op_name="{op_name}"}} //',
        )
    (finding,) = lint.run(hlo.parse(text), lint.Config(select=("C101",), **support.SAY_ALL))
    assert finding.help.startswith(advice)
    assert ("jnp." in finding.help) == (
        advice != "shard the operand as it is used" and "roll by" not in advice
    )


TIED = """HloModule tied, is_scheduled=true, num_partitions=8

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

added {
  a = f32[2048,256]{1,0} parameter(0)
  b = f32[256,2048]{0,1} parameter(1)
  c = f32[2048,256]{1,0} bitcast(b)
  d = f32[2048,256]{1,0} JOIN(a, c)
  ROOT e = f32[2048,256]{1,0} negate(d)
}

ENTRY main {
  x = f32[2048,256]{1,0} parameter(0)
  y = f32[256,2048]{0,1} parameter(1)
  p = f32[2048,256]{1,0} all-reduce(x), channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}}, GLOBAL
  q = f32[256,2048]{0,1} all-reduce(y), channel_id=2, replica_groups=GROUPS, GLOBAL
  r = f32[2048,256]{1,0} fusion(p, q), kind=kLoop, calls=added
  ROOT t = (f32[2048,256]{1,0}, f32[2048,256]{1,0}) tuple(r, OTHER)
}
"""


@pytest.mark.parametrize(
    ("join", "groups", "other", "count"),
    [
        ("add", "[1,8]<=[8]", "r", 1),
        ("multiply", "[1,8]<=[8]", "r", 0),
        ("add", "{{0,1,2,3},{4,5,6,7}}", "r", 0),
        ("add", "[1,8]<=[8]", "p", 0),
    ],
    ids=["only added", "multiplied", "over other groups", "one is a result too"],
)
def test_two_sums_that_are_only_added_are_one(join: str, groups: str, other: str, count: int) -> None:
    """As both gradients of an embedding that is also the output projection."""
    text = TIED.replace("JOIN", join).replace("GROUPS", groups).replace("OTHER", other)
    text = text.replace("GLOBAL", "use_global_device_ids=true, to_apply=sum")
    module = hlo.parse(text)
    found = lint.run(module, lint.Config(**{**support.SAY_ALL, "select": ("C113",)}, chip="h100"))
    assert len(found) == count
    if count:
        (one,) = found
        prices = lint.make_context(module, chip="h100").prices
        (second,) = (each for each in module.entry if each.name == "q")
        assert one.seconds == pytest.approx(prices.seconds(second))
        assert one.bytes == 2048 * 256 * 4 * 2 * 7 // 8

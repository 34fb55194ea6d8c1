"""Texts of every kind that nothing may trip over: damaged ones, right ones made from the tables, and all that ever failed."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings

import hlotext as hlo
from hlotext import thunks
from hlotext.cost import custom_calls
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.tables import targets
from hlotext.ir.tables.opcodes import OPCODES
from hlotext.thunks import cpu, gpu
from tests import endless, support
from tests.fuzz import __main__ as command
from tests.fuzz import generate, meaning, mutate, oracle, seeds
from tests.test_readers import check_readers

CASES = 5_000
SHARDS = 10
"""So many tests, so that they can run side by side."""

BROKEN = sorted((support.DATA / "err").glob("*.hlo")) + sorted(support.INVALID.iterdir())
RIGHT = sorted((support.DATA / "ok").glob("*.hlo")) + support.corpus_files(["handmade"])


@pytest.mark.parametrize("shard", support.in_stages(range(SHARDS), slow=1, nightly=3))
def test_damaged_texts(shard: int) -> None:
    """Bytes, tokens and lines out of place: nothing but HloSyntaxError, nothing lost, everything printed."""
    small = seeds.small()
    for number in range(shard, CASES, SHARDS):
        data = mutate.case(small, 1, number)
        try:
            oracle.check(data, styles=oracle.STYLES[:2])
        except Exception as error:
            error.add_note(f"case {number} of seed 1: {data!r}")
            raise


@pytest.mark.parametrize("path", [*BROKEN, *RIGHT], ids=lambda path: path.stem)
def test_known_texts(path: Path) -> None:
    """The files of tests/data and the broken ones of the corpus, in every style of printing."""
    is_right = oracle.check(path.read_bytes())
    assert is_right or path not in RIGHT


@pytest.mark.slow
@settings(max_examples=150)
@given(generate.modules())
def test_right_modules(text: str) -> None:
    """Modules made from the opcode table are read by both readers alike, and what is printed of them is read again.

    XLA's first print is not always its last (it leaves out blanks in strings, and simplifies shardings); the second is.
    """
    read = check_readers(text)
    assert read.error == ""
    assert oracle.check(text)
    options = hlo.PrintOptions(print_large_constants=True)
    for module in read.modules:
        printed = hlo.parse(module.to_text(options)).to_text(options)
        assert hlo.parse(printed).to_text(options) == printed


def test_right_modules_are_of_every_kind() -> None:
    """Every opcode of the table is written by one of the ways in which lines are made."""
    free = {row.name for row in generate.free_opcodes()}
    complete = {row.name for row in generate.complete_opcodes()}
    assert free | complete | {"async-update", "async-done"} >= set(OPCODES) - _ENDS
    assert len(free) > 90


_ENDS = frozenset(name for name in ROLES if name.endswith("-done"))
"""Ends of asynchronous operations, which need a beginning: the free lines have those with a name of their own."""


# ---- the tools themselves


def test_cases_can_be_made_again() -> None:
    """A seed and a number say it all; other numbers are other texts."""
    small = seeds.small()
    texts = [mutate.case(small, 1, number) for number in range(200)]
    assert texts == [mutate.case(small, 1, number) for number in range(200)]
    assert len(set(texts)) > 190
    assert texts != [mutate.case(small, 2, number) for number in range(200)]


def test_most_cases_are_broken_and_some_are_not() -> None:
    """Damage that nobody notices finds nothing, and neither does a text that is junk from its first word."""
    small = seeds.small()
    codes: Counter[str] = Counter()
    for number in range(600):
        try:
            hlo.parse(mutate.case(small, 1, number))
        except hlo.HloSyntaxError as error:
            codes[error.code] += 1
    assert 300 < codes.total() < 590
    assert codes["X123"] < 100
    assert len(codes) > 8


def test_the_command_finds_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        command.main(["--count", "20", "--memory", "10", "--large", "0", "--out", str(tmp_path / "x")]) == 0
    )
    assert "20 cases" in capsys.readouterr().out
    assert not (tmp_path / "x").exists()


def test_the_command_keeps_what_it_finds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text, so that it can become a file of tests/data/err, and what is wrong with it."""
    numbers = itertools.count()
    real = oracle.check

    def check(data: bytes, *, styles: Sequence[hlo.PrintOptions]) -> bool:
        if next(numbers) == 4:
            raise RecursionError("too deep")
        return real(data, styles=styles)

    monkeypatch.setattr(oracle, "check", check)
    arguments = ["--count", "6", "--seed", "3", "--memory", "0", "--large", "0", "--out", str(tmp_path)]
    assert command.main(arguments) == 1
    assert "3: RecursionError at test_fuzz.py" in capsys.readouterr().out
    (found,) = tmp_path.iterdir()
    assert found.read_bytes() == mutate.case(seeds.small(), 3, 3)


def test_the_command_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts that take too long, do not end, or take too much memory are findings."""
    figures = command.Figures()
    monkeypatch.setattr(command, "SLOW", -1.0)
    assert command.examine(b"", figures, with_memory=False).startswith("slow: ")
    monkeypatch.setattr(command, "SLOW", 1e9)
    monkeypatch.setattr(command, "FREE_MEMORY", 0)
    text = b"HloModule m ENTRY e { ROOT c = f32[] constant(0) }"
    assert command.examine(text, figures, with_memory=True).startswith("memory: ")
    assert figures.most_memory > command.MOST_MEMORY
    assert figures.cases == 2


def test_a_case_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(_: bytes, *, styles: Sequence[hlo.PrintOptions]) -> bool:
        while styles:
            pass
        return True

    monkeypatch.setattr(oracle, "check", check)
    monkeypatch.setattr(command, "ENDLESS", 0.01)
    with endless.watching():
        assert command.examine(b"", command.Figures(), with_memory=False).startswith(
            "Endless at test_fuzz.py"
        )


@pytest.mark.parametrize(
    "shard", [pytest.param(n, marks=pytest.mark.slow if n else ()) for n in range(SHARDS)]
)
def test_what_means_something_odd(shard: int) -> None:
    """Parts of lines that have changed places, and protos with a field changed: nothing is raised."""
    for number in range(shard, 120 * SHARDS, SHARDS):
        try:
            meaning.check(number)
        except Exception as error:
            error.add_note(f"python -m tests.fuzz.meaning --only {number}")
            raise


ODD = {
    "a start whose result is an array": "  s = f32[8] all-gather-start(p), replica_groups={{0,1}}, dimensions={0}\n"
    "  ROOT d = f32[16] all-gather-done(s)",
    "devices that are all the same": "  ROOT r = f32[8] collective-broadcast(p), channel_id=1, replica_groups={{1,1}}",
    "a slice that gives a tuple": "  g = f32[524288] all-gather(p), channel_id=1, replica_groups=[1,8]<=[8], dimensions={0}\n"
    "  ROOT r = ((f32[4]), u32[]) slice(g), slice={[0:4]}",
    "a sort along a dimension that is not there": "  ROOT r = f32[8] sort(p), dimensions={3}, to_apply=less",
    "a constant beyond all memory": "  ROOT r = f32[9223372036854775807] constant({...})",
    "zeros beyond all memory": "  ROOT r = f32[2147483648,5] constant({...})",
    "lists for a list of numbers": "  i = s32[4,1] iota(), iota_dimension=0\n"
    "  ROOT r = f32[4,4] gather(q, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
    "slice_sizes={{1,4}}",
    "a transpose inside a fusion that is none": "  n = f32[9,4]{1,0} negate(q)\n"
    "  t = f32[36]{0} fusion(n), kind=kInput, calls=flattened\n  ROOT r = f32[36]{0} sine(t)",
    "a layout inside a fusion that is none": "  n = f32[9,4]{1,0} negate(q)\n"
    "  t = f32[4,9]{1,0} fusion(n), kind=kInput, calls=transposed\n  ROOT r = f32[4,9]{1,0} sine(t)",
}
"""What such cases have found."""
CALLED = """less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT l = pred[] compare(a, b), direction=LT
}

flattened {
  a = f32[9,4]{1,0} parameter(0)
  ROOT t = f32[36]{0} transpose(a), dimensions={1,0}
}

transposed {
  a = f32[9,4]{1,-1} parameter(0)
  ROOT t = f32[4,9]{1,0} transpose(a), dimensions={1,0}
}

"""


@pytest.mark.parametrize("lines", ODD.values(), ids=ODD)
def test_what_odd_meanings_have_found(lines: str) -> None:
    text = (
        f"HloModule m, is_scheduled=true, num_partitions=8\n\n{CALLED}ENTRY e {{\n  p = f32[8] parameter(0)\n"
        f"  q = f32[9,4]{{1,0}} parameter(1)\n{lines}\n}}\n"
    )
    result = hlo.parse_tolerant(text)
    assert not [one for one in result.diagnostics if one.severity is hlo.Severity.ERROR]
    meaning.use(result.modules[0])


def test_calls_of_the_entry_end() -> None:
    text = """HloModule m

a {
  p = f32[8] parameter(0)
  ROOT c = f32[8] call(p), to_apply=e
}

ENTRY e {
  p = f32[8] parameter(0)
  ROOT r = f32[8] call(p), to_apply=a
}
"""
    meaning.use(hlo.parse_tolerant(text).modules[0])


@pytest.mark.parametrize("line", meaning.LINES)
def test_lines_of_commands_run(line: str, tmp_path: Path) -> None:
    """A line that no command takes any more would find nothing for ever."""
    text = (support.CORPUS / "cpu" / "dot_algorithm.cpu_1.after_optimizations.txt").read_text()
    result = meaning.invoke(line, tmp_path, text, text, "select count(*) from instructions")
    if "an extra: pip install" in result.output:
        pytest.skip(result.output)
    assert result.exit_code in (0, 1), result.output


@pytest.mark.parametrize("line", meaning.LINES)
def test_what_means_something_odd_in_every_command(line: str, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    assert meaning.run_command(meaning.LINES.index(line), tmp_path) == ""


def test_a_loop_without_a_condition() -> None:
    """Texts cannot leave it out, but protos can."""
    module = hlo.parse(
        "HloModule m, is_scheduled=true\nb { a = f32[8] parameter(0)  ROOT n = f32[8] negate(a) }\n"
        "c { a = f32[8] parameter(0)  ROOT t = pred[] constant(true) }\n"
        "ENTRY e { p = f32[8] parameter(0)  ROOT w = f32[8] while(p), condition=c, body=b }"
    )
    loop = module.entry.root
    loop._attributes = {"body": loop._attributes["body"]}
    with pytest.raises(thunks.ThunkError, match="w lacks its condition or its body"):
        thunks.predict(module, platform="gpu")


@pytest.mark.parametrize("shape", ["f32[8,8]", "(f32[8,8], s32[8], s32[])"])
@pytest.mark.parametrize("operands", ["", "a", "t"])
def test_calls_of_known_targets_with_other_operands(shape: str, operands: str) -> None:
    """No verifier asks what a library's call takes: each model and rule that knows a target has to."""
    known = {
        *targets._KNOWN,
        *targets.FREE_TARGETS,
        *custom_calls._TARGETS,
        *gpu.TARGETS,
        *cpu.TARGETS,
    }
    for target in sorted(known):
        module = hlo.parse(
            "HloModule m, is_scheduled=true, num_partitions=4\n\nENTRY e {\n  a = f32[8,8]{1,0} parameter(0)\n"
            f"  t = (f32[8,8]{{1,0}}) tuple(a)\n"
            f'  c = {shape} custom-call({operands}), custom_call_target="{target}"\n  ROOT r = ({shape}) tuple(c)\n}}\n'
        )
        meaning.use(module)

"""The chip whose rules are taken: given, named by the folder, narrowed from the text, and never silently assumed."""

from __future__ import annotations

import json
import lzma
import pickle
from pathlib import Path
from typing import Any

import pytest

import hlotext as hlo
from hlotext import cost, memory, tables
from hlotext.analysis import Backend, chip_or_default, choose_chip
from hlotext.analysis.chip_choice import tpu_candidates
from hlotext.analysis.chips import CHIPS, read_chip
from hlotext.lint.price import prices_of
from tests.cli_support import run, run_json
from tests.support import DATA, ROOT

ROWS: list[dict[str, Any]] = json.loads(lzma.decompress((DATA / "cost" / "tpu.json.xz").read_bytes()))
V5E = ROOT / "corpus" / "tpu" / "mlp_forward.v5e_2x2x1.after_codegen.txt"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['program']}.{row['chip']}")
def test_the_text_leaves_its_own_chip_open(row: dict[str, Any]) -> None:
    found = tpu_candidates(hlo.parse(row["text"]))
    assert row["chip"] in found
    if row["chip"] == "tpu7x":
        assert found == ("tpu7x",)
    if "S(3)" in row["text"]:
        assert found == ("v4",)
    elif "S(1)" in row["text"]:
        assert not {"v2", "v3", "v4"} & set(found)


def test_what_is_given_counts_more_than_the_folder_and_this_more_than_the_text() -> None:
    module = hlo.load(V5E)
    choice = choose_chip(module, CHIPS["v6e"], CHIPS["v5p"])
    assert choice is not None
    assert (choice.chip.name, choice.source, str(choice)) == ("v6e", "given", "v6e")
    choice = choose_chip(module, None, CHIPS["v5p"])
    assert choice is not None
    assert (choice.chip.name, choice.source) == ("v5p", "folder")
    choice = choose_chip(module, None, CHIPS["h100"])
    assert choice is not None
    assert str(choice) == "one of v5e, v5p, v6e; assuming v5e (set --chip)"
    assert not choice.is_known


def test_lint_prices_on_the_chip_that_is_set_or_the_folder_names() -> None:
    module = hlo.load(V5E)

    def priced(chip: str, of_folder: str | None) -> tuple[str, str]:
        folder = CHIPS[of_folder] if of_folder is not None else None
        prices = prices_of(module, Backend.TPU, chip, None, folder)
        return prices.chip.name, prices.basis.partition(",")[0]

    assert priced("v6e", "v5p") == ("v6e", "v6e")
    assert priced("", "v5p") == ("v5p", "v5p (the dump's chip)")
    assert priced("", None) == ("v5e", "v5e (default chip)")
    assert priced("", "h100") == ("v5e", "v5e (default chip)")


def test_nothing_is_assumed_off_tpu() -> None:
    module = hlo.load(ROOT / "corpus" / "cpu" / "mlp_train.cpu_1.after_optimizations.txt")
    assert choose_chip(module) is None
    before = hlo.parse("HloModule m\n\nENTRY e {\n  ROOT p = f32[2] parameter(0)\n}\n")
    assert choose_chip(before) is None
    choice = choose_chip(before, backend=Backend.TPU)
    assert choice is not None
    assert len(choice.candidates) == 7


def test_every_command_says_what_it_assumes() -> None:
    said = "one of v5e, v5p, v6e; assuming v5e"
    for command in (("show",), ("cost",), ("cost", "--as-xla"), ("time",), ("memory",)):
        shown = run(command[0], str(V5E), *command[1:]).stdout
        assert said in shown, command
        assert ("set --chip" in shown) is (command[0] != "show"), command  # it has no such option
        if command[0] != "show":
            assert said not in run(command[0], str(V5E), *command[1:], "--chip", "v5e").stdout, command
    assert run_json("time", str(V5E))["modules"][0]["chip_candidates"] == ["v5e", "v5p", "v6e"]
    cpu = str(ROOT / "corpus" / "cpu" / "mlp_train.cpu_1.after_optimizations.txt")
    result = run("time", cpu)
    assert result.exit_code == 2
    assert "set --chip" in result.stderr


def test_a_chip_of_ones_own_follows_the_rules_of_its_base() -> None:
    own = read_chip('base = "v6e"\nbf16 = 1e15\n', "mine.toml")
    module = hlo.load(V5E)
    assert memory.assign(module, chip=own).total_bytes == memory.assign(module, chip="v6e").total_bytes


def test_times_are_never_negative() -> None:
    """Calls of unknown cost take a second away in XLA's figure; here they are counted beside it."""
    for row in ROWS:
        found = cost.estimate(hlo.parse(row["text"]), chip=row["chip"])
        assert found.roofline_seconds is not None
        assert found.roofline_seconds >= 0


def test_the_compilers_estimate_says_what_it_covers() -> None:
    found = cost.estimate(hlo.load(V5E), chip="v5e")
    own = found.compiler
    assert own is not None
    assert own.instructions == sum(one.cycles is not None for one in found.instructions)
    assert own.seconds == pytest.approx(
        sum((one.cycle_seconds or 0) * one.runs for one in found.instructions)
    )
    assert 0 < own.priced_share <= 1
    assert all(one.weight >= one.seconds for one in found.instructions)
    assert cost.estimate(hlo.parse(ROWS[0]["text"]), chip="v2").compiler is None


def test_a_program_takes_no_more_fast_memory_than_its_chip_has() -> None:
    """Of a chip that is assumed no more than the largest has of those that it may be."""
    shape = "f32[64,128,1024]{2,1,0:T(8,128)S(1)}"  # 32 MiB
    steps = [f"  a{n} = {shape} sine({f'a{n - 1}' if n else 'p'})\n" for n in range(8)]
    module = hlo.parse(
        "HloModule m, is_scheduled=true\n\nENTRY e {\n  p = f32[64,128,1024]{2,1,0:T(8,128)} parameter(0)\n"
        + "".join(steps)
        + "  ROOT r = f32[64,128,1024]{2,1,0:T(8,128)} sine(a7)\n}\n"
    )
    choice = choose_chip(module)
    assert choice is not None
    assert not choice.is_known
    sizes = [CHIPS[name].fast_memory_bytes or 0 for name in choice.candidates]
    for chip, most in ((None, max(sizes)), ("v5e", CHIPS["v5e"].fast_memory_bytes)):
        found = memory.assign(module, chip=chip).fast_memory
        assert found is not None
        assert found.at_most == most


def test_fast_memory_is_shown_with_its_bounds(tmp_path: Path) -> None:
    row = next(row for row in ROWS if row.get("vmem") and row["chip"] == "v6e")
    text = tmp_path / "a.txt"
    text.write_text(row["text"])
    found = run_json("memory", str(text), "--chip", "v6e")["modules"][0]["fast_memory"]
    assert found["at_least"] <= row["vmem"] <= found["at_most"]
    shown = run("memory", str(text), "--chip", "v6e").stdout
    assert ("between" in shown) == (not found["is_exact"])


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("cpu/mlp_forward.cpu_1.after_optimizations.txt", "cpu"),
        ("gpu/data_parallel.h100_1x1x4.after_optimizations.txt", "h100"),
        ("cpu/mlp_forward.cpu_1.before_optimizations.txt", "v5e"),
    ],
)
def test_the_usual_chip_of_a_platform_is_assumed(file: str, expected: str) -> None:
    """Estimates without a chip are for the platform that the text shows; that the chip is assumed can be seen."""
    module = hlo.load(ROOT / "corpus" / file)
    choice = chip_or_default(module)
    assert (choice.chip.name, choice.source) == (expected, "assumed")
    assert expected in choice.candidates
    assert cost.estimate(module).chip.name == expected
    seconds = tables.tables_of(module)["times"].columns["seconds"]
    assert (len(seconds) > 0) == (expected != "v5e")


def test_similar_names_are_suggested() -> None:
    module = hlo.load(V5E)
    name = module.entry.root.name
    with pytest.raises(KeyError, match=f"^no instruction is named {name}x; did you mean `{name}`") as caught:
        module.instruction(f"%{name}x")
    assert str(pickle.loads(pickle.dumps(caught.value)).args[0]) == str(caught.value)
    with pytest.raises(KeyError, match=r"^no computation is named nothing$"):
        module.computation("nothing")
    with pytest.raises(KeyError, match=rf"; did you mean `{name}`"):
        module.entry[f"{name}x"]
    with pytest.raises(KeyError, match="no attribute is named metadat; did you mean `metadata`"):
        module.entry.root.attributes["metadat"]
    with pytest.raises(hlo.HloSyntaxError, match=r"this is a path; use hlotext\.load"):
        hlo.parse(str(V5E))
    with pytest.raises(hlo.HloSyntaxError, match="did you mean `HloModule`"):
        hlo.parse("xHloModule m")

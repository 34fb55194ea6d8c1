"""Custom calls that tell what they do: bodies of Mosaic kernels, and tables of targets."""

from __future__ import annotations

import base64
import random
from importlib.util import find_spec
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext import cost, lint
from hlotext.analysis import mosaic
from tests.cli_support import run, run_json

NEEDS_JAXLIB = pytest.mark.skipif(find_spec("jaxlib") is None, reason="jaxlib is not installed")

CORPUS = Path("corpus/tpu")
GRADIENTS = CORPUS / "pallas_flash_attention_grad.v5e_2x2x1.before_optimizations.txt"
MATMUL = CORPUS / "pallas_matmul.tpu7x_2x2x1.after_codegen.txt"


def calls(path: Path) -> list[hlo.Instruction]:
    return [
        one
        for one in hlo.load(path).instructions()
        if one.attributes.get("custom_call_target") == mosaic.MOSAIC
    ]


@NEEDS_JAXLIB
@pytest.mark.xla
def test_products_of_a_body_are_those_that_its_author_says() -> None:
    (call,) = calls(MATMUL)
    kernel = mosaic.kernels([call])[call]
    assert dict(kernel.products) == {"bf16": 268_435_456}
    assert (kernel.is_at_most, kernel.open, kernel.error) == (False, "", "")
    assert "tpu.matmul" in kernel.text
    assert "func.func @my_matmul" in kernel.text


@NEEDS_JAXLIB
@pytest.mark.xla
def test_branches_make_the_work_of_a_kernel_a_bound_from_above() -> None:
    module = hlo.load(GRADIENTS)
    run = cost.analyze(module).run
    assert {one.name for one in run.at_most_calls} == {"pallas_call.12", "pallas_call.15"}
    assert not run.unknown_calls
    assert (run.bound, run.is_exact, run.mark) == ("at most", False, "at most ")
    # The author's figure of the forward pass, and 2, 2 and 3 products of its shape with softmax's operations.
    assert cost.analyze(module).of(module.instruction("pallas_call.12")).flops == 536_870_912 + 8_388_608
    times = {one.name: one.least for one in cost.estimate(module, "v5e").instructions}
    assert times["pallas_call.15"].compute == pytest.approx(402_653_184 / 197e12, rel=0.02)
    assert not cost.estimate(module, "v5e").is_bound


@NEEDS_JAXLIB
@pytest.mark.xla
def test_lint_calls_unknown_what_cost_does_not_count() -> None:
    """The rule on custom calls is about those that `cost` lists, not about kernels whose body it reads."""
    for module, names in ((hlo.load(GRADIENTS), []), (hlo.parse(CALL), ["c"])):
        assert [one.name for one in cost.analyze(module).run.unknown_calls] == names
        module.attributes["is_scheduled"] = True
        found = lint.run(module, select="G105")
        assert [one.name for one in found] == names


def test_a_kernel_without_an_estimate_keeps_xla_own_figure() -> None:
    """To XLA it is free."""
    assert cost.analyze(hlo.load(GRADIENTS)).as_tpu("v5e").flops < 3e8


@NEEDS_JAXLIB
@pytest.mark.xla
def test_bodies_that_are_damaged_say_why() -> None:
    (call,) = calls(MATMUL)
    body = base64.b64decode(mosaic.kernel_bodies([call])[call])
    chosen = random.Random(7)
    damaged = [b"", b"ML\xefR", body[:-40], b"func.func {", b"module {}"]
    for _ in range(25):
        one = bytearray(body)
        for _ in range(chosen.randint(1, 8)):
            one[chosen.randrange(len(one))] = chosen.randrange(256)
        damaged.append(bytes(one))
    kernels = mosaic._read(
        [base64.b64encode(one).decode() for one in damaged] + [base64.b64encode(body).decode()]
    )
    assert len(kernels) == len(damaged) + 1
    assert all(bool(one.error) != bool(one.text) for one in kernels)
    assert all(one.error for one in kernels[:4])
    assert not kernels[-1].error


def test_without_jaxlib_one_line_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(mosaic._KERNELS, "results", {})
    run = cost.analyze(hlo.load(GRADIENTS)).run
    assert "hlotext[jax]" in run.kernel_error
    assert len(run.unknown_calls) == 2


CALL = """HloModule m

ENTRY e {
  a = bf16[8,128,64] parameter(0)
  b = bf16[8,64,256] parameter(1)
  ROOT c = (f32[8,128,256], u8[1024]) custom-call(a, b), custom_call_target="acme_batched_matmul"
}
"""


def test_a_table_of_targets_says_what_calls_cost() -> None:
    table = cost.target_costs(
        {"acme_*": {"flops": "2 * elements(results[0]) * operands[0][-1]", "transcendentals": 7}}
    )
    module = hlo.parse(CALL)
    run = cost.analyze(module, costs=table).run
    assert (run.flops, run.transcendentals) == (2 * 8 * 128 * 256 * 64, 7)
    assert run.bytes_accessed == cost.analyze(module).run.bytes_accessed
    assert (run.bound, run.is_exact) == ("", True)
    assert len(cost.analyze(module).run.unknown_calls) == 1
    least = cost.estimate(module, "h100", costs=table).instructions[0].least
    assert not least.is_unknown
    assert least.flops == run.flops


def test_bytes_of_a_table_take_the_place_of_operands_and_results() -> None:
    table = cost.target_costs({"acme_batched_matmul": {"bytes": "bytes(operands[0]) + max(3, 4) // 2"}})
    run = cost.analyze(hlo.parse(CALL), costs=table).run
    assert run.bytes_accessed == 8 * 128 * 64 * 2 + 2


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"flops": "operands[0]"}, "is not allowed in a formula"),
        ({"flops": "__import__('os')"}, "is not allowed in a formula"),
        ({"flops": "2 ** 99"}, "is not allowed in a formula"),
        ({"flops": "elements(3)"}, "takes operands"),
        ({"flops": "2 *"}, "is not a formula"),
        ({"flops": "-" * 400 + "1"}, "deep"),
        ({"flops": True}, "a number or a formula"),
        ({"flop": 3}, "is not a cost"),
        (3, "has costs"),
    ],
)
def test_a_row_that_cannot_be_is_refused(row: object, said: str) -> None:
    with pytest.raises(ValueError, match=r"^acme: ") as raised:
        cost.target_costs({"acme": row})
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("operands[5][0]", "operands[5]"),
        ("results[0][9]", "dimension 9"),
        ("1 / (3 - 3)", "cannot be evaluated"),
        ("-1", "evaluates to -1"),
    ],
)
def test_a_formula_that_fits_no_call_is_said(formula: str, said: str) -> None:
    table = cost.target_costs({"acme_batched_matmul": {"flops": formula}})
    run = cost.analyze(hlo.parse(CALL), costs=table).run
    ((_, why),) = run.uncounted
    assert said in why
    assert run.bound == "at least"


def test_the_commands_take_a_table(tmp_path: Path) -> None:
    module, table = tmp_path / "m.txt", tmp_path / "costs.toml"
    module.write_text(CALL)
    table.write_text('["acme_batched_matmul"]\nflops = "2 * elements(results[0]) * operands[0][2]"\n')
    found = run_json("cost", module, "--costs", table)["modules"][0]["run"]
    assert found["flops"] == 2 * 8 * 128 * 256 * 64
    timed = run_json("time", module, "--chip", "h100", "--costs", table)["modules"][0]
    assert timed["unknown_calls"] == []
    table.write_text('["acme"]\nflops = "import os"\n')
    assert "acme" in run("cost", module, "--costs", table).stderr


@NEEDS_JAXLIB
@pytest.mark.xla
def test_show_prints_the_kernel_of_a_call() -> None:
    shown = run("show", MATMUL, "-i", "my_matmul.1").stdout
    assert "Kernel, as MLIR" in shown
    assert "tpu.matmul" in shown

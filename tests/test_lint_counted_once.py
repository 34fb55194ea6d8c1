"""Savings of several places together: each matmul counts once, and no saving exceeds what it is saved from."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import hlotext as hlo
from hlotext import cost, lint
from hlotext.findings.errors import Severity
from hlotext.findings.failures import NOWHERE
from hlotext.findings.finding import Finding
from hlotext.lint.causes import Place, merged
from hlotext.lint.rule import Report, Rule
from tests import support

EDGES, NODES, WIDTH = 65536, 4096, 256
_GATHER = (
    "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,256}"
)
_SCATTER = (
    "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, INDEX, to_apply=sum"
)
_SCATTER = _SCATTER.replace("INDEX", "index_vector_dim=1")
_LINE = 'metadata={op_name="layer" source_file="gnn.py" source_line=3}'


def gnn(weights: Sequence[str], *, has_gradient: bool) -> str:
    """Layers of one Python line that send messages along edges, each with the weights of that name."""
    parameters = ["senders = s32[65536,1] parameter(0)", "receivers = s32[65536,1] parameter(1)"]
    parameters += ["n0 = f32[4096,256] parameter(2)", "given = f32[65536,256] parameter(3)"]
    parameters += [f"{w} = f32[256,256] parameter({k})" for k, w in enumerate(dict.fromkeys(weights), 4)]
    body, results = (
        ["nought = f32[] constant(0)", "zeros = f32[4096,256] broadcast(nought), dimensions={}"],
        [],
    )
    for k, w in enumerate(weights):
        body += [
            f"rows{k} = f32[65536,256] gather(n{k}, senders), {_GATHER}",
            f"sent{k} = f32[65536,256] dot(rows{k}, {w}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, {_LINE}",
            f"n{k + 1} = f32[4096,256] scatter(zeros, receivers, sent{k}), {_SCATTER}",
        ]
        if has_gradient:
            body += [
                f"of_w{k} = f32[256,256] dot(rows{k}, given), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}",
                f"of_rows{k} = f32[65536,256] dot(given, {w}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}",
                f"of_n{k} = f32[4096,256] scatter(zeros, senders, of_rows{k}), {_SCATTER}",
            ]
            results += [f"of_w{k}", f"of_n{k}"]
    results.append(f"n{len(weights)}")
    shapes = ", ".join("f32[256,256]" if one.startswith("of_w") else "f32[4096,256]" for one in results)
    lines = [*parameters, *body, f"ROOT all = ({shapes}) tuple({', '.join(results)})"]
    added = "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}"
    entry = "\n  ".join(["ENTRY main {", *lines])
    return f"HloModule gnn, is_scheduled=true\n\n{added}\n\n{entry}\n}}\n"


@pytest.mark.parametrize("weights", ["uvw", "www"])
@pytest.mark.parametrize("has_gradient", [False, True])
def test_layers_are_no_gradients_of_each_other(weights: str, has_gradient: bool) -> None:
    """Other layers gather other rows, and scatter to the other end of the edges, also where they share a matrix; the
    gradients that they then have in common count once."""
    text = gnn(weights, has_gradient=has_gradient)
    (finding,) = lint.run(hlo.parse(text), lint.Config(**support.SAY_ALL, select=("G119",), chip="h100"))
    assert ("of the gradient" in finding.message) == has_gradient
    assert finding.places == 3
    matmuls = 9 if has_gradient else 3
    assert finding.flops == round(2 * matmuls * EDGES * WIDTH * WIDTH * (1 - NODES / EDGES))
    assert 0 < finding.share < 1


MODULE = """HloModule m, is_scheduled=true

ENTRY e {
  a = f32[4096,4096] parameter(0)
  b = f32[4096,4096] sine(a)
  c = f32[4096,4096] cosine(b)
  ROOT d = f32[4096,4096] exponential(c)
}
"""


class Excessive(Rule):
    code = "Z001"
    name = "excessive"
    title = "a rule that states too much"
    waste = "dense"


def together(covers: Sequence[Sequence[str]], seconds: float) -> tuple[Finding, dict[str, float]]:
    """The finding of reports of `b` and `c` that cover instructions and save so many steps each; and times in steps."""
    module = hlo.parse(MODULE)
    context = lint.make_context(module, chip="h100")
    step = context.prices.step

    def place(one: hlo.Instruction, covered: frozenset[hlo.Instruction]) -> Place:
        saved = seconds * step
        finding = Finding(
            "Z001", Severity.WARNING, "m", NOWHERE, instruction=one, seconds=saved, waste="dense"
        )
        return Excessive(), Report(one, "m", seconds=saved, covers=covered), finding

    places = [
        place(module.instruction(own), frozenset(map(module.instruction, names)))
        for own, names in zip("bc", covers, strict=True)
    ]
    found = merged(places, lint.Config(**support.SAY_ALL), context)
    assert found is not None
    return found, {one.name: one.seconds / step for one in cost.estimate(module, "h100").instructions}


def test_no_saving_exceeds_the_step() -> None:
    assert together(["", ""], 0.75)[0].share == 1
    assert together(["", ""], 0.25)[0].share == pytest.approx(0.5)


def test_places_that_cover_the_same_save_no_more_than_it_takes() -> None:
    """Of two places that cover the same two of three instructions."""
    found, times = together(["bc", "bc"], 0.45)
    assert found.share == pytest.approx(times["b"] + times["c"])
    assert together(["b", "c"], 0.45)[0].share == pytest.approx(0.9)

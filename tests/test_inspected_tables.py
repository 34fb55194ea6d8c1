"""Tables that tests and scripts ask for: collectives, matrix products, loops."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import analysis, cost
from tests import support

CORPUS = sorted((support.ROOT / "corpus").glob("*/*after_optimizations.txt"))


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name[:40])
def test_products_and_loops_of_real_modules(path: object) -> None:
    """Operations of a dot are XLA's; a loop writes what its instructions write, counted by hand."""
    module = hlo.load(str(path))
    counted = cost.analyze(module)
    for product in cost.matrix_products(module):
        if product.instruction.opcode == "dot":
            assert product.flops == counted.of(product.instruction).flops, product.instruction.name
    graph = analysis.call_graph(module)
    for loop in analysis.loops(module):
        body = loop.instruction.attributes["body"]
        inner = [
            one
            for one, _ in graph.loops()
            if one.computation is not None and graph.loop_around(one.computation) is loop.instruction
        ]
        if not inner and all(one.opcode not in ("call", "conditional") for one in body):
            own = sum(map(analysis.written_bytes, body))
            condition = loop.instruction.attributes["condition"]
            assert loop.written_bytes == own, condition


NESTED = (support.DATA / "inspected" / "nested.hlo").read_text()


def test_a_round_has_all_rounds_of_the_loops_inside() -> None:
    """The condition of a loop runs once more than its body; a loop of unknown length counts as one round."""
    loops = {loop.instruction.computation.name: loop for loop in analysis.loops(hlo.parse(NESTED))}  # type: ignore[union-attr]
    constants = 4  # each constant is memory of its own
    inner = 32 + 4 + constants
    assert loops["outer"].written_bytes == inner
    assert (loops["outer"].trips, loops["outer"].runs) == (3, None)
    assert loops["e"].written_bytes == 3 * inner + 4 * (1 + constants) + 4 + 2 * constants
    assert (loops["e"].trips, loops["e"].runs) == (None, 1)


GEMM = (support.DATA / "inspected" / "gemm.hlo").read_text()


@pytest.mark.parametrize(
    ("config", "sizes"),
    [
        ('{"lhs_batch_dimensions":["0"],"lhs_contracting_dimensions":["2"]}', [(2, 8, 4, 16)]),
        ('{"lhs_contracting_dimensions":["7"]}', []),
        ("{}", []),
        ("3", []),
    ],
)
def test_products_of_libraries(config: str, sizes: list[tuple[int, ...]]) -> None:
    found = cost.matrix_products(hlo.parse(GEMM.replace("CONFIG", config)))
    assert [(one.batch, one.m, one.n, one.k) for one in found] == sizes


def test_rows_show_themselves() -> None:
    rows = hlo.inspect(hlo.parse(GEMM.replace("CONFIG", '{"lhs_contracting_dimensions":["2"]}'))).gemms()
    assert len(rows) == 1
    assert rows[0]["name"] == "c"
    assert "f32 x f32 -> f32" in repr(rows)
    assert repr(hlo.inspect(hlo.parse(NESTED)).gemms()) == "no rows"


def test_the_axes_of_collectives() -> None:
    module = hlo.load(support.ROOT / "corpus" / "gpu" / "data_parallel.h100_1x1x4.after_optimizations.txt")
    (row,) = hlo.inspect(module, mesh="dp=4").collectives().table()
    assert (row["kind"], row["axes"], row["runs"]) == ("all-reduce", ("dp",), 1)

"""The currency of lint: what a finding saves of the step and of the peak, and what follows from that alone."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

import hlotext as hlo
from hlotext import cost, lint
from hlotext.analysis import Backend, call_graph, chips, most_trips
from hlotext.analysis.chips import chip
from hlotext.lint import beside, price
from hlotext.lint.rule import make_context
from tests import support
from tests.cli_support import run

TEXT = (support.DATA / "lint" / "G116.txt").read_text("utf-8")
FIRES = TEXT[: TEXT.index("HloModule silent")]
UNKNOWN = FIRES.replace("direction=LT", "direction=NE").replace(
    "bound = s32[] constant(8)", "bound = s32[] add(n, n)"
)


def only(text: str, **settings: object) -> list[lint.Finding]:
    """What G116 finds in a text, with nothing too small."""
    config = lint.Config(**{**support.SAY_ALL, "select": ("G116",), **settings})
    return lint.run(hlo.parse(text), config)


def test_a_finding_says_what_its_repair_saves() -> None:
    """Of the product that is made in each of 8 rounds, 7 are spared; half of the step is that product."""
    (finding,) = only(FIRES, chip="h100")
    module = hlo.parse(FIRES)
    estimate = cost.estimate(module, "h100")
    square = next(one for one in estimate.instructions if one.name == "square")
    assert finding.waste == "again"
    assert finding.seconds == pytest.approx(square.seconds * 7 / 8)
    assert finding.share == pytest.approx(square.seconds * 7 / 8 / estimate.seconds)
    assert finding.basis == "h100, although compiled for CPU, with f32 matmuls at the tf32 rate"
    assert only(FIRES)[0].basis == "cpu (default chip), with all arrays in its cache"


def test_severity_is_a_function_of_share_and_floor() -> None:
    """A warning from the one threshold on, a note from the other, and below the floor never a warning."""
    (finding,) = only(FIRES)
    share, seconds = finding.share, finding.seconds
    assert seconds is not None
    severities = [
        [one.severity.value for one in only(FIRES, **settings)]
        for settings in (
            {"warn": share, "note": share},
            {"warn": share * 1.01, "note": share},
            {"warn": share * 1.01, "note": share * 1.01},
            {"floor_seconds": seconds},
            {"floor_seconds": seconds * 1.01},
            {"floor_seconds": seconds * 1.01, "warn": share * 1.01},
        )
    ]
    assert severities == [["warning"], ["note"], [], ["warning"], ["note"], []]


def test_a_loop_of_unknown_length_is_said_and_can_be_told() -> None:
    """32 rounds are taken for it; a user who knows says how many."""
    (finding,) = only(UNKNOWN, chip="h100")
    assert (
        finding.basis == "h100, although compiled for CPU, with f32 matmuls at the tf32 rate, "
        "assuming 32 iterations for 1 loop of unknown trip count"
    )
    (told,) = only(UNKNOWN, chip="h100", trips={"body": 8})
    (known,) = only(FIRES, chip="h100")
    assert told.basis == "h100, although compiled for CPU, with f32 matmuls at the tf32 rate"
    assert told.seconds == pytest.approx(known.seconds)


def test_a_condition_that_asks_for_two_things_bounds_a_loop() -> None:
    """`and(not done, i < n)` is true n times at the most."""
    text = FIRES.replace(
        "ROOT less = pred[] compare(n, bound), direction=LT",
        "done = pred[] compare(n, n), direction=NE\n  less = pred[] compare(n, bound), direction=LT\n"
        "  ROOT both = pred[] and(done, less)",
    )
    ((loop, trips),) = call_graph(hlo.parse(text)).loops()
    assert (trips, most_trips(loop)) == (None, 8)
    (finding,) = only(text)
    assert (
        finding.basis
        == "cpu (default chip), with all arrays in its cache, with 1 loop at the maximum trip count"
    )


def test_rounds_of_what_is_no_loop_are_refused() -> None:
    with pytest.raises(ValueError, match=r"named elsewhere; loops: \S+ \(body body\)"):
        cost.estimate(hlo.parse(FIRES), "h100", trips={"elsewhere": 2})
    with pytest.raises(ValueError, match="named bdoy; did you mean `body`"):
        cost.estimate(hlo.parse(FIRES), "h100", trips={"bdoy": 2})


def test_the_name_that_a_loop_is_told_by_sets_its_rounds(tmp_path: Path) -> None:
    """cost names loops with the option that sets their trip count; lint, cost and the bound take both names."""
    (tmp_path / "m.txt").write_text(UNKNOWN)
    ((loop, _),) = call_graph(hlo.parse(UNKNOWN)).loops()
    for options in (), ("--chip", "h100"):
        told = run("cost", tmp_path / "m.txt", *options).stdout
        assert f"1 loop, counted once (set --trips {loop.name}=N)" in told
    for name in loop.name, "body":
        told = run("cost", tmp_path / "m.txt", "--trips", f"{name}=8").stdout
        assert "unknown trip counts" not in told
        rows = told[told.index("Instructions (all runs)") :].splitlines()
        assert [row.split()[5] for row in rows if row.split()[:1] == ["square"]] == ["8"]
        assert "?" not in "".join(rows)
        (finding,) = only(UNKNOWN, chip="h100", trips={name: 8})
        assert "unknown trip count" not in finding.basis
        found = run("lint", tmp_path / "m.txt", "--select", "G116", "--trips", f"{name}=8", "--chip", "h100")
        assert "no loop" not in found.stderr


def _adding(elements: int) -> hlo.Module:
    """A CPU's module with two arrays of f32."""
    array = f"f32[{elements}]{{0}}"
    return hlo.parse(
        f"HloModule m, is_scheduled=true\n\nENTRY e {{\n  a = {array} parameter(0)\n  ROOT s = {array} negate(a)\n}}\n"
    )


@pytest.mark.parametrize(
    ("mebibytes", "figure"),
    [(16, "cache_bandwidth"), (17, "bandwidth")],
)
def test_a_working_set_that_fits_the_cache_moves_no_main_memory(mebibytes: int, figure: str) -> None:
    """Of 32 MiB, which hold two arrays of 16."""
    module = _adding(mebibytes * 2**18)
    rates = chip("cpu").rates
    found = cost.estimate(module, chip("cpu"))
    rate = getattr(rates, figure).value
    assert found.seconds == pytest.approx(2 * mebibytes * 2**20 / rate)
    prices = price.prices_of(module, Backend.CPU)
    assert prices.reading(rate) == 1
    is_cached = figure == "cache_bandwidth"
    assert found.cached_bytes == (2 * mebibytes * 2**20 if is_cached else None)
    assert ("in its cache" in prices.basis) is is_cached


def test_a_cache_and_its_rate_are_set_as_other_figures() -> None:
    module = _adding(2**18)
    small = chips.with_figures(chip("cpu"), {"cache_bytes": 2**20})
    assert cost.estimate(module, small).cached_bytes is None
    fast = chips.with_figures(chip("cpu"), {"bandwidth": 1e12})
    assert cost.estimate(module, fast).seconds == pytest.approx(2 * 2**20 / 1e12)


def test_the_cpu_row_has_four_figures() -> None:
    """All types take the one peak, and rates that it lacks cost nothing."""
    rates = chip("cpu").rates
    assert [rates.peak(kind) for kind in ("f64", "bf16", "tf32", "int8")] == [rates.peaks["f32"]] * 4
    assert (rates.launch, rates.collective_launch, rates.vector, rates.dcn) == (None, None, None, None)


@pytest.mark.parametrize(
    ("type_", "precision", "ratio"),
    [
        ("bf16", "", 1),
        ("f32", "", 2),
        ("f32", ", operand_precision={highest,highest}", 14.8),
        ("f64", "", 14.8),
    ],
)
def test_products_take_time_by_type_and_precision(type_: str, precision: str, ratio: float) -> None:
    """On an H100, where the operations decide."""
    matrix = "TYPE[8192,8192]{1,0}"
    text = (
        f"HloModule m, is_scheduled=true\n\nENTRY e {{\n  a = {matrix} parameter(0)\n"
        f"  ROOT p = {matrix} dot(a, a), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}PRECISION\n}}\n"
    )
    found = cost.estimate(hlo.parse(text.replace("TYPE", type_).replace("PRECISION", precision)), "h100")
    narrow = cost.estimate(hlo.parse(text.replace("TYPE", "bf16").replace("PRECISION", "")), "h100")
    assert found.seconds / narrow.seconds == pytest.approx(ratio, rel=0.02)


@pytest.mark.parametrize(
    ("algorithm", "rate", "ratio"),
    [
        ("dot_tf32_tf32_f32", "tf32", 2),
        ("dot_tf32_tf32_f32_x3", "tf32x3", 6),
        ("dot_bf16_bf16_f32", "bf16", 1),
        ("dot_bf16_bf16_f32_x6", "bf16x6", 6),
        ("dot_bf16_bf16_f32_x9", "bf16x9", 9),
        ("dot_any_f8_any_f8_f32", "fp8", 0.5),
        ("dot_f32_f32_f32", "f32", 14.8),
        ("dot_f64_f64_f64", "f64", 14.8),
    ],
)
def test_an_algorithm_chooses_the_rate_of_a_dot(algorithm: str, rate: str, ratio: float) -> None:
    """Whatever its precision says; `cost` and the basis of findings name the rate."""
    matrix = "f32[8192,8192]{1,0}"
    text = (
        f"HloModule m, is_scheduled=true\n\nENTRY e {{\n  a = {matrix} parameter(0)\n  ROOT p = {matrix} dot(a, a), "
        "lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={highest,highest}, "
        f"algorithm={algorithm}\n}}\n"
    )
    found = cost.estimate(hlo.parse(text), "h100")
    bf16 = chip("h100").rates.peaks["bf16"].value
    assert list(found.product_rates.items()) == [(rate, 2 * 8192**3)]
    assert found.seconds == pytest.approx(1e-6 + 2 * 8192**3 * ratio / bf16, rel=0.02)
    told = price.prices_of(hlo.parse(text), Backend.GPU).basis
    assert told.partition(", with ")[2] == (
        "" if rate in ("bf16", "fp8", "f64") else f"f32 matmuls at the {rate} rate"
    )


def test_baselines_hold_no_shares() -> None:
    """They change with the chip; the same finding on another chip is known."""
    first, second = only(FIRES, chip="h100"), only(FIRES, chip="cpu")
    assert first[0].share != second[0].share
    baseline = lint.Baseline.of(first)
    assert baseline == lint.Baseline.of(second)
    assert "share" not in baseline.to_text()
    assert not baseline.compare(second).new


def test_costs_go_out_in_json(tmp_path: object) -> None:
    """The five fields together, only of what has a cost; --fail-on asks for a share, notes too."""
    path = support.DATA / "lint" / "compiled" / "lasso_ista.gpu1.after_optimizations.txt.xz"
    result = run("lint", path, "--format", "json-lines", "--select", "G116", "--chip", "h100")
    assert '"waste":"again"' in result.stdout.replace(": ", ":")
    assert '"basis":"h100, with f32 matmuls at the tf32 rate"' in result.stdout.replace(": ", ":").replace(
        "counts ", "counts"
    )
    codes = [
        run("lint", path, "--select", "G116", "--fail-on", condition).exit_code
        for condition in ("share>3%", "share>=0.03", "share>99%", "share>=100%")
    ]
    assert codes == [1, 1, 0, 2]  # no share is 100% or more
    assert run("lint", path, "--fail-on", "cost>3%").exit_code == 2
    assert run("lint", path, "--trips", "body").exit_code == 2


def test_half_of_a_joined_product_can_be_the_same() -> None:
    """XLA joins two products that share an operand: the half of the matrix that stays is found by its range."""
    joined = FIRES.replace(
        "  square = f32[256,256]{1,0} dot(kept, kept)",
        "  both = f32[256,512]{1,0} concatenate(x, kept), dimensions={1}\n"
        "  products = f32[256,512]{1,0} dot(kept, both), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
        "  square = f32[256,256]{1,0} slice(products), slice={[0:256], [256:512]}, metadata={} //",
    ).replace(", metadata={} //, lhs_contracting_dims={1}, rhs_contracting_dims={0}", "")
    (finding,) = only(joined)
    assert finding.message.startswith("a part of the matmul of 256x256 and 256x512 is recomputed")


def test_terms_of_a_product_can_be_the_same() -> None:
    """What stays, concatenated with what changes along the dimension that is summed, can be multiplied before the loop."""
    joined = FIRES.replace(
        "  square = f32[256,256]{1,0} dot(kept, kept), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "  both = f32[256,512]{1,0} concatenate(kept, x), dimensions={1}\n"
        "  tall = f32[512,256]{1,0} concatenate(kept, kept), dimensions={0}\n"
        "  square = f32[256,256]{1,0} dot(both, tall), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    )
    messages = [finding.message for finding in only(joined)]
    assert any(
        one.startswith("a part of the matmul of 256x512 and 512x256 is recomputed") for one in messages
    )
    assert "fixed @ w[:k]" in only(joined)[0].help
    changing = joined.replace("concatenate(kept, kept)", "concatenate(x, kept)")
    assert not any("a part of the product" in one.message for one in only(changing))


def test_every_rule_with_a_cost_says_its_kind() -> None:
    kinds = {rule.waste for rule in lint.builtin_rules().values()} - {""}
    assert kinds == set(lint.WASTES)
    assert attrs.fields(lint.Config).warn.default == 0.02


def test_shares_of_the_step_are_those_of_the_prices() -> None:
    """On the chip and with the trip counts that were set, as the savings of findings."""
    text = (
        "HloModule m, is_scheduled=true\n\nENTRY e {\n"
        "  a = bf16[4096,4096]{1,0:T(8,128)(2,1)} parameter(0)\n"
        "  b = bf16[4096,4096]{1,0:T(8,128)(2,1)} dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
        "  ROOT c = bf16[4096,4096]{1,0:T(8,128)(2,1)} copy(b)\n}\n"
    )
    module = hlo.parse(text)
    copy = module.entry.root
    assert copy is not None
    shares = {}
    for name in ("v5e", "tpu7x"):
        context = make_context(module, Backend.TPU, chip=name)
        shares[name] = beside.step_percent(copy, context)
        assert shares[name] == pytest.approx(100 * context.prices.seconds(copy) / context.prices.step)
    assert shares["v5e"] != pytest.approx(shares["tpu7x"])
    unknown = hlo.parse("HloModule m\n\nENTRY e {\n  ROOT p = f32[8] parameter(0)\n}\n")
    assert beside.step_percent(unknown.entry.instructions[0], make_context(unknown)) is None

"""Decisions made by hand that no comparison with XLA covers: one row for each."""

from __future__ import annotations

from pathlib import Path

import attrs
import numpy as np
import pytest

import hlotext as hlo
from hlotext import matchers, tables
from hlotext.analysis.mosaic import MosaicKernel
from hlotext.bugreport import report
from hlotext.cost import undercounted
from hlotext.cost.custom_calls import kernel_work
from hlotext.cost.op_cost import OpCost
from hlotext.cost.roofline import is_host_copy
from hlotext.cost.target_costs import Formula
from hlotext.edit import parameters
from hlotext.execution import plain
from hlotext.ir.errors import EditError
from hlotext.layout import formats
from hlotext.layout.explain import ArrayExplanation, explain
from hlotext.lint import registry
from hlotext.lint.values import fetched
from hlotext.lint.wording import described
from hlotext.memory import what_if
from hlotext.rewrite import outline
from hlotext.rewrite.passes import all_passes
from hlotext.textproto.reader import unescape
from hlotext.thunks.cpu import is_library_dot
from hlotext.triage.contents import _layers


@attrs.frozen
class Live:
    """A live array as `_layers` reads it."""

    name: str
    writer: str
    bytes: int = 8


@pytest.mark.parametrize(
    ("sides", "is_library"), [((3, 3), False), ((3, 4), True), ((4, 4), True), ((1, 4), False)]
)
def test_small_products_are_loops_on_cpu(sides: tuple[int, int], is_library: bool) -> None:
    rows, columns = sides
    module = hlo.parse(
        f"""ENTRY e {{ x = f32[{rows},4] parameter(0)  y = f32[4,{columns}] parameter(1)
  ROOT d = f32[{rows},{columns}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} }}"""
    )
    assert is_library_dot(module.entry.root) is is_library


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b)", "add"),
        ("a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(b, a)", "add"),
        ("a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] subtract(b, a)", None),
        ("a = f32[] parameter(0)  ROOT c = f32[] negate(a)", None),
    ],
)
def test_reducer(body: str, found: str | None) -> None:
    operands = "x, x" if "parameter(1)" in body else "x"
    text = (
        f"f {{ {body} }}\nENTRY e {{ x = f32[4] parameter(0)\n"
        f"ROOT m = f32[4] map({operands}), dimensions={{0}}, to_apply=f }}"
    )
    assert matchers.facts.reducer(hlo.parse(text).entry.root) == found


def test_no_reducer_without_a_computation() -> None:
    assert matchers.facts.reducer(hlo.parse("ENTRY e { ROOT x = f32[] parameter(0) }").entry.root) is None


@pytest.mark.parametrize("name", ["x", "after", "before"])
def test_outlining_refuses_parameters_and_control_dependencies(name: str) -> None:
    module = hlo.parse(
        """ENTRY e { x = f32[] parameter(0)
  before = f32[] negate(x)
  after = f32[] sine(x), control-predecessors={before}
  ROOT r = f32[] add(before, after) }"""
    )
    text = str(module)
    with pytest.raises(EditError, match=f"{name} cannot move to another computation"):
        outline([module.instruction(name)], "part")
    assert str(module) == text


@pytest.mark.parametrize(
    ("bits", "said"),
    [
        (1, "each element takes 1 bit, 8 to a byte, the first in the low bits"),
        (2, "each element takes 2 bits, 4 to a byte, the first in the low bits"),
        (3, "each element takes 3 bits"),
    ],
)
def test_element_sizes_in_words(bits: int, said: str) -> None:
    explained = explain(hlo.parse_shape(f"u8[8]{{0:E({bits})}}"))
    assert isinstance(explained, ArrayExplanation)
    assert [part.meaning for part in explained.parts if part.text == f"E({bits})"] == [said]


def test_orders_tried_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = hlo.parse_shape("f32[1024,2]{1,0:T(8,128)}")
    assert formats.better_order(shape) is not None
    monkeypatch.setattr(formats, "_MOST_WORK", 1)
    assert formats.better_order(shape) is None


@pytest.mark.parametrize(("opcode", "found"), [("slice", "x"), ("copy", "x"), ("negate", None)])
def test_arrays_fetched_by_asynchronous_operations(opcode: str, found: str | None) -> None:
    attributes = ", slice={[0:4]}" if opcode == "slice" else ""
    module = hlo.parse(
        f"""w {{ p = f32[4] parameter(0)  ROOT o = f32[4] {opcode}(p){attributes} }}
ENTRY e {{ x = f32[4] parameter(0)
  s = ((f32[4]), f32[4], u32[]) async-start(x), calls=w
  ROOT d = f32[4] async-done(s) }}"""
    )
    before = fetched(module.entry.root)
    assert (before.name if before is not None else None) == found


@pytest.mark.parametrize(
    ("text", "meant"),
    [(r"\x41b", "Ab"), (r"\101b", "Ab"), (r"\u00e9", "é"), (r"a\nb\q", "a\nbq"), ("plain", "plain")],
)
def test_escapes_of_protos_in_text_format(text: str, meant: str) -> None:
    assert unescape(text) == meant


@pytest.mark.parametrize("nested", ["1+({})", "({})+1", "-({})", "min(1, {})", "1*({})"])
def test_formulas_of_costs_have_a_greatest_depth(nested: str) -> None:
    text = "1"
    for _ in range(49):
        text = nested.format(text)
    assert isinstance(Formula.of(text), Formula)
    with pytest.raises(ValueError, match="at most 50 operations deep"):
        Formula.of(nested.format(text))


def test_dead_computations_run_never() -> None:
    module = hlo.parse("dead { ROOT p = f32[] parameter(0) }\nENTRY e { ROOT x = f32[] parameter(0) }")
    assert [(row["name"], row["runs"]) for row in tables.instructions(module)] == [("p", 0), ("x", 1)]


@pytest.mark.parametrize(("elements", "filled"), [(report._MOST_FILLED, 1), (report._MOST_FILLED + 1, 0)])
def test_elided_constants_that_a_report_fills(elements: int, filled: int) -> None:
    assert report._MOST_FILLED == 100_000
    module = hlo.parse(f"ENTRY e {{ ROOT c = s8[{elements}] constant({{...}}) }}")
    assert report._fill(module) == filled
    literal = module.entry.root.literal
    assert literal is not None
    assert literal.is_elided is not bool(filled)
    if filled:
        array = literal.known_array
        assert array is not None
        assert np.count_nonzero(array) == 0


def test_scopes_are_those_of_writers() -> None:
    module = hlo.parse(
        """ENTRY e { x = f32[2] parameter(0)
  a = f32[2] negate(x), metadata={op_name="jit(f)/inner/neg"}
  ROOT b = f32[2] sine(a), metadata={op_name="jit(f)/outer/sin"} }"""
    )
    rows = [Live("a", ""), Live("a", "b"), Live("b", "")]
    found = {layer.scope: layer.bytes for layer in _layers(module, rows)}  # type: ignore[arg-type]
    assert found == {"outer": 16, "inner": 8}


def test_passes_that_change_results() -> None:
    assert {name for name, kind in all_passes().items() if not kind.preserves_results} == {
        "all-reduce-promotion",
        "anonymize",
        "float-normalization",
        "simplify-fp-conversions",
        "single-device",
        "while-to-one-trip",
    }


def test_a_file_of_rules_is_executed_once(tmp_path: Path) -> None:
    path = tmp_path / "rules.py"
    path.write_text(
        "import attrs\nfrom hlotext.lint.rule import Rule\n\n\n@attrs.frozen\nclass Mine(Rule):\n"
        "    code = 'Z901'\n    name = 'mine'\n    title = 'nothing'\n    waste = 'copied'\n\n"
        "    def check_module(self, context):\n        return iter(())\n".replace("\\\n", "\n")
    )
    first = registry.file_rules(path)
    assert first is registry.file_rules(path)
    assert registry.loaded_rule("Z901") is first[0]


@pytest.mark.parametrize(
    ("flags", "left"), [("true,false", None), ("false,true", (True,)), ("true,true", (True,))]
)
def test_flags_of_parameters_follow_them(flags: str, left: tuple[bool, ...] | None) -> None:
    """A single false is what its absence says."""
    name = "allow_spmd_sharding_propagation_to_parameters"
    module = hlo.parse(
        f"""HloModule m, {name}={{{flags}}}
ENTRY e {{ x = f32[] parameter(0)  ROOT y = f32[] parameter(1) }}"""
    )
    parameters.remove_parameter(module.entry, 0)
    assert module.attributes.get(name) == left


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("f32[2,3] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
         "index_vector_dim=1, slice_sizes={1,3}", "the gather of 2x3"),
        ('f32[4] custom-call(x, x), custom_call_target="__cublas$gemm"', "the matmul of 4x3 and 4x3"),
        ('f32[4] custom-call(x), custom_call_target="mine"', "the custom call mine (16 B)"),
    ],
)  # fmt: skip
def test_operations_in_words(line: str, words: str) -> None:
    module = hlo.parse(f"ENTRY e {{ x = f32[4,3] parameter(0)  i = s32[2,1] parameter(1)  ROOT r = {line} }}")
    assert described(module.entry.root) == words


@pytest.mark.parametrize(
    ("shape", "matrices"),
    [("f32[512,256]", 1), ("f32[3,512,256]", 3), ("f32[3,256,512]", 3), ("f32[0,512,256]", 0)],
)
def test_least_time_of_decompositions(shape: str, matrices: int) -> None:
    """For each matrix 2/3 * `m * n * n` operations, 10e12 in a second."""
    module = hlo.parse(
        f"""ENTRY e {{ x = {shape} parameter(0)
  ROOT c = {shape} custom-call(x), custom_call_target="cusolver_getrf_ffi" }}"""
    )
    seconds = undercounted.least_seconds(module.entry.root)
    assert seconds == pytest.approx(matrices * 2 / 3 * 512 * 256**2 / 10e12)


def test_operations_of_a_kernel_are_those_in_products_and_the_others() -> None:
    kernel = MosaicKernel(flops=10, transcendentals=3, products=(("bf16", 4), ("f32", 2)))
    work = kernel_work(kernel, OpCost(is_unknown=True))
    assert work is not None
    assert (work.flops, work.transcendentals, work.is_unknown) == (16, 3, False)
    assert work.products == {"bf16": 4, "f32": 2}


@pytest.mark.parametrize(
    ("source", "target", "is_host"),
    [("", "", False), ("S(5)", "", True), ("", "S(5)", True), ("S(1)", "", False)],
)
def test_copies_over_the_link_to_the_host(source: str, target: str, is_host: bool) -> None:
    module = hlo.parse(
        f"ENTRY e {{ x = f32[4]{{0{':' * bool(source)}{source}}} parameter(0)\n"
        f"ROOT c = f32[4]{{0{':' * bool(target)}{target}}} copy(x) }}"
    )
    assert is_host_copy(module.entry.root) is is_host


def test_what_is_donated_already_is_said() -> None:
    module = hlo.parse(
        """HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e { x = f32[1024]{0} parameter(0)  ROOT y = f32[1024]{0} negate(x) }"""
    )
    found = what_if.donate(module, [0], "gpu")
    assert found.notes[0] == "parameter 0: already donated"
    assert found.peak_before == found.peak_after


def test_algorithms_of_products_are_left_out_of_plain_text() -> None:
    """They are of another platform's units."""
    module = hlo.parse(
        """ENTRY e { x = f32[2,2] parameter(0)  ROOT d = f32[2,2] dot(x, x), lhs_contracting_dims={1},
  rhs_contracting_dims={0}, algorithm=dot_bf16_bf16_f32 }"""
    )
    text = plain(module).text
    assert "lhs_contracting_dims={1}" in text
    assert "algorithm" not in text

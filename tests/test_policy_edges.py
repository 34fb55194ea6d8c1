"""Edges of policy that sampled mutants survived: see `tests/mutants`."""

from __future__ import annotations

import numpy as np
import pytest

import hlotext as hlo
from hlotext import cost, lint, rewrite
from hlotext.cost.rules import contraction
from hlotext.ir.values.window import WindowDimension
from hlotext.lint import beside, moving, selectors, values
from hlotext.lint.demand import Demand, Part, fraction, joined
from hlotext.lint.rules import g117_dense_gradient
from hlotext.lint.values import Value
from tests import support

TWO = """HloModule m

ENTRY e {
  x = f32[4,4] parameter(0)
  y = f32[4,4] parameter(1)
  t = f32[4,4] transpose(x), dimensions={1,0}
  ROOT r = f32[4,4] add(t, y)
}
"""


def test_an_attribute_that_only_its_instruction_reads_is_checked() -> None:
    module = hlo.parse(TWO)
    with pytest.raises(hlo.EditError):
        module.instruction("t").attributes["dimensions"] = (0, 0)
    assert str(module) == TWO


def test_a_parameter_comes_after_the_others() -> None:
    module = hlo.parse(TWO)
    rewrite.add_parameter(module.entry, "f32[8]", "z")
    assert [i.name for i in module.entry] == ["x", "y", "z", "t", "r"]


@pytest.mark.parametrize(("codes", "wanted"), [(("V1",), ["V101"]), (("V3",), [])])
def test_the_verifier_reports_the_codes_that_are_asked_for(codes: tuple[str, ...], wanted: list[str]) -> None:
    """A code of its own that is on selects no other."""
    text = TWO.replace("ROOT r = f32[4,4]", "ROOT r = f32[4,5]")
    found = lint.lint_source(hlo.Source(text), lint.Config(ignore=("G", "L"), extend_select=codes)).findings
    assert [one.code for one in found if one.code.startswith("V")] == wanted


@pytest.mark.parametrize(("need", "left"), [(1.0, ["t"]), (2.0, ["t"]), (0.5, [])])
def test_work_beside_a_transfer_that_needs_as_much_is_taken(need: float, left: list[str]) -> None:
    """What the scheduler put beside one is of use to another only where that needs more than the first."""
    module = hlo.parse(
        TWO.replace("add(t, y)", "dot(y, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}")
    )
    t, product = module.instruction("t"), module.entry.root
    found = beside._without_work(module.entry, {t: 1.0}, {product: 3.0}, {product: (need, product)})
    assert [i.name for i in found] == left


def test_lists_of_words_are_taken_as_text() -> None:
    module = hlo.parse(
        TWO.replace("add(t, y)", "dot(t, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}")
    )
    module.entry.root.attributes["operand_precision"] = ["high", "default"]
    assert "operand_precision={high,default}" in str(module)


def test_a_module_without_memory_saves_none() -> None:
    context = lint.make_context(
        hlo.parse("HloModule m, is_scheduled=true\n\nENTRY e {\n  ROOT t = token[] after-all()\n}\n")
    )
    assert (context.assignment is not None, context.peak) == (True, 0)
    assert context.saved_peak({}) is None
    assert context.most_saved(()) is None


GATHERED = """HloModule m, is_scheduled=true

ENTRY e {
  table = f32[64,1024]{1,0} parameter(0)
  ids = s32[512]{0} parameter(1)
  w = f32[1024,1024]{1,0} parameter(2)
  rows = f32[512,1024]{1,0} gather(table, ids), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
    index_vector_dim=1, slice_sizes={1,1024}
  ROOT y = f32[512,1024]{1,0} dot(rows, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def test_a_repair_saves_no_more_than_the_module_takes() -> None:
    """Of eight times as many rows as the table has, seven eighths of the product need not be computed."""
    module = hlo.parse(GATHERED)
    config = lint.Config(select=("G119",), chip="v5e", note=0, floor_seconds=0, floor_bytes=0)
    (finding,) = lint.run(module, config)
    assert finding.flops == 2 * 512 * 1024 * 1024 * 7 // 8
    assert finding.seconds is not None
    assert finding.seconds <= cost.estimate(module, "v5e").seconds


def test_rows_compared_with_their_maximum_select_one_each() -> None:
    text = """HloModule m

max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}

ENTRY e {
  x = f32[4,8] parameter(0)
  least = f32[] constant(-inf)
  top = f32[4] reduce(x, least), dimensions={1}, to_apply=max
  each = f32[4,8] broadcast(top), dimensions={0}
  ROOT c = pred[4,8] compare(x, each), direction=EQ
}
"""
    for opcode, classes in (("maximum", 8), ("minimum", 8), ("add", None)):
        root = hlo.parse(text.replace("maximum", opcode)).entry.root
        found = selectors.selector(Value(root))
        assert (found and found.classes) == classes


def test_a_float_that_a_proto_lacks_is_zero() -> None:
    pytest.importorskip("google.protobuf")
    text = """HloModule m

ENTRY e {
  x = f32[2,4] parameter(0)
  a = f32[4] parameter(1)
  ROOT n = f32[2,4] batch-norm-inference(x, a, a, a, a), epsilon=EPSILON, feature_index=1
}
"""
    for epsilon in ("0", "0.5"):
        whole = hlo.parse(text.replace("EPSILON", epsilon)).to_proto()
        proto = hlo.proto.from_json(hlo.proto.to_json(whole))  # without fields that have their default
        assert hlo.parse(proto).entry.root.attributes["epsilon"] == float(epsilon)


@pytest.mark.parametrize(("index", "is_counted"), [("constant(1)", True), ("parameter(0)", False)])
def test_a_slice_at_a_place_that_is_given_is_not_counted(index: str, is_counted: bool) -> None:
    """Neither is it inside a loop, where a slice at a place that counts is."""
    module = hlo.parse(
        f"""HloModule m

ENTRY e {{
  i = s32[] {index}
  n = s32[8] iota(), iota_dimension=0
  ROOT s = s32[1] dynamic-slice(n, i), dynamic_slice_sizes={{1}}
}}
"""
    )
    assert values.is_counted(Value(module.entry.root), of_loop=lambda one: None) is is_counted


SLICES = """HloModule m, is_scheduled=true

condition {
  s = (s32[], f32[2,64,4096]{2,1,0}, f32[1,4096]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT c = pred[] compare(i, three), direction=LT
}

body {
  s = (s32[], f32[2,64,4096]{2,1,0}, f32[1,4096]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  zero = s32[] constant(0)
  next = s32[] add(i, one)
  caches = f32[2,64,4096]{2,1,0} get-tuple-element(s), index=1
  row = f32[1,4096]{1,0} get-tuple-element(s), index=2
  first = f32[1,64,4096]{2,1,0} slice(caches), slice={[0:1], [0:64], [0:4096]}
  first.matrix = f32[64,4096]{1,0} bitcast(first)
  first.new = f32[64,4096]{1,0} dynamic-update-slice(first.matrix, row, i, zero)
  first.again = f32[1,64,4096]{2,1,0} bitcast(first.new)
  second = f32[1,64,4096]{2,1,0} slice(caches), slice={[1:2], [0:64], [0:4096]}
  second.matrix = f32[64,4096]{1,0} bitcast(second)
  second.new = f32[64,4096]{1,0} dynamic-update-slice(second.matrix, row, i, zero)
  second.again = f32[1,64,4096]{2,1,0} bitcast(second.new)
  stacked = f32[2,64,4096]{2,1,0} concatenate(first.again, second.again), dimensions={0}
  ROOT r = (s32[], f32[2,64,4096]{2,1,0}, f32[1,4096]{1,0}) tuple(next, stacked, row)
}

ENTRY e {
  zero = s32[] constant(0)
  caches = f32[2,64,4096]{2,1,0} parameter(0)
  row = f32[1,4096]{1,0} parameter(1)
  start = (s32[], f32[2,64,4096]{2,1,0}, f32[1,4096]{1,0}) tuple(zero, caches, row)
  ROOT loop = (s32[], f32[2,64,4096]{2,1,0}, f32[1,4096]{1,0}) while(start), condition=condition, body=body
}
"""


def test_an_array_that_is_cut_and_joined_is_read_and_written_in_each_iteration() -> None:
    config = lint.Config(select=("M112",), note=0, floor_seconds=0, floor_bytes=0)
    (finding,) = lint.run(hlo.parse(SLICES), config)
    assert finding.bytes == 2 * (2 * 64 * 4096 * 4) * 3


MOVED = """HloModule m, is_scheduled=true

ENTRY e {
  x = f32[8,16]{1,0} parameter(0)
  row = f32[16]{0} parameter(1)
  zero = s32[] constant(0)
  there = f32[8,16]{0,1} copy(x)
  flat = f32[128]{0} bitcast(there)
  new = f32[128]{0} dynamic-update-slice(flat, row, zero)
  whole = f32[8,16]{0,1} bitcast(new)
  back = f32[8,16]{1,0} copy(whole)
  ROOT r = (f32[8,16]{1,0}) tuple(back)
}
"""


def test_an_array_is_followed_through_views_between_two_copies() -> None:
    module = hlo.parse(MOVED)
    found = moving.moved_back(lint.make_context(module))
    assert {one.name: other.name for one, other in found.items()} == {"there": "back"}


def test_repairs_of_products_save_no_more_than_their_modules_take() -> None:
    """What is left to compute is taken off once."""
    config = lint.Config(select=("G",), chip="v5e", note=0, floor_seconds=0, floor_bytes=0)
    seen = set()
    for path in sorted((support.DATA / "lint").glob("G1*.txt")):
        for module in hlo.parse_all(path.read_text()):
            for finding in lint.run(module, config):
                if finding.seconds is not None:
                    seen.add(finding.code)
                    assert finding.seconds <= cost.estimate(module, "v5e").seconds * 1.000001, finding.message
    assert {"G117", "G119", "G120"} <= seen


def test_a_padded_array_alone_is_not_counted() -> None:
    text = (
        "HloModule m, is_scheduled=true\n\nENTRY e {\n"
        "  x = f32[4096,4096,2]{2,1,0:T(2,128)} parameter(0)\n"
        "  zero = f32[] constant(0)\n"
        "  ROOT y = f32[4096]{0:T(1024)} broadcast(zero), dimensions={}\n}\n"
    )
    config = lint.Config(select=("L101",), note=0, floor_seconds=0, floor_bytes=0)
    (finding,) = lint.run(hlo.parse(text), config)
    shape = "f32[4096,4096,2]{2,1,0:T(2,128)}"
    assert finding.message == f"{shape} takes 8.00 GiB for 128 MiB of values (64x)"


def test_an_attribute_of_an_instruction_with_control_predecessors_is_set() -> None:
    module = hlo.parse(
        TWO.replace("ROOT r = f32[4,4] add(t, y)", "ROOT r = f32[4,4] add(t, y), control-predecessors={x}")
    )
    module.entry.root.attributes["frontend_attributes"] = {"k": "v"}
    assert 'frontend_attributes={k="v"}, control-predecessors={x}' in str(module)


@pytest.mark.parametrize("number", [True, -1, "1", None, 1.0])
def test_the_number_of_a_new_parameter_is_an_integer(number: object) -> None:
    """Python takes True for 1, but no text does."""
    module = hlo.parse("HloModule m\n\nENTRY e {\n  ROOT x = f32[4] parameter(0)\n}\n")
    new = hlo.Instruction("p", "parameter", hlo.parse_shape("f32[4]"), argument=number)  # type: ignore[arg-type]
    with pytest.raises(hlo.EditError, match="must be 0 or more"):
        module.entry.add(new)


def test_a_computation_is_added_before_another_and_the_bodies_inside_its_text() -> None:
    """Nothing else comes after it, and its name has no percent sign."""
    module = hlo.parse("""HloModule m

first {
  x = f32[4] parameter(0)
  ROOT n = f32[4] negate(x)
}

ENTRY e {
  p = f32[4] parameter(0)
  s = ((f32[4]), f32[4], s32[]) custom-call-start(p), custom_call_target="t"
  d = f32[4] custom-call-done(s)
  ROOT r = f32[4] call(d), to_apply=first
}
""")
    new = hlo.Computation("%new")
    new.add(hlo.Instruction("y", "parameter", hlo.parse_shape("f32[4]"), argument=0))
    module.add(new, before=module.entry)
    written = hlo.parse(str(module))
    assert [one.name for one in written.computations if not one.is_printed_inline] == ["first", "new", "e"]
    assert [one.name for one in module.computations if not one.is_printed_inline] == ["first", "new", "e"]


def test_no_edit_makes_a_bitcast_of_a_copy_to_the_host() -> None:
    """Also in a module without values in buffers of their own."""
    module = hlo.parse("""HloModule m, is_scheduled=true, entry_computation_layout={(f32[4]{0})->f32[4]{0:S(5)}}

ENTRY e {
  x = f32[4]{0} parameter(0)
  ROOT r = f32[4]{0:S(5)} copy(x)
}
""")
    with pytest.raises(hlo.EditError, match="a bitcast moves no data"):
        module.entry.root.change(opcode="bitcast")


def test_the_dimensions_of_a_map_are_all_of_its_result() -> None:
    module = hlo.parse("""HloModule m

f {
  x = f32[] parameter(0)
  ROOT n = f32[] negate(x)
}

ENTRY e {
  x = f32[4,2] parameter(0)
  ROOT r = f32[4,2] map(x), dimensions={0,1}, to_apply=f
}
""")
    module.entry.root.attributes["dimensions"] = (0, 1)
    with pytest.raises(hlo.EditError, match="determined by the shapes"):
        module.entry.root.attributes["dimensions"] = (1, 0)


@pytest.mark.parametrize(
    ("size", "kernel", "result", "stride", "low", "base_dilation", "window_dilation"),
    [
        (100, 100, 100, 1, 50, 1, 1),
        (70, 65, 200, 2, 30, 3, 1),
        (1, 80, 90, 3, 40, 1, 2),
        (5, 70, 70, 2, 9, 4, 3),
    ],
)
def test_pairs_of_a_wide_window_are_counted(
    size: int, kernel: int, result: int, stride: int, low: int, base_dilation: int, window_dilation: int
) -> None:
    """As going through all of them does, also where a position of the window meets a single element."""
    window = WindowDimension(
        kernel, stride, low, window_dilation=window_dilation, base_dilation=base_dilation
    )
    elements = {one * base_dilation for one in range(size)}
    wanted = sum(
        place * stride + position * window_dilation - low in elements
        for place in range(result)
        for position in range(kernel)
    )
    assert contraction.valid_pairs(size, kernel, result, window) == wanted


def test_a_fusion_reads_a_parameter_once_for_all_its_users() -> None:
    """Also inside another fusion: XLA takes the second use from registers."""
    module = hlo.parse("""HloModule m

inner {
  a = f32[64]{0} parameter(0)
  n = f32[64]{0} negate(a)
  c = f32[64]{0} cosine(a)
  ROOT s = f32[64]{0} add(n, c)
}

outer {
  a = f32[64]{0} parameter(0)
  i = f32[64]{0} fusion(a), kind=kLoop, calls=inner
  ROOT r = f32[64]{0} abs(i)
}

ENTRY e {
  x = f32[64]{0} parameter(0)
  ROOT f = f32[64]{0} fusion(x), kind=kLoop, calls=outer
}
""")
    assert cost.analyze(module).bytes_accessed == 2 * 64 * 4


def test_what_is_asked_of_a_tuple_is_what_any_reader_asks_of_each_element() -> None:
    first, last = (Demand((Part(np.array(kept)),)) for kept in ([True, False, False], [False, False, True]))
    shape = hlo.parse_shape("(f32[3], f32[3], f32[3])")
    both = joined({0: first, 1: first}, {0: last, 2: last})
    assert isinstance(both, dict)
    assert [fraction(both[n], shape.tuple_shapes[n]) for n in range(3)] == pytest.approx(
        [2 / 3, 1 / 3, 1 / 3]
    )


@pytest.mark.parametrize("number", [0, 1])
def test_zeros_that_a_fusion_takes_are_written_by_its_operand(number: int) -> None:
    module = hlo.parse("""HloModule m

f {
  a = f32[8]{0} parameter(0)
  b = f32[8]{0} parameter(1)
  ROOT s = f32[8]{0} add(a, b)
}

ENTRY e {
  zero = f32[] constant(0)
  first = f32[8]{0} broadcast(zero), dimensions={}
  second = f32[8]{0} broadcast(zero), dimensions={}
  ROOT r = f32[8]{0} fusion(first, second), kind=kLoop, calls=f
}
""")
    (body,) = module.entry.root.called_computations
    filler = g117_dense_gradient._filler(Value(body.parameters[number], (module.entry.root,)))
    assert filler is module.entry.root.operands[number]

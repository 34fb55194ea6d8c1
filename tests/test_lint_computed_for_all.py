# ruff: noqa: E501 - an instruction is a line
"""Work on every row or element of which few are needed: tables with moments, branches under vmap, rows of edges."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import lint
from hlotext.analysis import Backend
from tests import support


def found(text: str, code: str, chip: str = "", profile: Backend | None = None) -> list[hlo.Diagnostic]:
    config = lint.Config(**support.SAY_ALL, select=(code,), chip=chip, profile=profile)
    return list(lint.run(hlo.parse(text), config))


MOMENTUM = """HloModule momentum, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  table = f32[1000000,128]{1,0} parameter(0)
  momentum = f32[1000000,128]{1,0} parameter(1)
  ids = s32[8192,1]{1,0} parameter(2)
  w = f32[128,128]{1,0} parameter(3)
  decay = f32[] constant(0.9)
  decays = f32[1000000,128]{1,0} broadcast(decay), dimensions={}
  decayed = f32[1000000,128]{1,0} multiply(momentum, decays)
  rows = f32[8192,128]{1,0} gather(table, ids), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,128}
  slopes = f32[8192,128]{1,0} dot(rows, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  new = f32[1000000,128]{1,0} scatter(GIVEN, ids, slopes), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add, metadata={op_name="jit(train)/NAME/scatter-add"}
  updated = f32[1000000,128]{1,0} subtract(table, new)
  ROOT t = (f32[1000000,128]{1,0}, f32[1000000,128]{1,0}) tuple(updated, new)
}
"""


@pytest.mark.parametrize(
    ("given", "name", "is_said"),
    [
        ("decayed", "transpose(jvp())", True),
        ("momentum", "transpose(jvp())", False),  # no other row of it changes
        ("decayed", "traces", False),  # sums that decay, and no gradient
    ],
)
def test_moments_of_a_table_whose_gradient_has_few_rows(given: str, name: str, is_said: bool) -> None:
    reports = found(MOMENTUM.replace("GIVEN", given).replace("NAME", name), "G117")
    assert [(one.code, "moments" in one.message) for one in reports] == [("G117", True)] * is_said


BRANCHES = """HloModule branches, is_scheduled=true

ENTRY main {
  x = f32[4096,1024]{1,0} parameter(0)
  w = f32[1024,1024]{1,0} parameter(1)
  which = pred[4096]{0} parameter(2)
  index = s32[4096]{0} convert(which)
  one = s32[] constant(1)
  ones = s32[4096]{0} broadcast(one), dimensions={}
  first = pred[4096]{0} compare(index, ones), direction=LT
  is = pred[4096,1024]{1,0} broadcast(PREDICATE), dimensions={0}
  product = f32[4096,1024]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  other = f32[4096,1024]{1,0} negate(x)
  chosen = f32[4096,1024]{1,0} select(is, product, other), metadata={op_name="jit(f)/SCOPE/select_n"}
  ROOT t = (f32[4096,1024]{1,0}, f32[4096,1024]{1,0}) tuple(chosen, RESULT)
}
"""


@pytest.mark.parametrize(
    ("predicate", "scope", "result", "is_said"),
    [
        ("first", "vmap()", "x", True),
        ("first", "body", "x", False),
        ("which", "vmap()", "x", False),  # jnp.where
        ("first", "vmap()", "product", False),  # used for every row
    ],
)
def test_branches_of_a_conditional_under_vmap(predicate: str, scope: str, result: str, is_said: bool) -> None:
    text = BRANCHES.replace("PREDICATE", predicate).replace("SCOPE", scope).replace("RESULT", result)
    reports = found(text, "G118")
    assert [(one.code, one.is_at_most) for one in reports] == [("G118", True)] * is_said


EDGES = """HloModule edges, is_scheduled=true

ENTRY main {
  x = f32[100000,128]{1,0} parameter(0)
  ends = s32[1600000,1]{1,0} parameter(1)
  w = f32[128,128]{1,0} parameter(2)
  slopes = f32[1600000,128]{1,0} parameter(3)
  rows = f32[1600000,128]{1,0} gather(x, ends), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,128}
  messages = f32[1600000,128]{1,0} dot(rows, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  gradient = f32[128,128]{1,0} dot(rows, slopes), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  other = f32[1600000,128]{1,0} cosine(READ)
  ROOT t = (f32[1600000,128]{1,0}, f32[128,128]{1,0}, f32[1600000,128]{1,0}) tuple(messages, gradient, other)
}
"""


@pytest.mark.parametrize(("read", "is_said"), [("messages", True), ("rows", False)])
def test_rows_of_edges_that_the_gradient_reads_as_well(read: str, is_said: bool) -> None:
    reports = found(EDGES.replace("READ", read), "G119")
    assert ["1 matmul of the gradient" in one.message for one in reports] == [True] * is_said


VECTORS = """HloModule vectors, is_scheduled=true

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

fused {
  x = f32[4096,1024]{1,0} parameter(0)
  w = f32[512,1024]{1,0} parameter(1)
  xs = f32[4096,512,1024]{2,1,0} broadcast(x), dimensions={0,2}, metadata={op_name="jit(f)/vmap()/dot_general"}
  ws = f32[4096,512,1024]{2,1,0} broadcast(w), dimensions={1,2}, metadata={op_name="jit(f)/vmap()/PRIMITIVE"}
  terms = f32[4096,512,1024]{2,1,0} multiply(xs, ws), metadata={op_name="jit(f)/vmap()/dot_general"}
  zero = f32[] constant(0)
  ROOT sums = f32[4096,512]{1,0} reduce(terms, zero), dimensions={2}, to_apply=add, metadata={op_name="jit(f)/vmap()/dot_general"}
}

ENTRY main {
  x = f32[4096,1024]{1,0} parameter(0)
  w = f32[512,1024]{1,0} parameter(1)
  ROOT y = f32[4096,512]{1,0} fusion(x, w), kind=kInput, calls=fused
}
"""


@pytest.mark.parametrize(("primitive", "is_said"), [("broadcast_in_dim", True), ("dot_general", False)])
def test_products_with_a_matrix_that_the_program_broadcasts(primitive: str, is_said: bool) -> None:
    reports = found(VECTORS.replace("PRIMITIVE", primitive), "G123", "h100", Backend.GPU)
    assert ["jnp.where" in one.help for one in reports] == [True] * is_said


BOTH_ENDS = """HloModule leapfrog, is_scheduled=true

body {
  state = (s32[], f32[256]{0}, f32[8192,256]{1,0}) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  q = f32[256]{0} get-tuple-element(state), index=1
  x = f32[8192,256]{1,0} get-tuple-element(state), index=2
  one = s32[] constant(1)
  next = s32[] add(n, one)
  half = f32[] constant(0.5)
  halves = f32[256,1]{1,0} broadcast(half), dimensions={}
  more = f32[256]{0} broadcast(half), dimensions={}
  column = f32[256,1]{1,0} bitcast(q)
  z = f32[8192,1]{1,0} dot(x, column), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  slope = f32[1,256]{1,0} dot(z, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  kick = f32[256]{0} bitcast(slope)
  kicked = f32[256,1]{1,0} bitcast(slope)
  moved_column = f32[256,1]{1,0} multiply(kicked, halves)
  moved = f32[256]{0} multiply(kick, more)
  z2 = f32[8192,1]{1,0} dot(x, moved_column), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  slope2 = f32[1,256]{1,0} dot(z2, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  sum = f32[1,256]{1,0} cosine(slope2)
  ROOT t = (s32[], f32[256]{0}, f32[8192,256]{1,0}) tuple(next, moved, x)
}

condition {
  state = (s32[], f32[256]{0}, f32[8192,256]{1,0}) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  limit = s32[] constant(100)
  ROOT less = pred[] compare(n, limit), direction=LT
}

run {
  first = (s32[], f32[256]{0}, f32[8192,256]{1,0}) parameter(0)
  ROOT loop = (s32[], f32[256]{0}, f32[8192,256]{1,0}) while(first), condition=condition, body=body
}

ENTRY main {
  zero = s32[] constant(0)
  q = f32[256]{0} parameter(0)
  x = f32[8192,256]{1,0} parameter(1)
  first = (s32[], f32[256]{0}, f32[8192,256]{1,0}) tuple(zero, q, x)
  ROOT call = (s32[], f32[256]{0}, f32[8192,256]{1,0}) call(first), to_apply=run
}
"""


def test_one_number_in_arrays_of_several_shapes_is_the_same() -> None:
    reports = found(BOTH_ENDS, "G122")
    assert ["1 more operation" in one.message for one in reports] == [True]


CARRIED = """HloModule carried, is_scheduled=true

fused {
  given = f32[256,128,512]{2,1,0} parameter(0)
  place = s32[] parameter(1)
  zero = s32[] constant(0)
  nothing = f32[] constant(0)
  none = f32[1,128,512]{2,1,0} broadcast(nothing), dimensions={}
  ROOT cleared = f32[256,128,512]{2,1,0} dynamic-update-slice(given, none, place, zero, zero), metadata={op_name="jit(f)/NAME/while/body/scatter"}
}

body {
  state = (s32[], f32[256,128,512]{2,1,0}, f32[128,512]{1,0}) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  slopes = f32[256,128,512]{2,1,0} get-tuple-element(state), index=1
  sum = f32[128,512]{1,0} get-tuple-element(state), index=2
  copied = f32[256,128,512]{2,1,0} copy(slopes)
  zero = s32[] constant(0)
  row = f32[1,128,512]{2,1,0} dynamic-slice(copied, n, zero, zero), dynamic_slice_sizes={1,128,512}
  slope = f32[128,512]{1,0} bitcast(row)
  more = f32[128,512]{1,0} add(sum, slope)
  again = f32[256,128,512]{2,1,0} copy(copied)
  cleared = f32[256,128,512]{2,1,0} fusion(again, n), kind=kLoop, calls=fused
  one = s32[] constant(1)
  next = s32[] add(n, one)
  ROOT t = (s32[], f32[256,128,512]{2,1,0}, f32[128,512]{1,0}) tuple(next, cleared, more)
}

condition {
  state = (s32[], f32[256,128,512]{2,1,0}, f32[128,512]{1,0}) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  limit = s32[] constant(256)
  ROOT less = pred[] compare(n, limit), direction=LT
}

ENTRY main {
  zero = s32[] constant(0)
  slopes = f32[256,128,512]{2,1,0} parameter(0)
  sum = f32[128,512]{1,0} parameter(1)
  first = (s32[], f32[256,128,512]{2,1,0}, f32[128,512]{1,0}) tuple(zero, slopes, sum)
  loop = (s32[], f32[256,128,512]{2,1,0}, f32[128,512]{1,0}) while(first), condition=condition, body=body
  ROOT r = f32[128,512]{1,0} get-tuple-element(loop), index=2
}
"""


@pytest.mark.parametrize(("name", "is_said"), [("transpose(jvp())", True), ("jvp()", False)])
def test_gradients_of_an_array_that_each_iteration_writes_a_row_of(name: str, is_said: bool) -> None:
    reports = found(CARRIED.replace("NAME", name), "M111")
    assert ["output of lax.scan" in one.help for one in reports] == [True] * is_said


WINDOWS = """HloModule windows, is_scheduled=true

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

fused {
  x = f32[262144,4]{1,0} parameter(0)
  first = s32[262081,64]{1,0} iota(), iota_dimension=0
  within = s32[262081,64]{1,0} iota(), iota_dimension=1
  hop = s32[] constant(1)
  hops = s32[262081,64]{1,0} broadcast(hop), dimensions={}
  places = s32[262081,64]{1,0} add(first, OTHER)
  indices = s32[16773184,1]{1,0} bitcast(places)
  windows = f32[16773184,4]{1,0} gather(x, indices), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}
  ROOT rows = f32[262081,256]{1,0} bitcast(windows)
}

biased {
  a = f32[262081,256]{1,0} parameter(0)
  b = f32[262081,256]{1,0} parameter(1)
  both = f32[262081,256]{1,0} add(a, b)
  none = f32[] constant(0)
  ROOT sums = f32[262081]{0} reduce(both, none), dimensions={1}, to_apply=add
}

ENTRY main {
  x = f32[262144,4]{1,0} parameter(0)
  w = f32[256,8]{1,0} parameter(1)
  scores = f32[262081,256]{1,0} parameter(2)
  rows = f32[262081,256]{1,0} fusion(x), kind=kLoop, calls=fused
  zero = f32[] constant(0)
  ROOT y = READER
}
"""
PRODUCT = "f32[262081,8]{1,0} dot(rows, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
SUM = "f32[262081]{0} reduce(rows, zero), dimensions={1}, to_apply=add"
BIASED = "f32[262081]{0} fusion(rows, scores), kind=kInput, calls=biased"
OTHER = "f32[262081,256]{1,0} cosine(rows)"


@pytest.mark.parametrize(
    ("other", "reader", "help_"),
    [
        ("within", PRODUCT, "conv_general_dilated"),
        ("within", SUM, "reduce_window"),
        ("within", BIASED, ""),  # combined with values of their own for each element
        ("within", OTHER, ""),
        ("hops", PRODUCT, ""),  # rows that are not of windows
    ],
)
def test_windows_that_are_gathered(other: str, reader: str, help_: str) -> None:
    reports = found(WINDOWS.replace("OTHER", other).replace("READER", reader), "M114")
    assert [help_ in one.help for one in reports] == [True] * bool(help_)


@pytest.mark.parametrize(("width", "is_said"), [(5, True), (4, False)])
def test_windows_that_repeat_an_array_few_times_are_cheap(width: int, is_said: bool) -> None:
    """At the ends of the array there are fewer, so that windows of five elements are 4.99 times its size."""
    count = 262144 - width + 1
    sizes = {
        "262081,64": f"{count},{width}",
        "262081,256": f"{count},{4 * width}",
        "262081": f"{count}",
        "16773184": f"{count * width}",
    }
    text = WINDOWS.replace("OTHER", "within").replace("READER", SUM)
    for old, new in sizes.items():
        text = text.replace(old, new)
    assert [one.code for one in found(text, "M114")] == ["M114"] * is_said


SHIFTED = """HloModule shifted, is_scheduled=true

ENTRY main {
  cache = f32[4096,8,128]{2,1,0} parameter(0)
  row = f32[1,8,128]{2,1,0} parameter(1)
  old = f32[4095,8,128]{2,1,0} slice(SOURCE), slice={[1:4096], [0:8], [0:128]}
  new = f32[4096,8,128]{2,1,0} concatenate(old, row), dimensions={0}, metadata={op_name="jit(step)/concatenate"}
  ROOT t = (f32[4096,8,128]{2,1,0}) tuple(new)
}
"""


def test_a_cache_that_is_shifted_to_append_a_row() -> None:
    (report,) = found(SHIFTED.replace("SOURCE", "cache"), "M113")
    assert "is shifted and rewritten to append 4.00 KiB" in report.message
    made = SHIFTED.replace("SOURCE", "made").replace(
        "  old", "  made = f32[4096,8,128]{2,1,0} cosine(cache)\n  old"
    )
    assert not found(made, "M113")


FACTORS = """HloModule factors, is_scheduled=true

body {
  state = (s32[], f32[512,512]{1,0}, f32[512,512]{1,0}) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  lu = f32[512,512]{1,0} get-tuple-element(state), index=1
  u = f32[512,512]{1,0} get-tuple-element(state), index=2
  ready = f32[512,512]{1,0} cosine(lu), metadata={op_name="jit(f)/while/body/jit(NAME)/prepare"}
  more = f32[512,512]{1,0} add(u, ready)
  one = s32[] constant(1)
  next = s32[] add(n, one)
  ROOT t = (s32[], f32[512,512]{1,0}, f32[512,512]{1,0}) tuple(next, lu, more)
}

condition {
  state = (s32[], f32[512,512]{1,0}, f32[512,512]{1,0}) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  limit = s32[] constant(100)
  ROOT less = pred[] compare(n, limit), direction=LT
}

ENTRY main {
  zero = s32[] constant(0)
  lu = f32[512,512]{1,0} parameter(0)
  u = f32[512,512]{1,0} parameter(1)
  first = (s32[], f32[512,512]{1,0}, f32[512,512]{1,0}) tuple(zero, lu, u)
  ROOT loop = (s32[], f32[512,512]{1,0}, f32[512,512]{1,0}) while(first), condition=condition, body=body
}
"""


@pytest.mark.parametrize(
    ("name", "opcode", "is_said"),
    [
        ("lu_solve", "cosine(lu)", False),
        ("slogdet", "cosine(lu)", False),
        ("prepared", "cosine(lu)", True),
        ("cholesky", "cholesky(lu)", True),  # the factorization itself
    ],
)
def test_what_a_solver_prepares(name: str, opcode: str, is_said: bool) -> None:
    text = FACTORS.replace("NAME", name).replace("cosine(lu)", opcode)
    assert [one.code for one in found(text, "G116")] == ["G116"] * is_said


PROMOTED = """HloModule promoted, is_scheduled=true

FileNames
1 "model.py"

FunctionNames
1 "attention"

FileLocations
1 {file_name_id=1 function_name_id=1 line=10 end_line=10 column=1 end_column=9}
2 {file_name_id=1 function_name_id=1 line=20 end_line=20 column=1 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}


ENTRY main {
  p = bf16[4096,4096]{1,0} parameter(0)
  v = bf16[4096,4096]{1,0} parameter(1)
  w = bf16[4096,4096]{1,0} parameter(2)
  wide = f32[4096,4096]{1,0} convert(p), metadata={op_name="jit(f)/convert" stack_frame_id=1}
  values = f32[4096,4096]{1,0} convert(v), metadata={op_name="jit(f)/convert" stack_frame_id=1}
  o = f32[4096,4096]{1,0} dot(wide, values), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/dot" stack_frame_id=1}
  weights = f32[4096,4096]{1,0} convert(w), metadata={op_name="jit(f)/convert" stack_frame_id=2}
  given = f32[4096,4096]{1,0} cosine(OPERAND)
  y = f32[4096,4096]{1,0} dot(given, weights), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/dot" stack_frame_id=2}
  a = bf16[4096,4096]{1,0} convert(o)
  b = bf16[4096,4096]{1,0} convert(y)
  ROOT t = (bf16[4096,4096]{1,0}, bf16[4096,4096]{1,0}) tuple(a, b)
}
"""


@pytest.mark.parametrize(("operand", "places"), [("o", [2]), ("weights", [1, 1])])
def test_a_matmul_that_is_wide_because_of_another_has_its_cause(operand: str, places: list[int]) -> None:
    reports = found(PROMOTED.replace("OPERAND", operand), "D101", "h100", Backend.GPU)
    assert [one.places for one in reports] == places
    assert all("model.py:10" in one.help for one in reports[:1])


PADDED = """HloModule padded, is_scheduled=true

ENTRY main {
  labels = s32[200000]{0} parameter(0)
  x = f32[200704,64]{1,0} parameter(1)
  rows = s32[200000,256]{1,0} broadcast(labels), dimensions={0}
  classes = s32[200000,256]{1,0} iota(), iota_dimension=1
  is = pred[200000,256]{1,0} compare(rows, classes), direction=EQ
  ones = f32[200000,256]{1,0} convert(is)
  filler = f32[] constant(FILLER)
  padded = f32[200704,256]{1,0} pad(ones, filler), padding=0_704x0_0
  ROOT sums = f32[256,64]{1,0} dot(padded, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
}
"""


@pytest.mark.parametrize(("filler", "is_said"), [("0", True), ("1", False)])
def test_one_hot_rows_that_are_padded_with_zeros(filler: str, is_said: bool) -> None:
    reports = found(PADDED.replace("FILLER", filler), "D107")
    assert ["one-hot matrix of 256 classes" in one.message for one in reports] == [True] * is_said


SQUARE = """HloModule svd, is_scheduled=true

ENTRY main {
  x = f32[4096,1024]{0,1} parameter(0)
  svd = (f32[4096,1024]{0,1}, f32[1024]{0}, f32[4096,4096]{0,1}, f32[1024,1024]{0,1}, s32[]) custom-call(x), custom_call_target="cusolver_gesvd_ffi"
  u = f32[4096,4096]{0,1} get-tuple-element(svd), index=2
  v = f32[1024,1024]{0,1} get-tuple-element(svd), index=3
  first = f32[4096,COUNT]{0,1} slice(u), slice={[0:4096], [0:COUNT]}
  ROOT t = (f32[4096,COUNT]{0,1}, f32[1024,1024]{0,1}) tuple(first, v)
}
"""


@pytest.mark.parametrize(("count", "is_said"), [(32, True), (1024, True), (1025, False), (4096, False)])
def test_singular_vectors_that_only_make_a_factor_square(count: int, is_said: bool) -> None:
    reports = found(SQUARE.replace("COUNT", str(count)), "G118")
    spared = [(one.peak_bytes or 0) // 1024 for one in reports]  # a tuple's pointers take some bytes
    assert spared == [4096 * 3072 * 4 // 1024] * is_said


HESSIAN = """HloModule hessian, is_scheduled=true

ENTRY main {
  d = f32[512]{0} parameter(0)
  x = f32[512,512]{1,0} parameter(1)
  rows = s32[512,512]{1,0} iota(), iota_dimension=0
  columns = s32[512,512]{1,0} iota(), iota_dimension=1
  is = pred[512,512]{1,0} compare(rows, columns), direction=EQ
  ones = f32[512,512]{1,0} convert(is)
  scales = f32[512,512]{1,0} broadcast(d), dimensions={0}
  diagonal = f32[512,512]{1,0} multiply(ones, scales)
  ROOT y = f32[512,512]{1,0} dot(diagonal, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/NAME/dot_general"}
}
"""


@pytest.mark.parametrize(("name", "is_said"), [("jvp()", True), ("jvp(vmap(transpose(jvp())))", False)])
def test_directions_of_a_second_derivative_are_no_diagonal_of_the_program(name: str, is_said: bool) -> None:
    assert bool(found(HESSIAN.replace("NAME", name), "D107")) == is_said

"""Copy insertion on TPU: what fusions may be written over, what may be no result, which copies of scalars stay."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import rewrite
from hlotext.compiler.computation_order import in_creation_order

_GROUPS = "replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true"
_ROOTS = {
    "all-gather": "f32[64,256]{1,0:T(8,128)} all-gather(p), channel_id=1, " + _GROUPS,
    "all-to-all": "f32[16,256]{1,0:T(8,128)} all-to-all(p), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}",
    "collective-permute": "f32[16,256]{1,0:T(8,128)} collective-permute(p), channel_id=1, source_target_pairs={{0,1},{1,0}}",
}
_KEPT = "f32[16,256]{1,0:T(8,128)} negate(p)"


def _special(text: str) -> hlo.Module:
    module = hlo.parse(text)
    rewrite.Pipeline(rewrite.parse_passes("copy-insertion-special{platform=tpu}"), verify=False).run(module)
    return module


@pytest.mark.parametrize("opcode", [*_ROOTS, "negate"])
def test_what_other_chips_write_is_copied_before_it_is_a_result(opcode: str) -> None:
    line = _ROOTS.get(opcode, _KEPT)
    text = (
        "HloModule m, is_scheduled=true, num_partitions=4\n\nENTRY e {\n"
        f"  p = f32[16,256]{{1,0:T(8,128)}} parameter(0)\n  ROOT c = {line}\n}}\n"
    )
    root = _special(text).entry.root
    assert (root.opcode == "copy") == (opcode in _ROOTS)


def test_of_several_results_those_are_copied_that_other_chips_write() -> None:
    module = _special(
        f"""HloModule m, is_scheduled=true, num_partitions=4

ENTRY e {{
  p = f32[16,256]{{1,0:T(8,128)}} parameter(0)
  a = f32[16,256]{{1,0:T(8,128)}} negate(p)
  g = f32[64,256]{{1,0:T(8,128)}} all-gather(a), channel_id=1, {_GROUPS}
  v = f32[16384]{{0:T(1024)}} bitcast(g)
  ROOT t = (f32[16,256]{{1,0:T(8,128)}}, f32[16384]{{0:T(1024)}}) tuple(a, v)
}}
"""
    )
    first, second = module.entry.root.operands
    assert (first.opcode, second.opcode) == ("get-tuple-element", "copy")


@pytest.mark.parametrize(("read", "is_copied"), [
    ("slice(p), slice={[9:10]}", True),
    ("dynamic-slice(p, n), dynamic_slice_sizes={1}", False),
])  # fmt: skip
def test_what_a_fusion_updates_in_place_is_copied_where_it_slices_it(read: str, is_copied: bool) -> None:
    one, array = "f32[1]{0:T(128)}", "f32[64]{0:T(128)}"
    module = _special(
        f"""HloModule m

%update (p: f32[64], n: s32[]) -> f32[64] {{
  p = {array} parameter(0)
  n = s32[]{{:T(128)}} parameter(1)
  part = {one} {read}
  ROOT u = {array} dynamic-update-slice(p, part, n)
}}

ENTRY %e (x: f32[64], n: s32[]) -> f32[64] {{
  x = {array} parameter(0)
  n = s32[]{{:T(128)}} parameter(1)
  a = {array} negate(x)
  ROOT f = {array} fusion(a, n), kind=kLoop, calls=%update
}}
"""
    )
    assert (module.entry.root.operands[0].opcode == "copy") is is_copied


_LOOP = """HloModule m, is_scheduled=true

add {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}}

body {{
  p0 = f32[8,128]{{1,0:T(8,128)}} parameter(0)
  p1 = f32[8,128]{{1,0:T(8,128)}} parameter(1)
  p2 = f32[16,8,128]{{2,1,0:T(8,128)}} parameter(2)
  zero = s32[] constant(0)
  z = f32[] constant(0)
  new = f32[8,128]{{1,0:T(8,128)}} add(p0, p1)
  other = f32[8,128]{{1,0:T(8,128)}} exponential(p0)
  {rest}
}}

ENTRY e {{
  a = f32[8,128]{{1,0:T(8,128)}} parameter(0)
  b = f32[8,128]{{1,0:T(8,128)}} parameter(1)
  c = f32[16,8,128]{{2,1,0:T(8,128)}} custom-call(), custom_call_target="AllocateBuffer"
  ROOT f = {shape} fusion(a, b, c), kind={kind}, calls=body
}}
"""
_ARRAY, _STACK = "f32[8,128]{1,0:T(8,128)}", "f32[16,8,128]{2,1,0:T(8,128)}"


def _update(source: str) -> str:
    return (
        f"view = f32[1,8,128]{{2,1,0:T(8,128)}} bitcast({source})\n"
        f"  first = {_STACK} dynamic-update-slice(p2, view, zero, zero, zero)"
    )


@pytest.mark.parametrize(
    ("kind", "first", "line", "may"),
    [
        ("kOutput", _ARRAY, f"first = {_ARRAY} negate(new)", True),
        ("kLoop", "f32[8]{0:T(128)}", "first = f32[8]{0:T(128)} reduce(other, z), dimensions={1}, to_apply=add", True),
        ("kLoop", _STACK, _update("new"), False),
        ("kLoop", _STACK, _update("other"), False),
        ("kLoop", "f32[128,8]{1,0:T(8,128)}", "first = f32[128,8]{1,0:T(8,128)} transpose(p0), dimensions={1,0}", False),
    ],
)  # fmt: skip
def test_a_fusion_is_written_over_what_one_of_its_results_reads_in_order(
    kind: str, first: str, line: str, may: bool
) -> None:
    from hlotext.analysis import Backend
    from hlotext.compiler.remove_unnecessary_copies import sharing_of
    from hlotext.compiler.resolve_interference import in_place_pairs
    from hlotext.memory.dataflow import analyse

    shape = f"({first}, {_ARRAY})"
    module = hlo.parse(
        _LOOP.format(rest=f"{line}\n  ROOT t = {shape} tuple(first, new)", kind=kind, shape=shape)
    )
    sharing = sharing_of(analyse(module), Backend.TPU, in_place_pairs(Backend.TPU))
    fusion = module.entry.root
    assert sharing.may_share(fusion.operands[0], (), fusion, (1,)) is may


def test_a_fusion_is_written_over_what_the_result_does_not_read() -> None:
    from hlotext.analysis import Backend
    from hlotext.compiler.remove_unnecessary_copies import sharing_of
    from hlotext.compiler.resolve_interference import in_place_pairs
    from hlotext.memory.dataflow import analyse

    shape = f"(f32[8]{{0:T(128)}}, {_ARRAY})"
    rest = (
        "first = f32[8]{0:T(128)} reduce(other, z), dimensions={1}, to_apply=add\n"
        f"  last = {_ARRAY} negate(p1)\n  ROOT t = {shape} tuple(first, last)"
    )
    module = hlo.parse(_LOOP.format(rest=rest, kind="kLoop", shape=shape))
    fusion = module.entry.root
    assert sharing_of(analyse(module), Backend.TPU, in_place_pairs(Backend.TPU)).may_share(
        fusion.operands[0], (), fusion, (1,)
    )


@pytest.mark.parametrize(("opcode", "stays"), [("add", True), ("multiply", False)])
def test_copies_of_counters_stay_and_other_scalars_do_not(opcode: str, stays: bool) -> None:
    text = f"""HloModule m

cond {{
  t = (s32[]{{:T(128)}}, s32[]{{:T(128)}}) parameter(0)
  i = s32[]{{:T(128)}} get-tuple-element(t), index=0
  n = s32[]{{:T(128)}} constant(9)
  ROOT c = pred[]{{:T(512)}} compare(i, n), direction=LT
}}

body {{
  t = (s32[]{{:T(128)}}, s32[]{{:T(128)}}) parameter(0)
  one = s32[]{{:T(128)}} constant(1)
  i = s32[]{{:T(128)}} get-tuple-element(t), index=0
  kept = s32[]{{:T(128)}} copy(i)
  next = s32[]{{:T(128)}} {opcode}(kept, one)
  given = s32[]{{:T(128)}} copy(next), control-predecessors={{kept}}
  u = s32[]{{:T(128)}} get-tuple-element(t), index=1
  ROOT r = (s32[]{{:T(128)}}, s32[]{{:T(128)}}) tuple(given, u)
}}

ENTRY e {{
  a = s32[]{{:T(128)}} parameter(0)
  b = s32[]{{:T(128)}} copy(a)
  s = (s32[]{{:T(128)}}, s32[]{{:T(128)}}) tuple(b, a)
  w = (s32[]{{:T(128)}}, s32[]{{:T(128)}}) while(s), condition=cond, body=body
  ROOT g = s32[]{{:T(128)}} get-tuple-element(w), index=0
}}
"""
    module = hlo.parse(text)
    rewrite.Pipeline(rewrite.parse_passes("copy-insertion-removing{platform=tpu}"), verify=False).run(module)
    body = next(c for c in module.computations if c.name == "body")
    assert (body.root.operands[0].opcode == "copy") is stays


def test_an_order_that_another_implies_is_not_forced() -> None:
    """`w` is written over `p`, after `f` and `g` read it, late ones first; `s` reads it too, but comes before `f` anyway."""
    array = "f32[1024]{0:T(1024)}"
    module = hlo.parse(
        f"""HloModule m, input_output_alias={{ {{0}}: (0, {{}}, may-alias) }}

ENTRY e {{
  p = {array} parameter(0)
  q = {array} parameter(1)
  c = {array} copy(p)
  g = {array} exponential(c)
  s = {array} reverse(c), dimensions={{0}}
  f = {array} add(c, s)
  w = {array} tanh(q)
  z = {array} copy(w), control-predecessors={{c}}
  ROOT t = ({array}, {array}, {array}) tuple(z, f, g)
}}
"""
    )
    rewrite.Pipeline(rewrite.parse_passes("copy-insertion-removing{platform=tpu}"), verify=False).run(module)
    assert [i.name for i in module.entry["w"].control_predecessors] == ["f", "g"]
    assert [o.name for o in module.entry.root.operands] == ["w", "f", "g"]


def test_the_copy_of_a_taken_scalar_stays_where_an_inner_loop_takes_it() -> None:
    scalar = "s32[]{:T(128)}"
    loop = f"(s: ({scalar})) -> ({scalar}) {{\n  s = ({scalar}) parameter(0)\n  i = {scalar} get-tuple-element(s), index=0\n"
    module = hlo.parse(
        f"""HloModule m

%inner {loop}  ROOT r = ({scalar}) tuple(i)
}}

%cond (s: ({scalar})) -> pred[] {{
  s = ({scalar}) parameter(0)
  ROOT c = pred[]{{:T(512)}} constant(true)
}}

%outer {loop}  kept = {scalar} copy(i)
  twice = {scalar} copy(kept)
  t = ({scalar}) tuple(twice)
  w = ({scalar}) while(t), condition=%cond, body=%inner
  ROOT r = ({scalar}) tuple(kept)
}}

ENTRY %e (a: s32[]) -> s32[] {{
  a = {scalar} parameter(0)
  b = {scalar} copy(a)
  t = ({scalar}) tuple(b)
  w = ({scalar}) while(t), condition=%cond, body=%outer
  ROOT r = {scalar} get-tuple-element(w), index=0
}}
"""
    )
    rewrite.Pipeline(rewrite.parse_passes("copy-insertion-removing{platform=tpu}"), verify=False).run(module)
    (outer,) = (c for c in module.computations if c.name == "outer")
    assert outer["t"].operands[0].name == "twice"
    assert outer["twice"].operands[0].name == "kept"


@pytest.mark.parametrize(("name", "stays"), [("wide.region_0.1.sunk", True), ("region_0.1", False)])
def test_copies_go_in_the_order_in_which_xla_made_their_computations(name: str, stays: bool) -> None:
    """A body that a pass made comes after its caller: by then the loop shares memory with the other branch."""
    array = "f32[64,128]{1,0:T(8,128)}"
    state = f"(s32[]{{:T(128)}}, {array})"
    module = hlo.parse(
        f"""HloModule m

%fused (a: f32[64,128]) -> f32[64,128] {{
  a = {array} parameter(0)
  ROOT r = {array} reverse(a), dimensions={{0}}
}}

%{name} (t: (s32[], f32[64,128])) -> (s32[], f32[64,128]) {{
  t = {state} parameter(0)
  i = s32[]{{:T(128)}} get-tuple-element(t), index=0
  x = {array} get-tuple-element(t), index=1
  copy.1 = {array} copy(x)
  f = {array} fusion(copy.1), kind=kOutput, calls=%fused
  copy.2 = {array} copy(f), control-predecessors={{copy.1}}
  ROOT r = {state} tuple(i, copy.2)
}}

%region_1.2 (t: (s32[], f32[64,128])) -> pred[] {{
  t = {state} parameter(0)
  i = s32[]{{:T(128)}} get-tuple-element(t), index=0
  n = s32[]{{:T(128)}} constant(9)
  ROOT c = pred[]{{:T(512)}} compare(i, n), direction=LT
}}

%region_2.3 (x: f32[64,128]) -> f32[64,128] {{
  x = {array} parameter(0)
  zero = s32[]{{:T(128)}} constant(0)
  copy.3 = {array} copy(x)
  s = {state} tuple(zero, copy.3)
  w = {state} while(s), condition=%region_1.2, body=%{name}
  g = {array} get-tuple-element(w), index=1
  ROOT copy.4 = {array} copy(g)
}}

%region_3.4 (x: f32[64,128]) -> f32[64,128] {{
  x = {array} parameter(0)
  f = {array} tanh(x)
  ROOT copy.5 = {array} copy(f)
}}

ENTRY %main.5 (p: s32[], x: f32[64,128]) -> f32[64,128] {{
  p = s32[]{{:T(128)}} parameter(0)
  x = {array} parameter(1)
  ROOT c = {array} conditional(p, x, x), branch_computations={{%region_2.3, %region_3.4}}
}}
"""
    )
    rewrite.Pipeline(rewrite.parse_passes("copy-insertion-removing{platform=tpu}"), verify=False).run(module)
    (body,) = (c for c in module.computations if c.name == name)
    assert (body.root.operands[1].opcode == "copy") is stays


def test_bodies_that_constants_sank_into_were_made_from_the_outermost_to_the_innermost() -> None:
    """The numbers of XLA's proto of such a nest: main 24, a 204, b 210, c 217, d 236, e 244."""
    nest = {"e": "", "a": "e", "c": "", "d": "", "b": "cd"}  # lines of a text: inner loops first

    def computation(name: str, inner: str, head: str = "") -> str:
        loops = "".join(
            f"  w.{ord(i)} = f32[] while(x), condition=%cond.3, body=%wide.region_{i}.sunk\n" for i in inner
        )
        return f"{head}%{name} (x: f32[]) -> f32[] {{\n  x = f32[] parameter(0)\n{loops}  ROOT r = f32[] negate(x)\n}}\n\n"

    condition = "  x = f32[] parameter(0)\n  ROOT r = pred[] compare(x, x), direction=EQ\n"
    text = f"HloModule m\n\n%cond.3 (x: f32[]) -> pred[] {{\n{condition}}}\n\n"
    text += "".join(computation(f"wide.region_{name}.sunk", inner) for name, inner in nest.items())
    module = hlo.parse(text + computation("main.24", "ba", "ENTRY "))
    names = [c.name for c in in_creation_order(module)]
    assert names == ["cond.3", "main.24", *(f"wide.region_{i}.sunk" for i in "abcde")]

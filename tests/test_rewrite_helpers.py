"""Helpers for changes of several instructions: states of loops, probes, constants in fusions, regions in other types."""

from __future__ import annotations

import pydoc
from collections.abc import Callable

import pytest

import hlotext as hlo
from hlotext import rewrite
from hlotext.ir.values.configs import BackendConfig
from tests.endless import bounded

LOOP = """HloModule m

c {
  s = (s32[], f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT
}

b {
  s = (s32[], f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4]{0} get-tuple-element(s), index=1
  n = s32[] constant(1)
  a = s32[] add(i, n)
  y = f32[4]{0} sine(x)
  ROOT r = (s32[], f32[4]{0}) tuple(a, y)
}

ENTRY e {
  z = s32[] constant(0)
  p = f32[4]{0} parameter(0)
  t = (s32[], f32[4]{0}) tuple(z, p)
  w = (s32[], f32[4]{0}) while(t), condition=c, body=b
  ROOT q = f32[4]{0} get-tuple-element(w), index=1
}
"""
REGION = """HloModule m

f {
  a = f32[4]{0} parameter(0)
  c = f32[] parameter(1)
  d = f32[4]{0} broadcast(c), dimensions={}
  ROOT r = f32[4]{0} add(a, d)
}

ENTRY e {
  x = f32[4]{0} parameter(0)
  c = f32[] constant(2)
  y = f32[4]{0} fusion(x, c), kind=kLoop, calls=f
  s = f32[4]{0} sine(y)
  k = f32[4]{0} constant({1, 2, 3, 4})
  t = f32[4]{0} multiply(s, k)
  ROOT u = f32[4]{0} exponential(t)
}
"""


def at(module: hlo.Module, name: str) -> hlo.Instruction:
    """The instruction of a name."""
    found = module.find(name)
    assert isinstance(found, hlo.Instruction)
    return found


def summed(module: hlo.Module) -> None:
    """The loop counts 0 + 1 + 2 + 3 besides; that is the result's first element then."""
    loop = rewrite.add_loop_value(
        at(module, "w"), at(module, "z"), lambda b, value, state: b.add(value, state[0])
    )
    assert str(loop.shape) == "(s32[], f32[4]{0}, s32[])"
    body = loop.attributes["body"]
    assert [i.opcode for i in body.root.operands] == ["add", "sine", "add"]
    assert (loop.name, body.name, module.entry.root.name) == ("w", "b", "q")
    assert [i.name for i in body if not i.name.startswith(("get-tuple-element", "add"))] == [*"sixnayr"]


def constant_carried(module: hlo.Module) -> None:
    """Without a step the value stays."""
    loop = rewrite.add_loop_value(at(module, "w"), at(module, "z"))
    last = loop.attributes["body"].root.operands[2]
    assert (last.opcode, last.attributes["index"]) == ("get-tuple-element", 2)


def swapped(module: hlo.Module) -> None:
    """Users take the right element."""
    noted = 'backend_config={"known_induction_variable":{"tuple_index":"%d"},"known_trip_count":{"n":"3"}}'
    module.instruction("w").attributes["backend_config"] = BackendConfig(noted.partition("=")[2] % 0)
    loop = rewrite.keep_loop_values(at(module, "w"), [1, 0])
    assert noted % 1 in str(loop)
    assert str(loop.shape) == "(f32[4]{0}, s32[])"
    assert module.entry.root.attributes["index"] == 0
    assert loop.attributes["condition"].root.operands[0].name == "i"


def added_and_dropped(module: hlo.Module) -> None:
    """What nothing needs can be dropped again."""
    loop = rewrite.add_loop_value(at(module, "w"), at(module, "z"), lambda b, value, state: b.add(value, 2))
    assert str(rewrite.keep_loop_values(loop, [0, 1]).shape) == "(s32[], f32[4]{0})"


def sunk(module: hlo.Module) -> None:
    """The fusion has one operand less, its body the constant."""
    fusion = at(module, "y")
    assert rewrite.sink_constants(fusion) == 1
    assert [o.name for o in fusion.operands] == ["x"]
    assert fusion.called_computations[0].root.operands[1].operands[0].opcode == "constant"
    assert [i.name for i in module.entry if i.opcode == "constant"] == ["k"]


def probed(module: hlo.Module) -> None:
    """Every user takes what stands behind the value, and the root's place is taken too."""
    for name in ("s", "u"):
        rewrite.insert_after(at(module, name), lambda b, i: b.negate(b.negate(i)))
    assert at(module, "t").operands[0].opcode == module.entry.root.opcode == "negate"


def shared(module: hlo.Module) -> None:
    """Two loops call the same computations: the other one keeps them, and their names."""
    other = rewrite.Builder.before(module.entry.root).while_(
        at(module, "t"), condition=module.computation("c"), body=module.computation("b")
    )
    loop = rewrite.keep_loop_values(at(module, "w"), [1, 0])
    assert (loop.name, loop.attributes["body"].name) == ("w", "b.clone")
    assert (other.attributes["body"].name, at(module, "y").computation) == ("b", other.attributes["body"])


CHANGES: list[tuple[str, Callable[[hlo.Module], None]]] = [
    (LOOP, summed), (LOOP, constant_carried), (LOOP, swapped), (LOOP, added_and_dropped), (LOOP, shared),
    (REGION, sunk), (REGION, probed),
]  # fmt: skip


@pytest.mark.parametrize(("text", "change"), CHANGES, ids=[change.__name__ for _, change in CHANGES])
def test_a_change_leaves_what_is_valid(text: str, change: Callable[[hlo.Module], None]) -> None:
    """Nothing is left over either."""
    module = hlo.parse(text)
    change(module)
    assert hlo.verify(hlo.parse(str(module))) == []


NOTED = """HloModule m, num_partitions=2

c {
  s = (s32[], f32[4]) parameter(0), metadata={op_name="c/s"}
  i = s32[] get-tuple-element(s), index=0, metadata={op_name="c/i"}
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT
}

b {
  s = (s32[], f32[4]) parameter(0), sharding=BOTH, metadata={op_name="b/s"}
  i = s32[] get-tuple-element(s), index=0, metadata={op_name="b/i"}
  x = f32[4] get-tuple-element(s), index=1, sharding=TILED, metadata={op_name="b/x"}
  n = s32[] constant(1)
  a = s32[] add(i, n)
  y = f32[4] sine(x)
  ROOT r = (s32[], f32[4]) tuple(a, y), sharding=BOTH, metadata={op_name="b/r"}
}

ENTRY e {
  z = s32[] constant(0)
  p = f32[4] parameter(0)
  t = (s32[], f32[4]) tuple(z, p), sharding=BOTH, metadata={op_name="t"}
  w = (s32[], f32[4]) while(t), condition=c, body=b, sharding=BOTH, frontend_attributes={k="v"}, metadata={op_name="w"}
  ROOT q = f32[4] get-tuple-element(w), index=1, sharding=TILED, frontend_attributes={k="q"}, metadata={op_name="q"}
}
""".replace("BOTH", "{{replicated}, TILED}").replace("TILED", "{devices=[2]<=[2]}")


def test_a_loop_keeps_its_notes() -> None:
    """Names, metadata, frontend attributes and shardings; those of tuples follow their elements."""
    module = hlo.parse(NOTED)
    old = {(c.name, i.name): i for c in hlo.parse(NOTED).computations for i in c}
    loop = rewrite.add_loop_value(at(module, "w"), at(module, "z"))
    wide = "{{replicated}, {devices=[2]<=[2]}, {replicated}}"
    for state in (
        loop,
        loop.operands[0],
        loop.attributes["body"].root,
        loop.attributes["body"].parameters[0],
    ):
        assert str(state.sharding) == wide, state
    rewrite.keep_loop_values(loop, [1, 0])
    found = {(c.name, i.name): i for c in module.computations for i in c}
    assert old.keys() == found.keys()
    for place, one in old.items():
        new = found[place]
        assert (new.metadata, new.frontend_attributes) == (one.metadata, one.frontend_attributes), place
        if one.sharding is not None and one.sharding.is_tuple:
            assert str(new.sharding) == "{{devices=[2]<=[2]}, {replicated}}", place
        else:
            assert new.sharding == one.sharding, place
    assert hlo.verify(hlo.parse(str(module))) == []


@pytest.mark.xla
def test_changes_compute_the_same() -> None:
    """All of them, executed."""
    pytest.importorskip("jax")
    from hlotext.execution import largest_difference

    for text, change in CHANGES:
        before, after = hlo.parse(text), hlo.parse(text)
        change(after)
        assert largest_difference(before, after) <= 1e-6, change.__name__


def test_a_region_in_another_type() -> None:
    """Converted at its border alone; integers stay; what calls computations is refused and all undone."""
    module = hlo.parse(REGION)
    rewrite.convert_region([at(module, "s"), at(module, "t")], "bf16")
    opcodes = [(i.opcode, str(i.shape)) for i in module.entry]
    assert opcodes.count(("convert", "bf16[4]{0}")) == 2
    assert opcodes.count(("convert", "f32[4]{0}")) == 1
    assert ("sine", "bf16[4]{0}") in opcodes
    assert ("multiply", "bf16[4]{0}") in opcodes
    assert hlo.verify(hlo.parse(str(module))) == []
    text = str(module)
    with pytest.raises(rewrite.EditError, match="y is a fusion, which is not a plain array operation"):
        rewrite.convert_region([at(module, "y"), module.entry.root], "bf16")
    assert str(module) == text


def test_a_region_with_constants() -> None:
    """Constants stay and are converted for the region; nothing is left that nobody uses."""
    module = hlo.parse(
        "HloModule m\n\nENTRY e {\n  x = f32[4] parameter(0)\n  s = f32[4] sine(x)\n  c = f32[] constant(0.5)\n"
        "  b = f32[4] broadcast(c), dimensions={}\n  ROOT y = f32[4] maximum(s, b)\n}\n"
    )
    rewrite.convert_region([at(module, name) for name in ("s", "c", "b", "y")], "bf16")
    assert [(i.opcode, str(i.shape)) for i in module.entry] == [
        ("parameter", "f32[4]"), ("convert", "bf16[4]"), ("sine", "bf16[4]"), ("constant", "f32[]"), ("convert", "bf16[]"),
        ("broadcast", "bf16[4]"), ("maximum", "bf16[4]"), ("convert", "f32[4]"),
    ]  # fmt: skip
    assert hlo.verify(module) == []


@pytest.mark.parametrize(("refused", "said"), [
    (lambda m: rewrite.keep_loop_values(at(m, "w"), [0]), "value 1 of w is needed by q"),
    (lambda m: rewrite.keep_loop_values(at(m, "w"), [1]), "value 0 of w is needed by r"),
    (lambda m: rewrite.keep_loop_values(at(m, "w"), [0, 0]), "are not indices of the 2 values"),
    (lambda m: rewrite.add_loop_value(at(m, "t"), at(m, "z")), "t is not a while"),
    (lambda m: rewrite.add_loop_value(at(m, "w"), at(m, "z"), lambda b, v, s: s[1]), r"the step produces f32\[4\]{0}"),
    (lambda m: rewrite.sink_constants(at(m, "w")), "w is not a fusion"),
    (lambda m: rewrite.insert_after(at(m, "p"), lambda b, v: b.slice(v, [0], [2])), r"f32\[2\]"),
    (lambda m: rewrite.convert_region([], "bf16"), "the region is empty"),
    (lambda m: rewrite.donate(m, {1: ()}), "e has no argument 1"),
    (lambda m: rewrite.donate(m, {(0, (1,)): ()}), r"no argument 0 with an array at \(1,\)"),
    (lambda m: rewrite.donate(m, {0: (0,)}), r"with no array at \(0,\)"),
])  # fmt: skip
def test_what_does_not_fit_changes_nothing(refused: Callable[[hlo.Module], object], said: str) -> None:
    """The message says what stands in the way."""
    module = hlo.parse(LOOP)
    with pytest.raises(rewrite.EditError, match=said):
        refused(module)
    assert str(module) == LOOP


GATHERED = """HloModule m, num_partitions=4

ENTRY e {
  x = f32[4,8] parameter(0)
  g = f32[16,8] all-gather(x), replica_groups={{0,1,2,3}}, channel_id=1, use_global_device_ids=true, dimensions={0}
  ROOT n = f32[16,8] negate(g)
}
"""


def test_groups_of_another_size_resize_a_collective_and_its_users() -> None:
    module = hlo.parse(GATHERED)
    with module.transaction():
        module.attributes["num_partitions"] = 8
        changed = rewrite.change_attributes(module.instruction("g"), replica_groups="{{0,1,2,3,4,5,6,7}}")
    assert [one.name for one in changed] == ["g", "n"]
    assert str(module.entry.root.shape) == "f32[32,8]"
    assert not list(hlo.verify(module))


def test_a_donated_argument_keeps_its_size_or_its_donation_goes() -> None:
    """An edit that parts the sizes of a donated argument and its result is refused; sizes that agree at the end are fine."""
    text = """HloModule m, input_output_alias={ {}: (0, {}, may-alias) }

ENTRY e {
  x = f32[8] parameter(0)
  s = f32[8] slice(x), slice={[0:8]}
  ROOT r = f32[8] negate(s)
}
"""
    module = hlo.parse(text)
    with pytest.raises(hlo.EditError, match=r"f32\[16\] and f32\[8\] differ in size.* rewrite\.donate"):
        rewrite.change_shape(module.entry["x"], "f32[16]")
    assert str(module) == text
    with module.transaction(typed=False):
        rewrite.change_shape(module.entry["x"], "f32[16]")
        rewrite.change_attributes(module.entry["s"], slice="{[0:16]}")
    assert "may-alias" in str(module)
    rewrite.donate(module, {0: None})
    rewrite.change_shape(module.entry["x"], "f32[32]")
    assert "buffer_donor={ (0, {}) }" in str(module)


def test_donation_keeps_what_the_header_says_of_other_arguments() -> None:
    """What is said twice is said once; the kind is taken as XLA writes it."""
    module = hlo.parse(LOOP)
    rewrite.add_parameter(module.entry, "f32[8]")
    rewrite.donate(module, {1: None})
    rewrite.donate(module, {0: ()}, "must-alias")
    rewrite.donate(module, {1: None})
    header = str(module).splitlines()[0]
    assert "input_output_alias={ {}: (0, {}, must-alias) }, buffer_donor={ (1, {}) }" in header
    rewrite.donate(module, {0: None, 1: None})
    assert "input_output_alias" not in module.attributes
    rewrite.donate(module, {0: ()})
    assert "input_output_alias={ {}: (0, {}, may-alias) }, buffer_donor={ (1, {}) }" in str(module)


def test_help_and_dir_list_what_is_public() -> None:
    """Although modules are imported when they are first used."""
    from hlotext import matchers

    assert set(rewrite.__all__) == {name for name in dir(rewrite) if not name.startswith("_")}
    assert {"dot", "add_any_order", "op"} <= set(dir(matchers))
    builder = rewrite.Builder.before(hlo.parse(GATHERED).entry.root)
    assert {"dot", "all_gather", "op"} <= set(dir(builder))
    help_text = pydoc.plain(pydoc.render_doc(rewrite))
    assert all(name in help_text for name in ("apply_rules(", "class Builder", "donate(", "outline("))


def test_numbers_in_a_module_without_layouts_have_none() -> None:
    module = hlo.parse("ENTRY e { x = f32[4] parameter(0)  ROOT y = f32[4] negate(x) }")
    for _ in range(2):
        b = rewrite.Builder.after(module.entry.root)
        module.entry.root = b.add(module.entry.root, 1.0)
        assert module.entry.root.shape == hlo.parse_shape("f32[4]")


def test_attributes_that_do_not_fit_change_nothing() -> None:
    module = hlo.parse(GATHERED)
    with pytest.raises(hlo.EditError):
        rewrite.change_attributes(module.instruction("g"), dimensions=(5,))
    assert str(module) == GATHERED
    negated = module.instruction("n")
    rewrite.change_attributes(negated, metadata={"op_name": "a"})
    assert "metadata" in negated.attributes
    rewrite.change_attributes(negated, metadata=None)
    assert str(module) == GATHERED


def test_a_new_computation_inherits_what_is_asked_for() -> None:
    module = hlo.parse(
        'ENTRY e { x = f32[4] parameter(0)  ROOT y = f32[4] sine(x), metadata={op_name="net/sine"} }'
    )
    b = rewrite.Builder.new(module, "f", ["f32[4]"], like=module.entry.root)
    found = b.finish(b.cosine(b.computation.parameters[0]))
    assert found.root.metadata is not None
    assert found.root.metadata.op_name == "net/sine"
    assert found.parameters[0].metadata is None


def test_attributes_as_mappings() -> None:
    module = hlo.parse("ENTRY e { x = f32[4,4] parameter(0)  ROOT y = f32[4,4] negate(x) }")
    y = module.entry.root
    y.attributes["metadata"] = {"op_name": "a/b", "source_file": "x.py", "source_line": 3}
    y.attributes["statistics"] = {"count_nan": 1}
    assert 'metadata={op_name="a/b" source_file="x.py" source_line=3}' in str(y)
    assert "statistics={visualizing_index=0,count_nan=1}" in str(y)
    with pytest.raises(hlo.EditError, match="no field 'name'"):
        y.attributes["metadata"] = {"name": "a/b"}
    b = rewrite.Builder.new(module, "larger", ["f32[]", "f32[]"])
    larger = b.finish(b.maximum(*b.computation.parameters))
    b = rewrite.Builder.after(y)
    window = {"size": (2, 2), "stride": "2x2", "pad": [(0, 0), (1, 1)]}
    pooled = b.reduce_window(y, b.constant(0.0, "f32"), window=window, to_apply=larger)
    assert "window={size=2x2 stride=2x2 pad=0_0x1_1}" in str(pooled)


PAIR = """HloModule m, num_partitions=4

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT t = f32[] add(a, b)
}

ENTRY e {
  x = f32[8,8] parameter(0)
  g = f32[16,8] all-gather(x), channel_id=1, replica_groups={{0,1},{2,3}}, dimensions={0}, use_global_device_ids=true
  n = f32[16,8] negate(g)
  s = f32[8,8] reduce-scatter(n), channel_id=2, replica_groups={{0,1},{2,3}}, dimensions={0}, use_global_device_ids=true, \
to_apply=sum
  ROOT r = f32[8,8] add(s, x)
}
"""


@pytest.mark.parametrize("order", ["gs", "sg"])
def test_changes_that_are_right_only_together(order: str) -> None:
    """Without types a transaction lets everything follow at its end, in whatever order the changes were made."""
    module = hlo.parse(PAIR)
    with pytest.raises(rewrite.EditError, match="different sizes"):
        rewrite.change_attributes(module.instruction("g"), replica_groups="{{0,1,2,3}}")
    with module.transaction(typed=False):
        for name in order:
            rewrite.change_attributes(module.instruction(name), replica_groups="{{0,1,2,3}}")
    assert [str(one.shape) for one in module.entry] == [
        "f32[8,8]",
        "f32[32,8]",
        "f32[32,8]",
        "f32[8,8]",
        "f32[8,8]",
    ]
    assert not list(hlo.verify(module))
    with module.transaction(typed=False):  # plain attributes too; their shapes are the caller's
        module.attributes["num_partitions"] = 8
        for name in order:
            module.instruction(name).attributes["replica_groups"] = "{{0,1,2,3,4,5,6,7}}"
        for name in "gn":
            module.instruction(name).shape = "f32[64,8]"
    assert not list(hlo.verify(module))


def half_done(module: hlo.Module) -> None:
    with module.transaction():
        rewrite.change_shape(module.instruction("x"), "f32[9,8]")
        module.instruction("n").opcode = "none such"


def test_a_transaction_without_types_refuses_at_its_end_what_does_not_fit() -> None:
    module = hlo.parse(PAIR)
    with pytest.raises(rewrite.EditError, match="different sizes"), module.transaction(typed=False):
        rewrite.change_attributes(module.instruction("s"), replica_groups="{{0,1,2,3}}")
    assert str(module) == PAIR
    with pytest.raises(rewrite.EditError), module.transaction(typed=False):
        module.instruction("n").shape = "f32[5]"
    assert str(module) == PAIR
    with module.transaction(typed=False) as record:  # what is taken back need not follow
        rewrite.change_shape(module.instruction("x"), "f32[7,8]")
        record.undo()
        with pytest.raises(rewrite.EditError):
            half_done(module)
    assert str(module) == PAIR
    with pytest.raises(rewrite.EditError):  # afterwards every edit is checked again
        module.instruction("n").shape = "f32[5]"


def test_the_type_of_a_loop_carried_value() -> None:
    """Operand, body and result change together, with conversions inside and behind the loop."""
    module = hlo.parse(LOOP)
    loop = at(module, "w")
    body = loop.attributes["body"]
    with module.transaction(typed=False):
        for state in (loop.operands[0], body.root):
            number, value = state.operands
            rewrite.change_operands(state, [number, rewrite.Builder.before(state).convert(value, "bf16")])
        for element in (body["x"], at(module, "q")):
            wide = rewrite.Builder.after(element).convert(element, "f32")
            element.replace_all_uses_with(wide)
    assert str(loop.shape) == "(s32[], bf16[4]{0})"
    assert str(body["x"]) == "x = bf16[4]{0} get-tuple-element(s), index=1"
    assert module.entry.root.opcode == "convert"
    assert not list(hlo.verify(module))


def test_a_value_of_another_type_takes_a_place() -> None:
    module = hlo.parse(REGION)
    root = module.entry.root
    old = root.operands[0]
    with module.transaction(typed=False):
        narrow = rewrite.Builder.after(old).convert(old, "bf16")
        old.replace_all_uses_with(narrow)
        rewrite.change_operands(root, root.operands)
    assert root.shape is not None
    assert root.shape.element_type.name == "bf16"
    assert not list(hlo.verify(module))


RESULTS = """HloModule m, input_output_alias={ {}: (0, {}, may-alias) }

ENTRY e {
  x = f32[4] parameter(0)
  s = f32[4] sine(x)
  ROOT r = f32[4] negate(s), sharding={replicated}
}
"""


def test_new_results() -> None:
    """An array becomes the first element of a tuple, in its donation too; a tuple gets longer under its name."""
    module = hlo.parse(RESULTS)
    assert rewrite.add_result(module, at(module, "s")) == 1
    assert "input_output_alias={ {0}: (0, {}, may-alias) }" in str(module)
    module.entry.root.name = "results"
    assert rewrite.add_result(module, at(module, "x")) == 2
    assert str(module.entry.root) == (
        "ROOT results = (f32[4], f32[4], f32[4]) tuple(r, s, x), sharding={{replicated}, {replicated}, {replicated}}"
    )
    assert not list(hlo.verify(module))
    text = str(module)
    with pytest.raises(rewrite.EditError, match="which is not an array of e"):
        rewrite.add_result(module, module.entry.root)
    assert str(module) == text


def test_a_result_taken_away() -> None:
    """The others keep layouts, donations, shardings and entries of lists."""
    header = """HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {2}: (1, {}, may-alias) }, \
entry_computation_layout={(f32[2,4]{1,0}, f32[2,4]{1,0})->(f32[2,4]{1,0}, f32[2,4]{1,0}, f32[2,4]{0,1})}, \
allow_spmd_sharding_propagation_to_output={true,true,false}, \
frontend_attributes={out_layout_modes="default;{1,0};{0,1}",out_memory_spaces="0;0;5"}"""
    module = hlo.parse(
        header
        + """

ENTRY e {
  x = f32[2,4] parameter(0)
  y = f32[2,4] parameter(1)
  ROOT r = (f32[2,4], f32[2,4], f32[2,4]) tuple(x, y, y), sharding={{replicated}, {manual}, {replicated}}
}
"""
    )
    with pytest.raises(IndexError):
        rewrite.remove_result(module, 3)
    rewrite.remove_result(module, 0)
    found = str(module).splitlines()[0]
    for part in (
        "input_output_alias={ {1}: (1, {}, may-alias) }",
        "->(f32[2,4]{1,0}, f32[2,4]{0,1})}",
        "to_output={true,false}",
        'frontend_attributes={out_layout_modes="{1,0};{0,1}",out_memory_spaces="0;5"}',
    ):
        assert part in found
    assert (
        str(module.entry.root)
        == "ROOT r = (f32[2,4], f32[2,4]) tuple(y, y), sharding={{manual}, {replicated}}"
    )
    rewrite.remove_result(module, -1)
    assert "input_output_alias" not in str(module)
    assert not list(hlo.verify(module))
    with pytest.raises(rewrite.EditError, match="not a tuple of results"):
        rewrite.remove_result(hlo.parse(RESULTS), 0)


def test_a_tuple_that_is_no_tuple_instruction_gets_a_new_result() -> None:
    module = hlo.parse(LOOP)
    module.entry.root = at(module, "w")
    assert rewrite.add_result(module, at(module, "p")) == 2
    assert [one.opcode for one in module.entry.root.operands] == ["get-tuple-element"] * 2 + ["parameter"]
    assert not list(hlo.verify(module))


def test_building_goes_on_where_the_place_has_gone() -> None:
    """Behind what was built last."""
    module = hlo.parse(RESULTS)
    place = at(module, "s")
    b = rewrite.Builder.before(place)
    place.replace_with(b.cosine(place.operands[0]))
    b.tanh(at(module, "x"))
    assert [one.opcode for one in module.entry] == ["parameter", "cosine", "tanh", "negate"]


def test_a_scheduling_name_stays_with_its_instruction() -> None:
    """It is the instruction's own name: what is built, inlined or cloned from it has none."""
    text = """f { a = f32[4] parameter(0)
  ROOT s = f32[4] sine(a), metadata={op_name="net" scheduling_name="s"} }
ENTRY e { x = f32[4] parameter(0)
  c = f32[4] call(x), to_apply=f
  ROOT n = f32[4] negate(c), metadata={scheduling_name="n"} }"""
    module = hlo.parse(text)
    copies = [*rewrite.inline(at(module, "c")).values()]
    copies.append(rewrite.Builder.before(module.entry.root).tanh(copies[0]))
    assert [str(one.metadata) for one in copies] == ['{op_name="net"}', "None"]
    assert str(module).count("scheduling_name") == 2


TILED = """HloModule m, entry_computation_layout={(f32[16,128]{1,0:T(8,128)})->f32[16,128]{1,0:T(8,128)}}

ENTRY e {
  x = f32[16,128]{1,0} parameter(0)
  ROOT r = f32[16,128]{1,0} negate(x)
}
"""


@pytest.mark.parametrize("line", ["{1,0}", "{1,0:T(8,128)}"], ids=["before", "after"])
def test_new_arguments_and_results_are_laid_out_as_the_others(line: str) -> None:
    """The header of TPU text has tiles; lines have them after layout assignment."""
    module = hlo.parse(TILED.replace("{1,0} ", line + " "))
    added = rewrite.add_parameter(module.entry, "bf16[16,128]", "y")
    scalar = rewrite.add_parameter(module.entry, "f32[]")
    rewrite.add_result(module, added)
    tiled = "T" in line
    assert str(added.shape) == "bf16[16,128]{1,0:T(8,128)(2,1)}" if tiled else "bf16[16,128]{1,0}"
    assert str(scalar.shape) == ("f32[]{:T(128)}" if tiled else "f32[]")
    layout = "f32[16,128]{1,0:T(8,128)}, bf16[16,128]{1,0:T(8,128)(2,1)}"
    assert f"entry_computation_layout={{({layout}, f32[]{{:T(128)}})->({layout})}}" in str(module)
    rewrite.change_entry_layout(module, {1: "{0,1}"})
    assert "bf16[16,128]{0,1:T(8,128)(2,1)}, f32[]" in str(module).splitlines()[0]
    assert "(f32[16,128]{1,0:T(8,128)}, bf16" in str(module).splitlines()[0]
    assert not [one for one in hlo.verify(module) if one.severity.value == "error"]


def test_a_number_is_the_value_of_a_scalar_constant() -> None:
    module = hlo.parse(LOOP)
    bound = module.computation("c")["n"]
    bound.literal = 5  # type: ignore[assignment]
    assert str(bound) == "n = s32[] constant(5)"
    for wrong in (1.5, float("nan"), 1 << 40, True):
        with pytest.raises(rewrite.EditError, match="the value of n cannot be"):
            bound.literal = wrong  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("ROOT r = f32[4,8] negate(y)", "bf16[4,8]"),
        ("c = f32[] constant(2)  b = f32[4,8] broadcast(c), dimensions={}  ROOT r = f32[4,8] multiply(y, b)", "bf16[4,8]"),
        ("ROOT r = f32[4,8] fusion(y), kind=kLoop, calls=f", "bf16[4,8]"),
        ("ROOT r = f32[4,8] call(y), to_apply=f", "bf16[4,8]"),
        ("z = f32[] constant(0)  ROOT r = f32[4] reduce(y, z), dimensions={1}, to_apply=sum", "bf16[4]"),
        ("q = f32[4,8] convert(y)  ROOT r = f32[4,8] negate(q)", "f32[4,8]"),
        ("ROOT r = f32[4,4] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}", "bf16[4,4]"),
        (
            "z = f32[] constant(0)  q = f32[4] reduce(y, z), dimensions={1}, to_apply=sum  w = f32[4,8] parameter(1)"
            "  p = f32[4] reduce(w, z), dimensions={1}, to_apply=sum  ROOT r = (f32[4], f32[4]) tuple(q, p)",
            "(bf16[4], f32[4])",
        ),
    ],
)  # fmt: skip
def test_another_element_type_is_followed(body: str, wanted: str) -> None:
    """Into users, fusions, calls and reducers, with constants; what states its type stays, and what others call is copied."""
    module = hlo.parse(
        f"""HloModule m
sum {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT t = f32[] add(a, b) }}
f {{ a = f32[4,8] parameter(0)  c = f32[] constant(3)  d = f32[4,8] broadcast(c), dimensions={{}}
  ROOT t = f32[4,8] add(a, d) }}
ENTRY e {{ x = f32[4,8] parameter(0)  y = f32[4,8] sine(x)  {body} }}"""
    )
    rewrite.change_shape(at(module, "x"), "bf16[4,8]")
    assert str(module.entry.root.shape) == wanted
    assert not [f for f in hlo.verify(module) if f.severity is hlo.Severity.ERROR]


def test_callers_that_pass_different_shapes_to_one_computation() -> None:
    """Are refused, where each would have the parameter in its own shape for ever."""
    text = """ENTRY e { p = pred[] parameter(0)  x = f32[4] parameter(1)  y = f32[4] parameter(2)
  ROOT c = f32[4] conditional(p, x, y), true_computation=b, false_computation=b }
b { v = f32[4] parameter(0)  ROOT n = f32[4] negate(v) }"""
    module = hlo.parse(text)
    with bounded(10), pytest.raises(hlo.EditError, match="the calls of b pass v different shapes"):
        rewrite.change_shape(at(module, "x"), "f32[8]")
    assert str(module) == text


def test_another_type_among_operands_that_are_no_constants() -> None:
    """Is refused, and nothing changes."""
    text = "ENTRY e { x = f32[4] parameter(0)  y = f32[4] parameter(1)  ROOT r = f32[4] add(x, y) }"
    module = hlo.parse(text)
    with pytest.raises(rewrite.EditError, match="floats of one precision"):
        rewrite.change_shape(at(module, "x"), "bf16[4]")
    assert str(module) == str(hlo.parse(text))


CALLING = """f { a = f32[4,8]{1,0} parameter(0)  ROOT t = f32[4,8]{1,0} negate(a) }
ENTRY e { x = f32[4,8]{1,0} parameter(0)  ROOT r = f32[4,8]{1,0} fusion(x), kind=kLoop, calls=f }"""


@pytest.mark.parametrize("shape", ["f32[6,8]{1,0}", "bf16[4,8]{1,0}"])
@pytest.mark.parametrize("is_typed", [True, False])
def test_operands_of_what_calls_a_computation(shape: str, is_typed: bool) -> None:
    """Its parameters follow; of a layout alone they do, and a copy keeps the old one inside."""
    module = hlo.parse(f"HloModule m, is_scheduled=true\n{CALLING}")
    other = rewrite.add_parameter(module.entry, shape, "q")
    with module.transaction(typed=is_typed):
        rewrite.change_operands(module.entry.root, [other])
    assert str(module.entry.root.shape) == shape
    module = hlo.parse(f"HloModule m, is_scheduled=true\n{CALLING}")
    root = module.entry.root
    rewrite.change_operands(
        root, [rewrite.Builder.before(root).copy(root.operands[0], shape="f32[4,8]{0,1}")]
    )
    body = root.called_computations[0]
    assert str(body.parameters[0].shape) == "f32[4,8]{0,1}"
    assert [i.opcode for i in body] == ["parameter", "copy", "negate"]
    assert str(root.shape) == "f32[4,8]{1,0}"
    assert not list(hlo.verify(module))


def test_a_loop_calls_what_it_called() -> None:
    """Computations of the body keep their names, and none is left without a caller."""
    module = hlo.parse("""HloModule m
g { q = s32[] parameter(0)  k = s32[] constant(1)  ROOT h = s32[] add(q, k) }
c { s = (s32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT }
b { s = (s32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0  a = s32[] fusion(i), kind=kLoop, calls=g
  ROOT r = (s32[]) tuple(a) }
ENTRY e { z = s32[] constant(0)  t = (s32[]) tuple(z)  ROOT w = (s32[]) while(t), condition=c, body=b }""")
    loop = rewrite.add_loop_value(module.entry.root, at(module, "z"), lambda b, v, s: b.add(v, 2))
    assert {c.name for c in module.computations} == {"g", "c", "b", "e"}
    assert rewrite.keep_loop_values(loop, [0]).attributes["body"]["a"].called_computations[0].name == "g"
    assert not list(hlo.verify(module))
    with pytest.raises(rewrite.EditError, match="inline the call first"):
        rewrite.add_result(module, at(module, "a"))


def test_a_value_of_another_type_within_a_transaction() -> None:
    module = hlo.parse("ENTRY e { x = f32[4] parameter(0)  y = f32[4] sine(x)  ROOT r = f32[4] negate(y) }")
    with module.transaction(typed=False):
        narrow = rewrite.insert_after(at(module, "y"), lambda b, v: b.convert(v, "bf16"))
        rewrite.change_operands(module.entry.root, [narrow])
    assert str(module.entry.root) == "ROOT r = bf16[4] negate(convert)"


def test_arguments_of_the_builder_by_their_names_in_the_text() -> None:
    module = hlo.parse("ENTRY e { ROOT x = f32[4,8] parameter(0) }")
    x = module.entry.root
    b = rewrite.Builder.after(x)
    assert b.iota(shape="s32[4]", iota_dimension=0).attributes["iota_dimension"] == 0
    assert str(b.broadcast(b.constant(0.0, "f32"), dimensions=(), shape="f32[4,8]").shape) == "f32[4,8]"
    assert str(b.reshape(x, shape="f32[8,4]").shape) == "f32[8,4]"
    assert str(b.slice(x, slice="{[0:2], [0:8:2]}").shape) == "f32[2,4]"
    assert str(b.convert(x, shape="bf16[4,8]").shape) == "bf16[4,8]"
    assert (
        str(b.dynamic_slice(x, 0, 0, dynamic_slice_sizes=(1, 8)).operands[1])
        == "constant.1 = s32[] constant(0)"
    )
    assert str(b.dynamic_update_slice(x, b.slice(x, (0, 0), (1, 8)), 0, 0).shape) == "f32[4,8]"
    with pytest.raises(TypeError, match="iota takes exactly one of dimension=, iota_dimension="):
        b.iota("s32[4]")


def test_start_indices_keep_their_type() -> None:
    """Where integers become another type, the constants that say where a slice begins do not."""
    module = hlo.parse("""ENTRY e {
      x = s32[8] parameter(0)  u = s32[2] constant({1, 2})  c = s32[] constant(2)
      d = s32[8] dynamic-update-slice(x, u, c)  ROOT s = s32[4] dynamic-slice(d, c), dynamic_slice_sizes={4} }""")
    rewrite.change_shape(at(module, "x"), "f32[8]")
    assert str(module.entry.root) == "ROOT s = f32[4] dynamic-slice(d, c), dynamic_slice_sizes={4}"
    assert not list(hlo.verify(module))


def test_a_broadcast_constant_in_another_type_and_size() -> None:
    module = hlo.parse("""ENTRY e {
      x = f32[4] parameter(0)  c = f32[] constant(2)  b = f32[4] broadcast(c), dimensions={}  ROOT r = f32[4] add(x, b) }""")
    with module.transaction(typed=False):
        for name in ("x", "b"):
            rewrite.change_shape(at(module, name), "bf16[9]")
    assert str(module.entry.root) == "ROOT r = bf16[9] add(x, b)"
    assert not list(hlo.verify(module))


def test_a_dot_of_narrower_operands_keeps_the_type_that_is_asked_for() -> None:
    module = hlo.parse("""ENTRY e { x = f32[4,8] parameter(0)
      ROOT d = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1} }""")
    dot = module.entry.root
    narrow = rewrite.Builder.before(dot).convert(dot.operands[0], "bf16")
    assert rewrite.change_operands(dot, [narrow, narrow], shape="f32[4,4]")
    assert str(dot).startswith("ROOT d = f32[4,4] dot(convert, convert)")
    assert not list(hlo.verify(module))


def test_annotating_a_loop_writes_what_its_numbers_say() -> None:
    """After a peeled iteration the start is another one; where the limit is not known nothing stays; the rest is kept."""
    noted = (
        '{"known_trip_count":{"n":"9"},"known_init_step":{"init":"0","step":"1"},'
        '"known_induction_variable":{"tuple_index":"1"},"dynamic_variables":[]}'
    )
    text = """HloModule m

c {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT
}

b {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  n = s32[] constant(1)
  a = s32[] add(i, n)
  y = f32[4] sine(x)
  ROOT r = (s32[], f32[4]) tuple(a, y)
}

ENTRY e {
  z = s32[] constant(0)
  p = f32[4] parameter(0)
  t = (s32[], f32[4]) tuple(z, p)
  ROOT w = (s32[], f32[4]) while(t), condition=c, body=b, backend_config=NOTED
}
""".replace("NOTED", noted)
    module = hlo.parse(text)
    loop = module.entry.root
    first = rewrite.Builder.before(loop).call(loop.operands[0], to_apply=loop.attributes["body"])
    loop.replace_operand(0, first)
    rewrite.inline(first)
    config = rewrite.annotate_loop(loop)
    assert loop.backend_config is not None
    assert loop.backend_config.json() == config
    assert config == {
        "known_trip_count": {"n": "2"},
        "known_init_step": {"init": "1", "step": "1"},
        "known_induction_variable": {"tuple_index": "0"},
        "dynamic_variables": [],
    }
    unknown = hlo.parse(text.replace("constant(0)", "parameter(1)"))
    assert rewrite.annotate_loop(unknown.entry.root) == {"dynamic_variables": []}
    empty = hlo.parse(text.replace(", backend_config=" + noted, "").replace("constant(0)", "parameter(1)"))
    before = str(empty)
    assert rewrite.annotate_loop(empty.entry.root) == {}
    assert str(empty) == before
    with pytest.raises(hlo.EditError, match="p is parameter, not while"):
        rewrite.annotate_loop(module.entry["p"])


def test_padding_slices_and_single_dimensions_are_taken_as_numbers() -> None:
    """Low, high and maybe interior; start, limit and maybe stride; one dimension for a list of one."""
    module = hlo.parse("ENTRY e { x = f32[8,4] parameter(0)  ROOT r = f32[8,4] negate(x) }")
    b, x = rewrite.Builder.before(module.entry.root), module.entry["x"]
    assert "padding=0_0_0x1_1_2" in str(b.pad(x, 0.0, padding=[(0, 0), (1, 1, 2)]))
    assert "slice={[0:4:1], [1:4:2]}" in str(b.slice(x, slice=[(0, 4), (1, 4, 2)]))
    assert str(b.concatenate(x, x, dimensions=1).shape) == "f32[8,8]"
    with pytest.raises(hlo.EditError, match=r"each dimension needs \(low, high\)"):
        b.pad(x, 0.0, padding=[(1,), (0, 0)])
    with pytest.raises(hlo.EditError, match="expected a list of integers as dimensions"):
        b.concatenate(x, x, dimensions=True)


def test_a_region_with_a_reduction() -> None:
    """It calls a copy of its reducer in the region's type; control dependencies within the region stay there."""
    text = """HloModule m

larger {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT t = f32[] maximum(a, b)
}

ENTRY e {
  x = f32[8,16] parameter(0)
  low = f32[] constant(-inf)
  s = f32[8,16] sine(x)
  m = f32[8] reduce(s, low), dimensions={1}, to_apply=larger, control-predecessors={s}
  n = f32[8] reduce(s, low), dimensions={1}, to_apply=larger
  ROOT r = (f32[8], f32[8]) tuple(m, n)
}
"""
    module = hlo.parse(text)
    new = rewrite.convert_region([module.entry[name] for name in ("s", "m", "n")], "bf16")
    assert [str(i.shape) for i in new] == ["bf16[8,16]", "bf16[8]", "bf16[8]"]
    assert new[1].called_computations == new[2].called_computations
    assert str(new[1].called_computations[0].root.shape) == "bf16[]"
    assert new[1].control_predecessors == (new[0],)
    assert not [f for f in hlo.verify(module) if f.severity.value == "error"]

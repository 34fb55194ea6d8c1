"""The rewriter: fixpoints that are ones, what a failing rule made is taken back, budgets and profiles."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlotext as hlo
from hlotext import matchers as m
from hlotext import rewrite
from hlotext.edit import integrity

TEXT = """ENTRY e {
  x = f32[4] parameter(0)
  a = f32[4] sine(x)
  b = f32[4] negate(a)
  ROOT c = f32[4] abs(b)
}
"""


@rewrite.pattern(m.negate(m.sine(m.op("x"))))
def builds_and_gives_up(r: rewrite.Rewrite) -> hlo.Instruction | None:
    """Makes two instructions, changes a third, and finds that it does not help."""
    r.b.add(r["x"], r.b.cosine(r["x"]))
    r.instruction.operands[0].opcode = "cosine"
    return None


def test_what_a_rule_made_before_it_gave_up_is_taken_back() -> None:
    """No orphan stays, no edit, and not a byte of the text differs."""
    module = hlo.parse(TEXT)
    assert rewrite.apply_rules(module, [builds_and_gives_up]) == {}
    assert str(module) == TEXT
    assert integrity.problems(module) == []


def test_what_a_rule_made_before_it_raised_is_taken_back() -> None:
    """The error says which rule raised it, and where."""

    @rewrite.pattern(m.negate())
    def raises(r: rewrite.Rewrite) -> hlo.Instruction | None:
        r.b.cosine(r.instruction.operands[0])
        raise KeyError("no such thing")

    module = hlo.parse(TEXT)
    with pytest.raises(KeyError) as caught:
        rewrite.apply_rules(module, [raises])
    assert caught.value.__notes__ == ["in the rule raises, applied to b"]
    assert str(module) == TEXT


def test_what_a_rule_built_and_did_not_use_goes() -> None:
    @rewrite.pattern(m.sine(m.op("x")))
    def wasteful(r: rewrite.Rewrite) -> hlo.Instruction:
        r.b.tanh(r.b.negate(r["x"]))
        return r.b.cosine(r["x"])

    module = hlo.parse(TEXT)
    assert rewrite.apply_rules(module, [wasteful]) == {"wasteful": 1}
    assert [i.opcode for i in module.entry] == ["parameter", "cosine", "negate", "abs"]


def test_an_operand_that_was_changed_in_place_is_visited_again() -> None:
    """The rule for cosines stands first, so that only another visit finds the one that the rule for negations made."""

    @rewrite.pattern(m.cosine(m.op("x")))
    def cosine(r: rewrite.Rewrite) -> hlo.Instruction:
        return r.b.tanh(r["x"])

    @rewrite.pattern(m.negate(m.sine()))
    def change_operand(r: rewrite.Rewrite) -> hlo.Instruction:
        r.instruction.operands[0].opcode = "cosine"
        return r.instruction

    module = hlo.parse(TEXT)
    assert rewrite.apply_rules(module, [cosine, change_operand]) == {"change_operand": 1, "cosine": 1}
    assert [i.opcode for i in module.entry] == ["parameter", "tanh", "negate", "abs"]


def test_a_pattern_that_looks_far_matches_after_a_change_deep_inside() -> None:
    """Four levels above what was changed."""

    @rewrite.pattern(m.abs(m.negate(m.negate(m.negate(m.cosine(m.op("x")))))))
    def deep(r: rewrite.Rewrite) -> hlo.Instruction:
        return r.b.tanh(r["x"])

    @rewrite.pattern(
        m.sine(m.op("x")).with_predicate(lambda i: i.computation is not None and len(i.computation) > 5)
    )
    def late(r: rewrite.Rewrite) -> hlo.Instruction:
        return r.b.cosine(r["x"])

    module = hlo.parse(
        "ENTRY e { x = f32[4] parameter(0)  a = f32[4] sine(x)  b = f32[4] negate(a)  c = f32[4] negate(b)"
        "  d = f32[4] negate(c)  ROOT e = f32[4] abs(d) }"
    )
    assert rewrite.apply_rules(module, [deep, late]) == {"late": 1, "deep": 1}


def test_a_condition_on_other_computations_holds_at_the_end() -> None:
    """A fixpoint is one, even where a rule asks about what no user or operand tells."""

    @rewrite.pattern(m.sine(m.op("x")).with_predicate(lambda i: "tanh" in str(module)))
    def after_the_other(r: rewrite.Rewrite) -> hlo.Instruction:
        return r.b.cosine(r["x"])

    @rewrite.pattern(m.negate(m.op("x")))
    def other(r: rewrite.Rewrite) -> hlo.Instruction:
        return r.b.tanh(r["x"])

    module = hlo.parse(
        "f { p = f32[] parameter(0)  ROOT s = f32[] sine(p) }\n"
        "ENTRY e { x = f32[] parameter(0)  c = f32[] call(x), to_apply=f  ROOT n = f32[] negate(c) }"
    )
    assert rewrite.apply_rules(module, [after_the_other, other]) == {"other": 1, "after_the_other": 1}


def test_rules_that_undo_one_another_end_with_an_error() -> None:
    @rewrite.pattern(m.sine(m.op("x")))
    def to_cosine(r: rewrite.Rewrite) -> hlo.Instruction:
        return r.b.cosine(r["x"])

    @rewrite.pattern(m.cosine(m.op("x")))
    def to_sine(r: rewrite.Rewrite) -> hlo.Instruction:
        return r.b.sine(r["x"])

    with pytest.raises(
        rewrite.RewriteError, match="no fixpoint after 50 rewrites: rules undo each other"
    ) as caught:
        rewrite.apply_rules(hlo.parse(TEXT), [to_cosine, to_sine], max_rewrites=50)
    assert "to_sine on cosine" in str(caught.value)


def test_profile() -> None:
    """How often each rule was tried, matched and applied, and how long that took."""
    profile: rewrite.Profile = {}

    @rewrite.pattern(m.sine(m.op("x")))
    def to_cosine(r: rewrite.Rewrite) -> hlo.Instruction:
        return r.b.cosine(r["x"])

    @rewrite.pattern(m.negate(m.op("x")))
    def gives_up(r: rewrite.Rewrite) -> None:
        return None

    rewrite.apply_rules(hlo.parse(TEXT), [gives_up, to_cosine], profile=profile)
    found = profile["to_cosine"]
    assert (found.tried, found.matched, found.applied) == (1, 1, 1)
    assert profile["gives_up"].matched >= 1
    assert profile["gives_up"].applied == 0
    assert all(costs.seconds > 0 for costs in profile.values())


def test_listeners_hear_of_replacements() -> None:
    heard: list[tuple[str, str, str]] = []

    class Listener:
        def replaced(self, rule: rewrite.RewriteRule, old: hlo.Instruction, new: hlo.Instruction) -> None:
            heard.append((rule.name, old.name, new.name))

    @rewrite.pattern(m.sine(m.op("x")))
    def to_cosine(r: rewrite.Rewrite) -> hlo.Instruction:
        return r.b.cosine(r["x"])

    rewrite.apply_rules(hlo.parse(TEXT), [to_cosine], listeners=[Listener()])
    assert heard == [("to_cosine", "a", "cosine")]


def test_only_chosen_computations_change() -> None:
    module = hlo.parse(
        "f { p = f32[] parameter(0)  ROOT s = f32[] sine(p) }\n"
        "ENTRY e { x = f32[] parameter(0)  c = f32[] call(x), to_apply=f  ROOT n = f32[] sine(c) }"
    )

    @rewrite.pattern(m.sine(m.op("x")))
    def to_cosine(r: rewrite.Rewrite) -> hlo.Instruction:
        return r.b.cosine(r["x"])

    assert rewrite.apply_rules(module, [to_cosine], computations=[module.entry]) == {"to_cosine": 1}
    assert module.computations[0].root.opcode == "sine"


def test_a_rule_that_starts_at_a_fusion() -> None:
    """The pattern is of what the fusion computes; what takes the place is the fusion's."""
    module = hlo.parse(
        "body { p = f32[4] parameter(0)  t = f32[4] tanh(p)  ROOT n = f32[4] negate(t) }\n"
        "ENTRY e { x = f32[4] parameter(0)  f = f32[4] fusion(x), kind=kLoop, calls=body  ROOT r = f32[4] abs(f) }"
    )

    @rewrite.pattern(m.negate(m.tanh(m.parameter(0, name="x"))).through(fusion=True, start=True))
    def flatten(r: rewrite.Rewrite) -> hlo.Instruction | None:
        return r.b.sine(r["x"]) if r.instruction.opcode == "fusion" else None

    assert rewrite.apply_rules(module, [flatten]) == {"flatten": 1}
    assert [i.opcode for i in module.entry] == ["parameter", "sine", "abs"]


RULES: dict[str, Any] = {
    "negate negate": (m.negate(m.negate(m.op("x"))), lambda r: r["x"]),
    "abs negate": (m.abs(m.negate(m.op("x"))), lambda r: r.b.abs(r["x"])),
    "abs abs": (m.abs(m.abs(m.op("x"), name="inner")), lambda r: r["inner"]),
    "add twice": (m.add(m.op("x"), m.op("x")), lambda r: r.b.multiply(r["x"], r.b.full_like(r["x"], 2))),
    "multiply negate": (
        m.multiply_any_order(m.negate(m.op("x")), m.op("y")),
        lambda r: r.b.negate(r.b.multiply(r["x"], r["y"])),
    ),
    "add negate": (m.add(m.op("x"), m.negate(m.op("y"))), lambda r: r.b.subtract(r["x"], r["y"])),
}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_rule_matches_at_the_end(data: st.DataObject) -> None:
    """Random programs and rules: a fixpoint, a sound graph, and a text that reads back."""
    lines = ["v0 = f32[4] parameter(0)", "v1 = f32[4] parameter(1)"]
    for n in range(2, data.draw(st.integers(3, 25))):
        opcode = data.draw(st.sampled_from(["negate", "abs", "add", "multiply"]))
        operands = [
            f"v{data.draw(st.integers(max(n - 6, 0), n - 1))}"
            for _ in range(1 + (opcode in ("add", "multiply")))
        ]
        lines.append(f"v{n} = f32[4] {opcode}({', '.join(operands)})")
    module = hlo.parse("ENTRY e {\n  " + "\n  ".join(lines) + "\n}\n")
    names = data.draw(st.permutations(sorted(RULES)))
    rules = [rewrite.RewriteRule(name, *RULES[name]) for name in names]
    rewrite.apply_rules(module, rules)
    assert not [
        (i.name, rule.name) for i in module.instructions() for rule in rules if rule.pattern.matches(i)
    ]
    assert integrity.problems(module) == []
    assert str(hlo.parse(str(module))) == str(module)
    assert [d for d in hlo.verify(module) if d.severity is hlo.Severity.ERROR] == []


def test_a_broadcast_of_a_scalar_has_a_layout_only_where_the_computation_has_some() -> None:
    """A scalar is written without a layout in every text, so that it alone does not show whether there are any."""
    for layout in ("", "{0}"):
        module = hlo.parse(
            f"ENTRY e {{\n  s = f32[] parameter(0)\n  ROOT x = f32[4]{layout} parameter(1)\n}}\n"
        )
        builder = rewrite.Builder.after(module.entry["s"])
        made = builder.broadcast(module.entry["s"], (4,))
        assert made.shape == module.entry.root.shape
        again = hlo.parse(str(module))
        assert again.entry[made.name].shape == made.shape


def test_equal_operations_are_inferred_once_and_others_apart() -> None:
    """By attributes, and by the shapes and layouts of operands; what holds a value or calls a computation is left out."""
    module = hlo.parse("""HloModule m

ENTRY e {
  x = f32[2,3]{1,0} parameter(0)
  y = f32[2,3]{0,1} parameter(1)
  z = f32[2,3,1]{2,1,0} parameter(2)
  ROOT r = f32[2,3]{1,0} negate(x)
}
""")
    b = rewrite.Builder.before(module.entry.root)
    x, y, z = module.entry.parameters
    for _ in range(2):
        shapes = [
            b.negate(x), b.negate(y), b.transpose(z, dimensions=(1, 0, 2)), b.transpose(z, dimensions=(0, 2, 1)),
            b.slice(x, (0, 0), (1, 3)), b.slice(x, (0, 0), (2, 2)), b.concatenate(x, x, dimensions=0),
            b.concatenate(x, x, dimensions=1), b.constant(1, "s32"), b.constant([1, 2], "s32"),
        ]  # fmt: skip
        assert [i.shape.text_without_layout() for i in shapes if i.shape is not None] == [
            *(
                "f32[2,3]",
                "f32[2,3]",
                "f32[3,2,1]",
                "f32[2,1,3]",
                "f32[1,3]",
                "f32[2,2]",
                "f32[4,3]",
                "f32[2,6]",
            ),
            *("s32[]", "s32[2]"),
        ]
        assert [str(i.shape) for i in shapes[:2]] == ["f32[2,3]{1,0}", "f32[2,3]{0,1}"]


GATHERED = """HloModule t, num_partitions=2

ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  n = f32[4] custom-call(y), custom_call_target="p", custom_call_has_side_effect=true
  st = (f32[4], f32[8]) all-gather-start(x), channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true
  dn = f32[8] all-gather-done(st), control-predecessors={n}
  ROOT r = (f32[8], f32[4]) tuple(dn, n)
}
"""
GATHER = "all-gather = f32[8] all-gather(x), channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true"


@rewrite.pattern(m.all_gather_done(m.all_gather_start(m.op("x"), name="start")))
def made_synchronous(r: rewrite.Rewrite) -> hlo.Instruction:
    attributes: dict[str, Any] = dict(r["start"].attributes)
    return r.b.all_gather(r["x"], **attributes)


def test_a_rule_that_replaces_an_asynchronous_operation_takes_out_the_whole_of_it() -> None:
    """It would match the unused end again, and what takes its place waits for what that waited for."""
    module = hlo.parse(GATHERED)
    assert rewrite.apply_rules(module, [made_synchronous]) == {"made_synchronous": 1}
    assert [i.opcode for i in module.entry][-3:] == ["custom-call", "all-gather", "tuple"]
    assert str(module.instruction("all-gather")) == GATHER + ", control-predecessors={n}"


def test_what_replaces_the_end_of_an_asynchronous_operation_waits_as_all_of_it_did() -> None:
    module = hlo.parse(
        GATHERED.replace("all-gather-done(st), control-predecessors={n}", "all-gather-done(st)")
    )
    start, done = module.instruction("st"), module.instruction("dn")
    start.attributes["control-predecessors"] = (module.instruction("n"),)
    made = rewrite.Builder.before(done).all_gather(
        module.instruction("x"), dimensions=(0,), replica_groups="{{0,1}}"
    )
    done.replace_with(made)
    assert made.control_predecessors == (module.instruction("n"),)
    module.entry.remove_all(start.async_chain)
    assert hlo.verify(module) == []


@rewrite.pattern(("sine", "cosine"))
def turns(r: rewrite.Rewrite) -> rewrite.Result:
    """sine(x) => cosine(sine(x)), of which an endless number could be made."""
    i = r.instruction
    return r.create_like(i, "cosine", i.shape, (r.clone(i, i.operands),)) if i.shape is not None else None


@rewrite.pattern("negate")
def cancels(r: rewrite.Rewrite) -> rewrite.Result:
    """negate(negate(x)) => x, by an edit of the context."""
    x = r.instruction.operands[0]
    return x.opcode == "negate" and r.replace(r.instruction, x.operands[0])


CHAIN = """ENTRY e {
  x = f32[4] parameter(0)
  a = f32[4] negate(x)
  b = f32[4] negate(a)
  c = f32[4] negate(b)
  ROOT d = f32[4] negate(c)
}"""


@pytest.mark.parametrize("driver", ["worklist", "post-order", "once"])
def test_a_rule_of_opcodes_replaces_by_an_edit_with_each_driver(driver: str) -> None:
    module = hlo.parse(CHAIN)
    profile: rewrite.Profile = {}
    assert rewrite.apply_rules(module, [cancels], driver=driver, profile=profile) == {"cancels": 2}
    assert module.entry.root.opcode == "parameter"
    assert profile["cancels"].applied == 2
    assert integrity.problems(module) == []


def test_once_visits_what_was_there_before() -> None:
    module = hlo.parse(TEXT)
    assert rewrite.apply_rules(module, [turns], driver="once") == {"turns": 1}
    assert [i.opcode for i in module.entry] == ["parameter", "sine", "cosine", "negate", "abs"]


@pytest.mark.parametrize("driver", ["worklist", "post-order"])
def test_rules_without_an_end_are_told_from_others_and_taken_back(driver: str) -> None:
    module = hlo.parse(TEXT)
    with pytest.raises(rewrite.RewriteError, match="no fixpoint after 5 rewrites"), module.transaction():
        rewrite.apply_rules(module, [turns], driver=driver, max_rewrites=5)
    assert str(module) == TEXT


def test_drivers_of_xla_leave_fusions_and_hand_options_on() -> None:
    text = f"""f {{
  x = f32[4] parameter(0)
  ROOT y = f32[4] negate(x)
}}

{TEXT.replace("sine(x)", "fusion(x), kind=kLoop, calls=f")}"""
    asked = []

    @rewrite.pattern("negate")
    def asks(r: rewrite.Rewrite) -> None:
        asked.append((r.instruction.name, r.options))

    module = hlo.parse(text)
    for driver in ("post-order", "once"):
        assert rewrite.apply_rules(module, [asks], driver=driver, options=7) == {}
    assert asked == [("b", 7), ("b", 7)]
    assert rewrite.apply_rules(module, [asks]) == {}
    assert ("y", None) in asked
    with pytest.raises(ValueError, match="driver must be one of worklist, post-order, once, not twice"):
        rewrite.apply_rules(module, [asks], driver="twice")


def test_a_rule_that_replaces_and_returns_none_has_replaced() -> None:
    @rewrite.pattern(m.negate(m.op("x")))
    def replaces(r: rewrite.Rewrite) -> None:
        r.instruction.replace_with(r["x"])

    module = hlo.parse(TEXT)
    assert rewrite.apply_rules(module, [replaces]) == {"replaces": 1}
    assert [i.opcode for i in module.entry] == ["parameter", "sine", "abs"]

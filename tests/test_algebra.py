"""Each algebraic rule's docstring is its test: `before => after`, in op lines.

In front of the example may stand what it needs: `layouts:` that these count, `cpu:`, `gpu:` or `tpu:` for which compiler,
`partitions=4:` how
many, `fast math:` and `no-op reduce-precision:` options. No more than the rule itself is applied, once and again. An
empty `after` asks for no more than that the rule applies and leaves a sound module.
"""

from __future__ import annotations

import re
from datetime import timedelta

import attrs
import pytest

import hlotext as hlo
from hlotext.edit import integrity
from hlotext.ir.tables import xla_changes
from hlotext.rewrite import RewriteRule
from hlotext.rewrite.kit.drivers import RulesInPostOrder
from hlotext.rewrite.passes import PassOptionError, parse_passes
from hlotext.rewrite.passes.compilation_stage import layouts_count
from hlotext.rewrite.passes.simplify.algebra import RULES, AlgebraicSimplifierOptions, AlgebraRewrite
from hlotext.rewrite.passes.simplify.algsimp import PLATFORMS, AlgebraicSimplifier

PARAMETERS = {
    **dict.fromkeys("xyz", "f32[4,3]"), **dict.fromkeys("ij", "s32[4,3]"), **dict.fromkeys("pq", "pred[4,3]"),
    "a": "u32[4,3]", "w": "c64[4,3]", "s": "f32[]", "n": "s32[]", "t": "pred[]", "v": "f32[5]", "u": "f32[7]",
    "q3": "f32[3,4]", "t5": "s32[5]",
}  # fmt: skip
SPLATS = {
    "f0": "f32 0", "f1": "f32 1", "f2": "f32 2", "fneg1": "f32 -1", "fhalf": "f32 0.5", "i0": "s32 0", "i1": "s32 1",
    "u0": "u32 0", "ineg1": "s32 -1", "yes": "pred true", "no": "pred false",
}  # fmt: skip
FUNCTIONS = """
sum { l = f32[] parameter(0)  r = f32[] parameter(1)  ROOT o = f32[] add(l, r) }
largest { l = f32[] parameter(0)  r = f32[] parameter(1)  ROOT o = f32[] maximum(l, r) }
less { l = f32[] parameter(0)  r = f32[] parameter(1)  ROOT o = pred[] compare(l, r), direction=LT }
turn { l = f32[4,3] parameter(0)  ROOT o = f32[4,3] negate(l) }
keep { l = f32[4,3] parameter(0)  ROOT o = f32[4,3] copy(l) }
argmax { v0 = f32[] parameter(0)  k0 = s32[] parameter(1)  v1 = f32[] parameter(2)  k1 = s32[] parameter(3)
  gt = pred[] compare(v0, v1), direction=GT  odd = pred[] compare(v0, v0), direction=NE  more = pred[] or(gt, odd)
  eq = pred[] compare(v0, v1), direction=EQ  lt = pred[] compare(k0, k1), direction=LT  tie = pred[] and(eq, lt)
  first = pred[] or(more, tie)  v = f32[] select(more, v0, v1)  k = s32[] select(first, k0, k1)
  ROOT both = (f32[], s32[]) tuple(v, k) }
"""
WORDS = re.compile(r"(fast math|layouts|cpu|gpu|tpu|partitions=4|no-op reduce-precision): *")


def module_of(expression: str, *, layouts: bool = False, partitions: int = 1) -> hlo.Module:
    """A module whose root is an expression of the names above."""
    *parts, root = re.split(r"; ", expression)
    own = {part.split(" = ")[0] for part in parts}  # what an example calls by a name that is taken hides that
    lines = [
        f"{name + '.hidden' * (name in own)} = {shape} parameter({n})"
        for n, (name, shape) in enumerate(PARAMETERS.items())
    ]
    for name, text in SPLATS.items():
        type_, value = text.split()
        lines.append(f"{name}.c = {type_}[] constant({value})")
        lines.append(f"{name} = {type_}[4,3] broadcast({name}.c), dimensions={{}}")
    lines += parts
    if "(" not in root:
        root = f"copy({root})"
    header = f"HloModule rule, num_partitions={partitions}\n" if partitions > 1 else ""
    body = "\n".join(f"  {line}" for line in [*lines, f"ROOT root = {root}"])
    module = hlo.parse(f"{header}{FUNCTIONS}\nENTRY e {{\n{body}\n}}\n")
    if layouts:
        for i in module.instructions():
            if i.shape is not None:
                i.change(shape=i.shape.with_default_layout(), typed=False)
    return module


def text(i: hlo.Instruction) -> str:
    """An instruction with its operands written out, names left away but for parameters."""
    if i.opcode == "parameter":
        return i.name
    if i.literal is not None:
        return f"{i.shape.without_layout() if i.shape else ''} {i.literal}"
    attributes = "".join(
        f", {k}={getattr(v, 'name', v)}".replace("scalar_add_computation", "sum")
        for k, v in sorted(i.attributes.items())
        if v != ()
    )
    shape = i.shape.without_layout() if i.shape is not None else ""
    return f"{shape} {i.opcode}({', '.join(map(text, i.operands))}{attributes})"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_example(rule: RewriteRule) -> None:
    before, after = re.split(r"\s*=>\s*", f"{rule.doc.strip()} ", maxsplit=1)
    before, after = " ".join(before.split()), " ".join(after.split())
    words = WORDS.match(before)
    word = words[1] if words else ""
    before = before[words.end() :] if words else before
    partitions = 4 if word.startswith("partitions") else 1
    options = attrs.evolve(
        PLATFORMS.get(word, AlgebraicSimplifierOptions(rewrite_no_op_bitcast_convert_to_bitcast=True)),
        is_layout_sensitive=word == "layouts",
        enable_remove_no_op_reduce_precision=word.startswith("no-op"),
        enable_fast_math=word == "fast math",
    )
    module = module_of(before, layouts=word == "layouts", partitions=partitions)
    assert [d for d in hlo.verify(module) if d.severity.value == "error"] == []
    driver = RulesInPostOrder(AlgebraRewrite(module, options), [rule])
    for _ in range(9):
        if not driver.walk(module.entry):
            break
    assert rule.name in driver.counts
    assert integrity.problems(module) == []
    assert [d for d in hlo.verify(hlo.parse(str(module))) if d.severity.value == "error"] == []
    if after:
        wanted = module_of(after, layouts=word == "layouts", partitions=partitions)
        expected = wanted.entry.root.operands[0] if "(" not in after else wanted.entry.root
        assert text(module.entry.root) == text(expected)


def test_names_and_handlers() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES) > 120
    assert all(re.fullmatch(r"[A-Z]\w+", rule.handler) for rule in RULES)


DAYS = """
ALGSIMP_INVERSES
  e = exponential(x); log(e)
  | log exponential
ALGSIMP_INVERSES
  m = multiply(x, x); sqrt(m)
  abs | sqrt multiply
ALGSIMP_OVERFLOW
  m = s32[4,3] multiply(i, i); s32[4,3] abs(m)
  multiply | abs multiply
ALGSIMP_OVERFLOW
  m = s32[4,3] abs(i); pred[4,3] compare(m, i0), direction=LT
  broadcast constant | compare abs broadcast constant
ALGSIMP_OVERFLOW
  m = s8[200] iota(), iota_dimension=0; s8[200] abs(m)
  iota | abs iota
ALGSIMP_EXPONENTIALS
  e = exponential(x); power(e, y)
  exponential multiply | power exponential
ALGSIMP_EXPONENTIALS
  e = exponential(x); g = exponential(y); multiply(e, g)
  exponential add | multiply exponential exponential
ALGSIMP_FLOATS_APART
  m = add(x, f2); add(m, f1)
  add broadcast add constant constant | add add broadcast constant broadcast constant
ALGSIMP_XOR
  s32[4,3] xor(i, i)
  xor | broadcast constant
ALGSIMP_SLICED_ANYWHERE
  r = f32[2,2,3] reshape(x); f32[1,2,3] slice(r), slice={[1:2], [0:2], [0:3]}
  slice reshape | reshape slice
ALGSIMP_SLICED_ROWS
  r = f32[12] reshape(x); f32[2] slice(r), slice={[0:2]}
  reshape slice | slice reshape
ALGSIMP_SLICED_LONG_ROWS
  k = f32[1,4,3] custom-call(x), custom_call_target="f"; r = f32[12] reshape(k); f32[3] slice(r), slice={[3:6]}
  slice reshape custom-call | reshape slice custom-call
ALGSIMP_CLAMPED_STARTS
  d = f32[3] dynamic-slice(v, n), dynamic_slice_sizes={3}; f32[2] dynamic-slice(d, n), dynamic_slice_sizes={2}
  dynamic-slice add clamp constant constant | dynamic-slice add clamp constant constant clamp constant constant
"""


def opcodes(i: hlo.Instruction) -> str:
    """The opcodes that an instruction is made of, parameters left out, operands behind users."""
    return " ".join(w for w in (i.opcode, *map(opcodes, i.operands)) if w not in ("", "parameter"))


@pytest.mark.parametrize("case", DAYS.strip().split("\nA"))
def test_days(case: str) -> None:
    """What XLA has done since a day, and what it did before."""
    name, example, after = (line.strip() for line in case.split("\n"))
    wanted = [part.strip() for part in after.split("|")]
    change = getattr(xla_changes, name if name.startswith("A") else f"A{name}")
    for day, expected in zip((change - timedelta(1), change), wanted, strict=True):
        module = module_of(example)
        AlgebraicSimplifier(platform="cpu", age=day).run(module)
        assert opcodes(module.entry.root) == expected
    module = module_of(example)
    AlgebraicSimplifier(platform="cpu").run(module)
    assert opcodes(module.entry.root) == wanted[1]  # of no known age the newest


def test_an_age_that_is_none() -> None:
    with pytest.raises(PassOptionError, match="not an XLA age"):
        parse_passes("algsimp{age=yesterday}")
    assert str(parse_passes("algsimp{age=0.10.2}")[0]) == "algsimp{age=0.10.2}"
    age = hlo.analysis.as_age("0.10.2")
    assert age is not None
    assert str(AlgebraicSimplifier(age=age)) == "algsimp{age=2026-06-14}"


@pytest.mark.parametrize(
    ("age", "left"), [("0.10.2", ["reshape", "transpose", "reshape"]), ("0.12.0.1", ["reshape", "reshape"])]
)
def test_tpu_drops_what_its_one_walk_left(age: str, left: list[str]) -> None:
    """The broadcast to the operand's own shape goes, but what reads it is not looked at again in that step."""
    module = hlo.parse(
        """HloModule jit_f

ENTRY main.1 {
  x.1 = f32[4]{0} parameter(0)
  r.1 = f32[4,1]{1,0} reshape(x.1)
  b.1 = f32[4,1]{1,0} broadcast(r.1), dimensions={0,1}
  s.1 = f32[4]{0} reshape(b.1)
  ROOT y.1 = f32[4,3]{1,0} broadcast(s.1), dimensions={0}
}
"""
    )
    AlgebraicSimplifier(platform="tpu", age=age, is_layout_sensitive="false").run(module)
    assert [i.opcode for i in module.entry][1:-1] == left


def test_a_tiled_sum_before_layouts_is_no_sign_of_layouts() -> None:
    """libtpu tiles what it makes of cumulative sums long before it assigns layouts; these tile the parameters too."""
    text = """HloModule jit_f, entry_computation_layout={(f32[64,128]{1,0:T(8,128)})->f32[8192]{0:T(1024)}}

ENTRY main.1 {
  x.1 = f32[64,128]{1,0} parameter(0)
  s.1 = f32[64,128]{1,0:T(8,128)} negate(x.1)
  ROOT r.1 = f32[8192]{0} reshape(s.1)
}
"""
    assert not layouts_count(hlo.parse(text))
    assert layouts_count(hlo.parse(text.replace("1,0} parameter", "1,0:T(8,128)} parameter")))


@pytest.mark.parametrize(
    ("factor", "after"),
    [
        ("f2", "multiply add broadcast constant"),
        ("fhalf", "multiply add broadcast constant"),
        ("x", "add multiply multiply"),
        ("three", "add multiply broadcast constant multiply broadcast constant"),
    ],
)
def test_floats_share_factors_that_are_powers_of_two(factor: str, after: str) -> None:
    """Other factors round otherwise after the sum than before it."""
    three = "c = f32[] constant(3); three = f32[4,3] broadcast(c), dimensions={}"
    module = module_of(f"{three}; k = multiply(x, {factor}); l = multiply(y, {factor}); add(k, l)")
    AlgebraicSimplifier(platform="cpu").run(module)
    assert opcodes(module.entry.root) == after


@pytest.mark.parametrize(("control", "after"), [("", "constant"), (", control-predecessors={first}", "")])
def test_an_order_that_is_asked_for_stays(control: str, after: str) -> None:
    """`ReplaceWithNewInstruction` leaves instructions with control dependencies alone."""
    module = hlo.parse(
        f"""ENTRY e {{ n = s32[] parameter(0)  c = s32[] constant(3)  first = s32[] negate(n)
  sum = s32[] add(c, n){control}
  ROOT t = (s32[], s32[]) tuple(first, sum) }}"""
    )
    AlgebraicSimplifier(platform="cpu").run(module)
    assert module.entry.root.operands[1].operands[1].opcode == (after or "parameter")

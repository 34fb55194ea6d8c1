"""The argument that a result replaces, where it is computed from several of its shape, and donations for another type."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import lint, memory
from hlotext.analysis.updates import updates
from tests import support

SHAPE = "f32[1024,1024]{1,0}"


def module(arguments: str, lines: str, results: str, header: str = "") -> str:
    """A step on arrays of one shape: `a = b op c` each a line of it."""
    given = [
        f'  {name} = {SHAPE} parameter({number}), metadata={{op_name="{name}[0]"}}'
        for number, name in enumerate(arguments.split())
    ]
    done = []
    for line in lines.split("; "):
        made, _, left, opcode, right = line.split()
        done.append(f"  {made} = {SHAPE} {opcode}({left}, {right})")
    names = results.split()
    given += ["  rate = f32[] constant(0.5)", f"  b = {SHAPE} broadcast(rate), dimensions={{}}"]
    root = f"  ROOT out = ({', '.join([SHAPE] * len(names))}) tuple({', '.join(names)})"
    return "\n".join(
        [f"HloModule step, is_scheduled=true{header}", "", "ENTRY main {", *given, *done, root, "}"]
    )


MOMENTUM = "old = m multiply b; next = old add g; step = next multiply b; new = p subtract step"
SECOND = "own = g multiply b; kept = m multiply b; mean = own add kept; gg = own multiply own; var = v add gg"
ADAM = f"{SECOND}; step = mean divide var; new = p subtract step"


@pytest.mark.parametrize(
    ("arguments", "lines", "results", "replaced"),
    [
        ("p g", "step = g multiply g; new = p subtract step", "new", "p"),
        (
            "g p",
            "step = g multiply g; new = p subtract step",
            "new",
            "",
        ),  # the gradient's place, the parameter's use
        ("p m g", MOMENTUM, "new next", "p m"),
        ("g p m", MOMENTUM, "new next", "p m"),
        ("p m v g", ADAM, "new mean var", "p m v"),
        ("g m v p", ADAM, "mean var new", "m v p"),
        ("x y", "both = x multiply y", "both", "x"),
        ("w x y", "both = x multiply y", "both", ""),
    ],
)
def test_the_argument_that_a_result_replaces(arguments: str, lines: str, results: str, replaced: str) -> None:
    """A gradient is part of all results: it is none that comes back. Where nothing tells, none is named."""
    found = updates(hlo.parse(module(arguments, lines, results)))
    assert " ".join(one.parameter.name for one in found) == replaced


HALF = "bf16[1024,1024]{1,0}"
DONATED = ", buffer_donor={ (0, {}), (1, {}) }"
NARROWED = f"""HloModule narrowed, is_scheduled=true{DONATED}

ENTRY main {{
  m = {SHAPE} parameter(0), metadata={{op_name="m"}}
  v = {SHAPE} parameter(1), metadata={{op_name="v"}}
  g = {HALF} parameter(2), metadata={{op_name="g"}}
  wide = {SHAPE} convert(g)
  mean = {SHAPE} add(wide, m)
  square = {SHAPE} multiply(wide, wide)
  variance = {SHAPE} add(square, v)
  a = {HALF} convert(mean)
  b = {HALF} convert(variance)
  ROOT out = ({HALF}, {HALF}) tuple(a, b)
}}
"""


def findings(text: str, code: str) -> list[lint.Finding]:
    return lint.run(hlo.parse(text), lint.Config(select=(code,), **support.SAY_ALL))


def test_moments_that_come_back_narrower_are_donated_in_vain() -> None:
    """The results need memory of their own, which in the arguments' type they would not."""
    (finding,) = findings(NARROWED, "M102")
    assert finding.message == (
        "the donated arguments `m`, `v` (f32, 8.00 MiB) cannot be reused: the results that replace them are bf16"
    )
    assert "return them as f32" in finding.help
    assert finding.peak_bytes == 4 << 20
    assert finding.bytes == 4 << 20


WIDENED = f"""HloModule widened, is_scheduled=true, buffer_donor={{ (0, {{}}) }}

ENTRY main {{
  m = {HALF} parameter(0), metadata={{op_name="state['m']"}}
  g = {SHAPE} parameter(1), metadata={{op_name="g"}}
  n = f32[] parameter(2), metadata={{op_name="state['n']"}}
  wide = {SHAPE} convert(m)
  ROOT mean = {SHAPE} add(wide, g)
}}
"""


def test_of_an_argument_that_comes_back_wider_the_lesser_repair_is_counted() -> None:
    """Passed as f32 it takes 2 MiB more and spares the result's 4: as much as its buffer takes now."""
    (finding,) = findings(WIDENED, "M102")
    assert finding.message.startswith("the donated argument `state['m']` (bf16, 2.00 MiB) cannot be reused")
    assert (finding.bytes, finding.peak_bytes) == (2 << 20, 2 << 20)
    passed = WIDENED.replace(f"m = {HALF}", f"m = {SHAPE}").replace(f"  wide = {SHAPE} convert(m)\n", "")
    passed = passed.replace("add(wide, g)", "add(m, g)")
    aliased = passed.replace("buffer_donor={ (0, {}) }", "input_output_alias={ {}: (0, {}, may-alias) }")
    before, after = (memory.assign(hlo.parse(text)).peak(0).bytes for text in (WIDENED, aliased))
    assert before - after == finding.peak_bytes


@pytest.mark.parametrize(
    ("given", "returned", "saved"),
    [
        (1024, 128, 1024),  # replicated: sharded as the result is, it is its size, and the result lies in it
        (128, 1024, 128),  # sharded: it grows to the result's size, and the result lies in it
    ],
)
def test_of_another_sharding_the_argument_is_saved(given: int, returned: int, saved: int) -> None:
    rows = f"""HloModule split, is_scheduled=true, buffer_donor={{ (0, {{}}) }}

ENTRY main {{
  x = f32[{given},1024]{{1,0}} parameter(0), metadata={{op_name="x"}}
  g = f32[{returned},1024]{{1,0}} parameter(1), metadata={{op_name="g"}}
  ROOT y = f32[{returned},1024]{{1,0}} negate(g)
}}
"""
    (finding,) = findings(rows, "M102")
    assert (finding.bytes, finding.peak_bytes) == (saved * 4096, saved * 4096)


def test_of_another_argument_of_their_size_their_dimensions_are_told() -> None:
    """Nothing is computed from `v`."""
    text = NARROWED.replace(
        "variance = f32[1024,1024]{1,0} add(square, v)", "variance = f32[1024,1024]{1,0} negate(square)"
    )
    (finding,) = findings(text, "M102")
    assert "the results with their dimensions are bf16" in finding.message


def test_gradients_are_not_updated() -> None:
    """They have the type of the new moments, the old moments have not; and donated they would be."""
    for text in (NARROWED, NARROWED.replace(DONATED, "")):
        rows = text.replace("1024,1024", "8192,8192")
        assert not findings(rows, "M103")
        assert not list(updates(hlo.parse(rows)))
        kept = list(updates(hlo.parse(rows), with_retyped=True))
        assert [(one.parameter.name, one.index, one.is_retyped) for one in kept] == [
            ("m", (0,), True),
            ("v", (1,), True),
        ]

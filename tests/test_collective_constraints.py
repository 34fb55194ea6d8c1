"""Collectives that constraints of the program ask for, told by the program and the final HLO alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlotext import dumps

PROGRAM = """HloModule jit_f, num_partitions=4

ENTRY e {
  p = f32[8,16]{1,0} parameter(0), sharding={mesh['d'=2,'m'=2], [{'d'}, {'m'}]}, metadata={op_name="w"}
  q = f32[8,16]{1,0} parameter(1), sharding={mesh['d'=2,'m'=2], [{'d'}, {}]}, metadata={op_name="x"}
  t = f32[8,16]{1,0} tanh(p), metadata={op_name="jit(f)/tanh"}
  MIDDLE
  ROOT d = f32[8,8]{1,0} dot(c, q), lhs_contracting_dims={1}, rhs_contracting_dims={1},
      sharding={mesh['d'=2,'m'=2], [{'d'}, {}]}, metadata={op_name="jit(f)/dot_general"}
}
"""
FINAL = """HloModule jit_f, num_partitions=4

ENTRY e {
  p = f32[4,8]{1,0} parameter(0), metadata={op_name="w"}
  q = f32[4,16]{1,0} parameter(1), metadata={op_name="x"}
  t = f32[4,8]{1,0} tanh(p), metadata={op_name="jit(f)/tanh"}
  g = f32[4,16]{1,0} all-gather(t), channel_id=1, replica_groups=mesh['d'=2,'m'=2] {'m'}, dimensions={1},
      use_global_device_ids=true, frontend_attributes={is_spmd_generated="true"}, metadata={op_name="jit(f)/tanh"}
  h = f32[8,16]{1,0} all-gather(q), channel_id=2, replica_groups=mesh['d'=2,'m'=2] {'d'}, dimensions={0},
      use_global_device_ids=true, frontend_attributes={is_spmd_generated="true"}, metadata={op_name="x"}
  ROOT d = f32[4,8]{1,0} dot(g, h), lhs_contracting_dims={1}, rhs_contracting_dims={1},
      metadata={op_name="jit(f)/dot_general"}
}
"""
MESH = "sharding={mesh['d'=2,'m'=2], "
NAMED = 'custom_call_target="Sharding"'


def causes(folder: Path, program: str, final: str = FINAL) -> dict[str, str]:
    """The cause of each collective of a folder without the texts around partitioning."""
    (folder / "module_0000.jit_f.before_optimizations.txt").write_text(program)
    (folder / "module_0000.jit_f.cpu_after_optimizations.txt").write_text(final)
    (one,) = dumps.open(folder).compilations
    return {each.instruction.name: each.why.removeprefix("because ") for each in one.collectives()}


def constrained(spec: str, operand: str = "t", name: str = "sharding_constraint") -> str:
    metadata = f'metadata={{op_name="jit(f)/{name}"}}'
    return f"c = f32[8,16]{{1,0}} custom-call({operand}), {NAMED}, {MESH}{spec}}}, {metadata}"


@pytest.mark.parametrize(
    ("middle", "cause"),
    [
        # On an explicit mesh, whose types annotate what an operation computes.
        (
            f"t2 = f32[8,16]{{1,0}} custom-call(t), {NAMED}, {MESH}[{{'d'}}, {{'m'}}]}}, "
            'metadata={op_name="jit(f)/tanh"}\n  ' + constrained("[{'d'}, {}]", "t2", "reshard"),
            "reshard needs the result of tanh as P('d', None), but it is P('d', 'm')",
        ),
        # An open dimension is none that was gathered.
        (
            constrained("[{?}, {}]"),
            "the sharding constraint needs the result of tanh as P(P.UNCONSTRAINED, None)",
        ),
        # Behind what computes element by element, and nothing else reads.
        (
            'n = f32[8,16]{1,0} negate(t), metadata={op_name="jit(f)/neg"}\n  '
            + constrained("[{?}, {}]", "n"),
            "neg needs the result of tanh as P(P.UNCONSTRAINED, None); a constraint asks for it",
        ),
    ],
)
def test_the_constraint_is_named(middle: str, cause: str, tmp_path: Path) -> None:
    found = causes(tmp_path, PROGRAM.replace("MIDDLE", middle))
    assert found["g"] == cause


def test_what_shardy_moves_before_an_operation_has_its_constraint(tmp_path: Path) -> None:
    gather = "all-gather(t), channel_id=1"
    assert gather in FINAL
    final = FINAL.replace("tanh(p)", "tanh(g)").replace(gather, "all-gather(p), channel_id=1")
    final = final.replace("dot(g, h)", "dot(t, h)").replace("t = f32[4,8]", "t = f32[4,16]")
    head, t, rest = final.partition("  t = ")
    line, _, rest = rest.partition("\n")
    final = head + rest.replace("  h = ", f"{t}{line}\n  h = ", 1)
    found = causes(tmp_path, PROGRAM.replace("MIDDLE", constrained("[{'d'}, {}]")), final)
    assert found["g"] == "tanh needs w as P('d', None), but it is P('d', 'm'); a constraint asks for it"


@pytest.mark.parametrize(
    "middle",
    [
        constrained("[{?}, {?}]"),
        constrained("[{}, {?}]"),
        constrained("[{?}, {'m'}]"),
        'n = f32[8,16]{1,0} negate(t), metadata={op_name="jit(f)/neg"}\n  '
        'o = f32[8,16]{1,0} exponential(t), metadata={op_name="jit(f)/exp"}\n  '
        + constrained("[{?}, {}]", "n"),
    ],
)
def test_what_may_not_be_for_the_constraint_is_not_said_to_be(middle: str, tmp_path: Path) -> None:
    """It leaves the dimension open or keeps its axis, or another operation may need the array."""
    assert "constraint" not in causes(tmp_path, PROGRAM.replace("MIDDLE", middle))["g"]


def test_each_array_of_a_combined_gather_is_told(tmp_path: Path) -> None:
    """Also in the computation of an asynchronous one; the collective has the name of one of them."""
    program = PROGRAM.replace("MIDDLE", constrained("[{'d'}, {}]")).replace("(c, q)", "(c, r)")
    program = program.replace(
        "  ROOT",
        "  r = f32[8,16]{1,0} custom-call(q), "
        + constrained("[{}, {}]", "q").partition("custom-call(q), ")[2]
        + "\n  ROOT",
    ).replace("[{'d'}, {}]}, metadata={op_name=\"x\"}", "[{}, {'m'}]}, metadata={op_name=\"x\"}")
    final = """HloModule jit_f, num_partitions=4

a {
  x = f32[4,8]{1,0} parameter(0)
  y = f32[8,8]{1,0} parameter(1)
  ROOT b = (f32[4,16]{1,0}, f32[8,16]{1,0}) all-gather(x, y), channel_id=1, replica_groups=mesh['d'=2,'m'=2] {'m'},
      dimensions={1}, use_global_device_ids=true, frontend_attributes={is_spmd_generated="true"},
      metadata={op_name="jit(f)/tanh"}
}

ENTRY e {
  p = f32[4,8]{1,0} parameter(0), metadata={op_name="w"}
  q = f32[8,8]{1,0} parameter(1), metadata={op_name="x"}
  t = f32[4,8]{1,0} tanh(p), metadata={op_name="jit(f)/tanh"}
  s = ((f32[4,8]{1,0}, f32[8,8]{1,0}), (f32[4,16]{1,0}, f32[8,16]{1,0})) async-start(t, q), calls=a
  g = (f32[4,16]{1,0}, f32[8,16]{1,0}) async-done(s)
  g0 = f32[4,16]{1,0} get-tuple-element(g), index=0
  g1 = f32[8,16]{1,0} get-tuple-element(g), index=1
  ROOT d = f32[4,8]{1,0} dot(g0, g1), lhs_contracting_dims={1}, rhs_contracting_dims={1},
      metadata={op_name="jit(f)/dot_general"}
}
"""
    found = causes(tmp_path, program, final)
    assert found["b"].split("; because ") == [
        "the sharding constraint needs the result of tanh as P('d', None)",
        "the sharding constraint needs x as P(None, None), but it is P(None, 'm')",
    ]

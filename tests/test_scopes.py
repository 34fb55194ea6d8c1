"""The scope and the source line of every instruction."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import analysis
from hlotext.analysis import MetadataSource, Phase
from hlotext.analysis.scopes import COPIES, PARAMETERS, RESULTS, read_op_name
from tests.support import ROOT

NAMES = {
    "jit(step)/jvp(layer_0)/mlp/dot_general": (("layer_0", "mlp"), Phase.FORWARD),
    "jit(step)/transpose(jvp(layer_0))/jit(silu)/mul": (("layer_0", "silu"), Phase.BACKWARD),
    "jit(step)/transpose(jvp())/while/body/closed_call/checkpoint/rematted_computation/attention/mul": (
        ("while", "attention"),
        Phase.RECOMPUTED,
    ),
    "jit(step)/while/cond/lt": (("while",), None),
    "jit(step)/cond/branch_1_fun/mul": (("cond", "branch_1_fun"), None),
    "jit(step)/vmap(attention)/bhqk,bkhd->bqhd/dot_general": (("attention", "bhqk,bkhd->bqhd"), None),
    "jit(step)/jvp(a/b)/mul;jit(step)/jvp(c)/add": (("a/b",), Phase.FORWARD),
    "jit(step)/mul": ((), None),
}


@pytest.mark.parametrize("op_name", NAMES)
def test_op_names(op_name: str) -> None:
    """Wrappers of transformations tell the phase; the last part is the operation."""
    named = read_op_name(op_name, "jit(step)/")
    assert (named.path, named.phase) == NAMES[op_name]


@pytest.mark.parametrize("op_name", ["", "/", "(((", "a(/)b)/", "jvp(" * 1000 + ")" * 1000 + "/x", ";"])
def test_odd_names(op_name: str) -> None:
    """Anything may stand in an op_name."""
    assert isinstance(read_op_name(op_name, "jit(step)/").path, tuple)


TEXT = """HloModule jit_step
silu {
  x = f32[4] parameter(0)
  ROOT m = f32[4] multiply(x, x), metadata={op_name="mul"}
}
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b), metadata={op_name="reduce_sum"}
}
fused {
  p = f32[4] parameter(0)
  n = f32[4] negate(p)
  ROOT e = f32[4] exponential(n), metadata={op_name="jit(step)/jvp(layer_1)/exp" source_file="m.py" source_line=3}
}
ENTRY e {
  x = f32[4] parameter(0), metadata={op_name="x"}
  c = f32[4] copy(x)
  f = f32[4] fusion(c), kind=kLoop, calls=fused
  d = f32[4] copy(f)
  g = f32[4] call(d), to_apply=silu, metadata={op_name="jit(step)/jvp(layer_0)/jit(silu)"}
  h = f32[4] copy(g)
  z = f32[] constant(0)
  r = f32[] reduce(h, z), dimensions={0}, to_apply=sum, metadata={op_name="jit(step)/jvp(head)/reduce_sum"}
  k = f32[4] copy(g)
  ROOT t = (f32[], f32[4]) tuple(r, k)
}
"""


def test_inherited_scopes() -> None:
    """Each says where it has its scope from."""
    module = hlo.parse(TEXT)
    found = analysis.scopes(module)
    of = {i.name: found.of(i) for i in module.instructions() if i.computation is not None}
    assert {name: (str(scope), scope.source) for name, scope in of.items() if name in "cfdghknm"} == {
        "f": ("layer_1", MetadataSource.BODY),
        "c": ("layer_1", MetadataSource.USER),
        "d": ("layer_0", MetadataSource.USER),
        "g": ("layer_0", MetadataSource.OWN),
        "h": ("head", MetadataSource.USER),
        "k": ("layer_0", MetadataSource.PRODUCER),
        "n": ("layer_1", MetadataSource.CALLER),
        "m": ("layer_0/silu", MetadataSource.OWN),
    }
    assert (of["s"].path, of["s"].source) == (("head",), MetadataSource.CALLER)
    assert of["n"].phase is Phase.FORWARD
    assert of["n"].is_inherited
    entry = module.entry
    assert (found.of(entry["x"]).path, found.of(entry.root).path) == (PARAMETERS, RESULTS)
    assert found.folded(of["f"]) == found.folded(of["d"]) == ("layer_*",)
    assert found.folded(of["h"]) == ("head",)


def test_inherited_lines() -> None:
    """The same way for source lines."""
    module = hlo.parse(TEXT)
    found = analysis.source_locations(module)
    fusion = module.entry["f"]
    assert (str(found[fusion][0]), found[fusion][1]) == ("m.py:3", MetadataSource.BODY)
    assert found[module.entry["c"]][1] is MetadataSource.USER


def test_a_module_without_names() -> None:
    """Nothing is made up."""
    module = hlo.parse(
        "ENTRY e {\n  a = f32[4] parameter(0)\n  b = f32[4] copy(a)\n  ROOT c = f32[4] negate(b)\n}\n"
    )
    found = analysis.scopes(module)
    assert [found.of(i).path for i in module.entry] == [PARAMETERS, COPIES, RESULTS]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "corpus").glob("[cgt]pu/*remat*.txt*")), ids=lambda path: path.name
)
def test_recomputation_is_found(path: object) -> None:
    """What `jax.checkpoint` computes again is told apart, before and after optimization."""
    module = hlo.load(str(path))
    found = analysis.scopes(module)
    scopes = [found.of(i) for i in module.instructions()]
    assert {Phase.FORWARD, Phase.BACKWARD, Phase.RECOMPUTED} <= {scope.phase for scope in scopes}
    named = [scope for scope in scopes if scope.path not in (PARAMETERS, RESULTS, COPIES)]
    assert len(named) >= 0.95 * len(scopes)

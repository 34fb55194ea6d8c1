"""The traffic of a program with one annotation changed: against XLA's texts of it as it is, and against recompilations.

`tests/data/collectives/recompiled.json` has, for the programs of that name beside it, the bytes that each device sends, and
those that it sends with one annotation changed: kind, name, line and sharding of the annotation.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

import hlotext as hlo
from hlotext.dumps.collectives import steps
from hlotext.dumps.collectives.annotations import Annotations, Site
from hlotext.dumps.collectives.arrays import Arrays, Value
from hlotext.dumps.collectives.factors import PASSES, SUMS, WHOLE, rule_of
from hlotext.dumps.collectives.fates import Fate
from hlotext.dumps.collectives.keys import Keys
from hlotext.dumps.collectives.pairing import Sides
from hlotext.dumps.collectives.partitioner import Partitioner
from hlotext.dumps.collectives.places import Places
from hlotext.dumps.collectives.specs import Spec
from hlotext.dumps.collectives.spreading import Spreading
from hlotext.dumps.collectives.traffic import Estimate, Traffic
from hlotext.dumps.collectives.volume import Volume
from tests.support import DATA
from tests.test_collective_causes import FOLDERS, opened

RECOMPILED: dict[str, Any] = json.loads((DATA / "collectives" / "recompiled.json").read_text())
SHARDY = [f"{name}.tar.xz" for name in FOLDERS if name.endswith(".shardy")] + [
    f"fresh/{path.name}" for path in sorted((DATA / "collectives" / "fresh").glob("*.shardy.tar.xz"))
]


def parts_of(archive: str, target: Path) -> tuple[Partitioner, Annotations]:
    with tarfile.open(DATA / "collectives" / archive) as packed:
        packed.extractall(target, filter="data")
    compilation = opened(target)
    around = steps.partitioning_of(compilation)
    assert around is not None
    before, after = steps.read(around.before), steps.read(around.after)
    assert before is not None
    assert after is not None
    mesh = steps.mesh_for(None, after, (steps.read(compilation.first), before))
    partitioner = Partitioner(Sides(before, after, Keys()), mesh)
    return partitioner, Annotations(partitioner, Places(partitioner.sides.before))


@pytest.mark.parametrize("archive", SHARDY)
def test_shardings_spread_as_shardy_spreads_them(archive: str, tmp_path: Path) -> None:
    """From the annotations alone: every array is sharded as in the text after Shardy."""
    arrays = Arrays(*parts_of(archive, tmp_path))
    found = Spreading(arrays).spread()
    wrong = [one.node and one.node.name for one in arrays.values if arrays.is_wrong(one, found)]
    assert wrong == []
    assert any(any(found[id(one)]) for one in arrays.values)


def estimates(name: str, target: Path, final: float | None = None) -> list[tuple[Estimate, int, int]]:
    """Of each changed annotation the estimate, and the bytes sent before and after; `final`: that each collective is left
    with so many bytes by later passes."""
    partitioner, annotations = parts_of(f"cpu.{name}.shardy.tar.xz", target)
    fates = None if final is None else {one.part: Fate(final, None, False) for one in partitioner.written}
    traffic, module = Traffic(partitioner, annotations, fates), annotations.module
    sites: dict[tuple[str, str, int | None], Site] = {}
    for computation in module.computations:
        for node in computation:
            site = annotations.site(node)
            if site is not None:
                sites.setdefault((site.kind, site.name if site.kind == "argument" else "", site.line), site)
    made = []
    for kind, label, line, text, sent in RECOMPILED[name]["changes"]:
        spec = Spec(
            eval(text, {"P": lambda *cut: tuple((a,) if isinstance(a, str) else a or () for a in cut)})
        )
        if kind == "result":
            number = int(label.removeprefix("result[").removesuffix("]"))
            estimate = traffic.estimate(None, module.entry.root, number, spec)
        else:
            site = sites[kind, label if kind == "argument" else "", line]
            estimate = traffic.estimate(site, site.node, None, spec)
        if estimate is not None:
            made.append((estimate, RECOMPILED[name]["sent"], sent))
    return made


@pytest.mark.parametrize("name", RECOMPILED)
def test_what_surely_sends_less_does(name: str, tmp_path: Path) -> None:
    for estimate, before, after in estimates(name, tmp_path):
        if estimate.is_sure:
            assert after < before
            assert estimate.is_less


def test_no_saving_is_told_that_exceeds_all_that_is_sent(tmp_path: Path) -> None:
    """Passes leave a byte of each collective here: whatever the partitioner wrote, no change can spare more."""
    usual = [one for name in RECOMPILED for one, *_ in estimates(name, tmp_path / name)]
    assert any(one.is_sure for one in usual)
    found = [one for name in RECOMPILED for one, *_ in estimates(name, tmp_path / f"{name}.1", 1.0)]
    assert any(one.change is None for one in found)
    for one in found:
        if one.change is None:
            assert not one.is_sure
        else:
            assert one.change > -100  # there are fewer collectives


def test_most_changes_that_send_less_are_found(tmp_path: Path) -> None:
    found = [one for name in RECOMPILED for one in estimates(name, tmp_path / name)]
    less = [estimate for estimate, before, after in found if after < before]
    assert sum(one.is_less for one in less) >= 0.8 * len(less)
    suggested = [after < before for estimate, before, after in found if estimate.is_less]
    assert sum(suggested) >= 0.9 * len(suggested)


@pytest.mark.parametrize(
    ("have", "want", "sent"),
    [
        ("a,", "a,", 0),
        (",", "a,b", 0),  # each device cuts out its part
        ("a,", ",", 2048),  # gathered: half of 4,096 bytes
        ("ab,", ",", 3584),
        ("ab,", "a,", 1536),
        ("ab,", "b,", 512 + 512),  # the major axis goes: permuted first
        ("a,", ",a", 1024),  # all-to-all: half of the shard goes
        ("a,b", "b,a", 768),
        ("a,", "b,", 1024),  # cut further, then permuted
    ],
)
def test_bytes_sent_to_place_an_array_otherwise(have: str, want: str, sent: float) -> None:
    def axes(text: str) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(one) for one in text.split(","))

    array = Value((32, 32), 4.0, axes(have))
    assert Volume({"a": 2, "b": 4}).moved(array, axes(have), axes(want)) == sent


def rule(text: str) -> tuple[tuple[tuple[tuple[int, ...], ...], ...], tuple[str, ...]]:
    """The factors of the dimensions of each array, and their kinds."""
    node = hlo.parse(f"ENTRY e {{ {text} }}").entry.root
    shapes = [tuple(one.shape.dimensions) for one in (*node.operands, node) if one.shape is not None]
    found = rule_of(node, shapes[:-1], shapes[-1:])
    assert found is not None
    return found.dims, tuple(one.kind for one in found.factors)


def test_factors() -> None:
    """Those that are summed, those that a reshape splits and joins, and those that have to be whole."""
    dims, kinds = rule(
        "a = f32[4,8] parameter(0)  b = f32[8,16] parameter(1)"
        "  ROOT c = f32[4,16] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    )
    assert dims == (((0,), (2,)), ((2,), (1,)), ((0,), (1,)))
    assert kinds[2] == SUMS
    dims, _ = rule("a = f32[12,5] parameter(0)  ROOT c = f32[3,4,5] reshape(a)")
    assert dims == (((0, 1), (2,)), ((0,), (1,), (2,)))
    dims, _ = rule("a = f32[6,4] parameter(0)  ROOT c = f32[4,6] reshape(a)")
    assert set(dims[0][0]) & set(dims[1][0])  # both begin with a factor of two
    _, kinds = rule("a = f32[4,8] parameter(0)  ROOT c = f32[4,16] concatenate(a, a), dimensions={1}")
    assert kinds == (PASSES, WHOLE)

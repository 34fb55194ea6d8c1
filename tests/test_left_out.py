"""Control predecessors that a compact text names without having them: read, printed, edited, copied."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import pytest

import hlotext as hlo
from hlotext import proto
from hlotext.edit import dirty_lines
from hlotext.edit.cloning import clone_computation
from hlotext.ir.values.left_out import LeftOut
from tests.support import DATA

TEXT = (DATA / "ok" / "left_out_predecessor.hlo").read_text()
COMPACT = hlo.PrintOptions(compact_gte=True)


def test_it_is_kept_beside_those_that_are_there() -> None:
    module = hlo.parse(TEXT)
    y = module.entry["y"]
    assert list(y.attributes["control-predecessors"]) == [LeftOut("get-tuple-element.455"), module.entry["x"]]
    assert y.control_predecessors == (module.entry["x"],)
    assert module.entry["x"].control_successors == (y,)
    assert not list(hlo.verify(module))
    assert str(module) == TEXT
    assert "control-predecessors={%get-tuple-element.455, %x}" in module.to_text(COMPACT)
    assert str(hlo.parse(module.to_text(COMPACT)).entry["z"]).endswith("control-predecessors={%p_2}")
    assert "455" not in module.to_text()
    hlo.parse(module.to_text(), strict=True)


@pytest.mark.parametrize("copied", ["clone", "pickle", "proto"])
def test_copies(copied: str) -> None:
    module = hlo.parse(TEXT)
    if copied == "proto":  # which knows instructions by their numbers alone
        pytest.importorskip("google.protobuf")
        module = proto.read_module(module.to_proto())
        assert [i.name for i in module.entry["y"].control_predecessors] == ["x"]
        assert not module.entry["z"].control_predecessors
        return
    copy = module.clone() if copied == "clone" else pickle.loads(pickle.dumps(module))
    assert str(copy) == TEXT
    assert copy.to_text(COMPACT) == module.to_text(COMPACT)


def test_it_goes_with_the_compact_form() -> None:
    module = hlo.parse(TEXT)
    module.entry["y"].attributes["frontend_attributes"] = '{a="1"}'  # elements get lines of their own
    assert "455" not in str(module)
    assert "%p_2" not in str(module)
    assert [i.name for i in module.entry["y"].control_predecessors] == ["x"]
    again = hlo.parse(str(module), strict=True)
    assert "control-predecessors" not in again.entry["z"].attributes
    module = hlo.parse(TEXT)
    copy = clone_computation(module.entry)
    assert all(len(i.attributes.get("control-predecessors", ())) == len(i.control_predecessors) for i in copy)


def test_reread_it_is_gone() -> None:
    module = hlo.reread(hlo.parse(TEXT))
    assert [i.name for i in module.entry["y"].attributes["control-predecessors"]] == ["x"]
    assert "control-predecessors" not in module.entry["z"].attributes


def test_what_is_undone_comes_back() -> None:
    module = hlo.parse(TEXT)
    try:
        with module.transaction():
            module.entry["y"].attributes["frontend_attributes"] = '{a="1"}'
            raise RuntimeError
    except RuntimeError:
        pass
    assert str(module) == TEXT


@pytest.mark.parametrize(
    "text",
    [
        hlo.parse(TEXT).to_text().replace("{%x}", "{%get-tuple-element.455}"),
        TEXT.replace("%get-tuple-element.455", "%z"),  # defined, but behind the line
        TEXT + "\nother {\n  ROOT %p_2 = f32[] parameter(0)\n}\n",
    ],
    ids=["not compact", "defined behind", "elsewhere"],
)  # fmt: skip
def test_other_names_must_be_defined(text: str) -> None:
    with pytest.raises(hlo.HloSyntaxError, match="X121"):
        hlo.parse(text)


def test_strictly_it_is_an_error() -> None:
    with pytest.raises(hlo.HloSyntaxError, match="X207"):
        hlo.parse(TEXT, strict=True)


@pytest.mark.parametrize("count", [40, 80])
def test_elements_get_their_lines_all_at_once(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking at all instructions for each of them would take minutes for texts of TPUs, which have them in every line."""
    tuples = "".join(
        f'  t{n} = (f32[], f32[]) custom-call(p), custom_call_target="c"\n' for n in range(count)
    )
    sums = "".join(f"  a{n} = f32[] add(t{n}#0, t{n}#1)\n" for n in range(count))
    module = hlo.parse(
        f"HloModule m\nENTRY e {{\n  p = f32[] parameter(0)\n{tuples}{sums}  ROOT r = f32[] negate(a0)\n}}\n"
    )
    looked = 0
    known = dirty_lines.without_left_out

    def counted(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
        nonlocal looked
        looked += 1
        return known(attributes)

    monkeypatch.setattr(dirty_lines, "without_left_out", counted)
    module.entry["a0"].operands[0].name = "first"
    assert looked <= 2 * len(module.entry)
    assert "add(first, t0_1)" in str(module)
    assert str(hlo.parse(str(module))) == str(module)

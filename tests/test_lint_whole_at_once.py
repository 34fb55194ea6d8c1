"""Large arrays between small ones: which of them could be computed in blocks."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import lint
from hlotext.analysis import Backend
from hlotext.findings.errors import Severity
from tests import support

PAIRS = (support.DATA / "lint" / "M131.txt").read_text().split("\n\nHloModule silent")[0]
LESS = """less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}"""
REDUCED = "ROOT near = f32[16384]{0} reduce(away, zero), dimensions={1}, to_apply=sum"
ABS = "away = f32[16384,16384]{1,0} abs(pairs)"


def found(text: str, chip: str = "") -> list[lint.Finding]:
    """The findings of M131 in a text."""
    return list(lint.run(hlo.parse(text), lint.Config(select=("M131",), chip=chip)))


def test_the_saving_is_that_of_sixteen_blocks() -> None:
    (finding,) = found(PAIRS)
    assert finding.peak_bytes == pytest.approx(15 / 16 * 2 * 4 * 16384 * 16384, rel=0.01)
    assert finding.severity is Severity.NOTE


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (REDUCED, "ROOT near = f32[16384,16384]{1,0} negate(away)"),
        (ABS, "away = f32[16384,16384]{1,0} sort(pairs), dimensions={1}, to_apply=less"),
        (
            "x = f32[16384]{0} parameter(0)",
            "x = f32[16384]{0} parameter(0)\n  given = f32[32768,16384]{1,0} parameter(1)",
        ),
    ],
    ids=["returned", "sorted", "beside a larger argument"],
)
def test_what_no_blocks_would_spare_is_not_reported(old: str, new: str) -> None:
    text = PAIRS.replace(old, new).replace("ENTRY", f"{LESS}\n\nENTRY")
    assert text != PAIRS
    assert not found(text)


def test_what_a_chip_has_in_plenty_is_not_reported() -> None:
    """The same arrays of 6,144 rows take 384 MiB of the H100's 80 GiB."""
    small = PAIRS.replace("16384,16384", "6144,16384")
    small = (
        small.replace("broadcast(x), dimensions={0}", "broadcast(r), dimensions={0}")
        .replace("zero =", "r = f32[6144]{0} slice(x), slice={[0:6144]}\n  zero =")
        .replace("near = f32[16384]", "near = f32[6144]")
    )
    assert found(small)
    config = lint.Config(select=("M131",), chip="h100", profile=Backend.GPU)
    assert not lint.run(hlo.parse(small), config)

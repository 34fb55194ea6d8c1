"""The page about stages is what its script makes of real dumps."""

from __future__ import annotations

import runpy
from typing import Any

from hlotext import compiler
from tests.support import ROOT


def test_the_page_of_stages_is_made_by_its_script() -> None:
    """Every stage has its section, and every text on it is from a dump: `python docs/stages.py` writes it anew."""
    script: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "stages.py"))
    page = script["page"]()
    assert page == (ROOT / "docs" / "explain" / "stages.md").read_text("utf-8")
    for stage in compiler.stages:
        assert f"\n## {stage.title}\n" in page
    for line in ("dot(%max.1", "fusion(", "convolution("):
        assert line in page

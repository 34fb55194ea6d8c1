"""A report and a graph to click, made of a module of the corpus when the site has been built. Sphinx extension."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx

import hlotext as hlo
from hlotext.view.graph import graph_page
from hlotext.view.report import report_input, report_page

ROOT = Path(__file__).parents[2]
MODULE, CHIP = "corpus/tpu/data_parallel.v5e_2x2x1.after_codegen.txt", "v5e"


def write(app: Sphinx, error: Exception | None) -> None:
    """Writes both pages beside the site's own."""
    if error is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir) / "live"
    folder.mkdir(exist_ok=True)
    found = report_input(ROOT / MODULE, chip=CHIP)
    found.label = MODULE
    (folder / "report.html").write_text(report_page(found), encoding="utf-8")
    (folder / "graph.html").write_text(graph_page(hlo.load(ROOT / MODULE)), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

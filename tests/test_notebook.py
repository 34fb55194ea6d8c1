"""What notebooks show: HTML for what users look at, in which no text of a module acts, and a notebook that runs."""

from __future__ import annotations

import re
from typing import Any

import pytest

import hlotext as hlo
from hlotext import cost, diff, memory
from hlotext.view import memory_picture
from hlotext.view.graph.drawing import as_svg
from hlotext.view.graph.neighbourhood import neighbourhood
from tests import support
from tests.pages import Page

STEP = support.CORPUS / "tpu" / "data_parallel.v5e_2x2x1.after_codegen.txt"
OURS = {
    "b", "br", "circle", "defs", "details", "div", "g", "line", "path", "pattern", "pre", "rect", "span", "style", "summary",
    "svg", "table", "td", "text", "th", "title", "tr",
}  # fmt: skip


def bundle(value: Any) -> dict[str, str]:
    found = value._repr_mimebundle_()
    assert isinstance(found, dict)
    return found


def values() -> dict[str, Any]:
    module = hlo.load(STEP)
    fusion = module.find("fusion.19")
    assert isinstance(fusion, hlo.Instruction)
    assert fusion.shape is not None
    wrong = hlo.parse("ENTRY e {\n  p = f32[2] parameter(0)\n  ROOT r = f32[3] negate(p)\n}\n")
    return {
        "module": module,
        "computation": module.entry,
        "instruction": fusion,
        "shape": fusion.shape,
        "layout": fusion.shape.layout,
        "sharding": hlo.parse_sharding("{devices=[2,2]<=[4]}"),
        "finding": hlo.verify(wrong)[0],
        "findings": hlo.verify(wrong),
        "parse result": hlo.parse_tolerant(
            "ENTRY e {\n  p = f32[2] parameter(0)\n  ROOT r = f32[3] negate(q)\n}\n"
        ),
        "memory": memory.assign(module),
        "cost": cost.analyze(module),
        "diff": diff.compare(module, wrong),
    }


@pytest.mark.parametrize("name", list(values()))
def test_everything_users_look_at_has_html(name: str) -> None:
    """Beside its repr, of a size that a notebook can keep; no tags but ours."""
    value = values()[name]
    found = bundle(value)
    if name not in ("findings", "parse result"):
        assert found["text/plain"] == repr(value)
    assert len(found["text/plain"]) < 1000
    assert 100 < len(found["text/html"]) < 250_000
    assert {tag for tag, _ in Page(found["text/html"]).tags} <= OURS


def test_what_it_says() -> None:
    """The numbers of the library, the text in colours, the frames."""
    found = {name: bundle(value)["text/html"] for name, value in values().items()}
    peak = memory.assign(hlo.load(STEP)).peak().bytes
    assert hlo.analysis.byte_text(peak) in found["memory"]
    assert "152 instructions" in found["module"]
    assert '<span class="nf">fusion</span>' in found["instruction"]
    assert "corpus/programs.py:831" in found["instruction"]
    assert "<svg" in found["shape"]
    assert "V101" in found["finding"]
    assert "operations" in found["diff"]


def test_long_texts_are_cut() -> None:
    """Of a computation of thousands of instructions the first lines, and how many more there are."""
    lines = "\n".join(f"  n{n} = f32[4] negate({f'n{n - 1}' if n else 'p'})" for n in range(3000))
    module = hlo.parse(f"ENTRY e {{\n  p = f32[4] parameter(0)\n{lines}\n  ROOT r = f32[4] abs(n2999)\n}}\n")
    text = bundle(module.entry)["text/html"]
    assert "more lines" in text
    assert len(text) < 150_000


def test_hostile_names_do_not_act() -> None:
    """No tag, no script, no control character, wherever a name is shown."""
    bad = "</pre><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m"
    module = hlo.parse(
        "HloModule m, is_scheduled=true\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n"
        f'  ROOT r = f32[4]{{0}} negate(p), metadata={{op_name="jit(f)/{bad}/neg" source_file="{bad}" source_line=3}}\n}}\n'
    )
    for value in (
        module,
        module.entry,
        module.entry.root,
        memory.assign(module, "cpu"),
        cost.analyze(module),
    ):
        text = bundle(value)["text/html"]
        assert {tag for tag, _ in Page(text).tags} <= OURS
        assert not any(name.startswith("on") for _, attributes in Page(text).tags for name in attributes)
        assert "\x1b" not in text


@pytest.mark.slow
def test_a_notebook_runs() -> None:
    """In a kernel of its own, each cell shows HTML."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    cells = [
        f"import hlotext as hlo\nfrom hlotext import cost, memory\nmodule = hlo.load({str(STEP)!r})\nmodule",
        "module.find('fusion.19')",
        "module.find('fusion.19').shape",
        "memory.assign(module)",
        "cost.analyze(module)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=None, kernel_name="python3").execute()
    for cell in notebook.cells:
        (shown,) = [output for output in cell.outputs if output.output_type == "execute_result"]
        assert "hlotext" in shown.data["text/html"]
        assert shown.data["text/plain"]


def test_lists_of_findings_are_tables() -> None:
    """Of the verifier, the linter and the tolerant reader; as text what a terminal would show, never `Finding(code=...)`."""
    wrong = hlo.parse("ENTRY e {\n  p = f32[2] parameter(0)\n  ROOT r = f32[3] negate(p)\n}\n")
    tolerant = hlo.parse_tolerant("ENTRY e {\n  p = f32[2] parameter(0)\n  ROOT r = f32[3] negate(q)\n}\n")
    assert wrong.source is not None
    for value, code in (
        (hlo.verify(wrong), "V101"),
        (hlo.lint.run(wrong, hlo.lint.Config(select=("V",))), "V101"),
        (hlo.lint.lint_source(wrong.source, hlo.lint.Config(select=("V",))), "V101"),
        (tolerant, tolerant.diagnostics[0].code),
    ):
        shown = bundle(value)
        assert f"<td>{code}</td>" in shown["text/html"]
        assert f"[{code}]: " in shown["text/plain"]
        assert "Finding(" not in shown["text/plain"]
    assert isinstance(hlo.verify(wrong), list)
    assert bundle(hlo.verify(hlo.load(STEP)))["text/plain"] == "nothing found"


def test_pictures_style_themselves_alone() -> None:
    """A style element of a picture holds for all of the page that it is pasted into: each selector names the picture."""
    module = hlo.load(STEP)
    assignment = memory.assign(module)
    groups = memory.usage.group_by(memory.usage.live_arrays(assignment, 0, 0), "scope")
    node = module.find("fusion.19")
    assert isinstance(node, hlo.Instruction)
    pictures = (
        memory_picture.offsets_svg(assignment),
        memory_picture.padding_svg(groups, "padding"),
        as_svg(neighbourhood(module, node.name)),
    )
    for picture in pictures:
        name = re.search(r'<svg [^>]*class="(hlotext-[a-z]+)"', picture)
        assert name is not None
        rules = "".join(re.findall(r"<style>(.*?)</style>", picture, re.DOTALL))
        assert rules
        for selectors in re.findall(r"(?<=[{};])([^{}@;]+)\{", "{" + re.sub(r"@media[^{]*\{", "", rules)):
            assert all(one.strip().startswith(f".{name[1]} ") for one in selectors.split(",")), selectors


def test_traces_are_tables() -> None:
    """Programs of a profiler's trace, and the operations of one, the longest first."""
    data = (support.DATA / "proto" / "two_programs.xplane.pb").read_bytes()
    trace = hlo.proto.read_trace(data)
    shown = bundle(trace)["text/html"]
    for module in trace.modules:
        assert f"<td>{module.name}</td>" in shown
    timed = max(trace.modules, key=lambda one: len(one.times))
    first = max(timed.times, key=lambda name: timed.times[name].seconds)
    assert f"<tr><td>{first}</td>" in bundle(timed)["text/html"]


def test_pictures_follow_the_notebook() -> None:
    """Its theme and not the system's: dark rules hold below the marks of dark notebooks, for the picture alone."""
    shown = bundle(memory.assign(hlo.load(STEP)))["text/html"]
    assert "prefers-color-scheme" not in shown
    assert '[data-jp-theme-light="false"] .hlotext-' in shown
    styles = "".join(re.findall(r"<style>(.*?)</style>", shown, re.DOTALL))
    for selectors in re.findall(r"([^{}]+)\{", styles):
        assert all(".hlotext" in part for part in selectors.split(",")), selectors

"""`hlotext grep`: lines, captures, explanations, exit statuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext import analysis
from hlotext.analysis.sizes import parse_bytes
from tests import support
from tests.cli_support import run, run_json

FILE = support.CORPUS / "cpu" / "mlp_forward.cpu_1.before_optimizations.txt"


def test_lines() -> None:
    result = run("grep", "%x = $S dot(%a, parameter()), rhs_contracting_dims={0}", FILE)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert len(lines) == 3
    assert all(line.startswith(f"{FILE}:") and " dot(" in line for line in lines)


def test_captures_as_json() -> None:
    (match, *_) = run_json("grep", "$S dot(%a, %b)", FILE)["matches"]
    assert match["captures"].keys() == {"S", "a", "b"}
    assert match["line"] > 1
    assert match["text"].startswith(f"%{match['instruction']} = {match['captures']['S']} dot(")


def test_why_not() -> None:
    result = run("grep", "dot(dot(...), ...)", "--why", "%dot_general.5", FILE)
    assert result.stdout == f"{FILE}: operand 0 of dot_general.5, jit_relu_.3: the opcode is call, not dot\n"


def test_nothing_found() -> None:
    assert run("grep", "all-gather(...)", FILE).exit_code == 1


def test_what_is_no_pattern() -> None:
    result = run("grep", "add(", FILE)
    assert result.exit_code == 2
    assert "expected a shape, an opcode" in result.stderr


TPU = support.CORPUS / "tpu" / "mlp_train.v4_2x2x1.after_optimizations.txt"


def count(*arguments: str) -> int:
    """How many instructions a filter leaves."""
    return int(run("grep", "-c", "_", TPU, *arguments).stdout.rpartition(":")[2])


def test_counts_and_names() -> None:
    """-c of every file, -l of those with a match."""
    other = support.CORPUS / "handmade" / "map.txt"
    assert run("grep", "-c", "dot(...)", FILE, other).stdout == f"{FILE}:3\n{other}:0\n"
    assert run("grep", "-l", "dot(...)", FILE, other).stdout == f"{FILE}\n"
    assert run("grep", "-c", "-l", "dot(...)", FILE).exit_code == 2


def test_lines_are_short() -> None:
    """Without metadata and configs, which --full shows."""
    assert "metadata=" not in run("grep", "fusion(...)", TPU).stdout
    assert "metadata=" in run("grep", "--full", "fusion(...)", TPU).stdout
    assert all(line.count("\n") == 0 for line in run("grep", "_", TPU).stdout.splitlines())


def test_by_line_function_and_scope() -> None:
    """Each filter leaves some; what it leaves is what the analysis says of the module."""
    module = hlo.load(TPU)
    lines, found = analysis.source_locations(module), analysis.scopes(module)
    place, _ = next(iter(lines.values()))
    everything = list(module.instructions())
    here = [i for i in everything if i in lines and lines[i][0] == place]
    assert count("--line", f"{place.file}:{place.line}") >= len(here) > 0
    assert count("--line", f"{place.file.rpartition('/')[2]}:{place.line}") >= len(here)
    assert count("--line", f"{place.file}:1-1000000") == count("--line", place.file)
    functions = [i for i in everything if i in lines and lines[i][0].function == "mlp"]
    assert count("--function", "mlp") == len(functions) > 0
    below = [i for i in everything if "layer_0" in found.of(i).path]
    assert count("--scope", "layer_0") == len(below) > 0
    assert count("--scope", "layer_*") > len(below)
    assert count("--scope", "nosuch") == 0
    assert run("grep", "_", TPU, "--line", "a.py:5-2").exit_code == 2


def test_what_is_inferred_is_marked() -> None:
    """What does not say itself where it is from is told apart, and left out on demand."""
    module = hlo.load(TPU)
    lines = analysis.source_locations(module)
    mine = [i for i in module.instructions() if i in lines and lines[i][0].function == "mlp"]
    own = {i.name for i in mine if lines[i][1] is analysis.MetadataSource.OWN}
    assert 0 < len(own) < len(mine)
    result = run("grep", "_", TPU, "--function", "mlp", "--limit", "0")
    marked = [line for line in result.stdout.splitlines() if "// inferred: " in line]
    assert len(marked) == len(mine) - len(own)
    assert f"{len(marked)} of {len(mine)}" in result.stderr
    matches = run_json("grep", "_", TPU, "--function", "mlp")["matches"]
    assert {match["instruction"] for match in matches if match["inferred_from"] is None} == own
    assert count("--function", "mlp", "--own") == len(own)
    assert "inferred" not in run("grep", "dot(...)", FILE).stderr


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("all-gathr(_)", "there is no opcode all-gathr: did you mean `all-gather`?"),
        ("add(_, negat(_))", "there is no opcode negat: did you mean `negate`?"),
        ("all-gathr*(...)", "no opcode matches all-gathr*"),
        ("_, dimension={0}", "there is no attribute dimension: did you mean `dimensions`?"),
        ("dot(...), dimensions={0}", "dot has no attribute dimensions"),
        ("_, chanel_id=*", "did you mean `channel_id`?"),
        ("f23[*] dot(...)", "there is no element type f23: did you mean `f32`?"),
        ("(f32[*], bf61[*]) fusion(...)", "there is no element type bf61: did you mean `bf16`?"),
        ("bg*[4] dot(...)", "no element type matches bg*"),
    ],
)
def test_a_word_that_nobody_knows(pattern: str, said: str) -> None:
    """It would match nothing in silence, and `! hlotext grep` in CI would pass."""
    result = run("grep", pattern, FILE)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert run("grep", "--allow-unknown", pattern, FILE).exit_code == 1


@pytest.mark.parametrize(
    "pattern", ["f*[*] d?t(...)", "_, to_apply=*", "(f32[*], $S) fusion(...)", "_, metadata=*x*", "_"]
)
def test_words_that_are_known(pattern: str) -> None:
    assert run("grep", pattern, FILE).exit_code in (0, 1)


HELD = """HloModule m

inner {
  a = f32[2,2] parameter(0)
  ROOT d = f32[2,2] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

outer {
  b = f32[2,2] parameter(0)
  ROOT one = f32[2,2] fusion(b), kind=kOutput, calls=inner
}

plain {
  c = f32[2,2] parameter(0)
  ROOT n = f32[2,2] negate(c)
}

ENTRY e {
  p = f32[2,2] parameter(0)
  two = f32[2,2] fusion(p), kind=kLoop, calls=outer
  ROOT three = f32[2,2] fusion(two), kind=kLoop, calls=plain
}
"""


def test_by_what_a_called_computation_holds(tmp_path: Path) -> None:
    """Also deeper; captures of the body are of the match, and words of the body are known or an error."""
    file = tmp_path / "m.hlo"
    file.write_text(HELD)

    def names(pattern: str) -> list[str]:
        found = json.loads(run("grep", pattern, file, "--format", "json").stdout)
        return [one["instruction"] for one in found["matches"]]

    assert names("fusion(...), calls={dot(...)}") == ["one", "two"]
    assert names("fusion(...), calls={negate(parameter())}, kind=kLoop") == ["three"]
    assert names("fusion(...), calls={negate(dot(...))}") == []
    (match,) = run_json("grep", "fusion(...), calls={%x = negate($A)}", file)["matches"]
    assert (match["captures"]["x"], match["captures"]["A"]) == ("n", "c")
    wrong = run("grep", "fusion(...), calls={dto(...)}", file)
    assert (wrong.exit_code, "did you mean `dot`" in wrong.stderr) == (2, True)
    named = run("grep", "fusion(...), calls={%inner}", file)
    assert (named.exit_code, "calls=%inner" in named.stderr) == (2, True)
    deep = "fusion(...), calls={" * 60 + "dot(...)" + "}" * 60
    assert "50 levels deep" in run("grep", deep, file).stderr


def test_size() -> None:
    """Results of at least a size, which the line says; a size that is none is a usage error."""
    sizes = [
        match["bytes"]
        for match in run_json("grep", "_", TPU, "--min-bytes", "16KiB", "--limit", "0")["matches"]
    ]
    assert sizes
    assert min(sizes) >= 16384
    assert len(sizes) < count()
    assert (
        " KiB" in run("grep", "_", TPU, "--min-bytes", "16KiB").stdout.splitlines()[0].rpartition("  // ")[2]
    )
    assert run("grep", "_", TPU, "--min-bytes", "large").exit_code == 2


def test_values_inside_fusions_have_no_size_in_memory() -> None:
    """They are left out, and how many there are is said."""
    inside = {i.name for c in hlo.load(TPU).computations if c.is_fusion_body for i in c}
    found = run("grep", "_", TPU, "--min-bytes", "16KiB", "--limit", "0", "--format", "json")
    names = {match["instruction"] for match in json.loads(found.stdout)["matches"]}
    assert names
    assert not names & inside
    assert "in fusions and reducers" in run("grep", "_", TPU, "--min-bytes", "16KiB").stderr


@pytest.mark.parametrize(
    ("text", "size"), [("4096", 4096), ("1MiB", 1 << 20), ("1.5 GiB", 3 << 29), ("2kB", 2000), ("64K", 64000)]
)
def test_sizes_as_people_write_them(text: str, size: int) -> None:
    assert parse_bytes(text) == size


ELEMENT = """HloModule m

ENTRY e {
  p = f32[4]{0} parameter(0)
  both = (f32[4]{0}, s32[]) custom-call(p), custom_call_target="both"
  ROOT n = f32[4]{0} negate(both#0)
}
"""


def test_an_element_that_the_text_leaves_out_stands_in_the_line_of_its_tuple(tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_text(ELEMENT)
    assert run("grep", "get-tuple-element(_)", path).stdout.startswith(f"{path}:5:")
    assert run_json("grep", "get-tuple-element(_)", path)["matches"][0]["line"] == 5


VALUES = """HloModule m

ENTRY e {
  p = s32[] parameter(0)
  q = f32[] parameter(1)
  c = s32[] constant(200), metadata={op_name="jit(f)/mul" source_file="/home/me/model.py" source_line=12}
  f = f32[] constant(200)
  a = s32[] add(p, c)
  ROOT t = (s32[], f32[], f32[]) tuple(a, q, f)
}
"""


def test_constants_and_parameters_match_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_text(VALUES)
    for pattern, names in {
        "s32[] constant(200)": ["c"],
        "constant(200)": ["c", "f"],
        "constant(200.0)": ["f"],
        "constant(7)": [],
        "add($x, constant(200))": ["a"],
        "parameter(1)": ["q"],
        "parameter()": ["p", "q"],
    }.items():
        found = json.loads(run("grep", pattern, path, "--format", "json").stdout)["matches"]
        assert [one["instruction"] for one in found] == names, pattern
    for pattern, said in {
        "constant({1, 2})": "a constant is matched by the single value",
        "constant($x)": "a constant is matched by the single value",
        "parameter($x)": "the parentheses of a parameter contain its number",
        "negate($x, $y)": "negate takes one operand, but has 2",
    }.items():
        result = run("grep", pattern, path)
        assert result.exit_code == 2
        assert said in result.stderr


def test_a_match_has_its_python_line(tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_text(VALUES)
    lines = run("grep", "constant(...)", path).stdout.splitlines()
    assert lines[0].endswith("%c = s32[] constant(200)  // model.py:12")
    assert "//" not in lines[1].rpartition(": ")[2]
    (one, other) = json.loads(run("grep", "constant(...)", path, "--format", "json").stdout)["matches"]
    assert one["place"] == {"file": "/home/me/model.py", "line": 12, "function": ""}
    assert other["place"] is None


def test_what_a_start_runs_stands_in_the_line_of_the_start(tmp_path: Path) -> None:
    """The text has no computation for it: positions were missing, and no editor could go there."""
    path = tmp_path / "m.hlo"
    path.write_text(
        "HloModule m\n\nENTRY %e (x: f32[8]) -> f32[8] {\n  %x = f32[8] parameter(0)\n"
        '  %s = ((f32[8]), f32[8], u32[]) custom-call-start(%x), custom_call_target="f"\n'
        "  ROOT %d = f32[8] custom-call-done(%s)\n}\n",
        "utf-8",
    )
    (line,) = run("grep", "custom-call(...)", path).stdout.splitlines()
    assert line.startswith(f"{path}:5:3: ROOT %async_op = ")
    assert run_json("grep", "custom-call(...)", path)["matches"][0]["line"] == 5


def test_a_collective_in_an_asynchronous_fusion_has_its_result_in_memory() -> None:
    """The TPU compiler overlaps it with what it fuses it with; a check of large gathers must not miss it."""
    path = support.CORPUS / "tpu" / "sharded_sort_fft_conv.v5e_2x2x1.after_optimizations.txt"
    (fused,) = [one for one in analysis.communications(hlo.load(path)) if one.fusion is not None]
    found = run_json("grep", "all-gather(...)", str(path), "--min-bytes", str(fused.result_bytes))["matches"]
    assert fused.instruction.name in {match["instruction"] for match in found}

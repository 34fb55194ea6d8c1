"""Two modules side by side: nothing where nothing differs, and exactly what differs where one thing does."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Hashable
from pathlib import Path
from random import Random

import pytest

import hlotext as hlo
from hlotext import diff, dumps, memory, rewrite
from hlotext.diff.thresholds import ThresholdError, parse_thresholds, violations
from hlotext.diff.value_numbering import ValueNumbering
from tests.cli_support import run
from tests.diff_cases import KINDS, Seeder
from tests.support import CORPUS, DATA, corpus_files, corpus_id, read_text

FILES = corpus_files()
SEEDS = 300
NAME = re.compile(r"\s+(?:ROOT )?%?([\w.\-]+) = (.*)")
SMALL = """HloModule m

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add = f32[] add(%a, %b)
}

ENTRY %main (x: f32[8,16], y: f32[8,16]) -> f32[8] {
  %x = f32[8,16]{1,0} parameter(0)
  %y = f32[8,16]{1,0} parameter(1)
  %zero = f32[] constant(0)
  %mul = f32[8,16]{1,0} multiply(%x, %y), metadata={op_name="jit(f)/layer_0/mul"}
  ROOT %reduce = f32[8]{0} reduce(%mul, %zero), dimensions={1}, to_apply=%sum
}
"""


def reordered(text: str, random: Random) -> str:
    """A text in which lines that do not read each other have changed places."""
    lines = text.split("\n")
    for _ in range(200):
        place = random.randrange(len(lines) - 1)
        first, second = NAME.fullmatch(lines[place]), NAME.fullmatch(lines[place + 1])
        if first and second and not re.search(rf"(?<![\w.\-])%?{re.escape(first[1])}(?![\w.\-])", second[2]):
            lines[place], lines[place + 1] = lines[place + 1], lines[place]
    return "\n".join(lines)


def said(found: diff.Diff) -> list[tuple[str, str, str]]:
    """Each change in a few words."""
    return [(change.kind, change.what, change.name) for change in found.changes]


@pytest.mark.parametrize("path", FILES, ids=corpus_id)
def test_nothing_differs(path: Path) -> None:
    """Of a module against itself with other names, other ids of channels, and another order of independent operations."""
    text = read_text(path).decode("utf-8", "surrogateescape")
    module = hlo.parse(text)
    assert said(diff.compare(module, hlo.parse(text))) == []
    renamed = hlo.parse(text)
    rewrite.Pipeline(rewrite.parse_passes("canonical-names"), verify=False).run(renamed)
    assert said(diff.compare(module, renamed)) == []
    channels = re.sub(r"channel_id=(\d+)", lambda match: f"channel_id={int(match[1]) + 100}", text)
    assert said(diff.compare(module, channels)) == []
    try:
        other = hlo.parse(reordered(text, Random(1)))
    except hlo.HloSyntaxError:  # a pair of lines that hangs together in another way
        return
    assert diff.compare(module, other).is_equal


@pytest.mark.slow
def test_one_seeded_change_each() -> None:
    """Exactly that one, in its place, of 97% of all."""
    random = Random(20)
    files = [path for path in FILES if path.stat().st_size < 300_000]
    count: Counter[str] = Counter()
    wrong = []
    tries = 0
    while count["all"] < SEEDS:
        kind = KINDS[tries % len(KINDS)]
        tries += 1
        assert tries < 40 * SEEDS
        path = random.choice(files)
        text = read_text(path).decode("utf-8", "surrogateescape")
        seeded = Seeder(text, random).seed(kind)
        if seeded is None:
            continue
        try:
            found = diff.compare(text, seeded[0])
        except hlo.HloSyntaxError:
            continue
        count["all"] += 1
        count[kind] += 1
        if [(change.name, change.kind) for change in found.changes] == [seeded[1:]]:
            count["right"] += 1
        else:
            wrong.append((kind, path.name, seeded[1:], said(found)[:3]))
    assert set(KINDS) <= set(count)
    assert count["right"] >= 0.97 * count["all"], wrong


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("multiply(%x, %y)", "multiply(%x, %x)", [("changed", "multiply: operand", "mul")]),
        ("multiply(", "add(", [("changed", "multiply -> add", "mul")]),
        ("ROOT %add = f32[] add", "ROOT %max = f32[] maximum", [("changed", "add -> maximum", "max")]),
        ("constant(0)", "constant(1)", [("changed", "constant: literal", "zero")]),
        ("HloModule m", "HloModule m, replica_count=2", [("changed", "header: replica_count", "")]),
        (
            "%mul = f32[8,16]{1,0}",
            "%mul = f32[8,16]{0,1}",
            [("changed", "multiply: layout {1,0} -> {0,1}", "mul")],
        ),
        ("jit(f)/layer_0/mul", "jit(g)/mul", []),
    ],
)
def test_one_change(old: str, new: str, expected: list[tuple[str, str, str]]) -> None:
    """What is said of it, both ways as many changes."""
    assert said(diff.compare(SMALL, SMALL.replace(old, new))) == expected
    assert len(diff.compare(SMALL.replace(old, new), SMALL).changes) == len(expected)


FUSED = """HloModule m

%first (p.1: f32[4]) -> f32[4] {
  %p.1 = f32[4] parameter(0)
  %sine = f32[4] sine(%p.1)
  %cosine = f32[4] cosine(%sine)
  ROOT %exp = f32[4] exponential(%cosine)
}

%second (p.2: f32[4]) -> f32[4] {
  %p.2 = f32[4] parameter(0)
  ROOT %log = f32[4] log(%p.2)
}

ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4] parameter(0)
  %a = f32[4] fusion(%p), kind=kLoop, calls=%first
  ROOT %b = f32[4] fusion(%a), kind=kLoop, calls=%second
}
"""


def test_an_operation_that_moves_to_another_fusion() -> None:
    """Both fusions hold other members than before, although the program computes the same; nothing else is said."""
    moved = FUSED.replace("  ROOT %exp = f32[4] exponential(%cosine)\n", "").replace(
        "%cosine =", "ROOT %cosine ="
    )
    moved = moved.replace(
        "  ROOT %log = f32[4] log(%p.2)", "  %exp = f32[4] exponential(%p.2)\n  ROOT %log = f32[4] log(%exp)"
    )
    found = diff.compare(FUSED, moved)
    assert said(found) == [("changed", "fusion: members", "a"), ("changed", "fusion: members", "b")]
    (went,), (came,) = (change.parts for change in found.changes)
    assert (went.old, went.new, came.old, came.new) == ("exp", "", "", "exp")


def test_renamed_is_no_change() -> None:
    """Names stand apart."""
    found = diff.compare(SMALL, SMALL.replace("%mul", "%product"))
    assert found.is_equal
    assert [(change.old.name, change.name) for change in found.changes.renamed if change.old] in (
        [],
        [("mul", "product")],
    )


def test_another_batch_is_a_screenful() -> None:
    """The same training step compiled with batches of 8 and of 16: other dimensions, and no operation more or less."""
    old, new = (read_text(DATA / "diff" / f"lm.cpu.batch_{size}.txt.xz").decode() for size in (8, 16))
    found = diff.compare(old, new)
    assert len(found.changes) > 500
    assert not found.changes.added
    assert not found.changes.removed
    folded = found.changes.folded()
    assert len(folded) <= 20
    assert sum(len(group) for _, group in folded) == len(found.changes)
    assert folded[0][0].startswith("changed: result 2x larger (convert, ")
    assert len(found.by_scope()) <= 20


def test_conversions_are_one_group_for_each_pair_of_types() -> None:
    """Whatever they convert: in another precision there are conversions everywhere."""
    lines = "\n".join(f"  o{n} = f32[8] {op}(x)" for n, op in enumerate(("sine", "cosine", "negate")))
    start = f"HloModule m\n\nENTRY e {{\n  x = f32[8] parameter(0)\n{lines}\n"
    plain = f"{start}  ROOT t = (f32[8], f32[8], f32[8]) tuple(o0, o1, o2)\n}}\n"
    low = "\n".join(f"  c{n} = bf16[8] convert(o{n})" for n in range(3))
    back = "\n".join(f"  d{n} = f32[8] convert(c{n})" for n in range(3))
    rounded = f"{start}{low}\n{back}\n  ROOT t = (f32[8], f32[8], f32[8]) tuple(d0, d1, d2)\n}}\n"
    sizes = {title: len(changes) for title, changes in diff.compare(plain, rounded).changes.folded()}
    assert sizes["added: convert f32 -> bf16"] == sizes["added: convert bf16 -> f32"] == 3
    gone = [title for title, _ in diff.compare(rounded, plain).changes.folded()]
    assert "removed: convert f32 -> bf16" in gone
    assert not any("convert of" in title for title in [*sizes, *gone])


def test_what_a_proto_has_no_field_for_is_no_change(tmp_path: Path) -> None:
    """XLA keeps it in the config, which the protos of a dump lack; where a proto has it, it is compared."""
    pytest.importorskip("google.protobuf")
    text = SMALL.replace(
        "HloModule m",
        "HloModule m, allow_spmd_sharding_propagation_to_parameters={true,true}, replica_count=2, num_partitions=4",
    )
    module = hlo.parse(text)
    proto = hlo.proto.read_module(module.to_proto())
    assert (module.has_config, proto.has_config) == (True, False)
    for pair in ((text, proto), (proto, text)):
        found = diff.compare(*pair)
        assert found.is_equal
        assert found.not_in_proto == (
            "replica_count",
            "num_partitions",
            "allow_spmd_sharding_propagation_to_parameters",
        )
    (tmp_path / "m.hlo").write_text(text)
    (tmp_path / "m.hlo.pb").write_bytes(hlo.proto.wrapped(module.to_proto()))
    shown = run("diff", tmp_path / "m.hlo", tmp_path / "m.hlo.pb")
    assert shown.exit_code == 0
    assert "not compared, as the proto has no field for it: replica_count, num_partitions" in shown.stdout
    (tmp_path / "held.pb").write_bytes(hlo.proto.with_config(module.to_proto(), module))
    held = hlo.load(tmp_path / "held.pb")
    assert held.has_config
    other = diff.compare(held, text.replace("num_partitions=4", "num_partitions=8"))
    assert [change.what for change in other.changes] == ["header: num_partitions"]


_SENT = """HloModule m, is_scheduled=true, num_partitions=4

f {
  q = f32[SIZE]{0} parameter(0)
  ROOT e = f32[SIZE]{0} exponential(q)
}

ENTRY e {
  p = f32[SIZE]{0} parameter(0)
  h = f32[SIZE]{0} fusion(p), kind=kLoop, calls=f, backend_config={"c":"SIZE"}
  t = f32[256]{0} tanh(s)
  ROOT r = (f32[SIZE]{0}, f32[256]{0}) tuple(h, t)
}
"""


def test_results_that_grew_are_one_group_and_new_collectives_the_first() -> None:
    """By the factor, whatever else changed with them; a gather of a few bytes is not below megabytes of its consequences."""
    source = "  s = f32[256]{0} parameter(1)\n"
    gather = (
        "  s0 = f32[64]{0} parameter(1)\n  s = f32[256]{0} all-gather(s0), dimensions={0}, "
        "replica_groups={{0,1,2,3}}, channel_id=1, use_global_device_ids=true\n"
    )
    old = _SENT.replace("SIZE", "1000000").replace("  t =", f"{source}  t =")
    new = _SENT.replace("SIZE", "4000000").replace("  t =", f"{gather}  t =")
    found = diff.compare(old, new)
    groups = found.weights.ordered(found.changes.folded())
    assert groups[0][0].startswith("added: all-gather")
    (grown,) = (changes for title, changes in groups if title.startswith("changed: result 4x larger ("))
    assert {change.opcode for change in grown} >= {"fusion", "exponential"}
    assert all("larger" not in title for title, changes in groups if changes is not grown)
    fusion = next(change for change in grown if change.opcode == "fusion")
    assert [part.name for part in fusion.parts] == ["dimensions", "backend_config"]
    # The other way round nothing is new, and the results are smaller.
    back = diff.compare(new, old)
    titles = [title for title, _ in back.weights.ordered(back.changes.folded())]
    assert titles[0].startswith("changed: result 4x smaller (")


def test_what_differs_most_comes_first_and_not_what_is_largest() -> None:
    """A large fusion whose configuration alone is another, and a small result that grew; the other way round it shrank."""
    old = (
        _SENT.replace("SIZE", "4000000")
        .replace("tanh(s)", "tanh(u)")
        .replace("  t =", "  u = f32[256]{0} parameter(1)\n  t =")
    )
    new = old.replace('"c":"4000000"', '"c":"4000001"').replace("f32[256]", "f32[512]")
    for first, second, sign in ((old, new, 1), (new, old, -1)):
        found = diff.compare(first, second)
        groups = found.weights.ordered(found.changes.folded())
        sizes = [found.weights.of_all(changes)[0] for _, changes in groups]
        assert sign * sizes[0] > 0
        assert sum(sizes) == found.totals.bytes.difference
        titles = [title for title, _ in groups]
        assert titles[0].startswith("changed: result 2x ")
        assert sizes[titles.index("changed: fusion: backend_config")] == 0


@pytest.mark.parametrize(
    ("config", "is_same"),
    [
        ('{"b":[1,2],"a":{"d":null,"c":"x"}}', True),
        ('{ "a" : {"c":"x", "d":null}, "b" : [1, 2] }', True),
        ('{"a":{"c":"x","d":null},"b":[2,1]}', False),
        ('{"a":{"c":"x"},"b":[1,2]}', False),
        ('{"a":{"c":"x","d":null},"b":[1,2]', False),  # no JSON, which is compared as text
    ],
)
def test_configurations_are_compared_as_json(config: str, is_same: bool) -> None:
    """The order of keys and the spaces are the printer's; of lists the order is part of the value."""

    def text(config: str) -> str:
        quoted = config.replace('"', '\\"')
        return _SENT.replace("SIZE", "64").replace('{"c":"64"}', f'"{quoted}"').replace("tanh(s)", "tanh(u)")

    parameter = "  u = f32[256]{0} parameter(1)\n  t ="
    old, new = (
        text(one).replace("  t =", parameter) for one in ('{"a":{"c":"x","d":null},"b":[1,2]}', config)
    )
    found = diff.compare(old, new)
    assert [[part.name for part in change.parts] for change in found.changes] == (
        [] if is_same else [["backend_config"]]
    )


_GATHER = (
    "f32[16]{0} all-gather(p), dimensions={0}, channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, "
    'frontend_attributes={chain_id="0"}'
)
_CHAIN = f"""HloModule m, num_partitions=4

ENTRY e {{
  p = f32[4]{{0}} parameter(0)
  a = {_GATHER}
  s = (f32[16]{{0}}) custom-call(a), custom_call_target="AsyncCollectiveStart"
  b = {_GATHER}
  c = {_GATHER}
  ROOT r = (f32[16]{{0}}, f32[16]{{0}}, (f32[16]{{0}})) tuple(b, c, s)
}}
"""
"""A collective that the TPU compiler spread: the start, and two further parts."""


def test_a_collective_in_parts_is_one() -> None:
    found = diff.compare(
        "HloModule m, num_partitions=4\n\nENTRY e {\n  ROOT p = f32[4]{0} parameter(0)\n}\n", _CHAIN
    )
    sizes = {title: len(changes) for title, changes in found.weights.ordered(found.changes.folded())}
    assert next(iter(sizes)) == "added: all-gather of parameter"
    assert (sizes["added: all-gather of parameter"], sizes["added: more parts of one all-gather"]) == (
        1,
        2,
    )
    assert found.totals["all-gather"].new == found.totals.collectives.new == 1
    assert found.totals["all-gather, further parts"].new == 2


def test_totals() -> None:
    """Both sides of each figure."""
    new = SMALL.replace("f32[8,16]", "f32[8,32]")
    totals = diff.compare(SMALL, new).totals
    assert totals.flops.difference == 256
    assert totals.bytes.difference is not None
    assert totals.bytes.difference > 0
    assert totals["multiply"].old == totals["multiply"].new == 1
    assert totals["all-gather"].difference == 0
    assert totals.peak_memory.old is None  # not scheduled
    with pytest.raises(KeyError, match="unknown metric 'mlutiply'"):
        totals["mlutiply"]


def test_peaks_of_vmem_are_compared_beside_those_of_main_memory() -> None:
    text = """HloModule m, is_scheduled=true

ENTRY e {
  x = f32[1024]{0:T(1024)} parameter(0)
  y = f32[1024]{0:T(1024)S(1)} negate(x)
  ROOT z = f32[1024]{0:T(1024)} negate(y)
}
"""
    totals = diff.compare(text, text.replace("T(1024)S(1)", "T(1024)")).totals
    assert (totals.peak_vmem.old, totals.peak_vmem.new) == (4096, 0)
    assert totals["peak_vmem"].old == 4096
    cpu = text.replace("{0:T(1024)S(1)}", "{0}").replace("{0:T(1024)}", "{0}")
    assert diff.compare(cpu, cpu).totals.peak_vmem.old is None


LOOP = """HloModule m, num_partitions=4

add (a: f32[], b: f32[]) -> f32[] {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

body (s: (s32[], f32[1024])) -> (s32[], f32[1024]) {
  s = (s32[], f32[1024]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[1024] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[1024] all-reduce(x), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add
  ROOT t = (s32[], f32[1024]) tuple(j, y)
}

condition (s: (s32[], f32[1024])) -> pred[] {
  s = (s32[], f32[1024]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(10)
  ROOT less = pred[] compare(i, n), direction=LT
}

ENTRY main (p: f32[1024]) -> (s32[], f32[1024]) {
  p = f32[1024] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[1024]) tuple(zero, p)
  ROOT w = (s32[], f32[1024]) while(t), condition=condition, body=body
}
"""


FORMED = """HloModule m, is_scheduled=true

%fused (p: f32[8,16]) -> f32[8,16] {
  %p = f32[8,16]{1,0} parameter(0)
  %twice = f32[8,16]{1,0} add(%p, %p)
  ROOT %end = f32[8,16]{1,0} tanh(%twice)
}

ENTRY %main (x: f32[8,16]) -> (f32[8,16], f32[8,16]) {
  %x = f32[8,16]{1,0} parameter(0)
  %fusion = f32[8,16]{1,0} fusion(%x), kind=kLoop, calls=%fused
  %power = f32[8,16]{1,0} power(%fusion, %x)
  %other = f32[8,16]{1,0} negate(%power)
  ROOT %both = (f32[8,16]{1,0}, f32[8,16]{1,0}) tuple(%power, %other)
}
"""


@pytest.mark.parametrize(
    ("old", "new", "expected", "is_shared"),
    [
        ("add(", "subtract(", [("changed", "add -> subtract", "twice")], True),
        ("%twice", "%sum", [], True),
        ("tanh(", "exponential(", [("changed", "tanh -> exponential", "end")], False),
        ("power(", "atan2(", [("changed", "power -> atan2", "power")], False),
        ("kind=kLoop", "kind=kInput", [("changed", "fusion: kind", "fusion")], False),
        ("negate(", "floor(", [("changed", "negate -> floor", "other")], True),
    ],
)
def test_modules_of_one_form(
    old: str, new: str, expected: list[tuple[str, str, str]], is_shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what differs is looked at, and costs and memory are found once where they cannot differ."""
    asked: list[hlo.Module] = []
    peak = memory.assignment.peak_bytes

    def peak_bytes(module: hlo.Module, memory_space: int = 0) -> int:
        asked.append(module)
        return peak(module)

    monkeypatch.setattr(memory.assignment, "peak_bytes", peak_bytes)
    found = diff.compare(FORMED, FORMED.replace(old, new))
    assert said(found) == expected
    assert found.totals.peak_memory.difference is not None
    assert found.totals.flops.difference == 0 or not is_shared
    assert len(set(map(id, asked))) == 2 - is_shared


def test_computations_of_one_text_are_numbered_once() -> None:
    """Of the second module only what calls, and what was edited or written otherwise, is looked into."""
    old, new, other = hlo.parse(FORMED), hlo.parse(FORMED), hlo.parse(FORMED.replace("tanh(", "sine("))
    structure = ValueNumbering()
    first = structure.classes(old)
    structure.said.clear()
    assert list(structure.classes(new, old).values()) == list(first.values())
    assert [one.name for one in structure.said] == ["main"]
    assert not set(structure.classes(other, old).values()) & set(first.values())
    new.instruction("end").change(opcode="sine")
    assert list(structure.classes(new, old).values()) == list(structure.classes(other, old).values())


@pytest.mark.parametrize("path", FILES[::9], ids=corpus_id)
def test_costs_that_are_shared_are_those_of_both(path: Path) -> None:
    """Totals of a module in which elementwise operations were exchanged: from the differences, and from both modules."""
    text, random = read_text(path).decode("utf-8", "surrogateescape"), Random(path.name)
    for _ in range(3):
        other, count = re.subn(
            rf" ({'|'.join(_EXCHANGED)})\(",
            lambda match: f" {_EXCHANGED[match[1]]}(" if random.random() < 0.2 else match[0],
            text,
        )
        if not count:
            return
        shared, alone = diff.compare(text, other), diff.compare(text, other)
        if shared.is_equal:  # what is known of the form comes with this
            continue
        for name in diff.Totals.NAMES:
            assert shared.totals[name] == alone.totals[name], name


_EXCHANGED = {
    "add": "multiply",
    "multiply": "subtract",
    "subtract": "maximum",
    "tanh": "exponential",
    "negate": "abs",
}


def test_totals_count_collectives_as_often_as_loops_run() -> None:
    """Each device sends 2 * 3/4 of 4 KiB in each of ten rounds; half the rounds send half."""
    total = diff.compare(LOOP, LOOP.replace("constant(10)", "constant(5)")).totals.collective_bytes
    assert (total.old, total.new) == (10 * 6144, 5 * 6144)


_SUM = "all-reduce(z), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add"
INSIDE = LOOP.replace("y = f32[1024] all-reduce(x)", "z = f32[1024] add(x, x)\n  y = f32[1024] all-reduce(z)")
BEHIND = (
    INSIDE.replace(f"  y = f32[1024] {_SUM}\n", "")
    .replace("tuple(j, y)", "tuple(j, z)")
    .replace("ROOT w", "w")
    .replace(
        "body=body\n",
        f"""body=body
  n = s32[] get-tuple-element(w), index=0
  z = f32[1024] get-tuple-element(w), index=1
  y = f32[1024] {_SUM}
  ROOT r = (s32[], f32[1024]) tuple(n, y)
""",
    )
)


@pytest.mark.parametrize(
    ("old", "new", "runs"),
    [(INSIDE, BEHIND, ("10 times", "once")), (BEHIND, INSIDE, ("once", "10 times"))],
)
def test_an_operation_that_leaves_a_loop_says_how_often_it_runs(
    old: str, new: str, runs: tuple[str, str]
) -> None:
    """A gradient's sum behind the loop over micro-batches; even where nothing else of the operation differs."""
    found = diff.compare(old, new)
    (change,) = [one for one in found.changes if one.opcode == "all-reduce"]
    assert (change.parts[0].name, change.parts[0].old, change.parts[0].new) == ("runs", *runs)
    assert f"runs {runs[0]} -> {runs[1]}" in change.what
    assert f"moved {'out of' if runs[1] == 'once' else 'into'} loop w" in change.what


SCANNED = """HloModule m

body (s: (s32[], f32[4,8], f32[10,4,8], f32[8,8])) -> (s32[], f32[4,8], f32[10,4,8], f32[8,8]) {
  s = (s32[], f32[4,8], f32[10,4,8], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  h = f32[4,8] get-tuple-element(s), index=1
  xs = f32[10,4,8] get-tuple-element(s), index=2
  w = f32[8,8] get-tuple-element(s), index=3
  zero = s32[] constant(0)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  row = f32[1,4,8] dynamic-slice(xs, i, zero, zero), dynamic_slice_sizes={1,4,8}
  x = f32[4,8] reshape(row)
  y = f32[4,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  next = f32[4,8] multiply(h, y)
  ROOT r = (s32[], f32[4,8], f32[10,4,8], f32[8,8]) tuple(j, next, xs, w)
}

condition (s: (s32[], f32[4,8], f32[10,4,8], f32[8,8])) -> pred[] {
  s = (s32[], f32[4,8], f32[10,4,8], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(10)
  ROOT less = pred[] compare(i, n), direction=LT
}

ENTRY main (h: f32[4,8], xs: f32[10,4,8], w: f32[8,8]) -> f32[4,8] {
  h = f32[4,8] parameter(0)
  xs = f32[10,4,8] parameter(1)
  w = f32[8,8] parameter(2)
  zero = s32[] constant(0)
  t = (s32[], f32[4,8], f32[10,4,8], f32[8,8]) tuple(zero, h, xs, w)
  loop = (s32[], f32[4,8], f32[10,4,8], f32[8,8]) while(t), condition=condition, body=body
  ROOT last = f32[4,8] get-tuple-element(loop), index=1
}
"""
HOISTED = (
    SCANNED.replace("  y = f32[4,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n", "")
    .replace("  w = f32[8,8] get-tuple-element(s), index=3\n", "")
    .replace("multiply(h, y)", "multiply(h, x)")
    .replace("tuple(j, next, xs, w)", "tuple(j, next, xs)")
    .replace("tuple(zero, h, xs, w)", "tuple(zero, h, stack)")
    .replace("f32[10,4,8], f32[8,8])", "f32[10,4,8])")
    .replace(
        "  t = (",
        "  rows = f32[40,8] reshape(xs)\n"
        "  all = f32[40,8] dot(rows, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
        "  stack = f32[10,4,8] reshape(all)\n  t = (",
    )
    .replace(
        "ENTRY main (h: f32[4,8], xs: f32[10,4,8]) ->",
        "ENTRY main (h: f32[4,8], xs: f32[10,4,8], w: f32[8,8]) ->",
    )
)


@pytest.mark.parametrize("is_back", [False, True])
def test_a_product_hoisted_out_of_a_scan_is_one_change(is_back: bool) -> None:
    """Of all iterations at once it has another shape and other operations around it, but multiplies the same arrays."""
    old, new = (HOISTED, SCANNED) if is_back else (SCANNED, HOISTED)
    found = diff.compare(old, new)
    (change,) = [one for one in found.changes if one.opcode == "dot"]
    told = (
        "runs once -> 10 times, moved into loop loop"
        if is_back
        else "runs 10 times -> once, moved out of loop loop"
    )
    assert change.what == f"dot: {told}, dimensions"
    assert f"changed: {change.what}" in [title for title, _ in found.changes.folded()]


def test_a_product_of_other_arrays_has_not_moved() -> None:
    found = diff.compare(
        SCANNED,
        HOISTED.replace("reshape(xs)", "reshape(other)").replace(
            "  rows", "  other = f32[10,4,8] negate(xs)\n  rows"
        ),
    )
    assert [one.kind for one in found.changes if one.opcode == "dot"] == ["added", "removed"]


def test_another_trip_count_is_one_change() -> None:
    """What is in the loop is as it was."""
    (change,) = diff.compare(LOOP, LOOP.replace("constant(10)", "constant(5)")).changes
    assert change.opcode == "constant"


def test_thresholds() -> None:
    """Bounds as text, and which of them are crossed."""
    totals = diff.compare(SMALL, SMALL.replace("f32[8,16]", "f32[8,32]")).totals
    for text, bad in (
        ("flops+104%", []),
        ("flops+99%,multiply+0", ["flops"]),
        ("collectives+0,operations", []),
        ("bytes+4KiB,changes+1", ["changes"]),
        ("peak_memory+0", ["peak_memory"]),
    ):
        assert [one.total.name for one in violations(parse_thresholds(text), totals, 2)] == bad, text
    for text in ("", "bytes+", "bytes+1x", "+1"):
        with pytest.raises(ThresholdError):
            parse_thresholds(text)
    with pytest.raises(ThresholdError, match="no metric is named 'nonsense'; expected operations"):
        violations(parse_thresholds("nonsense"), totals, 0)


def test_a_golden_file_survives_names_and_ids() -> None:
    """It is HLO, equal to the module, and the same for another compilation with other names."""
    path = CORPUS / "tpu" / "data_parallel.v5e_2x2x1.after_codegen.txt"
    text = path.read_text()
    golden = diff.golden_text(hlo.parse(text))
    assert "metadata=" not in golden
    assert diff.compare(golden, text).is_equal
    assert diff.golden_text(hlo.parse(golden)) == golden
    assert not diff.compare(golden, Seeder(text, Random(0)).seed("copy")[0]).is_equal  # type: ignore[index]


def test_what_is_no_module() -> None:
    """TypeError and the reader's errors."""
    with pytest.raises(TypeError, match="not int"):
        diff.compare(SMALL, 3)
    with pytest.raises(hlo.HloSyntaxError):
        diff.compare(SMALL, "rubbish {")
    with pytest.raises(hlo.InputError):
        diff.compare(SMALL, Path("nowhere.txt"))


def test_two_steps_of_one_compilation_trust_its_identity(tmp_path: Path) -> None:
    """An operation that kept its name is itself, whatever else looks like it; of modules alone nobody knows."""
    text = """HloModule jit_f, entry_computation_layout={(f32[8]{0}, f32[8]{0})->f32[8]{0}}

ENTRY %main (x: f32[8], y: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  %y = f32[8]{0} parameter(1)
  %one = f32[8]{0} add(%x, %LEFT)
  %two = f32[8]{0} add(%x, %RIGHT)
  ROOT %last = f32[8]{0} subtract(%one, %two)
}
"""
    first = text.replace("LEFT", "x").replace("RIGHT", "y")
    second = text.replace("LEFT", "y").replace("RIGHT", "x")
    names = (
        "module_0001.jit_f.before_optimizations.txt",
        "module_0001.jit_f.0001.p.after_swap.before_q.txt",
        "module_0001.jit_f.cpu_after_optimizations.txt",
    )
    for name, content in zip(names, (first, second, second), strict=True):
        (tmp_path / name).write_text(content)
    steps = dumps.open(tmp_path).compilations[0].steps
    alone = diff.compare(tmp_path / names[0], tmp_path / names[1])
    assert {change.name for change in alone.changes} != {"one", "two"}
    trusted = diff.compare(steps[0], steps[1])
    assert {(change.name, change.kind) for change in trusted.changes} == {
        ("one", "changed"),
        ("two", "changed"),
    }
    back = diff.compare(steps[1], steps[0])
    assert {change.name for change in back.changes} == {"one", "two"}
    assert diff.compare(steps[1], steps[2]).is_equal
    shown = run("diff", tmp_path / names[0], tmp_path / names[1], "--full", "--format", "json")
    assert {row["name"] for row in json.loads(shown.stdout)["changes"]} == {"one", "two"}


def test_lines_of_equal_text_are_numbered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module has hundreds of thousands of lines and thousands of texts behind their names and operands."""
    asked: list[str] = []
    read = ValueNumbering._attributes

    def noted(self: ValueNumbering, node: hlo.Instruction) -> Hashable:
        asked.append(node.name)
        return read(self, node)

    monkeypatch.setattr(ValueNumbering, "_attributes", noted)
    body = "%f {\n  %p = f32[4] parameter(0)\n  ROOT %n = f32[4] negate(%p)\n}\n\n"
    calls = "".join(
        f"  %c{number} = f32[4] fusion(%c{number - 1}), kind=kLoop, calls=%f{number}\n"
        for number in range(1, 40)
    )
    text = (
        "HloModule m\n\n"
        + "".join(body.replace("%", "%x").replace("%xf", f"%f{number}") for number in range(1, 40))
        + f"ENTRY %e {{\n  %c0 = f32[4] parameter(0)\n{calls}  ROOT %r = f32[4] negate(%c39)\n}}\n"
    )
    module = hlo.parse(text)
    classes = ValueNumbering().classes(module)
    assert len(set(classes.values())) == 2
    assert len(asked) < 8


def test_an_argument_in_the_middle_shifts_the_others() -> None:
    """Arguments are paired by JAX's names where there are more than before: what follows from the number is no change."""
    line = '  {0} = f32[8]{{0}} parameter({1}), metadata={{op_name="{0}"}}\n'
    header = "HloModule m, allow_spmd_sharding_propagation_to_parameters={{{}}}\n\nENTRY e {{\n"
    old = header.format("true,true") + line.format("w", 0) + line.format("x", 1)
    new = header.format("true,true,true") + line.format("w", 0) + line.format("v", 1) + line.format("x", 2)
    end = "  ROOT a = f32[8]{0} multiply(w, x)\n}\n"
    found = said(diff.compare(hlo.parse(old + end), hlo.parse(new + "  b = f32[8]{0} negate(v)\n" + end)))
    assert sorted(row[::2] for row in found) == [("added", "b"), ("added", "v")]

"""Reduction: modules become as small as they can be while a predicate holds, and stay right all the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import hlotext as hlo
from hlotext import rewrite
from hlotext.edit import per_argument_attributes
from tests import support

TEXT = "ENTRY e { x = f32[4] parameter(0)  ROOT y = f32[4] negate(x) }"

LOOP = (support.DATA / "reduction" / "loop.hlo").read_text(encoding="utf-8")


def inside(computation: hlo.Computation) -> Iterator[hlo.Instruction]:
    """The instructions of a computation and of all that it calls."""
    for i in computation:
        yield i
        for callee in i.called_computations:
            yield from inside(callee)


def has(*opcodes: str) -> Callable[[hlo.Module], bool]:
    """Whether each of these opcodes stands inside of what the one before it calls, the first anywhere."""

    def holds(module: hlo.Module) -> bool:
        found: list[hlo.Instruction] = list(module.instructions())
        for opcode in opcodes[:-1]:
            found = [j for i in found if i.opcode == opcode for c in i.called_computations for j in inside(c)]
        return any(i.opcode == opcodes[-1] for i in found)

    return holds


def wide_sum(module: hlo.Module) -> bool:
    """A sum of arrays of at least 16 elements."""
    return any(
        i.opcode == "add" and i.shape is not None and i.shape.is_array and i.shape.element_count >= 16
        for i in module.instructions()
    )


def noted(module: hlo.Module) -> bool:
    return "note" in module.attributes.get("frontend_attributes", {}) and has("cosine")(module)


CASES: dict[str, tuple[Callable[[hlo.Module], bool], int]] = {
    "in a loop's body": (has("while", "dynamic-slice"), 11),
    "in a loop's condition": (has("while", "compare"), 9),
    "in a fusion in a loop": (has("while", "fusion", "tanh"), 11),
    "in a call in a loop": (has("while", "call", "multiply"), 15),
    "in a branch": (has("conditional", "cosine"), 14),
    "in a branch, anywhere": (has("cosine"), 2),
    "in a fusion, anywhere": (has("fusion", "tanh"), 4),
    "in a fusion, or no longer": (has("tanh"), 2),
    "an array of some size": (wide_sum, 3),
    "a note in the header": (noted, 2),
    "a collective's combiner": (has("reduce", "add"), 6),
}


@pytest.mark.parametrize(("fails", "most"), CASES.values(), ids=CASES)
def test_reduction(fails: Callable[[hlo.Module], bool], most: int) -> None:
    """Down to a few instructions, wherever what is wanted stands; the result is right, reads back and still fails."""
    module = hlo.parse(LOOP)
    found = rewrite.reduce(module, fails)
    assert str(module) == LOOP
    assert found.after <= most, str(found.module)
    again = hlo.parse(str(found.module))
    assert fails(again)
    assert [d for d in hlo.verify(again) if d.severity is hlo.Severity.ERROR] == []


def test_every_kind_of_detail_becomes_small() -> None:
    """Sizes, shardings, attributes, metadata and the header."""
    text = str(rewrite.reduce(hlo.parse(LOOP), has("while", "dynamic-slice")).module)
    for word in ("64", "128", "sharding", "metadata", "frontend_attributes", "num_partitions", "allow_spmd"):
        assert word not in text, text
    text = str(rewrite.reduce(hlo.parse(LOOP), wide_sum).module)
    assert "f32[16]" in text
    text = str(rewrite.reduce(hlo.parse(LOOP), noted).module)
    assert 'frontend_attributes={note="x"}' in text
    assert "arg_layout_modes" not in text


def test_what_fails_by_an_effect_keeps_it() -> None:
    """A collective that nothing uses stays where it is what fails, and goes where it is not."""
    text = (
        "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }\n"
        "ENTRY e { x = f32[8] parameter(0)  r = f32[8] all-reduce(x), channel_id=1, replica_groups={{0,1}}, to_apply=add\n"
        "  s = f32[8] sine(x), control-predecessors={r}  ROOT n = f32[8] negate(s) }"
    )
    assert rewrite.reduce(hlo.parse(text), has("all-reduce")).after == 4
    assert rewrite.reduce(hlo.parse(text), has("sine")).after == 2


IN_PROGRAMS = {
    "eig_schur_expm.cpu_1.before_optimizations.txt": (has("while", "dynamic-slice"), 420, 12),
    "ode_integrator.h100_1x1x1.after_optimizations.txt": (has("while", "fusion", "multiply"), 1243, 20),
    "transformer_train_remat.h100_1x1x1.before_optimizations.txt": (has("while", "dynamic-slice"), 1090, 20),
    "collective_groups.v6e_2x4.after_optimizations.txt": (has("all-reduce"), 36, 6),
}


@pytest.mark.parametrize("name", IN_PROGRAMS)
def test_reduction_of_a_program(name: str) -> None:
    """Loops and collectives of programs that XLA compiled, before and after optimizations."""
    fails, before, most = IN_PROGRAMS[name]
    (path,) = [path for path in support.corpus_files(("cpu", "gpu", "tpu")) if path.name == name]
    found = rewrite.reduce(hlo.load(path), fails)
    assert (found.before, found.after <= most) == (before, True), str(found.module)
    assert fails(hlo.parse(str(found.module)))
    assert [d for d in hlo.verify(found.module) if d.severity is hlo.Severity.ERROR] == []
    assert "StackFrames" not in str(found.module)


def test_reduction_of_a_seeded_failure() -> None:
    """A module of 2,000 instructions that fails where a sine feeds an add becomes one of a few."""
    lines = ["x = f32[4] parameter(0)", "v0 = f32[4] cosine(x)"]
    lines += [f"v{n} = f32[4] add(v{n - 1}, v{n // 2})" for n in range(1, 1000)]
    lines += ["bad = f32[4] sine(v700)", "w0 = f32[4] add(bad, v999)"]
    lines += [f"w{n} = f32[4] multiply(w{n - 1}, v{n})" for n in range(1, 999)]
    module = hlo.parse("ENTRY e {\n  " + "\n  ".join(lines) + "\n  ROOT r = f32[4] negate(w998)\n}\n")
    assert sum(1 for _ in module.instructions()) > 2000

    def fails(m: hlo.Module) -> bool:
        return any(
            i.opcode == "add" and any(o.opcode == "sine" for o in i.operands) for i in m.instructions()
        )

    found = rewrite.reduce(module, fails)
    assert found.after < 15
    assert fails(found.module)
    assert fails(hlo.parse(str(found.module)))


def test_reduction_needs_a_failure() -> None:
    with pytest.raises(ValueError, match="does not fail"):
        rewrite.reduce(hlo.parse(TEXT), lambda m: False)


# ---- what the header counts


def notes(module: hlo.Module) -> dict[str, str]:
    return dict(module.attributes.get("frontend_attributes", {}))


def test_removed_and_added_parameters_are_counted() -> None:
    module = hlo.parse(LOOP.replace('arg_memory_spaces="0;0;0"', 'arg_memory_spaces="0;5;0"'))
    entry = module.entry
    entry["conditional"].replace_operand(0, rewrite.Builder.before(entry["conditional"]).constant(0, "s32"))
    rewrite.remove_parameter(entry, 2)
    assert notes(module)["arg_layout_modes"] == "default;default"
    assert notes(module)["arg_memory_spaces"] == "0;5"
    assert notes(module)["out_memory_spaces"] == "0;0;0"
    rewrite.add_parameter(entry, rewrite.shape_of("f32"))
    assert notes(module)["arg_memory_spaces"] == "0;5;0"
    assert 'arg_memory_spaces="0;5;0"' in str(module).splitlines()[0]
    assert notes(module)["note"] == "x"


def test_an_extracted_module_has_no_lists_of_another_entry() -> None:
    module = hlo.parse(LOOP)
    for name in ("while", "neg", "call"):
        small = rewrite.extract(next(module.find_all(name)))  # type: ignore[arg-type]
        assert set(notes(small)) == {"note"}
        again = hlo.parse(str(small))
        assert [d for d in hlo.verify(again) if d.severity is hlo.Severity.ERROR] == []


def test_lists_of_another_length_go() -> None:
    """PJRT counts the elements of a single tuple."""
    text = (
        'HloModule m, frontend_attributes={arg_layout_modes="default;default",out_layout_modes="default",'
        'out_memory_spaces="0"}\n'
        "ENTRY e { ROOT x = (f32[], f32[]) parameter(0) }"
    )
    module = hlo.parse(text)
    per_argument_attributes.resize_lists(module)
    assert notes(module) == {"arg_layout_modes": "default;default"}
    per_argument_attributes.drop_lists(module)
    assert "frontend_attributes" not in str(module)

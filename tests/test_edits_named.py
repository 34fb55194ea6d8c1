"""Edits that have a name of their own: entry layouts, order, imports of computations, anonymous modules, loops written out,
and collectives made one."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import rewrite
from hlotext.analysis import trip_count
from hlotext.edit import integrity
from hlotext.edit.cloning import clone_computation
from hlotext.rewrite.passes.cleanup.anonymize import Anonymize
from hlotext.rewrite.passes.devices.combine_collectives import CombineCollectives
from hlotext.rewrite.passes.loops.unroll_loops import UnrollLoops
from tests import support


def sound(module: hlo.Module) -> None:
    """A sound graph, without errors, that reads back."""
    assert integrity.problems(module) == []
    again = hlo.parse(str(module))
    assert [str(d) for d in hlo.verify(again) if d.severity is hlo.Severity.ERROR] == []


# ---- entry layouts

PER_RESULT = """HloModule a, entry_computation_layout={(f32[64,10]{0,1:T(8,128)}, f32[4]{0})->f32[64,10]{0,1:T(8,128)}}, \
allow_spmd_sharding_propagation_to_parameters={true,false}, allow_spmd_sharding_propagation_to_output={true}, \
frontend_attributes={arg_layout_modes="default;{0}",out_layout_modes="{0,1}",out_memory_spaces="0"}

ENTRY e {
  p = f32[64,10] parameter(0)
  q = f32[4] parameter(1)
  ROOT a = f32[64,10] negate(p)
}
"""


def header(module: hlo.Module) -> str:
    return str(module).partition("\n")[0]


def test_a_new_result_leaves_the_others_as_they_are() -> None:
    """Results keep their layouts, and every list of the header has an entry for each, as PJRT and the partitioner count."""
    module = hlo.parse(PER_RESULT)
    entry = module.entry
    added = rewrite.add_parameter(entry, "f32[8]")
    assert "propagation_to_parameters={true,false,false}" in header(module)
    assert 'arg_layout_modes="default;{0};default"' in header(module)
    entry.root = rewrite.Builder.after(entry.root).tuple(entry.root, added)
    sound(module)
    assert "->(f32[64,10]{0,1:T(8,128)}, f32[8]{0:T(128)})}" in header(module)
    assert "propagation_to_output={true,false}" in header(module)
    assert 'out_layout_modes="{0,1};default",out_memory_spaces="0;0"' in header(module)
    entry.root = rewrite.Builder.after(entry.root).tuple(*entry.root.operands, entry["q"])
    sound(module)
    assert "->(f32[64,10]{0,1:T(8,128)}, f32[8]{0:T(128)}, f32[4]{0:T(128)})}" in header(module)
    assert "propagation_to_output={true,false,false}" in header(module)
    # Of fewer results nothing is known.
    entry.root = entry["a"]
    sound(module)
    assert "propagation_to_output" not in header(module)
    assert "out_layout_modes" not in header(module)


def test_one_flag_for_all_results_stays() -> None:
    """A list of one entry speaks of all results of a tuple."""
    module = hlo.parse(PER_RESULT)
    entry = module.entry
    entry.root = rewrite.Builder.after(entry.root).tuple(entry.root, entry["p"])
    module.attributes["allow_spmd_sharding_propagation_to_output"] = (True,)
    entry.root = rewrite.Builder.after(entry.root).tuple(*entry.root.operands, entry["q"])
    assert "propagation_to_output={true}" in header(module)


PLAIN = """HloModule m, entry_computation_layout={(f32[2,3]{1,0}, (f32[4,5]{1,0}, s32[]))->(f32[2,3]{1,0}, f32[4,5]{1,0})}

ENTRY e {
  x = f32[2,3]{1,0} parameter(0)
  p = (f32[4,5]{1,0}, s32[]) parameter(1)
  y = f32[2,3]{1,0} sine(x)
  z = f32[4,5]{1,0} get-tuple-element(p), index=0
  ROOT t = (f32[2,3]{1,0}, f32[4,5]{1,0}) tuple(y, z)
}
"""
SCHEDULED = PLAIN.replace("HloModule m,", "HloModule m, is_scheduled=true,")


def test_entry_layouts_before_optimization() -> None:
    """The header and the parameter say the new layout; nothing else changes."""
    module = hlo.parse(PLAIN)
    rewrite.change_entry_layout(module, {0: "{0,1}"})
    header, x = str(module).splitlines()[0], str(module.entry["x"])
    assert "{(f32[2,3]{0,1}, (f32[4,5]{1,0}, s32[]))->(f32[2,3]{1,0}, f32[4,5]{1,0})}" in header
    assert x == "x = f32[2,3]{0,1} parameter(0)"
    assert len(module.entry) == 5
    assert integrity.problems(module) == []


def test_entry_layouts_where_layouts_are_final() -> None:
    """Copies stand where the program computes in the old layout."""
    module = hlo.parse(SCHEDULED)
    rewrite.change_entry_layout(module, {0: hlo.Layout((0, 1)), (1, (0,)): "{0,1}"}, {(1,): "{0,1}"})
    header = str(module).splitlines()[0]
    assert "{(f32[2,3]{0,1}, (f32[4,5]{0,1}, s32[]))->(f32[2,3]{1,0}, f32[4,5]{0,1})}" in header
    assert [i.opcode for i in module.entry].count("copy") == 3
    assert str(module.entry["y"]) == "y = f32[2,3]{1,0} sine(copy)"
    sound(module)


def test_layouts_that_do_not_fit_are_refused() -> None:
    module = hlo.parse(SCHEDULED)
    with pytest.raises(hlo.EditError, match="has no parameter 7"):
        rewrite.change_entry_layout(module, {7: "{0,1}"})
    with pytest.raises(hlo.EditError, match=r"\{0,1,2\} is not a layout for f32\[2,3\] in x"):
        rewrite.change_entry_layout(module, {(1, (0,)): "{0,1}", 0: "{0,1,2}"})
    with pytest.raises(hlo.EditError, match="has no element"):
        rewrite.change_entry_layout(module, results={(5,): "{0,1}"})
    assert str(module) == SCHEDULED


# ---- order

ORDER = (
    "ENTRY e { x = f32[] parameter(0)  a = f32[] sine(x)  b = f32[] cosine(x)  c = f32[] abs(a), control-predecessors={b}"
    "  d = f32[] negate(x)  ROOT r = f32[] add(c, d) }"
)


def test_neighbours() -> None:
    entry = hlo.parse(ORDER).entry
    walk = [entry["x"]]
    while (following := rewrite.next_instruction(walk[-1])) is not None:
        walk.append(following)
    assert tuple(walk) == entry.instructions
    back = [entry.root]
    while (before := rewrite.previous_instruction(back[-1])) is not None:
        back.append(before)
    assert tuple(reversed(back)) == entry.instructions


def test_moving_behind() -> None:
    module = hlo.parse(ORDER)
    entry = module.entry
    rewrite.move_after(entry["a"], entry["b"])
    rewrite.move_after(entry["a"], entry["b"])  # it stands there already
    assert [i.name for i in entry] == ["x", "b", "a", "c", "d", "r"]
    rewrite.move_after(entry["d"], entry["x"])
    assert [i.name for i in entry] == ["x", "d", "b", "a", "c", "r"]
    for name, other in (("a", "c"), ("x", "a"), ("b", "c"), ("c", "r"), ("r", "x")):
        with pytest.raises(hlo.EditError):
            rewrite.move_after(entry[name], entry[other])
    assert [i.name for i in entry] == ["x", "d", "b", "a", "c", "r"]
    sound(module)


def test_moving_behind_the_last() -> None:
    module = hlo.parse(
        "ENTRY e { x = f32[] parameter(0)  a = f32[] sine(x)  ROOT r = f32[] abs(x)  b = f32[] cosine(x) }"
    )
    rewrite.move_after(module.entry["a"], module.entry["b"])
    assert [i.name for i in module.entry] == ["x", "r", "b", "a"]
    sound(module)


def test_dependence() -> None:
    entry = hlo.parse(ORDER).entry
    needs = {(a.name, b.name) for a in entry for b in entry if a is not b and rewrite.depends_on(a, b)}
    assert needs == {
        ("a", "x"), ("b", "x"), ("c", "x"), ("c", "a"), ("c", "b"), ("d", "x"),
        ("r", "x"), ("r", "a"), ("r", "b"), ("r", "c"), ("r", "d"),
    }  # fmt: skip
    assert rewrite.depends_on(entry["a"], entry["a"])


def test_replacing_keeps_shardings() -> None:
    module = hlo.parse(
        "ENTRY e { x = f32[4] parameter(0)  a = f32[4] sine(x), sharding={devices=[2]<=[2]}"
        "  b = f32[4] cosine(x), sharding={replicated}  ROOT r = f32[4] abs(a) }"
    )
    entry = module.entry
    before = str(module)
    assert not rewrite.replace_preserving_sharding(entry["a"], entry["b"])
    assert str(module) == before
    new = rewrite.Builder(entry, entry["a"]).tanh(entry["x"])
    assert rewrite.replace_preserving_sharding(entry["a"], new)
    assert str(new.sharding) == "{devices=[2]<=[2]}"
    assert "a" not in entry


# ---- computations of another module


def test_importing_a_computation() -> None:
    """With what it calls, free names, free channels, and frames as file and line; the source stays."""
    text = """HloModule library

FileNames
1 "model.py"

FunctionNames
1 "loss"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=3 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }

total {
  p = f32[4]{0} parameter(0)
  one = f32[4]{0} all-reduce(p), channel_id=1, replica_groups={}, to_apply=add, metadata={op_name="psum" stack_frame_id=1}
  two = f32[4]{0} all-reduce(one), channel_id=2, replica_groups={}, to_apply=add, control-predecessors={one}
  ROOT n = f32[4]{0} negate(two)
}

ENTRY e { x = f32[4]{0} parameter(0)  ROOT c = f32[4]{0} call(x), to_apply=total }
"""
    source = hlo.parse(text)
    target = hlo.parse(
        "add { q = f32[4]{0} parameter(0)  ROOT c = f32[4]{0} abs(q) }\n"
        "ENTRY e { x = f32[4]{0} parameter(0)\n"
        "  r = f32[4]{0} all-to-all(x), channel_id=1, dimensions={0}, replica_groups={{0}}\n"
        "  ROOT c.1 = f32[4]{0} call(r), to_apply=add }"
    )
    (total,) = [c for c in source.computations if c.name == "total"]
    copy = rewrite.import_computation(target, total)
    call = rewrite.Builder.before(target.entry.root).call(target.entry["x"], to_apply=copy)
    target.entry.root.replace_with(call)
    assert str(source) == text
    assert [c.name for c in target.computations] == ["add", "add.1", "total", "e"]
    one, two = (i for i in copy if i.opcode == "all-reduce")
    assert (one.attributes["channel_id"], two.attributes["channel_id"]) == (2, 3)
    assert one.called_computations[0].name == "add.1"
    assert two.control_predecessors == (one,)
    assert str(one.metadata) == '{op_name="psum" source_file="model.py" source_line=7 source_column=3}'
    sound(target)


def test_importing_from_every_module_of_the_corpus() -> None:
    """Entries with all that they call, into an empty program: right wherever the source is."""
    done = 0
    for path in support.corpus_files(("cpu", "gpu")):
        if len(support.read_text(path)) > 40_000:
            continue
        source = hlo.load(path)
        if any(d.severity is hlo.Severity.ERROR for d in hlo.verify(source)):
            continue
        target = hlo.parse("ENTRY only { ROOT x = f32[] parameter(0) }")
        copy = rewrite.import_computation(target, source.entry, "imported")
        assert copy.name == "imported"
        assert len(copy) == len(source.entry)
        assert integrity.problems(target) == []
        done += 1
    assert done > 5


# ---- anonymous modules


def test_an_anonymous_module_says_nothing() -> None:
    secret = """HloModule secret_plan, frontend_attributes={arg_layout_modes="default",note="secret"}

FileNames
1 "/home/secret/model.py"

FunctionNames
1 "secret_function"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=3 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

secret_body { secret_p = f32[20] parameter(0)  ROOT secret_n = f32[20] negate(secret_p) }

ENTRY secret_main {
  secret_x = f32[20] parameter(0), metadata={op_name="secret" stack_frame_id=1}, sharding={replicated metadata={op_name="s"}}
  secret_w = f32[20] constant({7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7})
  two = f32[2] constant({2, 3})
  call = f32[20] call(secret_x), to_apply=secret_body, frontend_attributes={who="secret"}
  cc = f32[20] custom-call(call), custom_call_target="secret_kernel", backend_config="secret config"
  sum = f32[20] add(cc, secret_w)
  ROOT t = (f32[20], f32[2]) tuple(sum, two)
}
"""
    module = hlo.parse(secret)
    result = Anonymize(targets=True).run(module)
    text = str(module)
    assert "secret" not in text
    assert "7, 7" not in text
    assert "constant({2, 3})" in text
    assert 'arg_layout_modes="default"' in text
    assert "sharding={replicated}" in text
    assert set(result.statistics) == {"metadata", "notes", "constants", "targets", "names"}
    assert not Anonymize(targets=True).run(module).changed
    sound(module)


# ---- outlined computations stand on lines of their own


@pytest.mark.parametrize("between", ["\n\n", "\n", " ", ""])
@pytest.mark.parametrize("before", ["HloModule m\n\n", ""])
def test_outlined_computations_stand_apart(before: str, between: str) -> None:
    """Whatever stands between the computations of the text, and also for several new ones in a row."""
    text = (
        f"{before}first {{ p = f32[4] parameter(0)  ROOT n = f32[4] sine(p) }}{between}"
        "ENTRY e {\n  x = f32[4] parameter(0)\n  c = f32[4] call(x), to_apply=first\n  a = f32[4] exponential(c)\n"
        "  b = f32[4] negate(a)\n  ROOT d = f32[4] add(b, x)\n}\n"
    )
    module = hlo.parse(text)
    rewrite.outline([module.entry["a"]], "softmax_region")
    rewrite.outline([module.entry["b"]], "other_region")
    for name in ("softmax_region", "other_region"):
        line = next(line for line in str(module).splitlines() if f"{name} {{" in line)
        assert line == f"{name} {{"
    assert "\n\n\n\n" not in str(module)
    sound(module)


# ---- loops


def loop(rounds: int, body: str = "add(n, one)") -> str:
    return (
        "sum { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT c = s32[] add(a, b) }\n"
        "body { s = (s32[], s32[]) parameter(0)  n = s32[] get-tuple-element(s), index=0  one = s32[] constant(1)\n"
        f"  next = s32[] {body}  v = s32[] get-tuple-element(s), index=1  twice = s32[] add(v, v)\n"
        "  all = s32[] all-reduce(twice), channel_id=1, replica_groups={}, to_apply=sum\n"
        "  ROOT t = (s32[], s32[]) tuple(next, all) }\n"
        "cond { s = (s32[], s32[]) parameter(0)  n = s32[] get-tuple-element(s), index=0\n"
        f"  limit = s32[] constant({rounds})  ROOT p = pred[] compare(n, limit), direction=LT }}\n"
        "ENTRY e { z = s32[] constant(0)  x = s32[] parameter(0)  i = (s32[], s32[]) tuple(z, x)\n"
        "  w = (s32[], s32[]) while(i), condition=cond, body=body  ROOT r = s32[] get-tuple-element(w), index=1 }"
    )


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_loops_are_written_out(rounds: int) -> None:
    """As many copies as there are rounds, each collective with a channel of its own."""
    module = hlo.parse(loop(rounds))
    assert UnrollLoops().run(module).statistics == (
        {"loops": 1, "rounds": rounds} if rounds else {"loops": 1}
    )
    assert all(i.opcode != "while" for i in module.entry)
    channels = [i.attributes["channel_id"] for i in module.entry if i.opcode == "all-reduce"]
    assert len(set(channels)) == len(channels) == rounds
    rewrite.Pipeline(rewrite.parse_passes("tuple-simplifier,dce")).run(module)
    sound(module)


def test_loops_that_stay() -> None:
    """Longer ones, larger ones, and those whose end is not known."""
    for text, options in (
        (loop(17), {}),
        (loop(3), {"max_instructions": 20}),
        (loop(3, "multiply(n, one)"), {}),
    ):
        module = hlo.parse(text)
        assert not UnrollLoops(**options).run(module).changed
        assert str(module) == text


def test_loops_inside_of_loops_are_written_out() -> None:
    (path,) = [p for p in (support.DATA / "semantics").iterdir() if p.name.startswith("nested_loops")]
    module = hlo.load(path)
    known = sum(i.opcode == "while" and (trip_count(i) or 99) <= 8 for i in module.instructions())
    assert UnrollLoops(max_trips=8).run(module).statistics["loops"] == known > 1
    sound(module)


# ---- collectives

SUMS = """HloModule m

sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
sum2 { d = f32[] parameter(0)  e = f32[] parameter(1)  ROOT f = f32[] add(d, e) }
most { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] maximum(a, b) }

ENTRY e {
  x = f32[4] parameter(0)
  y = f32[2] parameter(1)
  a = f32[4] all-reduce(x), channel_id=1, replica_groups={{0,1}}, to_apply=sum
  b = f32[2] all-reduce(y), channel_id=2, replica_groups={{0,1}}, to_apply=sum2
  n = f32[4] negate(a)
  c = f32[4] all-reduce(n), channel_id=3, replica_groups={{0,1}}, to_apply=sum
  other = f32[4] all-reduce(x), channel_id=4, replica_groups={{0},{1}}, to_apply=sum
  max = f32[4] all-reduce(x), channel_id=5, replica_groups={{0,1}}, to_apply=most
  nochannel = f32[4] all-reduce(x), replica_groups={{0,1}}, to_apply=sum
  d = f32[2] all-reduce(y), channel_id=6, replica_groups={{0,1}}, to_apply=sum
  ROOT t = (f32[4], f32[2], f32[4], f32[4], f32[4], f32[4], f32[2]) tuple(n, b, c, other, max, nochannel, d)
}
"""


def test_collectives_that_are_alike_become_one() -> None:
    """The sums of one pair of devices that do not need each other; all others stay."""
    module = hlo.parse(SUMS)
    assert CombineCollectives().run(module).statistics == {"combined": 3, "made": 1}
    kept = [i.name for i in module.entry if i.opcode == "all-reduce"]
    assert kept == ["all-reduce", "c", "other", "max", "nochannel"]
    new = module.entry["all-reduce"]
    assert str(new.shape) == "(f32[4], f32[2], f32[2])"
    assert [o.name for o in new.operands] == ["x", "y", "y"]
    assert not rewrite.depends_on(new, module.entry["c"])
    sound(module)


def test_collectives_that_need_each_other_in_turns_do_not_become_a_circle() -> None:
    """a needs b over another kind, and the other way round: joining both pairs would make a circle."""
    module = hlo.parse(
        "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }\n"
        "max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] maximum(a, b) }\n"
        "ENTRY e { x = f32[4] parameter(0)  y = f32[4] parameter(1)\n"
        "a1 = f32[4] all-reduce(x), replica_groups={}, to_apply=sum\n"
        "b1 = f32[4] all-reduce(a1), replica_groups={}, to_apply=max\n"
        "b2 = f32[4] all-reduce(y), replica_groups={}, to_apply=max\n"
        "a2 = f32[4] all-reduce(b2), replica_groups={}, to_apply=sum\n"
        "ROOT t = (f32[4], f32[4]) tuple(b1, a2) }"
    )
    CombineCollectives().run(module)
    sound(module)
    for one in module.entry:
        for other in module.entry:
            assert one is other or not (rewrite.depends_on(one, other) and rewrite.depends_on(other, one))


def test_bounds_of_what_becomes_one() -> None:
    lines = [f"r{n} = f32[4] all-reduce(x), replica_groups={{}}, to_apply=sum" for n in range(7)]
    text = (
        "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }\n"
        "ENTRY e { x = f32[4] parameter(0)\n" + "\n".join(lines) + "\n"
        f"ROOT t = ({', '.join(['f32[4]'] * 7)}) tuple({', '.join(f'r{n}' for n in range(7))}) }}"
    )
    for options, counts in (
        ({"max_count": 3}, {"combined": 6, "made": 2}),
        ({"max_bytes": 32}, {"combined": 6, "made": 3}),
        ({"max_bytes": 16}, {}),
        ({}, {"combined": 7, "made": 1}),
    ):
        module = hlo.parse(text)
        assert CombineCollectives(**options).run(module).statistics == counts
        sound(module)


# ---- calls taken apart beside what shares buffers, and calls that run asynchronously


def _callers(instruction: hlo.Instruction) -> tuple[hlo.Instruction, ...]:
    return instruction.computation.callers if instruction.computation is not None else ()


def _near_aliases(module: hlo.Module) -> list[str]:
    """The fusions and calls that give to, take from, or are an operation whose result shares a buffer with an operand."""
    found: dict[str, None] = {}
    for i in module.instructions():
        if "output_to_operand_aliasing" in i.attributes:
            around = [n for o in (*i.operands, *i.users, i) for n in (o, *o.operands)]
            if i.computation is not None:
                around += [outer for caller in i.computation.callers for outer in (caller, *_callers(caller))]
            found |= {n.name: None for n in around if n.opcode in ("fusion", "call")}
    return list(found)


@pytest.mark.parametrize(
    "file",
    [
        "tpu/sharded_sort_fft_conv.v5e_2x2x1.after_optimizations.txt",
        "tpu/int8_matmul.v5e_2x2x1.after_optimizations.txt",  # fusions inside of fusions
        "tpu/mlp_train.tpu7x_2x2x1.after_optimizations.txt",
        "cpu/eig_schur_expm.cpu_1.after_optimizations.txt",
    ],
)
def test_inlining_beside_shared_buffers(file: str) -> None:
    """What shared a buffer with an operand still fits it (V609 otherwise), or the edit is refused."""
    module = hlo.parse(support.read_text(support.CORPUS / file).decode())
    names = _near_aliases(module)
    assert names
    done = 0
    for name in names[:6]:
        copy = module.clone()
        call = copy.find(name)
        assert isinstance(call, hlo.Instruction)
        try:
            rewrite.inline(call)
        except hlo.EditError:
            assert str(copy) == str(module)
        else:
            done += 1
            sound(copy)
    assert done


def test_the_call_inliner_leaves_asynchronous_calls_alone() -> None:
    module = hlo.parse(
        "other { p = f32[4] parameter(0)  ROOT s = f32[4] sine(p) }\n"
        "ENTRY e { d = f32[4] parameter(0)  c = ((f32[4]), f32[4]) call-start(d), to_apply=other\n"
        "  x = f32[4] call(d), to_apply=other  y = f32[4] call-done(c)  ROOT r = f32[4] add(x, y) }"
    )
    result = rewrite.make_pass("call-inliner").run(module)
    assert result.changed
    assert [i.opcode for i in module.entry] == ["parameter", "async-start", "sine", "async-done", "add"]
    sound(module)


def test_short_spellings_end_with_what_they_name() -> None:
    """Another computation for an asynchronous start: its update and done no longer say `call-`."""
    module = hlo.load(support.CORPUS / "handmade" / "async_start.txt")
    start = module.find("s")
    assert isinstance(start, hlo.Instruction)
    start.attributes["calls"] = clone_computation(start.called_computations[0])
    call = start.called_computations[0].root
    assert call.opcode == "call"
    rewrite.inline(call)
    assert str(module.find("u")).endswith("async-update(%s)")
    sound(module)

"""Random edits with right and wrong values: what is accepted reads back equal and right, what is refused changes nothing.

`python -m tests.fuzz.edits FOLDER --count N` makes N of them on the modules of a folder, of files up to `--size` characters,
on lazily read ones too, and prints each that breaks the promise.
"""

from __future__ import annotations

import argparse
import contextlib
import lzma
import random
import sys
import tempfile
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hlotext as hlo
from hlotext import rewrite
from hlotext.edit import integrity
from hlotext.edit.cloning import clone_computation, clone_instruction
from hlotext.ir.nodes import compare
from hlotext.ir.nodes.module import ENTRY_LAYOUT
from hlotext.ir.tables.attributes import ATTRIBUTES, HEADER_ATTRIBUTES
from hlotext.ir.tables.opcode import Printing
from hlotext.ir.tables.opcodes import OPCODES, allowed_attributes
from hlotext.ir.values.raw_value import RawValue
from tests import support
from tests.random_edits import Before, without_defaults

NAMES = (
    "a",
    "b.1",
    "%c",
    "x-y",
    "1 bad name",
    "x{y",
    "a b,c",
    "",
    "true",
    "f32",
    "__x",
    "__xla_x",
    "ROOT",
    "ENTRY",
    "é",
    "a\n",
    "a:",
    "parameter",
    "constant",
    "add",
    "inf",
    "nan",
    "-1",
    ".x",
    "x" * 300,
    "a=",
    "HloModule",
    "_",
    "0x1",
    "s32.1",
    "{",
    "a%b",
)
FOREIGN: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    2,
    7,
    -1,
    2**31,
    2**63,
    10**30,
    1.5,
    float("nan"),
    float("inf"),
    -0.0,
    1e-300,
    "",
    "a",
    "{}",
    "{0}",
    "{replicated}",
    "kLoop",
    "LT",
    "{1,0}",
    "{{0,1}}",
    'a"b',
    "a\nb",
    "\ud800",
    "\x00",
    "é",
    '{"a":1}',
    "{",
    "}",
    (),
    (0,),
    (1, 0),
    (0, 0),
    (-1,),
    (1.5,),
    ("a",),
    [],
    [1],
    [0, 1],
    [[0, 1]],
    [[0], [1]],
    (True,),
    {},
    {"a": "b"},
    {"a": 1},
    {"a": True},
    {1: 2},
    {"a b": "c"},
    set(),
    b"x",
    object(),
    range(3),
    3 + 1j,
    (2**40,),
    ((),),
    [None],
    RawValue("{x}"),
    RawValue("1"),
    RawValue("a, b=c"),
)
TEXTS = (
    "f32[2]",
    "f32[]",
    "s32[4]{0}",
    "(f32[2], s32[])",
    "token[]",
    "f32[2,3]{0,1}",
    "f32[2",
    "bf16[8,128]{1,0:T(8,128)(2,1)}",
    "x",
    "f32[-1]",
    "f32[<=4]",
    "f32[99999999999999999999]",
    "pred[]",
    "()",
    "",
)
THREADS = ("main", "host", 'a"b', "", "a b", "x\n", 3, None)


class Fuzzer:
    """Makes random edits of one module."""

    def __init__(self, module: hlo.Module, chance: random.Random, pool: dict[str, list[Any]]) -> None:
        self.module = module
        self.chance = chance
        self.pool = pool

    # ---- nodes and values

    def computation(self) -> hlo.Computation:
        return self.chance.choice(self.module.computations)

    def instruction(self) -> hlo.Instruction:
        computation = self.computation()
        return self.chance.choice(computation.instructions)

    def neighbour(self, instruction: hlo.Instruction) -> hlo.Instruction:
        """Mostly one of the same computation, and often of the same shape."""
        if instruction.computation is None or self.chance.random() < 0.1:
            return self.instruction()
        others = instruction.computation.instructions
        if self.chance.random() < 0.5:
            others = tuple(i for i in others if str(i.shape) == str(instruction.shape))
        return self.chance.choice(others)

    def any_value(self, name: str) -> Any:
        """A value for an attribute: one that some module has, its text, a list of it, or something foreign."""
        chance = self.chance.random()
        found = self.pool.get(name)
        if found and chance < 0.55:
            value = self.chance.choice(found)
            if chance < 0.1:
                return str(value) if not isinstance(value, tuple) else list(value)
            return value
        if chance < 0.65 and self.pool:
            return self.chance.choice(self.pool[self.chance.choice(list(self.pool))])
        if chance < 0.7:
            return self.computation()
        if chance < 0.75:
            return (self.instruction(),)
        return self.chance.choice(FOREIGN)

    def shape(self) -> Any:
        chance = self.chance.random()
        if chance < 0.3:
            return self.chance.choice(TEXTS)
        if chance < 0.4:
            return self.chance.choice(FOREIGN)
        shape = self.instruction().shape
        if shape is not None and shape.is_array and chance < 0.7:
            sizes = [self.chance.choice((size, size, 1, 2, size + 1)) for size in shape.dimensions]
            return hlo.Shape(shape.element_type, tuple(sizes), layout=shape.layout)
        return shape

    # ---- the edits

    def rename(self) -> None:
        self.instruction().name = self.chance.choice(NAMES)

    def rename_computation(self) -> None:
        self.computation().name = self.chance.choice(NAMES)

    def rename_module(self) -> None:
        self.module.name = self.chance.choice((*NAMES, 3))  # type: ignore[assignment]

    def set_attribute(self) -> None:
        instruction = self.instruction()
        row = OPCODES.get(instruction.opcode)
        names = [*instruction.attributes, *(allowed_attributes(row) if row is not None else ())]
        if not names or self.chance.random() < 0.1:
            names = [*ATTRIBUTES, "dimensoins", "x", "a b", "a=b"]
        name = self.chance.choice(names)
        instruction.attributes[name] = self.any_value(name)

    def drop_attribute(self) -> None:
        instruction = self.instruction()
        if instruction.attributes:
            del instruction.attributes[self.chance.choice(list(instruction.attributes))]

    def change(self) -> None:
        instruction = self.instruction()
        parts: dict[str, Any] = {}
        if self.chance.random() < 0.4:
            parts["opcode"] = self.chance.choice((*OPCODES, "nope"))
        if self.chance.random() < 0.4:
            parts["shape"] = self.shape()
        if self.chance.random() < 0.4:
            parts["operands"] = self.operands(instruction)
        if self.chance.random() < 0.4:
            attributes = dict(instruction.attributes)
            for name in self.chance.sample(list(ATTRIBUTES), 2):
                attributes[name] = self.any_value(name)
            parts["attributes"] = self.chance.choice((attributes, {}, 3))
        instruction.change(**parts, typed=self.chance.random() < 0.8)

    def operands(self, instruction: hlo.Instruction) -> Any:
        operands = [self.neighbour(operand) for operand in instruction.operands]
        return self.chance.choice(
            (operands, operands[1:], [*operands, self.instruction()], (), "ab", None, [3])
        )

    def set_opcode(self) -> None:
        same = [
            row.name
            for row in OPCODES.values()
            if row.arity == OPCODES.get(self.instruction().opcode, row).arity
        ]
        self.instruction().opcode = self.chance.choice((*same, "nope", "all-to-all-start", "", 3))  # type: ignore[assignment]

    def set_shape(self) -> None:
        self.instruction().shape = self.shape()

    def set_operands(self) -> None:
        instruction = self.instruction()
        instruction.operands = self.operands(instruction)

    def set_literal(self) -> None:
        constants = [i for i in self.module.instructions() if i.opcode == "constant"]
        instruction = (
            self.chance.choice(constants) if constants and self.chance.random() < 0.8 else self.instruction()
        )
        given = [i.literal for i in constants]
        instruction.literal = self.chance.choice((*given, *FOREIGN, "1", "{1, 2}", "nan", "{...}"))

    def renumber(self) -> None:
        parameters = [i for i in self.module.instructions() if i.opcode == "parameter"]
        one = (
            self.chance.choice(parameters)
            if parameters and self.chance.random() < 0.9
            else self.instruction()
        )
        one.parameter_number = self.chance.choice((0, 1, 2, -1, True, "1", None, 10**20))  # type: ignore[assignment]

    def swap_parameters(self) -> None:
        parameters = self.computation().parameters
        if len(parameters) > 1:
            with self.module.transaction():
                first, second = self.chance.sample(parameters, 2)
                one, other = first.parameter_number, second.parameter_number
                first.parameter_number, second.parameter_number = other, one  # type: ignore[assignment]

    def replace_operand(self) -> None:
        instruction = self.instruction()
        if instruction.operands:
            number = self.chance.randrange(-1, len(instruction.operands))
            instruction.replace_operand(number, self.neighbour(instruction.operands[number]))

    def replace_uses(self) -> None:
        old = self.instruction()
        old.replace_all_uses_with(self.neighbour(old))

    def replace_with(self) -> None:
        old = self.instruction()
        old.replace_with(self.neighbour(old))

    def erase(self) -> None:
        self.instruction().erase()

    def erase_dead(self) -> None:
        dead = [i for i in self.module.instructions() if not (i.users or i.is_root)]
        if dead:
            self.chance.choice(dead).erase()

    def move(self) -> None:
        instruction = self.instruction()
        instruction.move_before(self.neighbour(instruction))

    def remove_some(self) -> None:
        computation = self.computation()
        computation.remove_all(self.chance.sample(computation.instructions, min(2, len(computation))))

    def new_root(self) -> None:
        computation = self.computation()
        if computation.instructions:  # empty in the middle of a transaction
            computation.root = self.neighbour(computation.root)

    def set_thread(self) -> None:
        self.computation().execution_thread = self.chance.choice(THREADS)  # type: ignore[assignment]

    def add(self) -> None:
        like = self.instruction()
        operands = tuple(self.neighbour(operand) for operand in like.operands)
        new = hlo.Instruction(
            self.chance.choice((f"new.{self.chance.randrange(99)}", *NAMES)), self.chance.choice((like.opcode, "negate")),
            self.chance.choice((like.shape, None)), operands, dict(like.attributes), like.literal,
        )  # fmt: skip
        self.computation().add(new, self.chance.choice((None, self.instruction())))

    def build(self) -> None:
        like = self.instruction()
        b = rewrite.Builder.after(like)
        new = b.op(
            self.chance.choice((like.opcode, "negate", "copy", "tuple")),
            [self.neighbour(o) for o in like.operands],
        )
        del new

    def insert_copy(self) -> None:
        old = self.instruction()
        users = old.users
        with self.module.transaction():
            new = rewrite.Builder.after(old).copy(old)
            for user in users:
                user.change(operands=[new if o is old else o for o in user.operands])

    def clone(self) -> None:
        clone_instruction(self.instruction())

    def clone_callee(self) -> None:
        callers = [i for i in self.module.instructions() if i.called_computations]
        if callers:
            caller = self.chance.choice(callers)
            name, callee = next(caller.callees())
            copy = clone_computation(callee)
            with contextlib.suppress(hlo.EditError):
                caller.attributes[name] = copy

    def add_computation(self) -> None:
        made = hlo.Computation(self.chance.choice((f"made.{self.chance.randrange(99)}", *NAMES)))
        if self.chance.random() < 0.8:
            made.add(hlo.Instruction("p", "parameter", self.instruction().shape, (), {}, 0))
        self.module.add(made, self.chance.choice((None, self.computation())))

    def remove_computation(self) -> None:
        self.module.remove(self.computation())

    def set_entry(self) -> None:
        self.module.set_entry(self.computation())

    def set_header(self) -> None:
        name = self.chance.choice((*HEADER_ATTRIBUTES, *self.module.attributes, "x", "a b"))
        self.module.attributes[name] = self.any_value(name)

    def drop_header(self) -> None:
        if self.module.attributes:
            del self.module.attributes[self.chance.choice(list(self.module.attributes))]

    def add_parameter(self) -> None:
        rewrite.add_parameter(self.computation(), self.shape(), value=lambda caller: caller.operands[0])

    def remove_parameter(self) -> None:
        computation = self.computation()
        if computation.parameters:
            rewrite.remove_parameter(computation, self.chance.randrange(len(computation.parameters)))

    def outline(self) -> None:
        computation = self.computation()
        start = self.chance.randrange(len(computation))
        rewrite.outline(computation.instructions[start : start + self.chance.randrange(1, 5)], "outlined")

    def inline(self) -> None:
        calls = [i for i in self.module.instructions() if i.opcode in ("call", "fusion")]
        if calls:
            rewrite.inline(self.chance.choice(calls))

    def change_shape(self) -> None:
        shape = self.shape()
        if isinstance(shape, hlo.Shape):
            rewrite.change_shape(self.instruction(), shape)

    def misuse(self) -> None:
        """Something else where a node is wanted."""
        foreign: Any = self.chance.choice(FOREIGN)
        one, computation = self.instruction(), self.computation()
        self.chance.choice(
            (
                lambda: one.replace_all_uses_with(foreign),
                lambda: one.replace_with(foreign),
                lambda: one.move_before(foreign),
                lambda: one.replace_operand(0, foreign),
                lambda: computation.add(foreign),
                lambda: computation.remove(foreign),
                lambda: setattr(computation, "root", foreign),
                lambda: self.module.add(foreign),
                lambda: self.module.remove(foreign),
                lambda: self.module.set_entry(foreign),
                lambda: setattr(self.module, "stack_frames", foreign),
                lambda: rewrite.add_parameter(computation, foreign),
            )
        )()

    def undo(self) -> None:
        before = str(self.module)
        with self.module.transaction() as record:
            for _ in range(3):
                with contextlib.suppress(*REFUSALS):
                    self.one()
        record.undo()
        assert str(self.module) == before, "undone, and not as before"

    def one(self) -> str:
        """One edit; its name."""
        edit = self.chance.choice(EDITS)
        edit(self)
        return edit.__name__


EDITS: tuple[Callable[[Fuzzer], None], ...] = tuple(
    value
    for name, value in vars(Fuzzer).items()
    if callable(value)
    and name
    not in ("__init__", "computation", "instruction", "neighbour", "any_value", "shape", "operands", "one")
)
REFUSALS = (hlo.EditError, IndexError)
"""How an edit is refused; IndexError where there is no such operand."""
STEPS = (Fuzzer.clone_callee, Fuzzer.undo)
"""Edits of several steps, of which the first may happen and a later one be refused."""


def pool_of(modules: list[hlo.Module]) -> dict[str, list[Any]]:
    """Values of attributes by name, as modules have them; no nodes."""
    found: dict[str, dict[Any, None]] = {}
    for module in modules:
        given = [(n, v) for i in module.instructions() for n, v in i.attributes.items()]
        for name, value in [*given, *module.attributes.items()]:
            items = value if isinstance(value, tuple) else (value,)
            if not any(isinstance(item, hlo.Computation | hlo.Instruction) for item in items):
                with contextlib.suppress(TypeError):
                    found.setdefault(name, {})[value] = None
    return {name: list(values) for name, values in found.items()}


def check(module: hlo.Module, before: Before) -> None:
    """What must hold of a module after an edit that was accepted."""
    assert not (wrong := integrity.problems(module)), wrong
    wrong = before.new(module)
    if (
        wrong and not before.mixed_precision
    ):  # the edit may have made the first tiled layout, with which precisions may mix
        wrong = Before(before.found, Before.of(module).mixed_precision).new(module)
    assert not wrong, wrong
    again = hlo.parse(str(module))
    mine, theirs = plain(module), plain(again)
    if ENTRY_LAYOUT not in mine.attributes:
        theirs._attributes.pop(
            ENTRY_LAYOUT, None
        )  # a header that is printed anew shows the layout that follows
    difference = compare.difference(mine, theirs)
    assert difference is None, difference


DEFAULTS = {"replica_count": 1, "num_partitions": 1, "is_scheduled": False, "alias_passthrough_params": False}
"""Attributes of the header that are not printed where they say what their absence says."""


def plain(module: hlo.Module) -> hlo.Module:
    """A copy without what says what its absence says."""
    copy = without_defaults(module)
    for instruction in copy.instructions():
        attributes = instruction._attributes = dict(instruction._attributes)
        if instruction.sharding is not None and instruction.shape is not None:
            attributes["sharding"] = instruction.sharding.for_shape(instruction.shape)
        row = OPCODES.get(instruction.opcode)
        uses = allowed_attributes(row) if row is not None else {}
        for name, value in list(attributes.items()):
            if (
                name in uses
                and uses[name].printed is Printing.IF_NOT_EMPTY
                and str(value) in ("", "{}", '""')
            ):
                del attributes[name]
        shape = instruction._attributes.get("outfeed_shape")
        taken = instruction.operands[0].shape if instruction.operands else None
        if shape and taken and shape.with_default_layout() == taken.with_default_layout():
            del attributes["outfeed_shape"]  # what its absence stands for
        groups = instruction._attributes.get("replica_groups")
        if groups is not None and not groups.group_count:  # always printed, and empty where absent
            del attributes["replica_groups"]
    copy._attributes = {
        name: value
        for name, value in copy._attributes.items()
        if DEFAULTS.get(name) != value
        and not (name.startswith("allow_spmd") and value == (False,))
        and str(value) not in ("{}", "{  }", "{\n}", "()")
    }
    return copy


def burst(
    module: hlo.Module, seed: int, count: int, pool: dict[str, list[Any]], counts: Counter[str]
) -> None:
    """Some edits of one module, one behind the other, each checked. Raises AssertionError."""
    fuzzer = Fuzzer(module, random.Random(seed), pool)
    before = Before.of(module)
    for _ in range(count):
        text = str(module)
        edit = fuzzer.chance.choice(EDITS)
        try:
            edit(fuzzer)
        except REFUSALS:
            counts["refused"] += 1
            if edit not in STEPS:
                assert str(module) == text, f"{edit.__name__} was refused and changed something"
                assert not (wrong := integrity.problems(module)), f"{edit.__name__} was refused: {wrong}"
                continue
        else:
            counts["accepted" if str(module) != text else "idle"] += 1
        counts[edit.__name__] += 1
        try:
            if edit in (Fuzzer.drop_header, Fuzzer.set_header):
                before = Before.of(module) if not before.new(module) else before
            check(module, before)
        except AssertionError as error:
            raise AssertionError(f"{edit.__name__}: {error}") from None
        except ValueError as error:
            raise AssertionError(f"{edit.__name__}: what is printed cannot be read: {error}") from None


def modules_of(folder: Path, size: int) -> Iterator[tuple[str, hlo.Module]]:
    """The modules of a folder's texts that are not longer, and of a line of every fourth, as people paste them."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        try:
            text = support.read_text(path)
            if len(text) > size or b"ENTRY" not in text:
                continue
            module = hlo.parse(text)
        except (ValueError, OSError, EOFError, lzma.LZMAError):
            continue
        name = str(path.relative_to(folder))
        yield name, module
        number = zlib.crc32(text)
        if number % 4 == 0:
            line = str(module.entry.instructions[number // 4 % len(module.entry)])
            with contextlib.suppress(ValueError):  # it calls what stands elsewhere
                if not integrity.problems(pasted := hlo.parse(line)):
                    yield f"{name}: {line}", pasted


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=1000, help="edits in all")
    parser.add_argument("--burst", type=int, default=10, help="edits of one module, one behind the other")
    parser.add_argument("--size", type=int, default=8000, help="longest text, in bytes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lazy", action="store_true", help="read each module lazily")
    parser.add_argument("--shown", type=int, default=10, help="failures that are printed")
    options = parser.parse_args(arguments)
    found = list(modules_of(options.folder, options.size))
    if not found:
        print(f"no modules of up to {options.size} bytes in {options.folder}")
        return 2
    pool = pool_of([module for _, module in found])
    counts: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    for number in range(-(-options.count // options.burst)):
        seed = options.seed + number
        name, module = found[seed % len(found)]
        with tempfile.NamedTemporaryFile("w", suffix=".txt", errors="surrogateescape") as file:
            if options.lazy:
                file.write(str(module))
                file.flush()
                edited = hlo.load(file.name, lazy=True)
            else:
                edited = module.clone()
            try:
                burst(edited, seed, options.burst, pool, counts)
            except Exception as error:
                foreign = "" if isinstance(error, AssertionError) else traceback.format_exc()
                key = f"{type(error).__name__}: {str(error)[:60]}"
                failures[key] += 1
                if failures[key] <= 1 and len(failures) <= options.shown:
                    print(
                        f"--seed {seed} --count {options.burst}: {name}: {error}\n{foreign[-1500:]}",
                        flush=True,
                    )
    print(
        f"{counts['accepted']} accepted, {counts['refused']} refused, {counts['idle']} without effect;",
        end=" ",
    )
    print(f"{sum(failures.values())} failures of {len(failures)} kinds")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

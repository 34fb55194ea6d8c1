"""How time grows with many copies of one small text: `python -m tests.bench.copies [NAME ...] [--form FORM]`.

Each kind of the tiny texts that the fuzzers start from (one for each set of opcodes and types of results) is copied n and 4n
times into one entry: side by side into a tuple, one behind another, or each in a computation of its own that is called. Then
every command, pass and print (`tests.stages`), or those with NAME in their names, is measured as in `tests.bench.linearity`;
the rows whose exponent is over the limit are printed. So a type, a layout or an opcode that no kind of `tests.bench.kinds`
holds is measured too.
"""

from __future__ import annotations

import argparse
import functools
import gc
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

import hlotext as hlo
from tests import stages
from tests.bench.linearity import LIMIT, Row, seconds
from tests.fuzz import seeds

N = 60
_NAME = re.compile(r"%([\w.\-]+)")


class _Text:
    """The op lines of a module's entry, to be copied."""

    def __init__(self, module: hlo.Module) -> None:
        self.entry = module.entry
        self.parameters = self.entry.parameters
        if self.entry.root in self.parameters:
            raise ValueError("nothing is computed")
        self.others = [i for i in self.entry if i not in self.parameters]
        self.names = {i.name for i in self.others}
        self.head = f"HloModule m{', is_scheduled=true' if module.is_scheduled else ''}\n\n"
        self.head += "".join(
            f"{c}\n\n" for c in module.computations if c is not self.entry and not c.is_printed_inline
        )

    def lines(self, suffix: str, given: dict[str, str] | None = None) -> Iterator[str]:
        """All but the parameters under other names; `given` are names of operands to be taken instead."""
        names = {**(given or {}), **{name: f"{name}{suffix}" for name in self.names}}
        for i in self.others:
            yield _renamed(_line(i), names)

    def module(self, lines: list[str], root: str, callees: str = "") -> str:
        body = [*map(_line, self.parameters), *lines, f"ROOT {root}"]
        return f"{self.head}{callees}ENTRY %main {{\n" + "".join(f"  {line}\n" for line in body) + "}\n"

    def tuple_of(self, names: list[str]) -> str:
        return f"%all = ({', '.join([str(self.entry.root.shape)] * len(names))}) tuple({', '.join(names)})"


def _renamed(text: str, names: dict[str, str]) -> str:
    return _NAME.sub(lambda m: f"%{names.get(m[1], m[1])}", text)


def _line(i: hlo.Instruction) -> str:
    return str(i).strip().removeprefix("ROOT ")


def side_by_side(text: _Text, n: int) -> str:
    """All results are elements of one tuple."""
    lines = [line for k in range(n) for line in text.lines(f".k{k}")]
    return text.module(lines, text.tuple_of([f"%{text.entry.root.name}.k{k}" for k in range(n)]))


def in_a_row(text: _Text, n: int) -> str:
    """Each copy takes what the one before gives. Raises ValueError where no parameter is of that type."""
    root = text.entry.root
    taken = [p for p in text.parameters if str(p.shape) == str(root.shape) and p.users]
    if not taken:
        raise ValueError("nothing of its own type is taken")
    lines: list[str] = []
    for k in range(n):
        lines += text.lines(f".k{k}", {taken[0].name: f"{root.name}.k{k - 1}"} if k else None)
    return text.module(lines, f"%last = ({root.shape}) tuple(%{root.name}.k{n - 1})")


def called(text: _Text, n: int) -> str:
    """Each copy is a computation. Raises ValueError where the text calls some itself."""
    if any(i.called_computations for i in text.others):
        raise ValueError("computations would have two callers")
    own = {i.name for i in text.entry}
    body = "".join(f"  {str(i).strip()}\n" for i in text.entry)
    callees = [f"%f{k} {{\n{_renamed(body, {name: f'{name}.c{k}' for name in own})}}}\n\n" for k in range(n)]
    operands = ", ".join(f"%{p.name}" for p in text.parameters)
    calls = [f"%y{k} = {text.entry.root.shape} call({operands}), to_apply=%f{k}" for k in range(n)]
    return text.module(calls, text.tuple_of([f"%y{k}" for k in range(n)]), "".join(callees))


Form = Callable[[_Text, int], str]
FORMS: dict[str, Form] = {"side": side_by_side, "row": in_a_row, "called": called}


def kinds(form: Form) -> dict[str, _Text]:
    """The texts that can be copied so, one of each kind, by the opcodes in them and the types of their results."""
    found: dict[str, _Text] = {}
    for data in seeds.tiny():
        with suppress(hlo.HloSyntaxError, ValueError):
            module = hlo.parse(data)
            kind = " ".join(sorted({_kind(i) for i in module.entry if i.opcode != "parameter"}))
            if kind not in found:
                text = _Text(module)
                hlo.parse(form(text, 3))
                found[kind] = text
    return found


def _kind(i: hlo.Instruction) -> str:
    if i.shape is None or not i.shape.is_array:
        return i.opcode
    return f"{i.opcode}:{i.shape.element_type}{'[,]' if i.shape.rank > 1 else ''}"


def _run(stage: stages.Stage, form: Form, text: _Text, n: int) -> tuple[float, int]:
    data = form(text, n).encode("utf-8", "surrogateescape")
    stages.WRITTEN.count = 0
    return seconds(stage.run, data), len(data) + stages.WRITTEN.count


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.copies", description=__doc__)
    parser.add_argument("names", nargs="*", help="stages whose names hold one of these words")
    parser.add_argument("--form", choices=FORMS, action="append", help="only this form")
    options = parser.parse_args(arguments)
    chosen = [s for s in stages.STAGES if not options.names or any(name in s.name for name in options.names)]
    for stage in chosen:
        stage.run(seeds.tiny()[0])
    gc.freeze()
    for name in options.form or FORMS:
        form, rows, over = FORMS[name], 0, 0
        found = kinds(form)
        for kind, text in found.items():
            for stage in chosen:
                row = Row(stage.name, kind, N, functools.partial(_run, stage, form, text))
                row.measure()
                rows += 1
                if row.exponent > LIMIT:
                    over += 1
                    print(row, flush=True)
        print(f"{name}: {len(found)} kinds, {rows:,} rows, {over} over {LIMIT}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

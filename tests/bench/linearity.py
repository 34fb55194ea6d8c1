"""How the time of reading grows with hostile texts: `python -m tests.bench.linearity [NAME...]`.

With `--stages` how the time of every command, pass, report and print (`tests.stages`), and of folders, protos and edits
(`tests.bench.others`), grows with modules that are all of one kind (`tests.bench.kinds`): the exponent from n to 4n, 1 being
linear in module and result (a style that prints the types of operands prints a wide tuple's with each of its elements).

Each row is a shape of attack at n, 2n and 4n: seconds of processor time of `parse` (which ends at the first error) and of
`parse_tolerant` (which does not), with every diagnostic written out. Growth is the time at 4n by that at n: 4 is linear.
"""

from __future__ import annotations

import argparse
import gc
import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import attrs

import hlotext as hlo
from tests.bench.kinds import MODULES, each, joined

STEPS = (1, 2, 4)
LEAST = 0.05
"""Seconds below which growth tells nothing: what reading costs besides the text."""


def _body(lines: str) -> str:
    return f"HloModule m\n\nENTRY e {{\n  p = f32[4] parameter(0)\n{lines}  ROOT r = f32[4] negate(p)\n}}\n"


def _line(right: str) -> str:
    return _body(f"  x = {right}\n")


def _call(operands: str) -> str:
    return _line(f'f32[] custom-call({operands}), custom_call_target="t"')


def _sharded(sharding: str) -> str:
    return _line(f"f32[4] negate(p), sharding={{{sharding}}}")


def _gathered(groups: str) -> str:
    return _line(f"f32[4] all-gather(p), dimensions={{0}}, replica_groups={{{groups}}}")


_AXIS, _HUGE, _REFERENCE, _PART, _PAIR = "'a#'=2", f"'a#'={2**62}", "'a#'", "'a':(1)2", 'a#="b"'
_CALLS = "custom-call(p)\n"
_GTE = "  g# = f32[4] get-tuple-element(t), index=#\n"
_OPEN_STRING = '  x = f32[4] negate(p), metadata={op_name="a}\n'
_BROKEN = "  x = f32[4 negate(p)\n"
_JUNK = "I am no HLO at all\n"
_SMALL = "{ p = f32[] parameter(0) }\n"
_START = "  s0 = ((f32[4]), f32[4], s32[]) negate-start(p)\n"
_UPDATE = "  s# = ((f32[4]), f32[4], s32[]) negate-update(s#-)\n"
_HEADER = "%f# (a: f32[) -> f32[] {\n  x = f32[] parameter(0)\n}\n"
_MODULE = "HloModule m\n\nENTRY e {\n  p = f32[] parameter(0)\n}\n\n"
_TABLE = "HloModule m\n\nFileNames\n"

SHAPES: dict[str, tuple[int, Callable[[int], str]]] = {
    # ---- depth
    "nested tuples": (20_000, lambda n: _line("(" * n + "f32[]" + ")" * n + " custom-call(p)")),
    "nested tuples, open": (20_000, lambda n: _line("(" * n + "f32[] custom-call(p)")),
    "nested literal": (50_000, lambda n: _line("f32[1] constant(" + "{" * n + "1" + "}" * n + ")")),
    "nested literal, open": (50_000, lambda n: _line("f32[1] constant(" + "{" * n)),
    "nested operands": (5_000, lambda n: _line("f32[4] " + "negate(" * n + "p" + ")" * n)),
    "nested bodies": (1_000, lambda n: _line("f32[4] " + "map(p), to_apply={ q = f32[4] " * n + "}" * n)),
    "nested config": (50_000, lambda n: _line("f32[4] negate(p), backend_config=" + "{" * n + "}" * n)),
    "nested unknown value": (50_000, lambda n: _line("f32[4] negate(p), foo=" + "({[" * n + "]})" * n)),
    "nested original value": (20_000, lambda n: _line("f32[4] negate(p), origin={" + "(" * n + ")" * n + "}")),
    # ---- single huge things
    "one huge integer": (2_000_000, lambda n: _line(f"f32[{'9' * n}] negate(p)")),
    "huge integers": (2_000, lambda n: _line(f"s64[{n}] constant({{{','.join(['9' * 900] * n)}}})")),
    "one long name": (4_000_000, lambda n: _line(f"f32[4] negate({'a' * n})")),
    "one long string": (4_000_000, lambda n: _line(f'f32[4] negate(p), metadata={{op_name="{"a" * n}"}}')),
    "a string of escapes": (100_000, lambda n: _line('f32[4] negate(p), metadata={op_name="' + "\\303" * n + '"}')),
    "one long line of junk": (25_000_000, lambda n: "HloModule m\n\nENTRY e { " + "a" * n + " }\n"),
    "one long line of op lines": (2_000, lambda n: _body(each(n, "x# = f32[4] negate(p) "))),
    "one long line of errors": (2_000, lambda n: _body(each(n, "x# = f32[4] negate(q) "))),
    "many dimensions": (5_000, lambda n: _line(f"f32[{','.join(['1'] * n)}] negate(p)")),
    "many tiles": (20_000, lambda n: _line("f32[4]{0:T" + "(8,128)" * n + "} negate(p)")),
    # ---- more than the text warrants
    "an iota of devices": (10**9, lambda n: _line(f"f32[4] negate(p), sharding={{devices=[{n}]<=[{n}]}}")),
    "a list of devices": (50_000, lambda n: _line(f"f32[4] negate(p), sharding={{devices=[{n}]{joined(n, '#')}}}")),
    "axes of a mesh": (5_000, lambda n: _sharded(f"mesh[{joined(n, _AXIS)}], replicated")),
    "axes that are named": (5_000, lambda n: _sharded(f"mesh[{joined(n, _AXIS)}], [{{{joined(n, _REFERENCE)}}}]")),
    "one axis again": (5_000, lambda n: _sharded(f"mesh['a'={2**60}], [{{{joined(n, _PART)}}}]")),
    "axes of huge sizes": (5_000, lambda n: _sharded(f"mesh[{joined(n, _HUGE)}], [{{{joined(n, _REFERENCE)}}}]")),
    "dimensions of a mesh": (5_000, lambda n: _sharded(f"mesh['a'=2], [{joined(n, '{}')}]")),
    "tile dimensions": (5_000, lambda n: _sharded(f"devices=[{joined(n, '2')}]<=[{joined(n, '2')}]")),
    "tile dimensions of huge sizes": (5_000, lambda n: _sharded(f"devices=[{joined(n, str(2**62))}]<=[4]")),
    "an iota of many dimensions": (
        5_000,
        lambda n: _sharded(f"devices=[2]<=[{joined(n, '2')}]T({joined(n, '#')})"),
    ),
    "replica groups": (20_000, lambda n: _gathered(joined(n, "{#}"))),
    "a replica group": (50_000, lambda n: _gathered("{" + joined(n, "#") + "}")),
    "branches": (5_000, lambda n: _line(f"f32[4] conditional(p), branch_computations={{{joined(n, 'f#')}}}")),
    "a window of many dimensions": (20_000, lambda n: _line("f32[4] reduce-window(p, p), window={size=2" + "x2" * n + "}")),
    "frontend attributes": (20_000, lambda n: _line(f"f32[4] negate(p), frontend_attributes={{{joined(n, _PAIR)}}}")),
    "statistics": (20_000, lambda n: _line(f"f32[4] negate(p), statistics={{visualizing_index=0,{joined(n, 'a#=1')}}}")),
    "aliases": (5_000, lambda n: f"HloModule m, input_output_alias={{ {joined(n, '{#}: (0, {#})')} }}" + _body("")[11:]),
    "layout constraints": (20_000, lambda n: _call(f"p), operand_layout_constraints={{{joined(n, 'f32[4]{0}')}}}, x=(0")),
    "elements of a tuple": (20_000, lambda n: _line(f"({joined(n, 'f32[#]')}) custom-call(p)")),
    "elements of a large tuple": (2_000, lambda n: _body(f"  t = ({joined(n, 'f32[4]')}) {_CALLS}" + each(n, _GTE))),
    "a huge constant, elided": (10**6, lambda n: _line(f"f32[{n},{n}] constant({{...}})")),
    "a huge constant, empty": (10**6, lambda n: _line(f"f32[{n},{n}] constant({{}})")),
    # ---- many of a kind on one line
    "a million attributes": (250_000, lambda n: _line("f32[4] negate(p)" + each(n, ", a#=#"))),
    "one attribute again": (20_000, lambda n: _line("f32[4] negate(p)" + ", channel_id=1" * n)),
    "header attributes": (20_000, lambda n: "HloModule m" + each(n, ", a#=#") + "\n\n" + _body("")[13:]),
    "a long operand list": (50_000, lambda n: _call(joined(n, "p"))),
    "undefined operands of one line": (10_000, lambda n: _call(joined(n, "q#"))),
    "predecessors": (20_000, lambda n: _line(f"f32[4] negate(p), control-predecessors={{{joined(n, 'p')}}}")),
    # ---- many lines
    "one name again": (10_000, lambda n: _body("  x = f32[4] negate(p)\n" * n)),
    "one computation name again": (5_000, lambda n: f"f {_SMALL}" * n),
    "one parameter number again": (10_000, lambda n: _body(each(n, "  x# = f32[] parameter(0)\n"))),
    "a chain": (10_000, lambda n: _body("  x0 = f32[4] negate(p)\n" + each(n, "  x# = f32[4] negate(x#-)\n", 1))),
    "undefined operands": (10_000, lambda n: _body(each(n, "  x# = f32[4] negate(y#)\n"))),
    "operands of the next line": (10_000, lambda n: _body(each(n, "  x# = f32[4] negate(x#+)\n"))),
    "undefined callees": (5_000, lambda n: _body(each(n, "  x# = f32[4] map(p), to_apply=y#\n"))),
    "updates": (2_000, lambda n: _body(_START + each(n, _UPDATE, 1))),
    "broken lines": (5_000, lambda n: _body(_BROKEN * n)),
    "broken lines that end in CR": (5_000, lambda n: _body(_BROKEN * n).replace("\n", "\r")),
    "junk lines": (20_000, lambda n: _body(_JUNK * n)),
    "many headers": (5_000, lambda n: each(n, "f# {\n")),
    "many broken headers": (5_000, lambda n: each(n, _HEADER)),
    "junk between computations": (5_000, lambda n: "HloModule m\n" + each(n, f"f# {_SMALL}{_JUNK}")),
    "many modules": (2_000, lambda n: _MODULE * n),
    "headers of modules": (10_000, lambda n: "HloModule m\n" * n),
    "rows of a table": (10_000, lambda n: _TABLE + each(n, '# "a"\n', 1) + "\n" + _body("")[13:]),
    "broken rows of a table": (10_000, lambda n: _TABLE + each(n, "# a\n", 1) + "\n" + _body("")[13:]),
    # ---- what is not closed
    "NULs": (500_000, lambda n: "\0" * n),
    "NULs in a body": (100_000, lambda n: _body("\0" * n)),
    "lines of NULs": (20_000, lambda n: _body("\0\n" * n)),
    "quotes": (200_000, lambda n: _line("f32[4] negate(p), foo=" + '"' * (2 * n + 1))),
    "open strings": (10_000, lambda n: _body(_OPEN_STRING * n)),
    "open comments": (100_000, lambda n: _body("/*" * n)),
    "lines with open comments": (20_000, lambda n: _body("  /* a\n" * n)),
    "comments": (100_000, lambda n: _body("/* */ // *\n" * n)),
    "open braces": (50_000, lambda n: _body("{" * n)),
    "lines of open braces": (5_000, lambda n: _body("{\n" * n)),
    "closing braces": (50_000, lambda n: _body("}" * n)),
    "lines of closing braces": (5_000, lambda n: _body("}\n" * n)),
    "open parentheses": (50_000, lambda n: _body("(" * n)),
    "open operand lists": (5_000, lambda n: _body("  x = f32[4] negate(\n" * n)),
    "open bodies": (5_000, lambda n: _body("  x = f32[4] map(p), to_apply={\n" * n)),
    "arrows": (50_000, lambda n: "HloModule m\n\nf (" + "->{ " * n + "\n"),
    "arrows behind junk": (20_000, lambda n: "junk\n\nf (" + "->{ " * n + "\n"),
    "parentheses in a header": (50_000, lambda n: "HloModule m\n\nENTRY f (" + ") " * n + "\n"),
    "blanks": (1_000_000, lambda n: _body(" " * n + "\n")),
    "lines of blanks": (20_000, lambda n: _body("  \t \n" * n)),
}  # fmt: skip
"""Name -> n, and the text of size n."""


LEAST_OF_STAGES = 0.03
"""Seconds that a stage takes at n where its exponent is looked at more closely, and that 4n must take to tell anything."""
DOUBTFUL = 1.15
"""An exponent from which on both times are taken again, with a larger n and three times each."""
LIMIT = 1.2


@attrs.define
class Row:
    """How the time of one thing grows with one kind of input."""

    name: str
    kind: str
    n: int
    run: Callable[[int], tuple[float, int]]
    """Seconds for a size, and the bytes of the module and of what comes out."""
    least: float = 0.0
    most: float = 0.0
    growth: float = 4.0
    """How much more there is at 4n, of module and result together; not less than 4."""

    def measure(self) -> None:
        """Takes the times at n and 4n; again, with a larger n and three times each, where they seem to grow too fast."""
        self._take()
        if self.exponent > DOUBTFUL:
            if self.most < 5:
                self.n = round(self.n * min(max(2.0, LEAST_OF_STAGES / max(self.least, 1e-4)), 8.0))
                self._take()
            for _ in range(2):
                self.least = min(self.least, self.run(self.n)[0])
                self.most = min(self.most, self.run(4 * self.n)[0])

    def _take(self) -> None:
        (self.least, small), (self.most, large) = self.run(self.n), self.run(4 * self.n)
        self.growth = max(4.0, large / max(small, 1))

    @property
    def exponent(self) -> float:
        """1 is linear in module and result; 0 where even 4n takes too little time to tell."""
        if self.most < LEAST_OF_STAGES:
            return 0.0
        return math.log(self.most / max(self.least, LEAST_OF_STAGES / 4), self.growth)

    def __str__(self) -> str:
        mark = "  <--" if self.exponent > LIMIT else ""
        return (
            f"{self.name:<56.56} {self.kind:<28} {self.n:>7,} {self.least:8.3f} {self.most:8.3f} "
            f"{self.growth:6.1f} {self.exponent:8.2f}{mark}"
        )


_FORMATS = ("text", "json", "full")
_KINDS_OF_FORMATS = frozenset(
    {
        "a chain",
        "one user of equals",
        "fusions of one",
        "unused operands of a fusion",
        "messages",
        "copies",
        "frames",
    }
)
"""Modules of which there is something to say; only those are written in all the other formats."""


def rows_of_stages(names: list[str], kinds: list[str], scale: float) -> Iterator[Row]:
    """A row for each stage and module, and one for each of what takes no module."""
    from tests import stages
    from tests.bench.others import OTHERS

    for stage in stages.STAGES:
        if names and not any(name in stage.name for name in names):
            continue
        stage.run(MODULES["a chain"][1](4).encode())
        is_again = stage.name.partition("--format ")[2] not in ("", *_FORMATS)
        for kind, (n, make) in MODULES.items():
            if (kinds and kind not in kinds) or (is_again and kind not in _KINDS_OF_FORMATS):
                continue

            def run(
                size: int, stage: stages.Stage = stage, make: Callable[[int], str] = make
            ) -> tuple[float, int]:
                data = make(size).encode()
                stages.WRITTEN.count = 0
                took = seconds(stage.run, data)
                return took, len(data) + stages.WRITTEN.count

            first = max(round(n * scale), 1)
            row = Row(stage.name, kind, first, run)
            row.measure()
            yield row
    for name, kind, n, prepare in OTHERS:
        if (names and not any(word in name for word in names)) or (kinds and kind not in kinds):
            continue

        def run_other(size: int, prepare: Callable[[int], Any] = prepare) -> tuple[float, int]:
            with prepare(size) as work:
                return seconds(lambda _: work(), ""), 0

        run_other(8)
        first = max(round(n * scale), 1)
        row = Row(name, kind, first, run_other)
        row.measure()
        yield row


def growth_of_stages(names: list[str], kinds: list[str], scale: float) -> float:
    """Prints all rows; the largest exponent."""
    worst = 0.0
    gc.freeze()
    print(f"{'what':<56} {'input':<28} {'n':>7} {'n: s':>8} {'4n: s':>8} {'bytes':>6} exponent")
    for row in rows_of_stages(names, kinds, scale):
        worst = max(worst, row.exponent)
        print(row, flush=True)
    print(f"largest exponent {worst:.2f}")
    return worst


def seconds(read: Callable[[Any], Any], text: str | bytes) -> float:
    """Processor time, without the collector's: that looks at what other rows left, too."""
    gc.collect()
    gc.disable()
    try:
        before = time.process_time()
        read(text)
        return time.process_time() - before
    finally:
        gc.enable()


def strictly(text: str) -> None:
    """Reads to the first error, and writes it out."""
    try:
        hlo.parse(text)
    except hlo.HloSyntaxError as error:
        str(error)


def tolerantly(text: str) -> None:
    """Reads to the end, and writes every error out."""
    for diagnostic in hlo.parse_tolerant(text).diagnostics:
        str(diagnostic)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.linearity", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help="shapes whose names hold one of these words; all of them if none is given"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="times n")
    parser.add_argument("--stages", action="store_true", help="every command, pass and print instead")
    parser.add_argument(
        "--kind", action="append", default=[], help="only modules of this kind, with --stages"
    )
    options = parser.parse_args(arguments)
    if options.stages:
        growth_of_stages(options.names, options.kind, options.scale)
        return 0
    tolerantly(_body("I am no HLO\n"))  # loads the grammar
    print(
        f"{'shape of attack':<32}{'bytes at 4n':>12}   parse: n, 2n, 4n, growth       parse_tolerant: n, 2n, 4n, growth"
    )
    worst = 0.0
    for name, (n, make) in SHAPES.items():
        if options.names and not any(word in name for word in options.names):
            continue
        texts = [make(round(n * options.scale) * step) for step in STEPS]
        cells = []
        for read in (strictly, tolerantly):
            times = [seconds(read, text) for text in texts]
            growth = times[-1] / max(times[0], LEAST)
            worst = max(worst, growth)
            cells.append(f"{times[0]:7.2f}{times[1]:7.2f}{times[2]:7.2f} s{growth:7.1f}")
        print(f"{name:<32}{len(texts[-1]):>12,} {'   '.join(cells)}", flush=True)
    print(f"worst growth {worst:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

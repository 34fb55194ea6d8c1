"""How the time of edits grows: `python -m tests.bench.edits`.

Microseconds of each of so many edits; with linear growth the figures of a row are alike. Operands of a wide tuple are
copied with each replacement, so those grow, but by less than the number of operands.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import hlotext as hlo
from hlotext import rewrite


def chain(count: int) -> hlo.Module:
    """Instructions each of which takes the one before."""
    lines = [f"  x.{n} = f32[4] negate(x.{n - 1})\n" for n in range(1, count)]
    return hlo.parse(f"HloModule chain\n\nENTRY e {{\n  x.0 = f32[4] parameter(0)\n{''.join(lines)}}}\n")


def wide(count: int) -> hlo.Module:
    """A tuple of so many operands."""
    lines = [f"  c.{n} = f32[4] iota(), iota_dimension=0\n" for n in range(count)]
    shapes, names = ", ".join(["f32[4]"] * count), ", ".join(f"c.{n}" for n in range(count))
    return hlo.parse(
        f"HloModule wide\n\nENTRY e {{\n{''.join(lines)}  ROOT t = ({shapes}) tuple({names})\n}}\n"
    )


def renames(count: int) -> Callable[[], None]:
    module = chain(count)

    def edit() -> None:
        for number, instruction in enumerate(module.entry.instructions):
            instruction.name = f"y.{number}"

    return edit


def replacements(count: int) -> Callable[[], None]:
    instructions = chain(count).entry.instructions

    def edit() -> None:
        for number in range(3, count):
            instructions[number].replace_operand(0, instructions[number - 2])

    return edit


def attributes(count: int) -> Callable[[], None]:
    instructions = chain(count).entry.instructions

    def edit() -> None:
        for number, instruction in enumerate(instructions):
            instruction.attributes["backend_config"] = f"{number % 100}"

    return edit


def insertions(count: int) -> Callable[[], None]:
    instructions = chain(count).entry.instructions

    def edit() -> None:
        for instruction in instructions:
            rewrite.Builder.after(instruction).sine(instruction)

    return edit


def operands(count: int) -> Callable[[], None]:
    root = wide(count).entry.root
    old = root.operands

    def edit() -> None:
        for number in range(count):
            root.replace_operand(number, old[number - 1])

    return edit


def uses(count: int) -> Callable[[], None]:
    old = wide(count).entry.root.operands

    def edit() -> None:
        for instruction in old:
            instruction.replace_all_uses_with(rewrite.Builder.after(instruction).negate(instruction))

    return edit


ROWS: tuple[tuple[Callable[[int], Callable[[], None]], tuple[int, ...]], ...] = (
    (renames, (10_000, 100_000)),
    (replacements, (10_000, 100_000)),
    (attributes, (10_000, 100_000)),
    (insertions, (5_000, 20_000)),
    (operands, (1_000, 4_000)),
    (uses, (1_000, 4_000)),
)


def main() -> None:
    for prepare, counts in ROWS:
        cells = []
        for count in counts:
            edit = prepare(count)
            start = time.perf_counter()
            edit()
            cells.append(f"{count:>8,}: {(time.perf_counter() - start) / count * 1e6:6.1f} us")
        print(f"{prepare.__name__:<14}{'   '.join(cells)}")


if __name__ == "__main__":
    main()

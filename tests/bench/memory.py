"""How long memory takes, and how that grows: `python -m tests.bench.memory [FILE ...] [--chip NAME]`.

For each file (without files the three largest scheduled ones of the corpus) microseconds for each scheduled instruction from
values to live ranges and of the whole assignment, and memory held beside the parsed module. Then generated programs of n, 2n
and 4n instructions of several forms: growth is the time at 4n by that at n; 4 is linear.
"""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
from pathlib import Path

import hlotext as hlo
from hlotext import memory
from hlotext.memory import aliases, dataflow, in_place, live_ranges, schedule
from tests.support import corpus_files, read_text

LEAST = 4000


def chain(n: int) -> str:
    """Each operation reads the one before."""
    lines = "".join(
        f'  v{i} = f32[{64 + i % 7}]{{0}} custom-call(v{i - 1}), custom_call_target="t"\n'
        for i in range(1, n)
    )
    return (
        f"  v0 = f32[64]{{0}} parameter(0)\n{lines}  ROOT r = f32[{64 + (n - 1) % 7}]{{0}} copy(v{n - 1})\n"
    )


def fan(n: int) -> str:
    """All results live until a tuple at the end."""
    lines = "".join(
        f'  v{i} = f32[{64 + i % 50}]{{0}} custom-call(p), custom_call_target="t"\n' for i in range(n)
    )
    shapes = ", ".join(f"f32[{64 + i % 50}]{{0}}" for i in range(n))
    names = ", ".join(f"v{i}" for i in range(n))
    return f"  p = f32[64]{{0}} parameter(0)\n{lines}  ROOT r = ({shapes}) tuple({names})\n"


def nested(n: int) -> str:
    """Written forwards and read backwards, as activations are."""
    half = n // 2
    lines = "".join(
        f'  v{i} = f32[{64 + i % 9}]{{0}} custom-call(p), custom_call_target="t"\n' for i in range(half)
    )
    back = "".join(
        f'  w{i} = f32[64]{{0}} custom-call(v{half - 1 - i}, {f"w{i - 1}" if i else "p"}), custom_call_target="t"\n'
        for i in range(half)
    )
    return f"  p = f32[64]{{0}} parameter(0)\n{lines}{back}  ROOT r = f32[64]{{0}} copy(w{half - 1})\n"


def donated(n: int) -> str:
    """Parameters that are updated in place, in one tuple."""
    third = n // 3
    lines = "".join(f"  p{i} = f32[{64 + i % 5}]{{0}} parameter({i})\n" for i in range(third))
    lines += "".join(f"  v{i} = f32[{64 + i % 5}]{{0}} negate(p{i})\n" for i in range(third))
    shapes = ", ".join(f"f32[{64 + i % 5}]{{0}}" for i in range(third))
    names = ", ".join(f"v{i}" for i in range(third))
    return f"{lines}  ROOT r = ({shapes}) tuple({names})\n"


FORMS = {"chain": chain, "fan": fan, "nested": nested, "donated": donated}


def parsed(body: str, form: str, n: int) -> hlo.Module:
    alias = ""
    if form == "donated":
        alias = (
            ", input_output_alias={ "
            + ", ".join(f"{{{i}}}: ({i}, {{}}, may-alias)" for i in range(n // 3))
            + " }"
        )
    return hlo.parse(f"HloModule m, is_scheduled=true{alias}\n\nENTRY e {{\n{body}}}\n")


def seconds(module: hlo.Module, platform: str | None = None, chip: str | None = None) -> tuple[float, float]:
    """Processor time from values to live ranges, and of the whole."""
    start = time.process_time()
    plan = schedule.flatten(module)
    flow = dataflow.analyse(module)
    live_ranges.find_live_ranges(flow, plan, aliases.find_buffers(flow, in_place.InPlacePairs()))
    middle = time.process_time()
    memory.assign(module, platform, chip)
    return middle - start, time.process_time() - middle


def main(arguments: list[str]) -> None:
    chip = arguments[arguments.index("--chip") + 1] if "--chip" in arguments else None
    paths = [Path(a) for a in arguments if not a.startswith("--") and a != chip]
    if not paths:
        large = sorted(corpus_files(), key=lambda path: len(read_text(path)))
        paths = [path for path in large if hlo.load(path).is_scheduled][-3:]
    for path in paths:
        tracemalloc.start()
        module = hlo.load(path).materialize()
        size = tracemalloc.get_traced_memory()[0]
        found = memory.assign(module, chip=chip)
        more = tracemalloc.get_traced_memory()[0] - size
        tracemalloc.stop()
        count = len(found.schedule)
        del found
        gc.collect()
        first, whole = seconds(module, chip=chip)
        print(
            f"{path.name}: {count} scheduled, {1e6 * first / count:.0f} us each to live ranges, {1e6 * whole / count:.0f} us "
            f"each in all ({whole:.1f} s), {more / size:.2f} times the module's memory more"
        )
    for form, build in FORMS.items():
        for platform in ("cpu", "gpu"):
            times = []
            for factor in (1, 2, 4):
                module = parsed(build(LEAST * factor), form, LEAST * factor)
                times.append(seconds(module, platform)[1])
            shown = " ".join(f"{t:7.2f}" for t in times)
            print(f"{form:8} {platform} {shown} s, growth {times[2] / times[0]:.1f} (4 is linear)")


if __name__ == "__main__":
    main(sys.argv[1:])

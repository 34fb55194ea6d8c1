"""Messages of compilers, as they were printed: `tests/data/messages`, with what each one tells in expected.json."""

from __future__ import annotations

import json
import pickle
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from hlotext import messages
from hlotext.messages.quoted import duration, size
from tests.support import DATA

FOLDER = DATA / "messages"
EXPECTED: dict[str, dict[str, Any]] = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
FACTS = {"before", "from", "to", "parts", "target", "shapes", "seconds", "mlir"}


def text_of(name: str) -> str:
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def value_of(message: messages.Message, key: str) -> Any:
    return message.facts.get(key) if key in FACTS else getattr(message, key)


def check(message: messages.Message, wanted: dict[str, Any]) -> None:
    memory = wanted.get("memory", {})
    for key, value in wanted.items():
        if key == "is_cut":
            assert message.memory is not None
            assert message.memory.is_cut
        elif key != "memory":
            assert value_of(message, key) == value, key
    for key, value in memory.items():
        assert message.memory is not None
        if key != "allocations":
            assert getattr(message.memory, key) == pytest.approx(value, rel=1e-6), key
            continue
        for row, one in zip(message.memory.allocations, value, strict=False):
            for field, known in one.items():
                assert getattr(row, field) == known, field
    if memory.get("allocations"):
        assert message.memory is not None
        assert len(message.memory.allocations) >= len(memory["allocations"])


@pytest.mark.parametrize("name", EXPECTED)
def test_what_a_message_tells(name: str) -> None:
    wanted = EXPECTED[name]
    found = messages.read(text_of(name)).of(wanted["kind"])
    assert len(found) == 1
    check(found[0], wanted)


PREFIXES = {
    "absl": "E0531 10:54:04.832741 2609008 pjrt_client.cc:569] ",
    "tensorflow": "2024-05-19 20:16:26.694439: E external/xla/xla/service/alarm.cc:65] ",
    "python": "ERROR:2026-11-23 14:59:46,779:jax._src.xla_bridge:149: ",
    "kubernetes": "2026-11-23T14:59:46.779123Z stderr F ",
    "rank": "[rank0]: ",
    "ray": "(train pid=2345, ip=10.0.0.4) ",
    "several": "2026-11-23T14:59:46.779123Z stderr F [rank0]: E0531 10:54:04.832741 2609008 pjrt_client.cc:569]     ",
}


@pytest.mark.parametrize(
    "name", ["tpu_hbm_table", "tpu_vmem_kernel", "tpu_hbm_temporaries", "tpu_smem_operand"]
)
@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES)
def test_prefixes_of_loggers_do_not_count(prefix: str, name: str) -> None:
    logged = "".join(f"{prefix}{line}\n" for line in text_of(name).splitlines())
    wanted = EXPECTED[name]
    found = messages.read(logged).of(wanted["kind"])
    assert len(found) == 1
    check(found[0], wanted)


@pytest.mark.parametrize("name", ["tpu_hbm_table", "spmd_remat_shardy", "tpu_vmem_kernel", "ffi_unknown"])
def test_one_line_of_json(name: str) -> None:
    line = json.dumps({"severity": "ERROR", "message": text_of(name)})
    found = messages.read(f'{{"message": "starting"}}\n{line}\n').of(EXPECTED[name]["kind"])
    assert len(found) == 1
    check(found[0], EXPECTED[name])


def folded(text: str, width: int) -> str:
    """Cut at a number of columns, in the middle of words."""
    lines = (line[at : at + width] for line in text.splitlines() for at in range(0, len(line) or 1, width))
    return "\n".join(lines)


def wrapped(text: str, width: int) -> str:
    """Broken at blanks; a longer word goes over."""
    wrap = textwrap.TextWrapper(
        width, break_long_words=False, break_on_hyphens=False, replace_whitespace=False
    )
    return "\n".join(part for line in text.splitlines() for part in wrap.wrap(line) or [""])


COLORED = {
    **PREFIXES,
    "none": "",
    "compose": "trainer-1  | ",
    "torchrun": "[default0]: ",
    "mpirun": "[1,3]<stderr>: ",
    "pod": "[pod/train-0/main] ",
    "journal": "Nov 24 13:39:22 node-7 python[412]: ",
    "ray in color": "\x1b[36m(TrainWorker pid=2231, ip=10.164.0.7)\x1b[0m ",
    "time": "[2026-11-24 13:39:22,120] ",
}
del COLORED["several"]


@pytest.mark.parametrize("prefix", COLORED)
@pytest.mark.parametrize("fold", [folded, wrapped])
@pytest.mark.parametrize("name", ["tpu_hbm_table", "spmd_remat_gspmd", "tpu_vmem_kernel", "ffi_unknown"])
def test_folds_behind_prefixes(name: str, fold: Callable[[str, int], str], prefix: str) -> None:
    """A terminal, a pager or a collector of logs changes no field, at 100 columns."""
    before = "starting\nI1124 13:43:49.889559 24140 pjrt_api.cc:119] GetPjrtApi was found"
    text = f"{before}\n{text_of(name)}\nstep 1 loss 10.22\n"
    logged = "".join(f"{COLORED[prefix]}{line}\n" for line in fold(text, 100).splitlines())
    (plain,) = messages.read(text).of(EXPECTED[name]["kind"])
    (found,) = messages.read(logged).of(EXPECTED[name]["kind"])
    assert attrs.evolve(found, text="") == attrs.evolve(plain, text="")


def test_several_messages_of_one_log() -> None:
    names = ["spmd_remat_shardy", "jax_donation", "tpu_hbm_table", "tpu_mosaic_layout"]
    found = messages.read("\n\n".join(map(text_of, names)))
    assert [message.kind for message in found] == ["remat", "donation", "hbm", "kernel"]
    again = messages.read("\n\n".join(map(text_of, names * 2)))
    assert len(again) == len(names)


def test_other_text_has_no_messages() -> None:
    assert len(messages.read("")) == 0
    hlo = 'HloModule m\n\nENTRY e {\n  ROOT p = f32[2]{0} parameter(0), metadata={op_name="INTERNALS"}\n}\n'
    assert len(messages.read(hlo)) == 0


@pytest.mark.parametrize("name", EXPECTED)
def test_any_part_of_a_message_is_read(name: str) -> None:
    """A log may begin and end anywhere."""
    text = text_of(name)
    for part in range(0, len(text), max(1, len(text) // 60)):
        messages.read(text[part:])
        messages.read(text[:part])


def test_what_must_go() -> None:
    (table,) = messages.read(text_of("tpu_hbm_table"))
    (temporaries,) = messages.read(text_of("tpu_hbm_temporaries"))
    assert table.memory is not None
    assert temporaries.memory is not None
    assert table.memory.must_go == table.memory.excess
    assert temporaries.memory.must_go == pytest.approx((33.02 - 15.75) * 2**30)
    assert table.memory.allocations[0].instruction == "custom-call.2"
    assert table.memory.allocations[-1].instruction is None
    assert (table.file, table.line) == ("/home/me/train.py", 33)


GIB = 2.0**30
PADDED = (
    messages.ListedAllocation(4 * GIB, 1 * GIB, "f32[8]"),
    messages.ListedAllocation(512.0, 64.0, "s32[16]"),
)


@pytest.mark.parametrize(
    ("memory", "words"),
    [
        (
            messages.Memory("hbm", 18.9 * GIB, 15.8 * GIB),
            ["memory LOG --dump", "arguments and results", "temporaries"],
        ),
        (
            messages.Memory(
                "hbm", program=1 * GIB, arguments=9.1 * GIB, output=9 * GIB, shared=0.0, excess=GIB
            ),
            ["shard the arguments", "donate", "smaller or sharded batches"],
        ),
        (
            messages.Memory(
                "hbm", program=9.05 * GIB, arguments=9.1 * GIB, output=9 * GIB, shared=9 * GIB, excess=GIB
            ),
            ["shard the arguments", "smaller or sharded batches"],
        ),
        (
            messages.Memory("hbm", program=9 * GIB, arguments=1 * GIB, output=GIB, shared=0.0, excess=GIB),
            ["smaller or sharded batches", "donate", "shard the arguments"],
        ),
        (
            messages.Memory("hbm", 9.0 * GIB, 8.0 * GIB, GIB, PADDED, program=9 * GIB, arguments=0.0),
            ["smaller", "padding"],
        ),
    ],
    ids=["total alone", "arguments", "donated", "temporaries", "padding"],
)
def test_remedies_of_memory_come_by_what_they_save(memory: messages.Memory, words: list[str]) -> None:
    found = messages.remedies(messages.Message("hbm", "", memory=memory))
    assert len(found) == len(words)
    assert all(word in text for word, text in zip(words, found, strict=True)), found


def test_messages_can_be_pickled() -> None:
    for path in Path(FOLDER).glob("*.txt"):
        for message in messages.read(path.read_text(encoding="utf-8")):
            again = pickle.loads(pickle.dumps(message))
            assert again == message
            assert hash(again) == hash(message)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("16.89G", 16.89 * 2**30),
        ("512B", 512),
        ("16000000", 16e6),
        ("80.5K", 80.5 * 1024),
        ("2.00GiB", 2**31),
        ("x", None),
    ],
)
def test_sizes(text: str, value: float | None) -> None:
    assert size(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("2m12.5s", 132.5), ("150ms", 0.15), ("1h2m3s", 3723), ("4s", 4), ("", None), ("x", None)],
)
def test_durations(text: str, value: float | None) -> None:
    assert duration(text) == pytest.approx(value) if value is not None else duration(text) is None


RAISED = json.loads((FOLDER / "raised.json").read_text(encoding="utf-8"))
"""Exceptions of JAX 0.12 and its runtime from 47 wrong programs, shortened to one frame each."""


@pytest.mark.parametrize("case", RAISED, ids=[case["name"] for case in RAISED])
@pytest.mark.parametrize("prefix", ["", PREFIXES["several"]], ids=["plain", "logged"])
def test_what_is_raised(case: dict[str, Any], prefix: str) -> None:
    found = messages.read("".join(f"{prefix}{line}\n" for line in case["text"].splitlines()))
    names = ("kind", "status", "module", "shape", "file", "line", "facts")
    assert [{name: getattr(one, name) for name in names} for one in found] == case["messages"]
    for one in found:
        assert bool(messages.remedies(one)) == (one.kind not in ("exception", "not-found"))


def test_the_call_that_compiles_is_no_line_of_an_operation() -> None:
    """JAX's traceback leads to it where the message itself names no line."""
    frames = 'File "/home/me/train.py", line 12, in main\n  File "/x/site-packages/jax/_src/compiler.py", line 3, in run'
    (found,) = messages.read(
        f"Traceback (most recent call last):\n  {frames}\nNo such compile option: 'xla_x'\n"
    )
    assert (found.line, found.is_call) == (12, True)
    (found,) = messages.read(text_of("tpu_hbm_temporaries"))
    assert found.is_call == (found.line is not None)
    (found,) = messages.read(text_of("jax_indivisible"))
    assert not found.is_call


def test_an_exception_that_another_repeats_is_one_message() -> None:
    """The outer one of a chain, which has the program's line."""
    rule = "is only valid for values of rank at least 2, but was applied to a value of rank 1."
    inner = f"ValueError: Sharding S {rule}\n\nDuring handling of the above exception, another exception occurred:\n\n"
    frame = 'Traceback (most recent call last):\n  File "/me/t.py", line 5, in f\n'
    outer = f"{frame}ValueError: x is wrong: Sharding S {rule}\n"
    (found,) = messages.read(f"Traceback (most recent call last):\n{inner}{outer}")
    assert (found.kind, found.line, dict(found.facts)) == ("sharding", 5, {"required": 2, "passed": 1})


def test_a_status_at_the_end_of_a_log_counts() -> None:
    (found,) = messages.read("jax.errors.JaxRuntimeError: DATA_LOSS: the disk is gone")
    assert (found.kind, found.text) == ("data-loss", "DATA_LOSS: the disk is gone")
    assert not messages.remedies(found)


def test_an_exception_inside_a_known_message_is_no_message() -> None:
    text = "Traceback (most recent call last):\nValueError: Array has been deleted with shape=float32[4].\n"
    assert [one.kind for one in messages.read(text)] == ["deleted"]


@pytest.mark.parametrize("width", [69, 92, 103, 113])
@pytest.mark.parametrize("prefix", ["", "[rank0]: "])
def test_a_fold_leaves_neither_a_status_nor_a_piece_beside_the_message(width: int, prefix: str) -> None:
    pieces = (
        line[at : at + width]
        for line in text_of("tpu_mosaic_layout").splitlines()
        for at in range(0, max(1, len(line)), width)
    )
    (found,) = messages.read("".join(f"{prefix}{piece}\n" for piece in pieces))
    assert (found.kind, found.instruction, found.line) == ("kernel", "reshapes.1", 12)

"""Modules that are read as they are touched: nobody can tell them from those that were read at once, but by memory."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext import lint
from hlotext.analysis.call_graph import call_graph
from hlotext.ir.nodes.compare import difference
from hlotext.syntax.lazy import file_index, lazy_module
from hlotext.syntax.source import file_text, limits
from tests import support

CORPUS = (
    "cpu/mlp_train.cpu_1.after_optimizations",
    "cpu/eig_schur_expm.cpu_1.before_optimizations",
    "cpu/sharded_sort_fft_conv.cpu_4.after_optimizations",
    "gpu/transformer_decode.h100_1x1x1.after_optimizations",
    "gpu/conditionals.h100_1x1x1.after_optimizations",
    "gpu/data_parallel.h100_1x1x4.after_optimizations",
    "tpu/data_parallel.v5e_2x2x1.after_codegen",
    "tpu/host_compute.v5e_2x2x1.after_optimizations",
    "tpu/sparsecore_compute.v5p_2x2x1.after_codegen",
    "tpu/collectives_256.v5e_16x16.after_optimizations",
    "tpu/mlp_forward.v5e_2x2x1.before_optimizations",
    "handmade/conditional_two_forms",
    "handmade/copy_start",
    "handmade/layouts",
    "handmade/entry_attributes",
)
FILES = [path for path in support.corpus_files() if support.corpus_id(path) in CORPUS]
CASES = [
    path
    for folder in ("ok", "err")
    for path in sorted((support.DATA / folder).glob("*.hlo"))
    if not path.stem.startswith("packed_")
]

TWO = """HloModule two, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

%double (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %d = f32[4]{0} add(%p, %p)
}

%unused (q: f32[4]) -> f32[4] {
  %q = f32[4]{0} parameter(0)
  ROOT %n = f32[4]{0} negate(%q)
}, execution_thread="other"

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  ROOT %c = f32[4]{0} call(%x), to_apply=%double
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str | bytes], Path]:
    """`file(text)` is a file that holds it."""

    def write(text: str | bytes) -> Path:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))
        return path

    return write


def opened(path: Path) -> hlo.Module:
    """A module of which nothing has been read."""
    module = hlo.load(path, lazy=True)
    assert isinstance(module.source, lazy_module.LazySource)
    assert unread(module) == len(module.computations)
    return module


def unread(module: hlo.Module) -> int:
    """How many computations have not been read."""
    return sum(isinstance(computation, lazy_module.UnreadComputation) for computation in module.computations)


def attempt(path: Path, *, lazily: bool) -> tuple[hlo.Module | None, hlo.HloSyntaxError | None]:
    """A module of which everything was read, or the error."""
    try:
        return hlo.load(path, lazy=lazily).materialize(), None
    except hlo.HloSyntaxError as error:
        return None, error


def is_lazy(path: Path) -> bool:
    return isinstance(hlo.load(path, lazy=True).source, lazy_module.LazySource)


# ---- the same as a module that is read at once


def test_the_list_of_files_is_right() -> None:
    """None of them was renamed."""
    assert len(FILES) == len(CORPUS)


@pytest.mark.parametrize("path", FILES, ids=support.corpus_id)
def test_it_is_what_is_read_at_once(path: Path) -> None:
    """Nodes at their places, touched in any order; the text, and XLA's styles."""
    whole, module = hlo.load(path, lazy=False), opened(path)
    assert module.source is not None
    assert whole.source is not None
    assert str(module) == str(whole) == module.source.text
    assert unread(module) == len(module.computations)
    order = list(range(len(module.computations)))
    random.Random(len(order)).shuffle(order)
    for number in order[: len(order) // 2]:
        mine, theirs = module.computations[number], whole.computations[number]
        assert [i.name for i in mine] == [i.name for i in theirs]
        assert mine.root.span == theirs.root.span
        assert str(mine) == str(theirs)
        assert type(mine) is hlo.Computation
    for options in (
        hlo.PrintOptions.default(),
        hlo.PrintOptions.short_parsable(),
        hlo.PrintOptions.canonical(),
    ):
        assert module.to_text(options) == whole.to_text(options)
    assert difference(module, whole, exact=True) is None
    assert [i.frames for i in module.instructions()] == [i.frames for i in whole.instructions()]


@pytest.mark.parametrize("path", FILES, ids=support.corpus_id)
def test_what_is_asked_first_does_not_matter(path: Path) -> None:
    """The verifier, the call graph, a style of XLA's, a copy, and an edit, each of a module that nobody has touched."""
    whole = hlo.load(path, lazy=False)
    assert list(map(str, hlo.verify(opened(path)))) == list(map(str, hlo.verify(whole)))
    names = [use.name for use in call_graph(opened(path)).module.computations]
    assert names == [c.name for c in whole.computations]
    assert opened(path).to_text() == whole.to_text()
    assert difference(opened(path).clone(), whole.clone(), exact=True) is None
    module = opened(path)
    for edited in (module, whole):
        with edited.transaction():
            edited.entry.root.operands[0].name = "renamed_by_a_test"
    assert str(module) == str(whole)
    assert module.entry.root.operands[0].span == whole.entry.root.operands[0].span


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_form_or_an_error(path: Path) -> None:
    """The same module; or an error of the same code in the same line, when it is opened or touched."""
    whole, error = attempt(path, lazily=False)
    module, other = attempt(path, lazily=True)
    if error is None or other is None:
        assert error is other
        assert whole is not None
        assert module is not None
        assert difference(module, whole, exact=True) is None
    else:
        assert (other.code, other.line, other.source_line) == (error.code, error.line, error.source_line)


@pytest.mark.parametrize("path", FILES[::3], ids=support.corpus_id)
def test_findings_and_edits_are_the_same(path: Path) -> None:
    """Of the linter; of names and of the header, also where the edit is undone."""
    assert list(map(str, lint.run(opened(path)))) == list(map(str, lint.run(hlo.load(path, lazy=False))))
    module, whole = opened(path), hlo.load(path, lazy=False)
    with suppress(KeyError), module.transaction():
        module.computations[0].root.name = "undone"
        raise KeyError
    assert str(module) == str(whole)
    for edited in (module := opened(path), whole):
        edited.name = "other"
        edited.computations[0].name = "renamed.computation"
        edited.computations[0].root.name = "renamed.instruction"
    assert str(module) == str(whole)
    assert module.to_text() == whole.to_text()


# ---- what is read when


def test_only_what_is_touched_is_read(file: Callable[[str | bytes], Path]) -> None:
    """Names, threads, places and the text need no computation; a computation needs no other one."""
    module = opened(file(TWO))
    assert [c.name for c in module.computations] == ["double", "unused", "main"]
    assert [c.execution_thread for c in module.computations] == ["main", "other", "main"]
    assert [str(c.span) for c in module.computations] == ["3:1", "8:1", "13:1"]
    assert module.entry is module.computations[2]
    assert unread(module) == 3
    assert module.entry.root.called_computations == (module.computations[0],)
    assert unread(module) == 2
    assert module.computations[0].root.opcode == "add"
    assert unread(module) == 1
    assert module.find("n") is module.computations[1].root
    assert unread(module) == 0


def test_small_files_are_read_at_once(
    file: Callable[[str | bytes], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless asked; from a size on files are read lazily, unless asked not to."""
    path = file(TWO)
    assert not isinstance(hlo.load(path).source, lazy_module.LazySource)
    monkeypatch.setattr(limits, "LEAST_LAZY", len(TWO))
    assert isinstance(hlo.load(path).source, lazy_module.LazySource)
    assert isinstance(hlo.load(str(path)).source, lazy_module.LazySource)
    assert not isinstance(hlo.load(path, lazy=False).source, lazy_module.LazySource)


def test_errors_come_when_they_are_touched(file: Callable[[str | bytes], Path]) -> None:
    """Each time, with the line of the file, and without harm to the others."""
    module = opened(file(TWO.replace("negate(%q)", "negate(%nothing)")))
    assert module.entry.root.opcode == "call"
    for _ in range(2):
        with pytest.raises(
            hlo.HloSyntaxError, match=r":10:30: error\[X102\]: operand nothing is not defined"
        ) as caught:
            len(module.computations[1])
    assert caught.value.source_line == "  ROOT %n = f32[4]{0} negate(%nothing)"
    assert module.computations[0].root.opcode == "add"
    with pytest.raises(hlo.HloSyntaxError):
        module.materialize()


def test_callees_that_are_missing(file: Callable[[str | bytes], Path]) -> None:
    """They are missed where they are called."""
    module = opened(file(TWO.replace("to_apply=%double", "to_apply=%doubled")))
    with pytest.raises(
        hlo.HloSyntaxError, match=r":15:42: error\[X104\]: computation doubled is not defined"
    ):
        len(module.entry)


def test_aliases_are_checked_with_the_entry(file: Callable[[str | bytes], Path]) -> None:
    """The header is right or wrong by the shape of the entry's result."""
    text = TWO.replace("two, ", "two, input_output_alias={ {1}: (0, {}, may-alias) }, ")
    with pytest.raises(hlo.HloSyntaxError) as at_once:
        hlo.load(file(text), lazy=False)
    module = opened(file(text))
    assert module.computations[0].root.opcode == "add"
    with pytest.raises(hlo.HloSyntaxError) as touched:
        _ = module.entry.root
    assert (touched.value.code, touched.value.span) == (at_once.value.code, at_once.value.span)


def test_calls_of_itself_and_forward(file: Callable[[str | bytes], Path]) -> None:
    """References need no order; one's own name is the computation, not what it is read into."""
    text = TWO.replace("negate(%q)", "call(%q), to_apply=%unused").replace(
        "add(%p, %p)", "call(%p), to_apply=%unused"
    )
    path = file(text)
    module = opened(path)
    unused = module.computations[1]
    assert unused.root.called_computations == (unused,)
    assert module.computations[0].root.called_computations == (unused,)
    assert difference(opened(path), hlo.load(path, lazy=False), exact=True) is None


def test_asynchronous_operations(file: Callable[[str | bytes], Path]) -> None:
    """The check of a done looks into what its start wraps, while its own computation is being read."""
    text = """HloModule async

%wrapped (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %d = f32[4]{0} negate(%p)
}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %s = ((f32[4]{0}), f32[4]{0}, u32[]) async-start(%x), calls=%wrapped
  ROOT %done = f32[4]{0} negate-done(%s)
}
"""
    path = file(text)
    module = opened(path)
    assert module.entry.root.opcode == "async-done"
    assert difference(module, hlo.load(path, lazy=False), exact=True) is None
    broken = opened(file(text.replace("negate(%p)", "negate(%z)")))
    for _ in range(2):
        with pytest.raises(hlo.HloSyntaxError, match=r":5:30: error\[X102\]"):
            len(broken.entry)
    shared = "  %s = ((f32[4]{0}), f32[4]{0}, u32[]) async-start(%x), calls=%wrapped\n"
    started_twice = file(text.replace(shared, shared + shared.replace("%s =", "%t =")))
    assert (
        difference(hlo.load(started_twice, lazy=True), hlo.load(started_twice, lazy=False), exact=True)
        is None
    )


def test_many_threads_touch_the_same(file: Callable[[str | bytes], Path]) -> None:
    """All see all of it."""
    lines = "".join(f"  %a{n} = f32[4]{{0}} add(%p, %p)\n" for n in range(3000))
    module = opened(file(TWO.replace("  ROOT %d", f"{lines}  ROOT %d")))
    seen: list[tuple[int, str]] = []
    start = threading.Barrier(8)

    def touch() -> None:
        start.wait()
        computation = module.computations[0]
        seen.append((len(computation), computation.root.name))

    threads = [threading.Thread(target=touch) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [(3002, "d")] * 8


# ---- what is read at once


@pytest.mark.parametrize(
    "text",
    [
        TWO.replace("\n", "\r\n"),
        TWO.replace("negate(%q)", 'negate(%q), metadata={op_name="é"}'),
        TWO + "\n" + TWO,
        TWO[TWO.index("%double") :],
        TWO.replace("  ROOT %n", "  /* a comment\n  */ ROOT %n"),
        TWO.replace("  ROOT %n", "    ROOT %n"),
        TWO.replace("}\n\n%unused", "}\n%unused"),
        TWO.replace("%double", "%unused"),
        TWO.replace("\n%unused", "\nENTRY %unused"),
        TWO.replace("to_apply=%double", "to_apply={ y = f32[4] parameter(0) ROOT z = f32[4] negate(y) }"),
        TWO.replace("call(%x), to_apply=%double", "map(%x), to_apply=%double"),
        TWO.replace(
            "  ROOT %c = f32[4]{0} call(%x), to_apply=%double",
            "  %s = ((f32[4]{0}), f32[4]{0}, u32[]) negate-start(%x)\n  ROOT %c = f32[4]{0} negate-done(%s)",
        ),
        TWO + "I0000 a line of a log\n",
        TWO[:-3],
        "HloModule nothing\n",
        "HloModule nothing",
        "",
    ],
)
def test_other_forms_are_read_at_once(text: str, file: Callable[[str | bytes], Path]) -> None:
    """What they are, or what is wrong with them, is said as ever."""
    path = file(text)
    assert str(attempt(path, lazily=False)[1]) == str(attempt(path, lazily=True)[1])
    with suppress(hlo.HloSyntaxError):
        assert not is_lazy(path)
        assert difference(hlo.load(path, lazy=True), hlo.load(path, lazy=False), exact=True) is None


def test_other_places_are_read_at_once(file: Callable[[str | bytes], Path], tmp_path: Path) -> None:
    """Packed files and streams; what cannot be read is said as ever."""
    import gzip

    assert not is_lazy(file(gzip.compress(TWO.encode())))
    with file(TWO).open("rb") as stream:
        assert hlo.load(stream, lazy=True).name == "two"
    for place in (tmp_path, tmp_path / "missing"):
        with pytest.raises(hlo.InputError):
            hlo.load(place, lazy=True)


def test_a_file_that_changes(file: Callable[[str | bytes], Path]) -> None:
    """One that was deleted is still there; one that was written over is not guessed at."""
    deleted, changed = file(TWO), file(TWO)
    module = opened(deleted)
    deleted.unlink()
    assert str(module) == TWO
    assert module.entry.root.opcode == "call"
    module = opened(changed)
    changed.write_text(TWO.replace("negate", "exponential"))
    os.utime(changed, ns=(1, 1))
    with pytest.raises(hlo.InputError, match="changed while"):
        len(module.entry)


# ---- the text


def test_the_text_answers_like_a_string(
    file: Callable[[str | bytes], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slices, finding, lines, across blocks of every size."""
    path = file(TWO)
    for size in (1, 2, 7, 64, 1 << 18):
        monkeypatch.setattr(file_text, "BLOCK", size)
        text = file_text.FileText(str(path))
        source, whole = file_text.FileSource(text, "a"), hlo.Source(TWO, "a")  # type: ignore[arg-type]
        assert len(text) == len(TWO)
        assert text == TWO
        assert (text[-1], text[5]) == (TWO[-1], TWO[5])
        for start, end in (
            (0, 10),
            (3, 3),
            (5, 2),
            (-20, -3),
            (7, 1 << 40),
            (0, None),
            (None, 63),
            (63, 129),
        ):
            assert text[start:end] == TWO[start:end]
        for word in ("\n", "ROOT", "%unused", "nowhere", "%double (p: f32[4]) -> f32[4] {\n  %p", "}"):
            assert (word in text) == (word in TWO)
            assert text.count(word) == TWO.count(word)
            for start, end in ((0, None), (100, None), (100, 150), (-30, None), (0, 5)):
                assert text.find(word, start, end) == TWO.find(word, start, end)
                assert text.rfind(word, start, end) == TWO.rfind(word, start, end)
        assert text.startswith("HloModule")
        assert text.startswith(("x", "two"), 10)
        assert not text.startswith("two")
        for offset in random.Random(size).sample(range(len(TWO) + 1), 80):
            assert source.position(offset) == whole.position(offset)
            assert (
                source.bounds_at(offset) == whole.bounds_at(offset) == whole.bounds(whole.position(offset)[0])
            )
        for number in range(-1, TWO.count("\n") + 4):
            assert source.bounds(number) == whole.bounds(number)
            assert source.line(number) == whole.line(number)


def test_pieces_of_every_size_give_the_same(
    file: Callable[[str | bytes], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line or a computation may begin in one piece of the file and end in another."""
    path = file(TWO + "\n\n")
    whole = hlo.load(path, lazy=False)
    for size in (*range(1, 60), 100, 200, len(TWO)):
        monkeypatch.setattr(file_index, "_PIECE", size)
        assert difference(opened(path), whole, exact=True) is None


def test_a_file_that_is_rewritten_with_its_times_set_back(file: Callable[[str | bytes], Path]) -> None:
    """Size and time say nothing then. Names and permissions may change, though."""
    path = file(TWO)
    before = path.stat()
    module = opened(path)
    path.chmod(0o600)
    other = path.with_name("other.txt")
    other.hardlink_to(path)
    moved = path.rename(path.with_name("moved.txt"))
    assert module.entry.root.opcode == "call"
    moved.rename(path)
    module = opened(path)
    text = TWO.replace("negate", "cosine")
    assert len(text) == len(TWO)
    path.write_bytes(text.encode())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    with pytest.raises(hlo.InputError, match="changed while"):
        list(module.entry)

"""Dump folders of XLA's releases from 2024 on: ages, side files, and memory as that release assigned it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext import cost, dumps, memory, thunks
from hlotext.cli.folders import chosen
from hlotext.ir.nodes.instruction import Form, Instruction
from hlotext.memory import usage
from hlotext.memory.assignment import peak_bytes
from tests.versions_data import ARCHIVES, finished, unpacked


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def archive(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def test_the_age_of_a_folder_holds_the_true_one(archive: Path, tmp_path: Path) -> None:
    root, facts = unpacked(archive, tmp_path)
    age = finished(root).age
    assert age.since is not None
    assert str(age.since) <= facts["xla_until"]
    assert age.until is None or str(age.until) >= facts["xla_from"]
    if facts["jax"] < "0.10" and facts["jax"] != "head":
        assert age.until is not None
        assert (age.until - age.since).days <= 300


def test_memory_is_read_whole_and_as_it_is_computed(archive: Path, tmp_path: Path) -> None:
    root, facts = unpacked(archive, tmp_path)
    compilation = finished(root)
    read = memory.load(compilation.path)
    assert not read.unread
    assert not [
        note for note in read.notes if "form" in note or "no file" in note or "not in the text" in note
    ]
    assert read.schedule
    assert all(isinstance(place, Instruction) for place in read.schedule)
    computed = memory.assign(compilation.module, chip=facts.get("chip"), age=compilation.age)
    assert [str(d) for d in memory.differences(read, computed) if not d.is_estimated] == []


def test_names_that_a_compact_text_lacks_stand_for_elements(tmp_path: Path) -> None:
    archive = next(path for path in ARCHIVES if path.name == "0.12.0.1.cpu.whiles.tar.xz")
    root, _ = unpacked(archive, tmp_path)
    compilation = finished(root)
    read = memory.load(compilation.path)
    named = {name: i for i, name in read.elements.items()}
    assert named
    for name, element in named.items():
        assert element.form is Form.COMPACT
        assert element.name != name
    (ranges,) = root.glob("*-live-range.txt")
    assert memory.texts(read)["-live-range.txt"] == ranges.read_text()  # by XLA's names again


def test_a_file_that_is_not_read_whole_is_not_called_read(tmp_path: Path) -> None:
    archive = next(path for path in ARCHIVES if path.name == "0.12.0.1.cpu.whiles.tar.xz")
    root, _ = unpacked(archive, tmp_path)
    (path,) = root.glob("*-buffer-assignment.txt")
    text = path.read_text()
    path.write_text(text.replace("allocation 0: size ", "allocation 0: at size "))
    found, why = memory.load_beside(str(path))
    assert found is None
    assert "an unrecognized line" in why
    path.write_text(text.replace(", page 0", ", shelf 3, page 0", 1))  # a word that XLA may have tomorrow
    found, why = memory.load_beside(str(path))
    assert found is not None
    assert found.allocations[0].other_flags == ("shelf 3",)
    assert found.allocations[0].page == 0


def test_tpu_takes_buffers_in_the_order_of_time_since_fast_merge(tmp_path: Path) -> None:
    archive = next(path for path in ARCHIVES if path.name == "0.12.0.1.tpu.conds.tar.xz")
    root, facts = unpacked(archive, tmp_path)
    module = finished(root).module
    read = memory.load(finished(root).path)

    def wrong(age: str) -> int:
        computed = memory.assign(module, chip=facts["chip"], age=age)
        return sum(not d.is_estimated for d in memory.differences(read, computed))

    assert wrong("0.12") == 0
    assert wrong("0.10.2") > 0
    told = memory.assign(module, chip=facts["chip"]).age  # by the text
    assert told is not None
    assert told.since is not None
    assert told.since >= date(2026, 6, 16)


def test_what_memory_does_not_hold_is_packed_by_size(tmp_path: Path) -> None:
    """Heaps in the order of time need a third more here: TPU's compiler takes them where the chip has room for them alone."""
    archive = next(path for path in ARCHIVES if path.name == "0.10.2.tpu.attention.tar.xz")
    root, _ = unpacked(archive, tmp_path)
    module = finished(root).module

    def assigned(chip: str | None) -> memory.Assignment:
        return memory.assign(module, "tpu", chip, age="0.10.2", places_fast_memory=False)

    def needed(chip: str | None) -> usage.SpaceUsage:
        return usage.space_usage(assigned(chip), 0)

    read = usage.space_usage(memory.load(finished(root).path), 0)
    assert needed("v5e").needed == read.needed
    assert not needed("v5e").is_estimated
    assert needed("v5p").needed > 1.25 * read.needed
    assert needed("v5p").fragmentation > 0.2
    # The chip decides: where it is assumed, so is the size.
    assert needed(None).needed == read.needed
    assert needed(None).is_estimated
    assert any("packs them by size; a chip with more" in note for note in assigned(None).notes)
    assert peak_bytes(hlo.parse(str(module))) == memory.assign(module, places_fast_memory=False).peak().bytes


GPU = [path for path in ARCHIVES if ".gpu." in path.name]


@pytest.mark.parametrize("path", GPU, ids=lambda path: path.name.removesuffix(".tar.xz"))
def test_gpu_thunks_are_those_of_that_release(path: Path, tmp_path: Path) -> None:
    """Read without notes; predicted with the kinds and names that XLA had then."""
    root, _ = unpacked(path, tmp_path)
    done = finished(root)
    (listed,) = root.glob("*.thunk_sequence.txt")
    read = thunks.load(listed)
    assert not read.notes
    predicted = thunks.predict(done.module, done.compilation.options, age=done.age)
    kinds = [thunk.kind for thunk in read.walk() if thunk.kind != "kCommandBuffer"]
    assert [thunk.kind for thunk in predicted.walk()] == kinds
    for theirs, ours in zip(
        (thunk for thunk in read.walk() if thunk.kind != "kCommandBuffer"), predicted.walk(), strict=True
    ):
        assert theirs.name in (None, ours.name)
    kernels = [thunk for thunk in read.walk() if thunk.kind in ("kKernel", "kCustomKernel")]
    assert all(thunk.facts["launch"].threads[0] for thunk in kernels)


def test_the_text_tells_the_age_of_thunks_too() -> None:
    """Where nothing tells, the newest is taken."""
    text = (
        "HloModule m, is_scheduled=true\n\nfused {\n  p = f32[4]{0} parameter(0)\n  ROOT n = f32[4]{0} negate(p)\n}\n\n"
        "ENTRY e {\n  a = f32[4]{0} parameter(0)\n  ROOT f = f32[4]{0} fusion(a), kind=kLoop, calls=fused\n}\n"
    )
    kinds = {
        age: [t.kind for t in thunks.predict(hlo.parse(text), platform="gpu", age=age).walk()]
        for age in (None, "0.12", "0.9.2")
    }
    assert kinds == {None: ["kCustomKernel"], "0.12": ["kCustomKernel"], "0.9.2": ["kKernel"]}


def test_tables_of_tuples_cost_what_that_release_counts() -> None:
    text = "ENTRY e {\n  a = f32[4] parameter(0)\n  ROOT t = (f32[4], f32[4]) tuple(a, a)\n}\n"
    module = hlo.parse(text)
    found = {age: cost.analyze(module, age=age).bytes_accessed for age in (None, "0.11.2", "0.10.2")}
    assert found == {None: 8, "0.11.2": 8, "0.10.2": 16}


def test_a_dump_of_protos_alone_has_steps(tmp_path: Path) -> None:
    """A proto stands for the text of its name, and for none where the text is there."""
    pytest.importorskip("google.protobuf")
    module = hlo.parse(
        "HloModule jit_f\n\nENTRY %e (p: f32[4]) -> f32[4] {\n  ROOT %p = f32[4]{0} parameter(0)\n}\n"
    )
    names = ("before_optimizations", "0001.fusion.after_pipeline-start.before_cse", "cpu_after_optimizations")
    for name in names:
        (tmp_path / f"module_0000.jit_f.{name}.hlo.pb").write_bytes(module.to_proto())
    (tmp_path / "module_0000.jit_f.hlo_module_config.pb").write_bytes(b"\x0a\x00")
    (done,) = dumps.open(tmp_path)
    assert [step.name for step in done.steps] == [
        "before_optimizations",
        "pipeline-start",
        "cpu_after_optimizations",
    ]
    assert done.platform == "cpu"
    assert done.after is not None
    assert done.after.name == "jit_f"
    assert done.steps[1].stage == "fusion"
    assert done.steps[1].changes.is_same_text
    (tmp_path / "module_0000.jit_f.before_optimizations.txt").write_text(str(module))
    (done,) = dumps.open(tmp_path)
    assert [step.path.rpartition(".")[2] for step in done.steps] == ["txt", "pb", "pb"]


@pytest.mark.parametrize(
    ("path", "kind", "module"),
    [
        ("module_0001.jit_f.ir-no-opt.part_02.ll", "llvm-no-opt", "jit_f"),
        ("module_0001.jit_f.fusion.9.before_validation.ttir", "triton", "jit_f"),
        ("module_0001.jit_f.fusion.9.mlir-trace.txt", "mlir-log", "jit_f"),
        ("jit_f.fusion_9_impl.triton-passes.log", "mlir-log", "jit_f"),
        ("jit_f_1795438467453/module.mlir", "input-module", "jit_f"),
        ("jit_f_1795438467453/compile_options.pb", "input-options", "jit_f"),
        ("module_0001.jit_f.cl_889434569.sdc_metadata.txt", "sdc-metadata", "jit_f"),
        ("module_0001.jit_f.cl_878335365.after_codegen_after_hlo_sanitization.txt", "hlo-sanitized", "jit_f"),
        ("module_0001.jit_f.schedule.txt", "lhs-schedule", "jit_f"),
        ("main.3.module_0001.jit_f._fusion.html", "graph", "jit_f"),
    ],
)
def test_files_that_releases_wrote_are_known_and_joined(
    path: str, kind: str, module: str, tmp_path: Path
) -> None:
    for name in ("module_0001.jit_f.before_optimizations.txt", path):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (done,) = dumps.open(tmp_path)
    (file,) = (f for f in done.files if f.name.path == path)
    assert (file.kind, file.name.module) == (kind, module)


def test_copies_of_a_module_do_not_stand_in_the_way(tmp_path: Path) -> None:
    for name in (
        "module_0001.jit_f.before_optimizations.txt",
        "module_0006.jit_f-clone.0000.p.after_a.before_b.txt",
    ):
        (tmp_path / name).write_text("HloModule jit_f\n\nENTRY %e {\n  ROOT %p = f32[4]{0} parameter(0)\n}\n")
    assert chosen(str(tmp_path), None).name == "jit_f"

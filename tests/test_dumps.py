"""Dump folders: what their files are, which compilations they tell of, and what the files beside the texts say."""

from __future__ import annotations

import gzip
import lzma
import re
import tarfile
import zipfile
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext import compiler, dumps, memory
from hlotext.dumps.kinds import BY_NAME, KINDS
from hlotext.dumps.names import read_names
from tests.cli_support import run
from tests.dump_cases import DUMPS, unpacked

ROWS = [line.split(" :: ") for line in (DUMPS / "stages.txt").read_text().splitlines()]
MODULE = "HloModule {name}\n\nENTRY e {{\n  ROOT p = f32[] parameter(0)\n}}\n"


def write(folder: Path, *names: str, text: str = MODULE) -> Path:
    """Files with a small module in each, named as XLA would name that of the file."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(name=name.split(".")[1] if "." in name else "m"))
    return folder


# ---- names


@pytest.mark.parametrize(
    ("name", "module", "number", "kind"),
    [
        ("module_0000.jit_f.before_optimizations.txt", "jit_f", 0, "hlo-before"),
        ("module_12345.jit_f.cpu_after_optimizations.txt", "jit_f", 12345, "hlo-final"),
        ("module_0001.jit_f.sm_9.0a_gpu_after_optimizations.txt.zst", "jit_f", 1, "hlo-final"),
        ("module_0001.cluster_0__XlaCompiledKernel.sm_7.0_gpu_after_optimizations.txt",
         "cluster_0__XlaCompiledKernel", 1, "hlo-final"),
        ("module_0000.before_optimizations.txt", None, 0, "hlo-before"),
        ("module_0000.metadata.textproto", None, 0, "pass-metadata"),
        ("module_0000.jit_f.cl_933746096.after_codegen.txt", "jit_f", 0, "hlo-codegen"),
        ("module_0000.jit_f.cl_933746096.after_optimizations_before_buffer_assignment.txt", "jit_f", 0, "hlo-buffers"),
        ("1795324091650659.module_0000.jit_f.cpu_after_optimizations-memory-usage-report.pb.gz", "jit_f", 0, "proto"),
        ("module_0000.jit_f.before_optimizations.hlo.pb.gz", "jit_f", 0, "proto-hlo"),
        ("module_0007.a.b.before_optimizations.txt", "a.b", 7, "hlo-before"),
        ("module_0001.jit_f.autotuner_3.dot.4.before.txt", "jit_f", 1, "hlo-autotuner"),
        ("shardy/module_0001.jit_f/02.after_propagation.mlir", "jit_f", 1, "shardy"),
        ("module_0001.jit_f.cl_9/topology.textproto", "jit_f", 1, "input-topology"),
        ("notes-of-mine.md", None, None, "other"),
        ("module_x.txt", None, None, "other"),
        ("module_0001.jit_f.something.new", None, None, "other"),
    ],
)  # fmt: skip
def test_names(name: str, module: str | None, number: int | None, kind: str) -> None:
    """What each form of name tells."""
    (found,) = read_names([name])
    assert (found.module, found.number, found.kind.name) == (module, number, kind)


def test_steps_have_their_pipeline_and_pass() -> None:
    """A pipeline may be called like a stage, and a step may be one inside a pass."""
    paths = [
        "module_0000.jit_f.0003.After_X64_rewriter,_before_optimizations.after_dce.before_cse.txt",
        "module_0000.jit_f.0043.copy-insertion.after_adding_special-case_copies.txt",
    ]
    first, second = (name.step for name in read_names(paths))
    assert first is not None
    assert second is not None
    assert (first.number, first.pipeline, first.name, first.next) == (
        3, "After_X64_rewriter,_before_optimizations", "dce", "cse",
    )  # fmt: skip
    assert (second.pipeline, second.name, second.next) == (
        "copy-insertion",
        "after_adding_special-case_copies",
        None,
    )


def test_a_dotted_name_ends_where_other_files_say() -> None:
    """The suffix of a step could begin earlier."""
    names = read_names(
        [
            "module_0001.jit.0123.foo.before_optimizations.txt",
            "module_0001.jit.0123.foo.0002.p.after_x.before_y.txt",
        ]
    )
    assert {name.module for name in names} == {"jit.0123.foo"}
    assert names[1].step is not None
    assert names[1].step.number == 2


def test_kinds_are_told_apart() -> None:
    """Every kind has one row, and a name of its own."""
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    assert all(kind.what and kind.format for kind in BY_NAME.values())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(row[:3]) if isinstance(row, list) else row)
def test_stages(row: list[str]) -> None:
    """Every pass that the compilers ran has a stage."""
    _, pipeline, name, stage = row
    found = compiler.stages.of(pipeline, name)
    assert found is not None
    assert found.name == stage
    assert compiler.stages.of(pipeline.replace(" ", "_"), name) is found


# ---- folders


def test_a_folder_of_a_gpu(tmp_path: Path) -> None:
    """Files, steps in order, and what the side files say."""
    folder = dumps.open(unpacked("gpu.loops", tmp_path))
    c = folder["jit_f"]
    assert folder[1] is c
    assert (c.number, c.platform, len(c.steps)) == (1, "gpu", 82)
    assert [step.index for step in c.steps] == list(range(82))
    assert c.steps[0].file.kind == "hlo-before"
    assert c.steps[-1].file.kind == "hlo-final"
    assert all(step.stage != "unknown" for step in c.steps)
    assert c.before is not None
    assert c.after is not None
    assert str(c.after) == Path(c.steps[-1].path).read_text()
    assert c.options is not None
    assert c.options.dumps_every_change is True
    assert c.options.target is not None
    assert c.options.target.message("gpu_device_info").text("name") == "NVIDIA H100 80GB HBM3"
    assert len(c.passes) > 300
    for step in c.steps[1:-1]:
        run = c.pass_run(step)
        if run is not None:  # steps inside a pass are of no run
            assert run.name.replace(" ", "_") == step.name
            assert run.milliseconds is not None
    assert {step.kind for step in c.fusion_steps} == {"fusion", "update_priority", "producer_ineligible"}
    assert any(step.reason == "the consumer is not fusible" for step in c.fusion_steps)


def test_a_folder_of_a_tpu(tmp_path: Path) -> None:
    """The text behind the final one, transfers, and libtpu's inputs in a folder of their own."""
    c = dumps.open(unpacked("tpu.callback_io", tmp_path))["jit_f"]
    assert c.platform == "tpu"
    assert [step.name for step in c.steps[-2:]] == ["after_optimizations", "after_codegen"]
    assert c.last is c.steps[-2]
    assert [t.direction for t in c.host_transfers][:2] == ["DEVICE_TO_HOST", "HOST_TO_DEVICE"]
    assert c.files_of("input-module", "input-options", "input-topology")
    assert c.options is not None
    assert c.options.config is not None


@pytest.mark.parametrize("name", ["cpu.timestamps", "gpu.subfolders"])
def test_odd_names(name: str, tmp_path: Path) -> None:
    """Timestamps, subfolders, several modules of one name; packed and not."""
    packed = dumps.open(DUMPS / f"{name}.tar.xz")
    loose = dumps.open(unpacked(name, tmp_path))
    for folder in (packed, loose):
        assert not folder.notes
        assert all(c.first and c.last for c in folder)
        assert [c.number for c in folder] == sorted(c.number for c in folder)
    assert [c.number for c in packed] == [c.number for c in loose]
    assert [len(c.steps) for c in packed] == [len(c.steps) for c in loose]
    assert str(packed.compilations[0].before) == str(loose.compilations[0].before)


def test_an_archive_of_steps_inside_a_folder(tmp_path: Path) -> None:
    """Its files count as the folder's, but for those that stand there unpacked."""
    write(
        tmp_path,
        "module_0001.jit_f.before_optimizations.txt",
        "module_0001.jit_f.0000.p.after_x.before_y.txt",
    )
    with tarfile.open(tmp_path / "passes.tar.xz", "w:xz") as archive:
        archive.add(
            tmp_path / "module_0001.jit_f.0000.p.after_x.before_y.txt",
            "module_0001.jit_f.0001.p.after_y.before_z.txt",
        )
        archive.add(
            tmp_path / "module_0001.jit_f.0000.p.after_x.before_y.txt",
            "module_0001.jit_f.0000.p.after_x.before_y.txt",
        )
    c = dumps.open(tmp_path)["jit_f"]
    assert [step.name for step in c.steps] == ["before_optimizations", "x", "y"]
    assert c.steps[2].module.name == "jit_f"
    assert c.steps[2].file.archive == str(tmp_path / "passes.tar.xz")


@pytest.mark.parametrize("ending", [".tar", ".tar.gz", ".tar.xz", ".tar.zst", ".tgz"])
def test_packed_folders(ending: str, tmp_path: Path) -> None:
    """However they are packed."""
    folder = write(
        tmp_path / "dump",
        "module_0001.jit_f.before_optimizations.txt",
        "module_0001.jit_f.cpu_after_optimizations.txt",
    )
    with tarfile.open(tmp_path / "dump.tar", "w") as archive:
        archive.add(folder, "dump")
    data = (tmp_path / "dump.tar").read_bytes()
    if ending == ".tar.zst":
        zstandard = pytest.importorskip("zstandard")
        data = zstandard.compress(data)
    elif ending.endswith("gz"):
        data = gzip.compress(data)
    elif ending.endswith("xz"):
        data = lzma.compress(data)
    path = tmp_path / f"x{ending}"
    path.write_bytes(data)
    c = dumps.open(path)["jit_f"]
    assert c.after is not None
    assert c.after.name == "jit_f"
    texts = list(dumps.module_texts([path]))
    assert [(text.archive, text.load().name) for text in texts] == [(str(path), "jit_f")]


def test_one_file_of_a_folder(tmp_path: Path) -> None:
    """Opens its compilation alone, from subfolders of the compiler's too."""
    folder = unpacked("tpu.callback_io", tmp_path)
    write(folder, "module_0005.jit_g.before_optimizations.txt")
    for name in (
        "module_0000.jit_f.cl_933746096.before_optimizations.txt",
        "module_0000.jit_f.cl_933746096/module.mlir",
    ):
        opened = dumps.open(folder / name)
        assert [c.number for c in opened] == [0]
        assert len(opened.files) == 80
    assert not list(dumps.open(write(folder, "x.hlo") / "x.hlo"))


def test_what_is_not_there(tmp_path: Path) -> None:
    """Errors of the library."""
    folder = dumps.open(
        write(tmp_path, "module_0001.a.before_optimizations.txt", "module_0002.a.before_optimizations.txt")
    )
    with pytest.raises(LookupError, match="numbers 1, 2"):
        folder["a"]
    with pytest.raises(LookupError, match=r"holds no module b; it has a \(number 1\), a \(number 2\)"):
        folder["b"]
    with pytest.raises(hlo.InputError, match="does not exist"):
        dumps.open(tmp_path / "none")
    (tmp_path / "bad.tar.xz").write_bytes(b"\xfd7zXZ\x00rubbish")
    with pytest.raises(hlo.InputError, match=r"bad\.tar\.xz is a damaged"):
        dumps.open(tmp_path / "bad.tar.xz")


def test_two_processes_in_one_folder(tmp_path: Path) -> None:
    """They count from 0 each: one number stands for two modules."""
    folder = dumps.open(
        write(
            tmp_path,
            "module_0001.a.before_optimizations.txt",
            "module_0001.b.before_optimizations.txt",
            "module_0001.b.debug_options",
        )
    )
    assert [(c.number, c.name, len(c.files)) for c in folder] == [(1, "a", 1), (1, "b", 2)]
    assert [note.code for note in folder.notes] == ["mixed-processes"]


# ---- which texts are modules


def test_texts_of_modules(tmp_path: Path) -> None:
    """Of each compilation the final HLO, and nothing that is no module."""
    folder = unpacked("gpu.loops", tmp_path)
    write(folder, "module_0009.jit_dead.before_optimizations.txt", "mine.after_optimizations.txt")
    found = [Path(text.path).name for text in dumps.module_texts([folder])]
    assert found == [
        "mine.after_optimizations.txt",
        "module_0001.jit_f.sm_9.0a_gpu_after_optimizations.txt",
        "module_0009.jit_dead.before_optimizations.txt",
    ]
    assert len(list(dumps.module_texts([folder], "ends"))) == 4
    every = list(dumps.module_texts([folder], "all"))
    assert len(every) == 84
    assert all(text.load().name for text in every[-3:])
    file = folder / "module_0001.jit_f.debug_options"
    assert [text.path for text in dumps.module_texts([file, "-"])] == [str(file), "-"]


def test_loose_texts(tmp_path: Path) -> None:
    """Those called .hlo unread, others by what they hold."""
    write(tmp_path, "a.hlo", "b/c.hlo", text="")
    write(tmp_path, "notes.txt", text="of a HloModule")
    assert [Path(text.path).name for text in dumps.module_texts([tmp_path])] == ["a.hlo", "c.hlo"]
    write(tmp_path, "d.txt")
    assert [Path(text.path).name for text in dumps.module_texts([tmp_path])] == ["a.hlo", "c.hlo", "d.txt"]


def test_loose_texts_beside_dumps(tmp_path: Path) -> None:
    """Modules by their contents; a trace and XLA's other texts are left out."""
    folder = _beside_loose_texts(tmp_path)
    assert _names_of_modules(folder) == [
        "mine.txt",
        "module_0001.jit_f.sm_9.0a_gpu_after_optimizations.txt",
        "other.txt",
    ]
    counted = run("grep", "-c", "f32[] parameter(0)", folder)
    assert "mine.txt" in counted.stdout


def test_loose_protos_beside_dumps(tmp_path: Path) -> None:
    """A proto beside its text is the same module."""
    pytest.importorskip("google.protobuf")
    folder = _beside_loose_texts(tmp_path)
    proto = hlo.parse(_LOOSE).to_proto()
    for name in ("mine.hlo.pb", "alone.hlo.pb", "host.xplane.pb"):
        (folder / name).write_bytes(proto)
    assert _names_of_modules(folder) == [
        "alone.hlo.pb",
        "mine.txt",
        "module_0001.jit_f.sm_9.0a_gpu_after_optimizations.txt",
        "other.txt",
    ]


@pytest.mark.parametrize("ending", ["tar", "tar.gz", "zip"])
def test_protos_of_any_name_are_read_from_archives(tmp_path: Path, ending: str) -> None:
    """As from folders; what is packed beside them and is no module is left out."""
    pytest.importorskip("google.protobuf")
    proto = hlo.parse(_LOOSE).to_proto()
    folder = tmp_path / "files"
    (folder / "deep").mkdir(parents=True)
    for name, data in (("c.hlo.pb", proto), ("deep/x.pb", proto), ("notes.txt", b"no module\n")):
        (folder / name).write_bytes(data)
    place = tmp_path / f"packed.{ending}"
    if ending == "zip":
        with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as packed:
            for path in sorted(folder.rglob("*")):
                packed.write(path, path.relative_to(folder))
    else:
        with tarfile.open(place, "w:gz" if ending.endswith("gz") else "w") as archive:
            archive.add(folder, ".")
    texts = list(dumps.module_texts([place]))
    assert [text.path for text in texts] == ["c.hlo.pb", "deep/x.pb"]
    assert [text.load().name for text in texts] == ["m", "m"]
    assert run("show", place).exit_code == 0
    assert run("check", place).exit_code == 0


def test_a_damaged_zip_is_unreadable(tmp_path: Path) -> None:
    place = tmp_path / "bad.zip"
    place.write_bytes(b"PK\x03\x04rubbish")
    with pytest.raises(hlo.InputError, match="is not a readable archive"):
        dumps.open(place)
    with zipfile.ZipFile(place, "w") as packed:
        packed.writestr("m.hlo", _LOOSE)
    data = place.read_bytes()
    place.write_bytes(data.replace(b"ENTRY", b"EXTRY", 1))
    with pytest.raises(hlo.InputError, match="cannot be read"):
        next(iter(dumps.module_texts([place]))).load()


_LOOSE = "HloModule m\n\nENTRY e {\n  ROOT a = f32[] parameter(0)\n}\n"


def _beside_loose_texts(tmp_path: Path) -> Path:
    folder = unpacked("gpu.loops", tmp_path)
    for name in (
        "mine.txt",
        "b/other.txt",
        "module_0001.jit_f.oom_intermediate_module.txt",
        "mine.before_optimizations.txt",
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(_LOOSE)
    (folder / "error.txt").write_text("RESOURCE_EXHAUSTED\n")
    return folder


def _names_of_modules(folder: Path) -> list[str]:
    return sorted(Path(text.path).name for text in dumps.module_texts([folder]))


def test_twenty_thousand_files(tmp_path: Path) -> None:
    """Names alone are read, once."""
    for number in range(20_000):
        (tmp_path / f"module_{number // 4:04d}.jit_f.{number % 4:04d}.p.after_x.before_y.txt").touch()
    folder = dumps.open(tmp_path)
    assert len(folder) == 5_000
    assert [c.number for c in folder] == list(range(5_000))
    assert [step.number for step in folder[4_999].steps] == [0, 1, 2, 3]
    assert {note.code for note in folder[7].notes} == {"no-final-text", "no-first-text"}


@pytest.mark.parametrize(
    "folder", ["cpu.donation.cpu_1", "gpu.mlp_train.h100_1x1x1", "tpu.donation.v5e_2x2x1"]
)
def test_memory_as_the_files_of_a_dump_say(folder: str) -> None:
    """Allocations and lives of XLA's own files, on the final HLO."""
    [found] = dumps.open(DUMPS.parent / "memory" / folder).compilations
    read = found.memory
    assert read is not None
    assert not read.is_computed
    assert found.after is not None
    assert not memory.differences(read, memory.assign(found.after, age=found.age))


def test_no_memory_without_files(tmp_path: Path) -> None:
    name = "module_0001.jit_f.cpu_after_optimizations"
    (tmp_path / f"{name}.txt").write_text("HloModule f\n\nENTRY e {\n  ROOT p = f32[2] parameter(0)\n}\n")
    assert dumps.open(tmp_path).compilations[0].memory is None
    (tmp_path / f"{name}-buffer-assignment.txt").write_text("nothing of the kind")
    [found] = dumps.open(tmp_path).compilations
    assert found.memory is None
    assert any("memory files" in note.message for note in found.notes)


def test_a_module_that_is_not_there_is_not_far(tmp_path: Path) -> None:
    """Names that hold the wanted one, then one spelled alike; else the first ones, and how many more there are."""
    names = [*(f"jit_helper_{n}" for n in range(20)), "jit_train_step"]
    write(tmp_path, *(f"module_{n:04}.{name}.cpu_after_optimizations.txt" for n, name in enumerate(names)))
    folder = dumps.open(tmp_path)
    for wanted, said in (
        ("train_step", "did you mean jit_train_step (number 20)?"),
        ("jit_train_stop", "did you mean `jit_train_step`?"),
        ("jit_helper", "it has jit_helper_0 (number 0), "),
        ("quite-another", "and 11 more"),
    ):
        with pytest.raises(LookupError, match=re.escape(said)):
            folder[wanted]

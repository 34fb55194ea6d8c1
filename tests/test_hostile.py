"""What a colleague's dump, a broken disk or a killed process may do to the library and the command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext import lint
from hlotext.lint import workers
from hlotext.lint.config import ConfigError
from hlotext.rewrite.kit.limits import PassLimitError
from hlotext.rewrite.passes import PASSES
from hlotext.syntax.source import inputs
from tests import cli_support

TUPLE = "(s32[], f32[4])"
LOOPS = (
    f"HloModule m\n\n%c (q: {TUPLE}) -> pred[] {{\n  %q = {TUPLE} parameter(0)\n  ROOT %k = pred[] constant(true)\n}}\n\n"
    f"%b0 (p: {TUPLE}) -> {TUPLE} {{\n  ROOT %p = {TUPLE} parameter(0)\n}}\n\n"
)
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and links of POSIX")
GOOD = "HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n"


def nested_loops(depth: int, count: str) -> str:
    """Loops in each other, each said to run so often."""
    text = LOOPS
    for i in range(1, depth + 1):
        entry = "ENTRY " if i == depth else ""
        config = f'backend_config={{"known_trip_count":{{"n":{count}}}}}'
        text += (
            f"{entry}%b{i} (p.{i}: {TUPLE}) -> {TUPLE} {{\n  %p.{i} = {TUPLE} parameter(0)\n"
            f"  ROOT %w.{i} = {TUPLE} while(%p.{i}), condition=%c, body=%b{i - 1}, {config}\n}}\n\n"
        )
    return text


def calls(n: int) -> str:
    """Calls that double at each level."""
    text = "HloModule m\n\ng0 {\n  p = f32[] parameter(0)\n  ROOT r = f32[] negate(p)\n}\n"
    for i in range(1, n + 1):
        entry = "ENTRY " if i == n else ""
        text += (
            f"{entry}g{i} {{\n  p.{i} = f32[] parameter(0)\n  a.{i} = f32[] call(p.{i}), to_apply=g{i - 1}\n"
            f"  ROOT b.{i} = f32[] call(a.{i}), to_apply=g{i - 1}\n}}\n"
        )
    return text


@pytest.mark.parametrize("count", ["1e999", "-1", '"9"', '"999999999999999999"', "NaN", f'"{"9" * 5000}"'])
@pytest.mark.parametrize(
    "command", [["show"], ["show", "-i", "w.2"], ["lint", "--isolated"], ["cost"], ["time", "--chip", "v5e"]]
)
def test_trip_counts_that_no_loop_has(command: list[str], count: str, tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_text(nested_loops(40, count))
    result = cli_support.run(*command, path)
    assert result.exit_code in (0, 1), result.stderr


@pytest.mark.parametrize("name", ["call-inliner", "flatten-call-graph"])
def test_calls_that_double_are_bounded(name: str) -> None:
    module = hlo.parse(calls(40))
    with pytest.raises(PassLimitError, match=f"{name} would add more than 2[0-9],"):
        PASSES[name]().run(module)
    assert PASSES[name]().run(hlo.parse(calls(6))).changed


@pytest.mark.parametrize(
    "text",
    ["tool = 3\n", "[[tool]]\n", "[tool]\nhlotext = 4\n", "[tool.hlotext]\nlint = 4\n", "a = " + "[" * 5000],
)
def test_wrong_configurations(text: str, tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"pyproject\.toml"):
        lint.load_config(path)


@pytest.mark.parametrize(
    "text",
    ["[1]", "3", '{"version": 1}', '{"version": 1, "findings": 3}', '{"version": 1, "findings": [3]}', "[" * 100_000,
     '{"version": 1, "findings": [{"fingerprint": 1, "code": 1, "count": 1, "module": 1, "message": 1}]}',
     '{"version": 1, "findings": [{"fingerprint": "", "code": "", "count": 1e999, "module": "", "message": ""}]}'],
)  # fmt: skip
def test_wrong_baselines(text: str) -> None:
    with pytest.raises(lint.BaselineError):
        lint.Baseline.from_text(text)


@POSIX
@pytest.mark.parametrize("command", ["show", "fmt"])
def test_output_that_cannot_be_written(command: str, tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_text(GOOD)
    arguments = [sys.executable, "-m", "hlotext", command, str(path)]
    with open("/dev/full", "w") as full:
        result = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr == "hlotext: standard output: cannot write: No space left on device\n"
    closed = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *arguments], stderr=subprocess.PIPE, text=True, check=False
    )
    assert closed.returncode == 2
    assert closed.stderr == "hlotext: standard output is closed\n"


# ---- sources


def test_one_bound_for_every_kind_of_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip
    import io

    monkeypatch.setenv(inputs.LIMIT_VARIABLE, "64K")
    plain, packed = tmp_path / "m.txt", tmp_path / "m.txt.gz"
    text = GOOD + "//" + " " * (1 << 16)
    plain.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    for source in (plain, packed, io.StringIO(text), io.BytesIO(text.encode()), "/dev/zero"):
        if source == "/dev/zero" and os.name != "posix":
            continue
        with pytest.raises(
            hlo.InputError, match="more than 65,536 bytes; raise the limit with HLOTEXT_MAX_SOURCE"
        ):
            hlo.load(source)
    monkeypatch.setenv(inputs.LIMIT_VARIABLE, "65K")
    for source in (plain, packed, io.StringIO(text), io.BytesIO(text.encode())):
        assert hlo.load(source).name == "m"
    assert cli_support.run("show", "-", input=text.encode()).exit_code == 0
    result = cli_support.run("--max-source", "60K", "show", "-", input=text.encode())
    assert result.exit_code == 2
    assert "<stdin> holds more than 61,440 bytes" in result.stderr
    monkeypatch.setenv(inputs.LIMIT_VARIABLE, "much")
    with pytest.raises(hlo.InputError, match="must be a number of bytes"):
        hlo.load(plain)
    assert cli_support.run("--max-source", "much", "show", plain).exit_code == 2


def test_memory_that_does_not_suffice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip

    def fail(*_: object) -> None:
        raise MemoryError

    path = tmp_path / "m.gz"
    path.write_bytes(gzip.compress(GOOD.encode()))
    monkeypatch.setattr(gzip.GzipFile, "read", fail)
    with pytest.raises(hlo.InputError, match="does not fit into memory"):
        hlo.load(path)


@POSIX
def test_pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are waited for, but not for ever."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(GOOD,))
    writer.start()
    assert hlo.load(path).name == "m"
    writer.join()
    monkeypatch.setattr(inputs, "_PATIENCE", 0.01)
    with pytest.raises(hlo.InputError, match="received no data"):
        hlo.load(path)


# ---- writing in place


@POSIX
def test_files_are_rewritten_as_they_are(tmp_path: Path) -> None:
    """Permissions and hard links stay, and nothing is left behind."""
    one, two, other = tmp_path / "one.txt", tmp_path / "two.txt", tmp_path / "other.txt"
    for path in (one, two):
        path.write_text(GOOD)
    os.link(one, other)
    two.chmod(0o640)
    inode = one.stat().st_ino
    assert cli_support.run("fmt", "-i", one, two).exit_code == 0
    assert one.read_text() == two.read_text() == other.read_text() != GOOD
    assert one.stat().st_ino == other.stat().st_ino == inode
    assert two.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.txt", "other.txt", "two.txt"]


@POSIX
def test_several_files_are_rewritten_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second cannot be replaced, so the first is what it was."""
    files = [tmp_path / "one.txt", tmp_path / "two.txt"]
    for path in files:
        path.write_text(GOOD)
    replace = os.replace

    def refuse(source: str, target: str) -> None:
        if target.endswith("two.txt"):
            raise PermissionError(1, "Operation not permitted")
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    result = cli_support.run("fmt", "-i", *files)
    assert result.exit_code == 2
    assert "two.txt: cannot write" in result.stderr
    assert [path.read_text() for path in files] == [GOOD, GOOD]
    assert len(list(tmp_path.iterdir())) == 2


# ---- processes


def work(number: int) -> int:
    if number == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


@POSIX
def test_a_process_that_dies_costs_one_task() -> None:
    batches = [list(range(start, start + 5)) for start in range(0, 50, 5)]
    results: dict[int, list[int | str]] = {}
    with workers.Pool[int, "int | str"](work, 2) as pool:
        for number, found in pool.run(batches, lambda task, status: f"{task} died of {status}"):
            results[number] = found
    flat = [result for number in range(len(batches)) for result in results[number]]
    assert flat == [n * n if n != 7 else "7 died of -9" for n in range(50)]


@POSIX
def test_a_killed_worker_names_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = []
    for number in range(40):
        path = tmp_path / f"{number:02}.txt"
        path.write_text(GOOD)
        files.append(str(path))
    real = lint.engine.lint_source

    def deadly(source: hlo.Source, config: lint.Config, *more: object) -> object:
        if source.name == files[17]:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(source, config, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(lint.files, "lint_source", deadly)
    results = list(lint.lint_files(files, lint.Config(), 2))
    assert [result.file for result in results] == files
    failed = [result for result in results if result.linted is None]
    assert [result.problem for result in failed] == [
        f"{files[17]}: the process that linted it died of SIGKILL"
    ]
    result = cli_support.run("lint", "--isolated", "--jobs", "2", *files)
    assert result.exit_code == 2
    assert result.stderr.count("died of SIGKILL") == 1


def children(process: int) -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == process and fields[0] != "Z":
            yield int(path.parent.name)


def is_gone(process: int) -> bool:
    """Whether a process has ended, though perhaps nobody has asked for its status yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_the_whole_group(number: int) -> None:
    """Also where the parent cannot do anything about it."""
    code = (
        "import time; from hlotext.lint.workers import Pool\n"
        "with Pool(time.sleep, 2) as pool:\n    list(pool.run([[10**6], [10**6]], lambda *_: None))\n"
    )
    # Nothing here is waited for by the clock: a machine may be as loaded as it likes.
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        while len(group := list(children(process.pid))) < 2:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(number)
        assert process.wait() == -number
    while not all(map(is_gone, group)):
        time.sleep(0.02)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_while_another_thread_reads(tmp_path: Path) -> None:
    """The child can read on: no lock that the other thread held stays locked."""
    bodies = "".join(
        f"%f{i} (p: f32[]) -> f32[] {{\n  %p = f32[] parameter(0)\n  ROOT %n = f32[] unheard-{i}(%p)\n}}\n\n"
        for i in range(3000)
    )
    path = tmp_path / "m.txt"
    path.write_text(f"HloModule m\n\n{bodies}ENTRY %e () -> f32[] {{\n  ROOT %c = f32[] constant(1)\n}}\n\n")
    module = hlo.load(path, lazy=True)
    reader = threading.Thread(target=module.materialize)
    reader.start()
    for _ in range(5):
        child = os.fork()
        if not child:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(20)
            os._exit(len(module.computations[-2]) + len(hlo.parse("f32[] unheard-of(f32[] x)").entry))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
    reader.join()

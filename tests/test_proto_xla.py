"""Protos against XLA: what jaxlib writes, prints and reads, and what JAX's profiler records."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext.ir.nodes.compare import difference
from tests import proto_cases, support
from tests.xla import is_newest

pytestmark = pytest.mark.xla
pytest.importorskip("google.protobuf")

FILES = [path for path in support.corpus_files() if path.stat().st_size < 400_000]
BATCH = 40
BATCHES = [FILES[start : start + BATCH] for start in range(0, len(FILES), BATCH)]

OTHERWISE = {
    "literals": "XLA's reader of texts makes a constant of bounded size static",
    "literals_full": "XLA's reader of texts loses the sign of zero, and E(4) of constants",
    "literals_full_short_text": "the same",
    "fsdp_tp_128": "the sign of zero",
    "gspmd_kinds": "the sign of zero",
    "sharded_sort_fft_conv": "the sign of zero",
    "pallas_flash_attention_grad": "the sign of zero",
    "callback_io": "XLA's reader makes shapes of its own for send and recv; to 0.10.2 it did so with protos too",
    "automatic_layouts": "XLA's reader fills in the layouts that the compiler is to choose",
}
"""Programs whose text XLA reads otherwise than it stands, and what the difference is: the proto written here has it right."""

OTHER_LINES = ("constant(", "HloModule", " send(", " recv(")
"""In which lines."""

WRITTEN_OUT = {"topk", "collective-broadcast"}
"""Opcodes with a flag that XLA writes out since 0.11, and had no field for before."""


def texts(paths: list[Path]) -> list[str]:
    return [support.read_text(path).decode("utf-8", "surrogateescape") for path in paths]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(BATCHES)))
def test_reading_prints_what_xla_prints(number: int) -> None:
    """XLA's proto of each text, read here, prints byte for byte as XLA prints it, and is the module of that print."""
    paths = BATCHES[number]
    for path, answer in zip(paths, proto_cases.of_texts(texts(paths), large=True), strict=True):
        if (
            answer is None or len(answer[1]) > 2_000_000
        ):  # XLA refuses it, or filled elided constants with junk
            continue
        proto, printed = answer
        module = hlo.proto.read_module(proto)
        ours = module.to_text(hlo.PrintOptions(print_large_constants=True))
        # To 0.10.2 XLA has no such fields: its protos mean the unstable one of today.
        if not is_newest():
            ours = ours.replace(", is_stable=false", "").replace(", has_dynamic_root=false", "")
        assert ours == printed, path
        if any(i.opcode == "async-start" for i in module.instructions()):
            continue  # the short spelling hides names that the proto has
        if any(i.opcode in WRITTEN_OUT for i in module.instructions()) and not is_newest():
            continue  # text without the word means a stable topk, and has no word where a proto says false
        found = difference(module, hlo.parse(printed))
        # The text has six digits of epsilon, the proto all bits.
        assert found is None or "attribute epsilon" in found, (path, found)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(BATCHES)))
def test_xla_reads_what_is_written(number: int) -> None:
    """The proto written of each text prints, by XLA, as XLA's own proto of the text does."""
    paths = BATCHES[number]
    answers = proto_cases.of_texts(texts(paths))
    known = [(path, answer[1]) for path, answer in zip(paths, answers, strict=True) if answer is not None]
    protos = [hlo.load(path).to_proto(fill_elided=True) for path, _ in known]
    for (path, wanted), printed in zip(known, proto_cases.of_protos(protos), strict=True):
        assert printed is not None, path
        if printed != wanted:
            lines = zip(printed.split("\n"), wanted.split("\n"), strict=True)
            wrong = [line for line, other in lines if line != other]
            assert path.name.partition(".")[0] in OTHERWISE, (path, wrong)
            assert all(any(word in line for word in OTHER_LINES) for line in wrong), (path, wrong)


_PROFILED = """
import os, sys
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_dump_to={sys.argv[1]}/dump --xla_dump_hlo_as_proto"
import glob, json
import jax
import numpy as np

@jax.jit
def product(x):
    return jax.numpy.sin(x) @ x.T + 1

@jax.jit
def loop(x):
    return jax.lax.scan(lambda c, _: (c * 1.01 + jax.numpy.tanh(c), c.sum()), x, None, length=5)

x = np.ones((64, 64), np.float32)
with jax.profiler.trace(f"{sys.argv[1]}/trace"):
    for _ in range(3):
        product(x).block_until_ready()
    jax.block_until_ready(loop(x))
print(json.dumps(glob.glob(f"{sys.argv[1]}/trace/**/*.xplane.pb", recursive=True)))
"""


@pytest.mark.slow
def test_a_trace_of_jax(tmp_path: Path) -> None:
    """Every module that ran is listed, opens, equals the dump of its compilation, and has its runs and times."""
    pytest.importorskip("jax")
    run = subprocess.run(
        [sys.executable, "-c", _PROFILED, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=support.ROOT,
        check=True,
    )
    (path,) = json.loads(run.stdout.splitlines()[-1])
    trace = hlo.proto.read_trace(Path(path).read_bytes(), path)
    assert {module.name: module.runs for module in trace.modules} == {"jit_product": 3, "jit_loop": 1}
    assert trace.others == ()
    assert len(hlo.load_all(path)) == 2
    for traced in trace.modules:
        (dumped,) = (tmp_path / "dump").glob(f"*.{traced.name}.*after_optimizations.hlo.pb")
        assert difference(traced.module, hlo.load(dumped)) is None
        assert traced.seconds is not None
        names = {instruction.name for instruction in traced.module.instructions()}
        assert traced.times
        assert traced.times.keys() <= names
        assert sum(time.seconds for time in traced.times.values()) > 0
    (loop,) = (module for module in trace.modules if module.name == "jit_loop")
    (body,) = (i for i in loop.module.entry if i.opcode == "while")
    assert loop.time_of(body) is not None

"""Asks XLA's own verifier (`HloVerifier`, through jaxlib's CPU compiler) about texts, also those for TPU and GPU.

A callback before the scheduler hands the compiler another module than the one being compiled; XLA verifies it; a second
callback after the scheduler tells that it passed. Many texts share a process; a new one starts where XLA aborts. The
entry is called by an entry of another signature, so that any module fits. Not judged: the header's layouts, aliases and
replica count, and what nothing calls.

`python -m tests.xla_verifier FILE ...` prints a verdict for each file.
"""

from __future__ import annotations

import contextlib
import json
import lzma
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

_SERVER = r"""
import json, os, re, sys
DEVICES = 64
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
os.environ |= {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
import jax
import numpy as np
from jax.extend import xla
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxlib import _hlo

DROPPED = ("entry_computation_layout", "input_output_alias", "buffer_donor")
given, passed = [b""], []

def after(_):
    passed.append(1)
    raise RuntimeError("reached")

xla.register_hlo_module_transformation(lambda _: given[0], name="given", stage=xla.PipelineStage.PRE_SCHEDULER)
xla.register_hlo_module_transformation(after, name="passed", stage=xla.PipelineStage.POST_SCHEDULER)

def without(head):
    for name in DROPPED:
        start = head.find(f", {name}={{")
        if start >= 0:
            depth, end = 0, head.index("{", start)
            for end in range(end, len(head)):
                depth += (head[end] == "{") - (head[end] == "}")
                if not depth:
                    break
            head = head[:start] + head[end + 1:]
    return head

def shape_at(text, start):
    depth, tuple_ = 0, text[start] == "("
    for end in range(start, len(text)):
        depth += (text[end] in "({[") - (text[end] in ")}]")
        if tuple_ and not depth:
            return text[start:end + 1]
        if not tuple_ and text[end] == " " and not depth:
            return text[start:end]
    raise ValueError("a shape without an end")

def wrapped(text):
    head, _, rest = text.partition("\n")
    lines = [without(head), *rest.split("\n")]
    first = next(i for i, line in enumerate(lines) if line.startswith("ENTRY "))
    last = next(i for i in range(first, len(lines)) if lines[i] == "}" or lines[i].startswith("}, execution_thread="))
    parameters, root = {}, None
    for line in lines[first + 1:last]:
        if found := re.match(r"\s+(?:ROOT )?%?[^ =]+ = (.*?) parameter\((\d+)\)", line):
            parameters[int(found[2])] = found[1]
        if found := re.match(r"\s+ROOT %?[^ =]+ = ", line):
            root = shape_at(line, found.end())
    name = re.match(r"ENTRY (%?[^ ]+)", lines[first])[1]
    lines[first] = lines[first].removeprefix("ENTRY ")
    entry = ["", "ENTRY %wrapper_of_all {", "  %w_p = f32[2]{0} parameter(0)"]
    for number, shape in sorted(parameters.items()):
        entry.append(f'  %w_{number} = {shape} custom-call(), custom_call_target="make", custom_call_has_side_effect=true')
    called = ", ".join(f"%w_{number}" for number in sorted(parameters))
    entry += [f"  %w_c = {root} call({called}), to_apply={name}", "  ROOT %w_r = f32[2]{0} add(%w_p, %w_p)", "}"]
    return "\n".join(lines[:last + 1] + entry + lines[last + 1:])

lowered = {}

def program(count):
    if count not in lowered:
        mesh = Mesh(np.array(jax.devices("cpu")[:count]), ("x",))
        sharding = NamedSharding(mesh, PartitionSpec("x"))
        jitted = jax.jit(lambda x: x + 1, in_shardings=sharding, out_shardings=sharding)
        lowered[count] = jitted.lower(jax.ShapeDtypeStruct((2 * count,), "float32"))
    return lowered[count]

def judge(text):
    found = re.search(r"num_partitions=(\d+)", text.partition("\n")[0])
    count = int(found[1]) if found else 1
    if not 1 <= count <= DEVICES:
        return "skipped", f"{count} partitions"
    try:
        read = _hlo.hlo_module_from_text(text).to_string()
    except Exception as error:
        return "unreadable", str(error)
    try:
        module = _hlo.hlo_module_from_text(wrapped(read))
    except Exception as error:
        return "unreadable", "wrapped: " + str(error)
    given[0] = module.as_serialized_hlo_module_proto()
    passed.clear()
    try:
        program(count).compile()
    except Exception as error:
        return ("ok", "") if passed else ("refused", str(error))
    raise SystemExit("neither callback stopped the compiler")

for line in sys.stdin:
    print(json.dumps(judge(json.loads(line))), file=answers, flush=True)
"""


@attrs.frozen
class Verdict:
    """What XLA says of one text."""

    word: str
    """`ok`, `refused`, `unreadable`, `died` (XLA aborted) or `skipped` (too many partitions)."""
    message: str = ""

    @property
    def is_refused(self) -> bool:
        """Whether XLA does not take the text."""
        return self.word in ("refused", "unreadable", "died")


def judge(texts: Iterable[str]) -> Iterator[Verdict]:
    """XLA's verdict on each text, in their order."""
    process = None
    for text in texts:
        if process is None:
            process = _start()
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(text) + "\n")
            process.stdin.flush()
        answer = process.stdout.readline()
        if answer:
            yield Verdict(*json.loads(answer))
        else:
            yield Verdict("died", f"exit status {_finish(process)}")
            process = None
    if process is not None:
        _finish(process)


def _finish(process: subprocess.Popen[str]) -> int:
    """Its exit status, once it has ended."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()
    return process.wait()


def _start() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def _main(paths: list[str]) -> int:
    def read(path: Path) -> str:
        data = path.read_bytes()
        return (lzma.decompress(data) if path.suffix == ".xz" else data).decode("utf-8", "surrogateescape")

    refused = 0
    for path, verdict in zip(paths, judge(read(Path(path)) for path in paths), strict=True):
        refused += verdict.is_refused
        first = verdict.message.strip().partition("\n")[0][:300]
        print(f"{path}: {verdict.word}{': ' if first else ''}{first}", flush=True)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))

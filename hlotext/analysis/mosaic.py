"""Mosaic kernels: the MLIR in the configuration of a `tpu_custom_call`, as text, and what one call does."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from hlotext.ir.caches import Cache
from hlotext.ir.nodes.instruction import Instruction

MOSAIC = "tpu_custom_call"
_CHILD = Path(__file__).with_name("mosaic_child.py")
_SECONDS = 60.0
_WITHOUT_JAXLIB = "reading Mosaic kernel bodies needs jaxlib: pip install 'hlotext[jax]'"


@attrs.frozen
class MosaicKernel:
    """Contents of a Mosaic kernel. If `error` is set, the kernel cannot be read and all other fields are meaningless."""

    text: str = ""
    """MLIR."""
    products: tuple[tuple[str, int], ...] = ()
    """Operations of matrix products, all rounds of the kernel together, by the kind of type (`Rates.peaks`)."""
    flops: int = 0
    """Other operations on vectors that are not transcendental; scalars, which control the kernel, do not count."""
    transcendentals: int = 0
    is_at_most: bool = False
    """True if some of them are in a branch, such as for the blocks that a mask lets through: all branches count."""
    open: str = ""
    """The reason why there may be more: a loop whose rounds are not known counts once."""
    error: str = ""


def kernel_bodies(instructions: Iterable[Instruction]) -> Mapping[Instruction, str]:
    """Returns the encoded bodies of the instructions that are Mosaic kernels."""
    found = {}
    for instruction in instructions:
        if instruction.opcode == "custom-call" and instruction.attributes.get("custom_call_target") == MOSAIC:
            body = _body(instruction)
            if body is not None:
                found[instruction] = body
    return found


def _body(instruction: Instruction) -> str | None:
    config = instruction.backend_config
    try:
        body = config.json()["custom_call_config"]["body"] if config is not None else None
    except (KeyError, TypeError, ValueError):
        return None
    return body if isinstance(body, str) and body.isascii() else None


_KERNELS = Cache(64)


def kernels(instructions: Iterable[Instruction]) -> Mapping[Instruction, MosaicKernel]:
    """Reads the Mosaic kernels among some instructions, each distinct body once.

    A child process reads them with jaxlib, so that a malformed body cannot crash this process.
    """
    bodies = kernel_bodies(instructions)
    read = {body: found for body in bodies.values() if (found := _KERNELS.results.get(body)) is not None}
    missing = [body for body in dict.fromkeys(bodies.values()) if body not in read]
    for body, kernel in zip(missing, _read(missing), strict=True):
        read[body] = kernel
        _KERNELS.put(body, kernel)
    return {instruction: read[body] for instruction, body in bodies.items()}


def _read(bodies: list[str]) -> list[MosaicKernel]:
    """Each body's kernel. Behind a body that ends the child another child goes on."""
    found: list[MosaicKernel] = []
    if bodies and importlib.util.find_spec("jaxlib") is None:
        return [MosaicKernel(error=_WITHOUT_JAXLIB) for _ in bodies]
    while len(found) < len(bodies):
        answers, why = _answers(bodies[len(found) :])
        found += map(_kernel, answers)
        if len(found) < len(bodies):
            found.append(MosaicKernel(error=why))
    return found


def _answers(bodies: list[str]) -> tuple[list[dict[str, Any]], str]:
    """The answers of a child to the bodies, as far as it comes, and the reason why it came no further."""
    lines = "".join(f"{''.join(body.split())}\n" for body in bodies)
    why = "jaxlib crashes on it"
    try:
        out = subprocess.run(
            [sys.executable, "-P", str(_CHILD)],
            input=lines,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        ).stdout
    except subprocess.TimeoutExpired as error:
        out = (error.stdout or b"").decode("utf-8", "replace") if isinstance(error.stdout, bytes) else ""
        why = f"reading it took longer than {_SECONDS:g} seconds"
    answers = []
    for line in out.splitlines():
        try:
            answers.append(json.loads(line))
        except ValueError:
            break
    return answers, why


def _kernel(answer: dict[str, Any]) -> MosaicKernel:
    if "error" in answer:
        return MosaicKernel(error=" ".join(str(answer["error"]).split())[:300])
    return MosaicKernel(
        answer["text"],
        tuple(sorted(answer["products"].items())),
        answer["flops"],
        answer["transcendentals"],
        answer["is_at_most"],
        answer["open"],
    )

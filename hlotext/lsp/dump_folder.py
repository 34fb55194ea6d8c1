"""Answers that need the document's dump folder: the reason for an instruction, and its earlier steps."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from lsprotocol import types

import hlotext as hlo
from hlotext import compiler
from hlotext.dumps import Compilation
from hlotext.dumps.texts import compilation_beside
from hlotext.lsp.documents import Document

_MOST_STEPS = 2_000


def compilation_of(path: str | None) -> Compilation | None:
    """Returns the compilation of a file; None if it is not in a dump folder with several steps."""
    found = compilation_beside(path) if path is not None else None
    return found if found is not None and len(found.steps) > 1 else None


def why(compilation: Compilation, name: str) -> str:
    """Returns text on the pass that added an instruction of the final HLO, and its cause."""
    try:
        cause = compilation.why(name)
    except LookupError:
        return f"{name} is not in the final HLO of {compilation.name}; ask in that file"
    except (hlo.InputError, hlo.HloSyntaxError) as error:
        return f"the dump folder cannot be read: {error}"
    lines = [f"{name}: {cause.cause} (confidence: {cause.confidence})"]
    lines.append(f"because: {cause.because or 'unknown: the dumps do not show it'}")
    if cause.step is not None:
        lines.append(f"step {cause.step.index}: {cause.step.name} ({cause.step.stage})")
    lines += cause.evidence
    lines.append(f"chain: {cause.chain}")
    for answer in compiler.why(compilation, name):
        for decision in answer.decisions[:3]:
            lines.append(f"{answer.model}: {decision.instruction}: {decision.because}")
    return "\n".join(lines)


def steps_of(compilation: Compilation, name: str) -> Iterator[types.Location]:
    """Yields the definition of an instruction in each step of its compilation, under the names that it had.

    Steps are followed backwards from the last one. Steps without any of these names are skipped.
    """
    names = {name}
    # Of a name that the final HLO does not have nothing else is known.
    with contextlib.suppress(LookupError, hlo.InputError, hlo.HloSyntaxError):
        names |= {event.name for event in compilation.identity.history(name)}
    choices = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    pattern = re.compile(rf"^\s*(?:ROOT\s+)?%?({choices})\s*=\s", re.MULTILINE)
    for step in compilation.steps[:_MOST_STEPS]:
        if step.file.archive is not None:
            continue
        try:
            text = step.file.text()
        except hlo.InputError:
            continue
        found = pattern.search(text)
        if found is not None:
            document = Document(Path(step.path).resolve().as_uri(), text, None)
            yield types.Location(document.uri, document.range(*found.span(1)))

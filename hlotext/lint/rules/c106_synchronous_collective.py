"""C106: a large collective during which nothing is computed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

import attrs

from hlotext.analysis import Backend, Communication, byte_text
from hlotext.findings.errors import Severity
from hlotext.lint.beside import could_be_hidden, step_percent
from hlotext.lint.helpers import COLLECTIVE_KINDS, times
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class SynchronousCollective(Rule):
    code = "C106"
    name = "synchronous-collective"
    title = "a large collective during which nothing is computed"
    severity = Severity.NOTE
    backends = frozenset({Backend.GPU, Backend.TPU})
    needs_optimized = True
    yields_to = frozenset({"C101", "C102", "C104", "C105", "C107", "C108"})

    min_bytes: int = 1 << 20
    """Bytes that each device sends in one run, from which on it is worth a finding."""
    min_percent: float = 1
    """Percent of the estimated time of the module that all of one kind for one operation of the program take, likewise."""

    def check_module(self, context: Context) -> Iterator[Report]:
        together: dict[tuple[str, str], list[Communication]] = defaultdict(list)
        for one in context.communications:
            if one.is_async or one.kind not in COLLECTIVE_KINDS or one.sent_bytes < self.min_bytes:
                continue
            # The TPU compiler notes this way what its last passes will make asynchronous.
            if "async_collective_name" in one.start.frontend_attributes:
                continue
            if context.is_stepped(one.start) and could_be_hidden(one, context):
                metadata = one.start.metadata
                name = metadata.op_name if metadata is not None else ""
                together[one.kind, _NUMBERS.sub("", name)].append(one)
        for (kind, name), group in together.items():
            # Layers that are not in a loop have one each.
            shares = [step_percent(one.start, context) for one in group]
            if sum(100 if share is None else share for share in shares) < self.min_percent:
                continue
            for one in group:
                runs = context.runs(one.start)
                yield Report(
                    one.start,
                    f"{one.kind} runs{times(runs)} with no computation beside it: "
                    f"each device sends {byte_text(one.sent_bytes)}",
                    "let the compiler make it asynchronous, and give it independent work",
                    one.sent_bytes * runs,
                    cause=f"{kind} for {name}" if name else "",
                )


_NUMBERS = re.compile(r"\d+")

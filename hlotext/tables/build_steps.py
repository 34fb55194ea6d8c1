"""Records of a history of builds: changes of figures with their causes, and modules that come and go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import attrs

from hlotext.tables.figures import MISSING


@attrs.frozen
class Grown:
    """Operations that a build has added or increased."""

    name: str
    """One of them."""
    label: str
    """The opcode, with the kind of a fusion or the target of a custom call."""
    shape: str
    more_bytes: int
    """Bytes that they all write in one run, more than before, where they update an array in place those of the update. So are
    the flops. What only moved, from another scope, is not more."""
    more_flops: float
    alike: int
    """Number of operations of its label and scope that write something."""
    file: str | None
    line: int | None
    more_seconds: float = 0.0
    """The least time on the core of all, or what it waits for them, more than before: also what others wait behind them on
    their link, and not what they wait behind others."""
    scope: str = ""
    """Theirs: with the label it tells them from the other kinds of the build."""
    more_sent: int = 0
    """Bytes that each device sends for all of them in one run, more than before."""
    is_new_collective: bool = False
    """True for collectives of which the module has more than before, wherever they are."""
    more_held: int = 0
    """Bytes of the peak of main memory that their results hold, more than before."""


@attrs.frozen
class NewFinding:
    """A finding of a build that the previous build lacks, or has for other arrays."""

    severity: str
    code: str
    message: str
    instruction: str
    file: str | None
    line: int | None
    held_bytes: int = 0
    """Bytes that it would save of the memory that is held, each counted once; 0 for what is moved or computed."""
    build: str = ""
    """The first build that has it."""
    gone_build: str = ""
    """The first build after it that has it no more; empty while the module's newest has it."""


@attrs.frozen
class BuildStep:
    """A change in a metric of a module from one build to the next."""

    module: str
    build: str
    before_build: str
    figure: str
    """One of `FIGURES`."""
    before: float
    value: float
    grown: tuple[Grown, ...] = ()
    """Operations that appeared or grew, most first, then new collectives; empty for a figure that fell."""
    accepted: str | None = None
    """Why it is accepted, as the file says, or an empty text; None if it is not."""
    findings: tuple[NewFinding, ...] = ()
    """Findings that are new or changed, of a figure that rose: errors and warnings first."""
    grown_kinds: int = 0
    """Number of kinds of operations appeared or grew in the build, those of `grown` and others."""

    @property
    def is_worse(self) -> bool:
        """True if the metric rose."""
        return self.value > self.before

    @property
    def line(self) -> str:
        """The line of the file of accepted changes that accepts it."""
        return f"{self.module} {self.build} {self.figure}"


@attrs.frozen
class ModuleHistory:
    """Metrics of one module over the builds."""

    name: str
    """With what tells it from others of that name where there are any: `jit_step@lm`."""
    paths: Mapping[str, str]
    """The text of each build that has one, by build."""
    values: Mapping[str, Mapping[str, float]]
    """By figure and build; what is not known is left out."""
    header_name: str = ""
    """The name in its header, where several have it; else empty."""
    unknown: Mapping[str, str] = attrs.field(factory=dict)
    """Builds that may have it, each with why that is not known."""


@attrs.frozen
class Coming:
    """A module that is in a build and was not in the previous one, or the reverse."""

    module: str
    build: str
    before_build: str
    """Of what is gone, back or untold the last build that has it; of what is new the last one that has it not."""
    kind: Literal["new", "back", "gone", "untold"]
    why: str = ""
    """Of what is untold."""
    accepted: str | None = None
    """As of a step, where the module is gone or cannot be told."""


@attrs.frozen
class Regression:
    """A metric of a module that is worse in the newest build than in the last good one."""

    module: str
    figure: str
    good_build: str
    good: float
    value: float


@attrs.frozen
class Missing:
    """A module that the newest build lacks, or may lack."""

    module: str
    build: str
    """The first that lacks it, or may."""
    why: str

    @property
    def line(self) -> str:
        """The line of the file of accepted changes that accepts it."""
        return f"{self.module} {self.build} {MISSING}"


class AcceptedLine(NamedTuple):
    """A line of the file of accepted changes; `*` matches anything."""

    module: str
    build: str
    figure: str
    why: str

"""Base of passes: a frozen value with a name and options that changes a module and reports what it did."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, ClassVar

import attrs

from hlotext.findings.errors import Severity
from hlotext.ir import gc_control
from hlotext.ir.foreign_names import with_foreign_names
from hlotext.ir.nodes.bad_instruction import BadInstruction
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables.attributes import ATTRIBUTES
from hlotext.ir.values.age import XlaAge, as_age
from hlotext.ir.values.raw_value import RawValue
from hlotext.rewrite.kit.limits import PassLimitError
from hlotext.verify import verify


def nonfusion_computations(module: Module) -> list[Computation]:
    """Returns the computations that are not fusion bodies (`HloModule::MakeNonfusionComputations`), except sugared
    ones.
    """
    return [c for c in module.computations if not c.is_fusion_body and not c.is_sugared]


class BrokenModuleError(ValueError):
    """Raised if a pass encounters an ill-formed module. The message is the first error of `verify`."""


Age = XlaAge | date | str
"""XLA age that a pass follows: a release of jaxlib, a day, an XlaAge; empty: from the module's text."""


PLATFORM_NAMES = ("cpu", "gpu", "tpu")
"""For what a pass may be asked to work as that platform's compiler does."""


def is_platform(pass_: Pass, attribute: attrs.Attribute[Any], value: Any) -> None:
    """Validates the field `platform` of a pass that differs between compilers. Raises ValueError for an unknown
    platform.
    """
    _check_platform(value)


def _check_platform(value: Any) -> None:
    if value not in ("", "auto", *PLATFORM_NAMES):
        raise ValueError(f"no platform is named {value!r}; known: {', '.join(PLATFORM_NAMES)}")


def is_age(pass_: Pass, attribute: attrs.Attribute[Any], value: Any) -> None:
    """Validates the field `age` of a pass that differs between XLA releases. Raises ValueError if it is not an XLA age."""
    as_age(value or None)


@attrs.frozen
class Property:
    """A property that a pass requires or ensures. `holds` is a top-level function, so that the property can be pickled."""

    text: str
    holds: Callable[[Module], bool]

    def __str__(self) -> str:
        return self.text


@with_foreign_names
@attrs.frozen
class PassResult:
    """Result of running a pass on a module: whether it changed anything, and counts of what it did."""

    changed: bool
    statistics: Mapping[str, int] = attrs.field(factory=dict)
    """Number of actions of each kind, by name."""

    @classmethod
    def of(cls, statistics: Mapping[str, int]) -> PassResult:
        """Creates a result from counts, dropping zeros. `changed` is True if any counts are left."""
        counts = {name: count for name, count in statistics.items() if count}
        return cls(bool(counts), counts)


@attrs.frozen
class Pass:
    """A transformation of modules. Its fields are its options, as in `dce{computations=false}` on the command line."""

    name: ClassVar[str] = ""
    """XLA's name of the pass, or one in its style."""
    summary: ClassVar[str] = ""
    """One-sentence description of the pass."""
    requires: ClassVar[tuple[Property, ...]] = ()
    """Properties required before the pass."""
    ensures: ClassVar[tuple[Property, ...]] = ()
    """Properties that hold after the pass."""
    preserves_results: ClassVar[bool] = True
    """False for a pass that changes results on purpose."""
    is_early: ClassVar[bool] = False
    """True for a pass that the compiler runs once, before layouts and fusions are final."""
    is_one_round: ClassVar[bool] = False
    """True for a pass with a single iteration, as in XLA, so that another run may change more."""

    def following(self, platform: str = "", age: Age = "") -> Pass:
        """Returns this pass with the options that a platform's compiler uses at an XLA age.

        Options that are already set are kept. Raises ValueError for an unknown platform or age.
        """
        _check_platform(platform)
        as_age(age or None)
        fields = attrs.fields_dict(type(self))
        wanted = {"platform": platform, "age": age}
        new = {
            name: value
            for name, value in wanted.items()
            if value and name in fields and getattr(self, name) == fields[name].default
        }
        return attrs.evolve(self, **new) if new else self

    def run(self, module: Module) -> PassResult:
        """Runs the pass on a module, which is modified in place in one transaction that validates the result."""
        raise NotImplementedError

    def __init_subclass__(cls) -> None:
        run = cls.__dict__.get("run")
        if run is not None and not hasattr(run, "__wrapped__"):  # attrs makes the class once more

            @functools.wraps(run)
            def whole(self: Pass, module: Module) -> PassResult:
                try:
                    with gc_control.gc_paused(collect_first=False), module.transaction():
                        result: PassResult = run(self, module)
                        return result
                except PassLimitError:
                    raise
                except Exception as error:
                    problem = _first_problem(module)
                    if problem is None:
                        raise
                    raise BrokenModuleError(
                        f"{self.name} cannot run on an ill-formed module: {problem}"
                    ) from error

            cls.run = whole  # type: ignore[method-assign]

    def __str__(self) -> str:
        fields = attrs.fields(type(self))
        given = [
            f"{f.name}={_text(getattr(self, f.name))}" for f in fields if getattr(self, f.name) != f.default
        ]
        return f"{self.name}{{{','.join(given)}}}" if given else self.name


def _first_problem(module: Module) -> str | None:
    """First error of a module, in one line; None if there is none."""
    for computation in module.computations:
        if not len(computation):
            return f"{computation.name or 'a computation'} has no instructions"
        for i in computation:
            if isinstance(i, BadInstruction):
                return f"{i.name or 'an op line'} could not be read"
            if i.shape is None:
                return f"{i.name} has no type"
            raw = [n for n, v in i.attributes.items() if n in ATTRIBUTES and isinstance(v, RawValue)]
            if raw:
                return f"{raw[0]} of {i.name} could not be read"
    found = next((f for f in verify(module) if f.severity is Severity.ERROR), None)
    return None if found is None else f"{found.code} {found.message}"


def _text(value: object) -> str:
    if isinstance(value, XlaAge):  # what a pass asks is whether an age has something
        return str(value.until or "")
    return str(value).lower() if isinstance(value, bool) else str(value)

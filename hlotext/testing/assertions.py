"""Assertions about a module, each in a line."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import attrs

from hlotext import analysis, diff, dumps, lint, memory
from hlotext.analysis import (
    Communication,
    Loop,
    arrays_of,
    call_graph,
    communications,
    entries,
    memory_space,
    written_arrays,
)
from hlotext.analysis.communication import KINDS
from hlotext.analysis.entries import EntryArray
from hlotext.analysis.formatting import pluralize
from hlotext.cost import RunCost, ScopeCost, analyze, matrix_products, scope_tree
from hlotext.findings.errors import Severity
from hlotext.ir.foreign_names import with_foreign_names
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.spelling import did_you_mean
from hlotext.ir.tables import opcodes
from hlotext.ir.tables.other_names import opcode_suggested
from hlotext.ir.values.aliasing import ShapeIndex
from hlotext.ir.values.shape import Shape
from hlotext.matchers import parse_pattern
from hlotext.reports import full_text
from hlotext.testing.axes import along, check_mesh, device_mesh
from hlotext.testing.failure_text import describe_all
from hlotext.testing.filecheck import check_text
from hlotext.testing.reading import beside, module_of
from hlotext.testing.rows import Rows
from hlotext.testing.snapshot import canonical_text
from hlotext.verify import verify

if TYPE_CHECKING:
    from hlotext.dumps.causes import Cause
    from hlotext.memory import Assignment


Causes = Mapping[Instruction, "dumps.CollectiveCause"]


def inspect(value: Any, mesh: Any = None) -> Hlo:
    """Wraps a module in an object with assertions for tests.

    Args:
        value: A JAX `Lowered` or `Compiled`, text, a path or a module.
        mesh: A JAX Mesh, a mapping from axis names to sizes, or text such as `dp=2,tp=4`. Enables queries of
            collectives by axis.

    Raises:
        ValueError: The mesh is invalid.
        HloSyntaxError: The text or file is not valid HLO.
        InputError: The file cannot be read, or holds several modules.
        TypeError: The type of `value` is not supported.
    """
    return Hlo(module_of(value), mesh, beside(value))


class Count(int):
    """A number of instructions, listed when a comparison fails."""

    instructions: tuple[Instruction, ...]

    def __new__(cls, instructions: Iterable[Instruction]) -> Count:
        found = tuple(instructions)
        made = super().__new__(cls, len(found))
        made.instructions = found
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (self.instructions,)

    def explain(self) -> list[str]:
        """Returns lines that describe the first few instructions, for the report of a failed assertion."""
        return describe_all(self.instructions)


class Instructions(Sequence[Instruction]):
    """Instructions in text order, listed when an assertion fails."""

    def __init__(self, instructions: Iterable[Instruction]) -> None:
        self._instructions = tuple(instructions)

    @overload
    def __getitem__(self, index: int) -> Instruction: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Instruction]: ...
    def __getitem__(self, index: int | slice) -> Instruction | Sequence[Instruction]:
        return self._instructions[index]

    def __len__(self) -> int:
        return len(self._instructions)

    def explain(self) -> list[str]:
        """Returns lines that describe the first few instructions, for the report of a failed assertion."""
        return describe_all(self._instructions)

    def __repr__(self) -> str:
        return "\n".join([f"{len(self)} instructions", *self.explain()])


@attrs.frozen(eq=False, repr=False)
class Collective(Communication):
    """A collective or transfer, and the reason for it."""

    cause: dumps.CollectiveCause | None = attrs.field(kw_only=True)
    """The reasons, from the text or from its dump folder; None for transfers."""

    @property
    def why(self) -> str:
        """The reason, in a sentence; empty if unknown."""
        return self.cause.why if self.cause is not None else ""


class Collectives(Sequence[Collective]):
    """Collectives and transfers with their bytes. An asynchronous pair counts once."""

    def __init__(
        self,
        found: Iterable[Communication],
        causes: Callable[[], Causes] = dict[Instruction, Any],
        axes: Callable[[Communication], tuple[str, ...] | None] = lambda _: None,
    ) -> None:
        self._plain = tuple(found)
        self._causes = causes
        self._axes = axes

    @functools.cached_property
    def _found(self) -> tuple[Collective, ...]:
        known = self._causes()
        names = [field.name for field in attrs.fields(Communication)]
        return tuple(
            Collective(**{name: getattr(one, name) for name in names}, cause=known.get(one.instruction))
            for one in self._plain
        )

    @overload
    def __getitem__(self, index: int) -> Collective: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Collective]: ...
    def __getitem__(self, index: int | slice) -> Collective | Sequence[Collective]:
        return self._found[index]

    def __len__(self) -> int:
        return len(self._plain)

    @property
    def bytes(self) -> int:
        """Bytes that each device receives in one run of the module, as `hlotext comm` counts them.

        Scaled by trip counts. Operations that only send count the bytes sent. Conditionals count the branch that
        receives most, so that a limit holds for all branches; see `is_at_most`. Raises ValueError if a loop has an
        unknown trip count.
        """
        return self._total(_received)

    @property
    def wire_bytes(self) -> int:
        """Bytes that each device sends in one run of the module with the ring algorithm, counted as in `bytes`.

        Raises ValueError if a number of participants or an execution count is unknown.
        """
        return self._total(_sent)

    @property
    def is_at_most(self) -> bool:
        """True if `bytes` and `wire_bytes` are upper bounds, because a collective is in a conditional."""
        return any(one.runs is None and one.most_runs is not None for one in self._plain)

    def _total(self, size: Callable[[Communication], int]) -> int:
        """Sizes over all executions in one run of the module. Raises ValueError if their number is unknown."""
        if all(one.runs is not None for one in self._plain):
            return sum(size(one) * (one.runs or 0) for one in self._plain)
        own: dict[Computation, int] = {}
        for one in self._plain:
            if one.most_runs is None:
                raise ValueError(
                    f"the trip count of {one.start.name} is unknown, so there is no sum; .table() has the bytes of each"
                )
            if (home := one.computation) is not None:
                own[home] = own.get(home, 0) + size(one)
        module = next(home.module for home in own)
        return (call_graph(module).most(own) or 0) if module is not None else 0

    @property
    def dtypes(self) -> frozenset[str]:
        """Names of the element types of the operands, such as `{"bf16"}`."""
        shapes = (operand.shape for one in self._plain for operand in one.instruction.operands)
        return frozenset(str(array.element_type) for shape in shapes for _, array in arrays_of(shape))

    @property
    def kinds(self) -> dict[str, int]:
        """Number of collectives by kind."""
        kinds: dict[str, int] = {}
        for one in self._plain:
            kinds[one.kind] = kinds.get(one.kind, 0) + 1
        return kinds

    def table(self) -> Rows:
        """Returns a row per collective: name, kind, bytes, mesh axes, whether asynchronous, and execution count.

        Bytes are those that a device receives per execution. Axes are None without a matching mesh, and the execution
        count is None if unknown.
        """
        return Rows(
            {
                "name": one.start.name,
                "kind": one.kind,
                "bytes": _received(one),
                "axes": self._axes(one),
                "is_async": one.is_async,
                "runs": one.runs,
            }
            for one in self._plain
        )

    def explain(self) -> list[str]:
        """Returns lines that describe the first few instructions, for the report of a failed assertion."""
        return describe_all([one.start for one in self._plain])

    def __repr__(self) -> str:
        return "\n".join([f"{len(self)} collectives", *self.explain()])


def _sent(one: Communication) -> int:
    """Bytes that a device sends in one execution. Raises ValueError if the number of devices is not known and matters."""
    if one.wire_bytes is None:
        raise ValueError(f"the group size of {one.start.name} is unknown, so what it sends is unknown")
    return one.wire_bytes


def _received(one: Communication) -> int:
    """Bytes that a device gets in one execution; of what only sends the bytes sent."""
    return one.result_bytes or one.operand_bytes


last_tested: Findings | None = None
"""The findings whose truth was tested last, for the report of a failed `assert not`."""


class Findings(Sequence[lint.Finding]):
    """Findings of the linter or verifier; false if there are none."""

    def __init__(self, found: Iterable[lint.Finding]) -> None:
        self._found = tuple(found)

    @overload
    def __getitem__(self, index: int) -> lint.Finding: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[lint.Finding]: ...
    def __getitem__(self, index: int | slice) -> lint.Finding | Sequence[lint.Finding]:
        return self._found[index]

    def __len__(self) -> int:
        return len(self._found)

    def __bool__(self) -> bool:
        global last_tested
        last_tested = self
        return bool(self._found)

    @property
    def codes(self) -> list[str]:
        """Codes of the findings, in order: of the linter most expensive first, of the verifier in text order."""
        return [finding.code for finding in self._found]

    def explain(self) -> list[str]:
        """Returns the findings in full, line by line, for the report of a failed assertion."""
        return [line for finding in self._found for line in full_text(finding, True).split("\n")]

    def __repr__(self) -> str:
        return f"{pluralize(len(self), 'finding')}: {', '.join(self.codes)}"


@with_foreign_names
class Hlo:
    """A module under test. Properties are computed on access."""

    def __init__(
        self, module: Module, mesh: Any = None, compilation: dumps.Compilation | None = None
    ) -> None:
        self.module = module
        self._mesh = mesh
        self._compilation = compilation
        if mesh is not None:
            check_mesh(mesh, module)

    # ---- what is in it

    def count(self, opcode: str) -> Count:
        """Counts the operations with an opcode, including asynchronous ones and those inside fusions and calls.

        A start/done pair counts once, under the opcode without `-start`. Raises ValueError for an unknown opcode that
        is not in the module either, so that tests for the absence of a misspelled opcode do not pass.
        """
        return Count(self.instructions(opcode))

    def why(self, name: str) -> Cause:
        """Returns the pass that introduced an instruction, from the dump folder. `.chain` lists later changes.

        Raises LookupError if the module is not from a dump folder, or has no instruction with this name.
        """
        if self._compilation is None:
            raise LookupError(
                f"{self.module.name} is not from a dump folder, whose steps would show which pass added {name}"
            )
        return self._compilation.why(name)

    def instructions(self, opcode: str) -> Instructions:
        """Returns the instructions with an opcode. A start represents its asynchronous pair.

        Raises ValueError as `count` does.
        """
        return Instructions(self._instructions(opcode))

    def _instructions(self, opcode: str) -> Iterator[Instruction]:
        self._check_opcode(opcode)
        if opcode in _COMMUNICATING:
            yield from (
                one.start for one in communications(self.module) if one.kind.removeprefix("host ") == opcode
            )
            return
        starts = {opcode, f"{opcode}-start"} if f"{opcode}-start" in opcodes.NATIVE_ASYNC else {opcode}
        yield from (i for i in self.module.instructions() if i.opcode in starts)

    def _check_opcode(self, opcode: str) -> None:
        if opcode in opcodes.OPCODES or any(i.opcode == opcode for i in self.module.instructions()):
            return
        base = opcode.removesuffix("-start").removesuffix("-update").removesuffix("-done")
        if base in opcodes.OPCODES:
            return
        meant = opcode_suggested(opcode)
        raise ValueError(f"{opcode} is not an HLO opcode" + (f"; {meant}" if meant else ""))

    def collectives(
        self,
        kind: str | None = None,
        *,
        axis: str | Sequence[str] | None = None,
        is_async: bool | None = None,
    ) -> Collectives:
        """Returns the collectives and transfers, filtered by kind, mesh axes, or whether they are asynchronous.

        Axes are those of the mesh given to `inspect(..., mesh=)` or to the fixture `hlo(..., mesh=)`, or else those named
        in the module text. Raises ValueError if axes are given without a mesh, for an axis that the mesh does not have,
        and for an unknown kind.
        """
        if kind is not None and kind not in _KINDS:
            meant = did_you_mean(kind, _KINDS) or f"there are {', '.join(sorted(_KINDS))}"
            raise ValueError(f"{kind} is not a kind of communication; {meant}")
        found = [one for one in communications(self.module) if kind is None or one.kind == kind]
        if axis is not None:
            axes = (axis,) if isinstance(axis, str) else tuple(axis)
            given = device_mesh(self._mesh) if self._mesh is not None else None
            found = list(along(self.module, found, axes, given))
        wanted = (one for one in found if is_async is None or one.is_async is is_async)
        return Collectives(wanted, self._causes, self._axes_of)

    def _axes_of(self, one: Communication) -> tuple[str, ...] | None:
        known = analysis.mesh_of(self.module, device_mesh(self._mesh) if self._mesh is not None else None)
        return analysis.axes_of(self.module, one, known.mesh if known is not None else None)

    def _causes(self) -> Causes:
        """Why collectives are there: from the dump folder that the text lies in, else from the text alone."""
        mesh = device_mesh(self._mesh) if self._mesh is not None else None
        told = dumps.collectives.of_module(self.module, self._compilation, mesh)
        return {one.instruction: one for one in told}

    @functools.cached_property
    def memory(self) -> Assignment:
        """Buffer assignment, computed by `memory.assign` as XLA's compiler does.

        Raises MemoryModelError (a ValueError) if it cannot be computed from the text, as before optimization.
        """
        try:
            return memory.assign(self.module)
        except memory.MemoryModelError as error:
            said = str(error).replace(
                "set platform= to", "use hlotext.memory.assign(module, platform=...) with"
            )
            raise memory.MemoryModelError(said) from None

    @property
    def peak_memory(self) -> int:
        """Peak of live bytes in the default memory space (HBM on GPU and TPU), including arguments, results and constants.

        For TPU modules, a chip that fits the text is assumed, v5e if possible; `memory.assign(module, chip=...)` computes
        it for others. Raises the same errors as `memory`.
        """
        return self.memory.peak().bytes

    @functools.cached_property
    def _shapes(self) -> tuple[Shape, ...]:
        found: dict[Shape, None] = {}
        for instruction in self.module.instructions():
            if instruction.shape is not None:
                found[instruction.shape] = None
        arrays = {array: None for shape in found for _, array in arrays_of(shape)}
        return tuple(arrays)

    @property
    def dtypes(self) -> frozenset[str]:
        """Element types of all arrays, such as `{"bf16", "s32"}`."""
        return frozenset(str(array.element_type) for array in self._shapes)

    def has_array(self, *dimensions: int) -> bool:
        """Returns True if any array has these dimensions, to assert that partitioning leaves no full-size array.

        Raises TypeError for anything but numbers: no array would have them.
        """
        if not all(hasattr(size, "__index__") for size in dimensions):
            raise TypeError(
                f"has_array() takes sizes one by one, as in has_array(8, 128), not {dimensions[0]!r}"
            )
        return any(array.dimensions == dimensions for array in self._shapes)

    @property
    def custom_calls(self) -> dict[str, int]:
        """Number of custom calls by target."""
        calls: dict[str, int] = {}
        for instruction in self.instructions("custom-call"):
            target = str(instruction.attributes.get("custom_call_target", ""))
            calls[target] = calls.get(target, 0) + 1
        return calls

    @property
    def shardings(self) -> frozenset[str]:
        """Texts of all shardings, such as `{devices=[2,1]<=[2]}`."""
        return frozenset(str(i.sharding) for i in self.module.instructions() if i.sharding is not None)

    @property
    def op_names(self) -> frozenset[str]:
        """`op_name`s of all instructions, with their scopes."""
        found = (instruction.metadata for instruction in self.module.instructions())
        return frozenset(metadata.op_name for metadata in found if metadata is not None and metadata.op_name)

    @property
    def threads(self) -> frozenset[str]:
        """Execution threads of all computations: `main`, `sparsecore`, etc."""
        return frozenset(computation.execution_thread for computation in self.module.computations)

    def frontend_attributes(self, name: str) -> frozenset[str]:
        """Returns the values of a frontend attribute, such as `_xla_stream_annotation`."""
        found = (i.frontend_attributes.get(name) for i in self.module.instructions())
        return frozenset(value for value in found if value is not None)

    # ---- cost

    @property
    def cost(self) -> RunCost:
        """FLOPs and bytes of one run, scaled by trip counts, with any sources of uncertainty."""
        return analyze(self.module).run

    @property
    def flops(self) -> int:
        """FLOPs of one run, excluding transcendental operations. Raises ValueError if only a lower bound is known."""
        return int(self._known.flops)

    @property
    def bytes(self) -> int:
        """Bytes read and written in one run, without padding. Raises ValueError if only a lower bound is known."""
        return int(self._known.bytes_accessed)

    @property
    def _known(self) -> RunCost:
        found = self.cost
        if found.is_at_least:
            left_open = [*found.unknown_loops, *found.unknown_calls, *(one for one, _ in found.uncounted)]
            names = ", ".join(one.name for one in left_open[:3]) or "a shape"
            raise ValueError(f"the cost of {names} is unknown; see hlo.cost for what is known")
        return found

    def scopes(self, *, fold: bool = True) -> ScopeCost:
        """Returns FLOPs and bytes of one run as a tree of `op_name` scopes, with repeated layers folded (`layer_*`).

        `hlo.scopes().walk(2)` iterates over it to a depth of 2.
        """
        return scope_tree(analyze(self.module), fold=fold)

    @property
    def loops(self) -> tuple[Loop, ...]:
        """While loops, with `trips`, `runs` (executions) and `written_bytes` per iteration."""
        return analysis.loops(self.module)

    def gemms(self) -> Rows:
        """Returns a row per matrix product, including fused products and library calls.

        Columns are name, batch, m, n, k, types, FLOPs per execution (`flops`) and executions (`runs`, None if unknown).
        """
        return Rows(
            {
                "name": one.instruction.name,
                **{name: getattr(one, name) for name in ("batch", "m", "n", "k")},
                "types": f"{one.lhs_type} x {one.rhs_type} -> {one.result_type}",
                "flops": one.flops,
                "runs": one.runs,
            }
            for one in matrix_products(self.module)
        )

    # ---- arguments and results

    @property
    def arguments(self) -> tuple[EntryArray, ...]:
        """Arrays of the arguments, with label, shape, layout, sharding, bytes, donation and alias (`EntryArray`)."""
        return entries.arguments(self.module)

    @property
    def results(self) -> tuple[EntryArray, ...]:
        """Arrays of the results, with the fields of `arguments`."""
        return entries.results(self.module)

    @property
    def aliases(self) -> dict[ShapeIndex, tuple[int, ShapeIndex]]:
        """Results aliased to arguments: maps result index to parameter number and index."""
        found = entries.aliases_of(self.module)
        return {one.output_index: (one.parameter_number, one.parameter_index) for one in found}

    # ---- memory

    @property
    def memory_spaces(self) -> frozenset[int]:
        """Memory spaces of all arrays; 5 is host memory."""
        return frozenset(memory_space(array) for array in self._shapes)

    @property
    def argument_layouts(self) -> tuple[str, ...]:
        """Shapes of the arguments with their layouts, as text such as `f32[8,2]{1,0:S(5)}`."""
        return tuple(str(parameter.shape) for parameter in self.module.entry.parameters)

    @property
    def result_layouts(self) -> tuple[str, ...]:
        """Shapes of the results with their layouts, as text, one per array."""
        return tuple(str(array) for _, array in arrays_of(self.module.entry.root.shape))

    @property
    def padding_ratio(self) -> float:
        """Ratio of allocated to unpadded bytes over all arguments and written arrays; 1.0 without padding."""
        allocated = values = 0
        arrays = [array for p in self.module.entry.parameters for _, array in arrays_of(p.shape)]
        for instruction in call_graph(self.module).sequential_instructions():
            arrays += [array for _, array in written_arrays(instruction)]
        for array in arrays:
            size = analysis.array_bytes(array)
            if size is not None:
                allocated, values = allocated + size[0], values + size[1]
        return allocated / values if values else 1.0

    # ---- judgements

    def lint(self, select: str | Sequence[str] | None = None, config: lint.Config | None = None) -> Findings:
        """Returns the lint findings of the selected rules (codes or prefixes), or of the rules of `config`.

        Raises ConfigError for an unknown code.
        """
        return Findings(lint.run(self.module, config, compilation=self._compilation, select=select))

    def verify(self) -> Findings:
        """Returns the errors and warnings of the verifier, including everything that XLA's verifier rejects."""
        found = verify(self.module)
        return Findings(one for one in found if one.severity is not Severity.NOTE)

    def matches(self, pattern: str) -> Instructions:
        """Returns the instructions that match a pattern of `hlotext grep`, such as `'%x = bf16[*] dot(...)'`.

        Raises PatternError if the pattern is invalid.
        """
        wanted = parse_pattern(pattern)
        return Instructions(i for i in self.module.instructions() if wanted.match(i) is not None)

    def check(self, checks: str) -> None:
        """Checks the module's text with FileCheck lines (`CHECK: ...`).

        Needs the package filecheck (`hlotext[filecheck]`).

        Raises AssertionError with FileCheck's report.
        """
        check_text(str(self.module), checks)

    def assert_same(self, other: Any, bounds: str = "") -> None:
        """Asserts equality with another module, or with a golden file written by `hlotext diff --write-golden`.

        Names, ids, metadata and the order of independent operations are ignored. With `bounds`
        (`collectives+0,bytes+1%`) the modules may differ, but these metrics must not grow by more.

        Args:
            other: The old module, or anything else that `inspect` accepts.
            bounds: Thresholds as for `diff.parse_thresholds`; empty to require equality.

        Raises:
            AssertionError: The modules differ. The message lists the differences.
            ThresholdError: `bounds` is invalid.
        """
        found = diff.compare(other, self.module)
        crossed = (
            diff.violations(diff.parse_thresholds(bounds), found.totals, len(found.changes)) if bounds else []
        )
        if crossed or (not bounds and not found.is_equal):
            groups = [f"{len(changes):,} x {title}" for title, changes in found.changes.folded()[:_GROUPS]]
            raise AssertionError("\n".join([*map(str, crossed), f"{found!r}", *groups]))

    def canonical_text(self) -> str:
        """Returns the module as text without names, ids, metadata and backend configs, as used for snapshots.

        Equal programs have equal text.
        """
        return canonical_text(self.module)

    def assert_matches_snapshot(self, name: str = "") -> None:
        """Asserts that the canonical text equals the test's snapshot, which `--hlo-update-snapshots` writes.

        `name` distinguishes several snapshots of one test. Raises AssertionError if they differ, and RuntimeError unless
        the object is from the pytest fixture `hlo`.
        """
        raise RuntimeError("snapshots need the pytest fixture hlo")

    def __repr__(self) -> str:
        return f"<Hlo {self.module.name}>"


_GROUPS = 20
"""Groups of changes that a failed comparison lists."""
_COMMUNICATING = frozenset(KINDS.values())
"""Opcodes that `communications` finds in every form."""
_KINDS = frozenset(f"{prefix}{kind}" for kind in _COMMUNICATING for prefix in ("", "host ", "dcn "))
"""Names of communications: with the host, between slices over the data center network, or neither."""

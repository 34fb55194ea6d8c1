"""Explains the collectives of a jitted program without a dump folder, and tests suggestions by compiling them."""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs

from hlotext import cost, dumps
from hlotext.analysis import DeviceMesh, communications
from hlotext.dumps.settings import AROUND_PARTITIONING
from hlotext.interop.jax.protos import module_of_proto
from hlotext.ir.nodes.module import Module


@attrs.frozen
class Figures:
    """Traffic, memory and time of one compilation."""

    traffic: int | None
    """Bytes that each device sends per run, or None if a size or a trip count is unknown."""
    collectives: int
    """Number of collectives and transfers in the final HLO."""
    memory: int | None
    """Bytes that a device allocates for arguments, results and temporaries according to XLA, or None if unknown.
    """
    seconds: float | None
    """Lower bound on run time on the chip, in seconds, or None if no chip was given."""


@attrs.frozen
class Trial:
    """Outcome of compiling the program with one suggestion applied."""

    suggestion: dumps.Suggestion
    after: Figures | None
    """Metrics with the suggestion applied, or None if the program could not be compiled."""
    before: Figures
    """Metrics of the unchanged program."""
    problem: str = ""
    """Reason why it could not be compiled; empty if it was."""

    @property
    def is_spared(self) -> bool:
        """True if the changed program is known to send fewer bytes in total."""
        if self.after is None or self.after.traffic is None or self.before.traffic is None:
            return False
        return self.after.traffic < self.before.traffic

    def __str__(self) -> str:
        one = self.suggestion
        head = f"{one.kind} {one.name} as {one.spec}" if one.kind != "result" else f"{one.name} as {one.spec}"
        if self.after is None:
            return f"{head}: not tried: {self.problem}"
        parts = [f"sends {_change(self.before.traffic, self.after.traffic)} bytes"]
        if self.after.memory is not None:
            parts.append(f"memory {_change(self.before.memory, self.after.memory)} bytes")
        if self.after.seconds is not None and self.before.seconds is not None:
            parts.append(
                f"minimum time {self.before.seconds * 1e6:,.1f} -> {self.after.seconds * 1e6:,.1f} us"
            )
        return f"{head}: {', '.join(parts)}"


def _change(before: int | None, after: int | None) -> str:
    return f"{'?' if before is None else f'{before:,}'} -> {'?' if after is None else f'{after:,}'}"


@attrs.frozen(eq=False)
class CollectivesExplanation:
    """Causes of a program's collectives, and the outcome of each suggestion that was tried."""

    compilation: dumps.Compilation
    """The compilation, in a temporary folder that is deleted with this object."""
    collectives: tuple[dumps.CollectiveCause, ...]
    """Causes of the collectives in the final HLO, in text order."""
    figures: Figures
    """Metrics of the unchanged program."""
    trials: tuple[Trial, ...]
    """Suggestions that were tried; empty unless requested."""
    _folder: tempfile.TemporaryDirectory[str]

    def __reduce__(self) -> tuple[object, ...]:
        """Raises TypeError, since the temporary folder belongs to this process."""
        raise TypeError("an explanation owns a temporary folder; send its str, or dump to your own folder")

    def __str__(self) -> str:
        lines = []
        for one in self.collectives:
            lines.append(f"{one.instruction.name}: {one.why}")
            for reason in one.reasons:
                lines += [f"  {text}" for text in (reason.origin, reason.scheme) if text]
            lines += [f"  {text}" for text in one.changes]
        lines += [f"tried {trial}" for trial in self.trials]
        return "\n".join(dict.fromkeys(lines)) or "no collectives"


def explain(
    function: Any,
    *args: Any,
    mesh: DeviceMesh | str | None = None,
    try_suggestions: bool = False,
    chip: str | None = None,
    **kwargs: Any,
) -> CollectivesExplanation:
    """Explains the collectives of a jitted function, and suggests annotations that would avoid them.

    Compiles the function again, dumping the HLO before and after partitioning to a temporary folder.

    Args:
        function: A function, jitted or not, or a JAX `Lowered`.
        *args: Its arguments, or `jax.ShapeDtypeStruct`s with shardings; none for a `Lowered`.
        mesh: The mesh, if neither the dumped HLO nor the arguments name it.
        try_suggestions: Compile the function with each suggested annotation of an argument or result, and report the
            effect. Constraints are not tried, since they are in the program's source.
        chip: The chip for which run times are estimated, such as `v5e`; None estimates none.
        **kwargs: Keyword arguments of the function.

    Returns:
        The causes of all collectives, metrics of the compilation, and the trials.

    Raises:
        ValueError: `try_suggestions` with a `Lowered`, whose annotations cannot be changed; or a mesh that does not
            fit.
        RuntimeError: The compiler dumped nothing, for example because it runs on another machine.
    """
    is_lowered = hasattr(function, "compile") and not args and not kwargs
    if is_lowered and try_suggestions:
        raise ValueError("trying suggestions needs the function and its arguments, not a Lowered")
    jitted = function if is_lowered or hasattr(function, "lower") else _jit(function)
    lowered = jitted if is_lowered else jitted.lower(*args, **kwargs)
    folder = tempfile.TemporaryDirectory(prefix="hlotext_")
    with _without_cache():
        compiled = lowered.compile(
            compiler_options={"xla_dump_to": folder.name, "xla_dump_hlo_pass_re": AROUND_PARTITIONING}
        )
    compilation = _dumped(folder.name)
    causes = compilation.collectives(mesh)
    if mesh is None and any(not reason.axes for one in causes for reason in one.reasons):
        found = _mesh_of(compiled, args, kwargs)
        causes = compilation.collectives(found) if found is not None else causes
    assert compilation.after is not None
    figures = _figures(compilation.after, compiled, chip)
    trials: tuple[Trial, ...] = ()
    if try_suggestions:
        trial = _Trials(function, args, kwargs, compiled, figures, chip)
        trials = tuple(trial.of(one) for one in _distinct(causes))
    return CollectivesExplanation(compilation, causes, figures, trials, folder)


def _jit(function: Callable[..., Any], **options: Any) -> Any:
    import jax  # the extra may be missing until something of JAX is asked for

    return jax.jit(function, **options)


@contextmanager
def _without_cache() -> Iterator[None]:
    """Disables the compilation cache inside the block, since cached compilations dump nothing."""
    import jax  # as above

    was = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", was)


def _dumped(folder: str) -> dumps.Compilation:
    if os.listdir(folder):
        for one in dumps.open(folder).compilations:
            if one.last is not None:
                return one
    raise RuntimeError("the compiler wrote no texts; it may have run on another machine")


def _distinct(causes: tuple[dumps.CollectiveCause, ...]) -> list[dumps.Suggestion]:
    """The suggestions without duplicates: one change may avoid several collectives."""
    found: dict[tuple[str, str, str], dumps.Suggestion] = {}
    for one in causes:
        for suggestion in one.suggestions:
            found.setdefault((suggestion.kind, suggestion.name, suggestion.spec), suggestion)
    return list(found.values())


def _figures(module: Module, compiled: Any, chip: str | None) -> Figures:
    traffic: int | None = 0
    begun = communications(module)
    for one in begun:
        sent, runs = one.wire_bytes, one.runs
        traffic = None if traffic is None or sent is None or runs is None else traffic + sent * runs
    memory = None
    found = compiled.memory_analysis()
    if found is not None:
        sizes = (
            found.argument_size_in_bytes + found.output_size_in_bytes + found.temp_size_in_bytes
        )  # what results share with arguments is counted once
        memory = int(sizes - found.alias_size_in_bytes)
    seconds = cost.estimate(module, chip).seconds if chip is not None else None
    return Figures(traffic, len(begun), memory, seconds)


def _mesh_of(compiled: Any, args: Any, kwargs: Any) -> DeviceMesh | None:
    """The mesh of the first argument or result that names one."""
    import jax  # as above

    leaves = [getattr(one, "sharding", None) for one in jax.tree.leaves((args, kwargs))]
    leaves += jax.tree.leaves((compiled.input_shardings, compiled.output_shardings))
    for sharding in leaves:
        mesh = getattr(sharding, "mesh", None)
        if mesh is not None and mesh.axis_names:
            return DeviceMesh(tuple(mesh.axis_names), tuple(mesh.shape.values()))
    return None


class _Trials:
    """Compiles a function with one annotation changed."""

    def __init__(
        self, function: Any, args: Any, kwargs: Any, compiled: Any, before: Figures, chip: str | None
    ) -> None:
        self._function = function
        self._args, self._kwargs = args, kwargs
        self._compiled = compiled
        self._before = before
        self._chip = chip

    def of(self, suggestion: dumps.Suggestion) -> Trial:
        """Result of one change."""
        try:
            if suggestion.kind == "argument":
                compiled = self._with_argument(suggestion)
            elif suggestion.kind == "result":
                compiled = self._with_result(suggestion)
            else:
                return Trial(
                    suggestion, None, self._before, "a constraint can only be changed in the program's source"
                )
        except _NotTriedError as error:
            return Trial(suggestion, None, self._before, str(error))
        except Exception as error:
            first = str(error).partition("\n")[0]
            return Trial(suggestion, None, self._before, f"{type(error).__name__}: {first}")
        (module,) = compiled.runtime_executable().hlo_modules()
        after = module_of_proto(module.as_serialized_hlo_module_proto())
        return Trial(suggestion, _figures(after, compiled, self._chip), self._before)

    def _with_argument(self, suggestion: dumps.Suggestion) -> Any:
        import jax  # as above

        names = _names(self._function, self._args, self._kwargs)
        leaves, tree = jax.tree.flatten((self._args, self._kwargs))
        if suggestion.name not in names:
            raise _NotTriedError(f"no argument is named {suggestion.name}")
        place = names.index(suggestion.name)
        leaf = leaves[place]
        leaves[place] = jax.ShapeDtypeStruct(
            leaf.shape, leaf.dtype, sharding=_sharding(leaf.sharding, suggestion)
        )
        args, kwargs = jax.tree.unflatten(tree, leaves)
        jitted = self._function if hasattr(self._function, "lower") else _jit(self._function)
        return jitted.lower(*args, **kwargs).compile()

    def _with_result(self, suggestion: dumps.Suggestion) -> Any:
        import jax  # as above

        inner = getattr(self._function, "__wrapped__", None)
        if inner is None:
            raise _NotTriedError("the function passed to jax.jit is unknown")
        leaves, tree = jax.tree.flatten(self._compiled.output_shardings)
        place = int(suggestion.name.removeprefix("result[").removesuffix("]"))
        leaves[place] = _sharding(leaves[place], suggestion)
        jitted = _jit(inner, out_shardings=jax.tree.unflatten(tree, leaves))
        return jitted.lower(*self._args, **self._kwargs).compile()


class _NotTriedError(Exception):
    """A suggestion that cannot be applied to this function."""


def _sharding(now: Any, suggestion: dumps.Suggestion) -> Any:
    """The suggested sharding, on the mesh of the current sharding."""
    import jax  # as above

    mesh = getattr(now, "mesh", None)
    if mesh is None:
        raise _NotTriedError(f"{suggestion.name} has no sharding with a mesh")
    axes = suggestion.spec_axes
    spec = [None if not cut else cut[0] if len(cut) == 1 else cut for cut in axes]
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))


def _names(function: Any, args: Any, kwargs: Any) -> list[str]:
    """The names that JAX gives to the arrays of the arguments."""
    import jax  # as above

    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return []
    names = []
    parameters = inspect.signature(function).parameters
    for name, value in bound.arguments.items():
        kind = parameters[name].kind
        paths, _ = jax.tree_util.tree_flatten_with_path(value)
        if kind is inspect.Parameter.VAR_KEYWORD:
            names += [f"{path[0].key}{jax.tree_util.keystr(path[1:])}" for path, _ in paths]
        else:
            names += [f"{name}{jax.tree_util.keystr(path)}" for path, _ in paths]
    return names

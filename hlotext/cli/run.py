"""`hlotext run`: a module executed on the CPU."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

import hlotext as hlo
from hlotext.analysis.formatting import pluralize, seconds
from hlotext.analysis.meant import bare
from hlotext.cli.common import FORMAT, Inputs, NotFound, Unreadable, as_options, timeout_option, write_json
from hlotext.cli.listing import Listing, Row, Shown
from hlotext.cli.output import output
from hlotext.execution import Execution, NotExecutable, run
from hlotext.execution.comparing import device_difference
from hlotext.ir.spelling import did_you_mean
from hlotext.rewrite.extraction import computation_module
from hlotext.syntax.source.inputs import several

_DIFFERENT = 1


@click.command()
@click.argument("file", metavar="FILE|DIR")
@click.option(
    "--against",
    metavar="FILE|DIR",
    help="Run this module with the same arguments too, and compare the results.",
)
@click.option(
    "-c",
    "--computation",
    metavar="NAME",
    help="Run this computation, such as a fusion body, instead of the entry.",
)
@click.option(
    "--input",
    "arrays",
    multiple=True,
    metavar="FILE.npy",
    help="Array for an argument instead of a random one; repeat for each argument.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random arguments.")
@click.option("--wide", is_flag=True, help="Compute floats narrower than f32 as f32, to exclude rounding.")
@click.option(
    "--rtol",
    type=click.FloatRange(min=0),
    default=0.01,
    show_default=True,
    help="With --against: relative tolerance.",
)
@click.option(
    "--devices",
    type=click.IntRange(min=1),
    help="Number of devices, if the module does not specify it; 1 runs a program as it was before partitioning.",
)
@timeout_option(120.0, "to compile and run, in seconds.")
@FORMAT
def command(
    file: str,
    against: str | None,
    computation: str | None,
    arrays: tuple[str, ...],
    seed: int,
    wide: bool,
    rtol: float,
    devices: int | None,
    timeout: float,
    output_format: str,
) -> None:
    """Execute a module of any stage, compiled for any platform, on jaxlib's CPU client (hlotext[jax]), in a child process.

    Fusions, asynchronous pairs, bitcasts, tiles and known custom calls are expanded; other custom calls are refused.
    Several devices run as replicas, and a program with shard_map runs on the devices of its mesh. Random arguments differ
    between devices unless shardings make them equal; --input goes to all devices, or has the devices as its first
    dimension. The results are those of the module, but its run time says nothing about other devices.

    \b
    Examples:
      hlotext run after_optimizations.txt
      hlotext run before.txt --against after.txt --seed 3
      hlotext run dump.txt -c fused_computation.7

    Exit status: 0 success, 1 results differ from --against, or no such computation, 2 unreadable input, or execution
    failed.
    """
    first = _entry(_module(file), computation)
    second = _module(against) if against is not None else None
    try:
        given = list(map(_array, arrays)) if arrays else None
        ours = run(first, given, seed=seed, wide=wide, devices=devices, timeout=timeout)
        theirs = None
        if second is not None:
            try:
                theirs = run(second, ours.arguments, wide=wide, devices=devices, timeout=timeout)
            except NotExecutable as error:
                raise Unreadable(f"{against}: {_why(second, error)}") from None
    except OSError as error:
        raise Unreadable(f"{error.filename} cannot be read: {error.strerror}") from None
    except NotExecutable as error:
        raise Unreadable(_why(first, error)) from None
    far = _compared(ours, theirs) if theirs is not None else None
    if output_format == "json":
        write_json(_json(ours, far))
    else:
        _show(first, ours, far)
    if far is not None and any(one > rtol for one in far):
        raise click.exceptions.Exit(_DIFFERENT)


_LISTED = 5
"""Computations that a message names."""


def _why(module: hlo.Module, error: NotExecutable) -> str:
    """Why a module does not run: its first error by the verifier, which names the line, else what the client says."""
    wrong = next((one for one in hlo.verify(module) if one.severity is hlo.Severity.ERROR), None)
    return as_options(str(error)) if wrong is None else f"{wrong.brief}; `hlotext verify` lists all errors"


def _module(place: str) -> hlo.Module:
    inputs = Inputs([place])
    modules = [module for _, result in inputs for module in result.modules]
    inputs.finish()
    if len(modules) != 1:
        raise Unreadable(several(place, [module.name for module in modules]))
    return modules[0]


def _entry(module: hlo.Module, name: str | None) -> hlo.Module:
    """The module, or one whose entry is a computation of it."""
    if name is None:
        return module
    found = module.find(name)
    if not isinstance(found, hlo.Computation):
        names = [one.name for one in module.computations]
        near = did_you_mean(bare(name), names) or f"its computations are {', '.join(names[:_LISTED])}"
        more = ", ..." if len(names) > _LISTED and not near.startswith("did") else ""
        raise NotFound(f"no computation is named {name.removeprefix('%')}; {near}{more}")
    return computation_module(found)


def _array(place: str) -> Any:
    """The array of a file that numpy wrote. Raises Unreadable, OSError."""
    try:
        array = np.load(place, allow_pickle=False)
    except (ValueError, EOFError) as error:
        if "Object arrays" in str(error):
            raise Unreadable(f"{place} holds Python objects, not numbers") from None
        raise Unreadable(f"{place} is not a .npy file") from None
    if not isinstance(array, np.ndarray):
        array.close()
        raise Unreadable(f"{place} is an archive of arrays; numpy.save(path, array) writes one as .npy")
    return array


def _compared(ours: Execution, theirs: Execution) -> list[float]:
    if len(ours.results) != len(theirs.results):
        raise Unreadable(f"{len(ours.results)} results, but the other module has {len(theirs.results)}")
    return [device_difference(a, b, ours.devices) for a, b in zip(ours.results, theirs.results, strict=True)]


def _show(module: hlo.Module, ran: Execution, far: list[float] | None) -> None:
    out = output()
    out.heading(f"{module.name}: {pluralize(len(ran.results), 'result')}")
    equal = sum(not any(held) for held in ran.plain.pieces)
    same = f"; {equal} of {pluralize(len(ran.plain.pieces), 'argument')} equal on all"
    devices = [("devices", f"{ran.devices}, as replicas{same}")] if ran.devices > 1 else []
    out.facts([*devices, ("took", f"{seconds(ran.seconds)} on this CPU")])
    out.table(_results(far).table("results", list(enumerate(ran.results))))


def _results(far: list[float] | None) -> Listing[tuple[int, np.ndarray[Any, Any]]]:
    def row(result: tuple[int, np.ndarray[Any, Any]]) -> Row:
        number, array = result
        *figures, nan = _figures(array)
        shown_figures = [None if one is None else Shown(one, f"{one:.4g}") for one in figures]
        far_off = None if far is None else far[number]
        differs = "infinite" if far_off == float("inf") else far_off
        shown = "" if far_off is None else f"{far_off:.2g}"
        kind = _shape(array), array.dtype.name, list(array.shape)
        return number, *kind, *shown_figures, nan, Shown(differs, shown)

    return Listing("run.results", row)


def _shape(array: np.ndarray[Any, Any]) -> str:
    return f"{array.dtype.name}[{','.join(map(str, array.shape))}]"


def _figures(array: np.ndarray[Any, Any]) -> tuple[float | None, ...]:
    """The least, the mean and the largest finite number, None if there is none and of complex numbers; how many NaN."""
    if array.dtype.kind == "c":
        return None, None, None, int(np.isnan(array).sum())
    wide = array.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    nan = int(np.isnan(wide).sum())
    if not finite.size:
        return None, None, None, nan
    return float(finite.min()), float(finite.mean()), float(finite.max()), nan


def _json(ran: Execution, far: list[float] | None) -> dict[str, Any]:
    return {
        "devices": ran.devices,
        "seconds": ran.seconds,
        "results": _results(far).json(enumerate(ran.results)),
    }

"""Compiler settings of a module, from all files of its dump."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hlotext.dumps.sidecar_files import read_options
from hlotext.syntax.source.inputs import InputError
from hlotext.textproto import TextMessage

if TYPE_CHECKING:
    from hlotext.dumps.compilation import Compilation

_IGNORED = ("xla_dump_",)
"""Settings that say where and what is dumped, and change nothing."""
_MARK = re.compile(r"^# (\w+) in the current tpu_comp_env has a non-default value", re.MULTILINE)
_HEADER = ("replica_count", "num_partitions")
AROUND_PARTITIONING = ".*(spmd-partition|shardy|sharding-prop).*"
"""The passes whose texts tell why collectives are there."""


def dump_flags(passes: str) -> str:
    """Returns both ways to set the dump flags, in one clause."""
    first, other = dump_commands(passes)
    return f"{first} (or {other})"


def dump_commands(passes: str) -> tuple[str, str]:
    """Returns the two ways to set the dump flags: by environment variable, and as compiler options of one compilation."""
    return (
        f"XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_pass_re={passes}'",
        "jax.jit(f).lower(...).compile("
        f"compiler_options={{'xla_dump_to': 'DIR', 'xla_dump_hlo_pass_re': '{passes}'}})",
    )


def settings(compilation: Compilation) -> dict[str, str]:
    """Returns the settings of a compilation by name, excluding dump options. Settings with default values may be
    missing.

    On TPU, uses the compile environment, or else the flag file, which lacks options passed to one compilation.
    """
    found: dict[str, str] = {}
    found.update(_lines(compilation, "tpu-environment") or _lines(compilation, "flagfile"))
    options = compilation.options
    if options is not None:
        found.update({name: ",".join(values) for name, values in options.debug.items()})
        if options.target is not None:
            found.update(_flat("gpu_target_config", options.target))
    for result in compilation.files_of("autotune-results"):
        found.update(_autotuning(compilation, result.kind))
    return {name: value for name, value in found.items() if not name.startswith(_IGNORED)}


def chosen_settings(compilation: Compilation) -> dict[str, tuple[str, bool]]:
    """Returns the settings known to differ from their defaults, each with True if its value is free text.

    From TPU's compile environment, which prints defaults too, only those it marks as set; nothing from the flag file.
    """
    found: dict[str, tuple[str, bool]] = {}
    files = [("tpu-environment", _marked), ("debug-options", lambda text: None)]
    for kind, names_of in files:
        for file in compilation.files_of(kind):
            try:
                text = file.text()
            except InputError:
                continue
            marked = names_of(text)
            for name, values in read_options(text, quotes=True).items():
                if (marked is None or name in marked) and not name.startswith(_IGNORED):
                    is_text = any(value.startswith(('"', "'")) for value in values)
                    found[name] = (",".join(value.strip("\"'") for value in values), is_text)
    return found


def _marked(text: str) -> frozenset[str]:
    return frozenset(_MARK.findall(text))


def header_settings(compilation: Compilation) -> dict[str, str]:
    """Returns the device counts in the module's header."""
    module = compilation.before or compilation.after
    if module is None:
        return {}
    return {name: str(module.attributes[name]) for name in _HEADER if name in module.attributes}


DEVICES = "device_assignment"
"""The setting of `device_order`."""


def device_order(compilation: Compilation) -> dict[str, str]:
    """Returns the ids of the devices in the order of partitions; empty for one device or if unknown."""
    for file in compilation.files_of("input-options"):
        try:
            ids = _DEVICE.findall(file.text())
        except InputError:
            continue
        if len(ids) > 1:
            return {DEVICES: ",".join(ids)}
    return {}


_DEVICE = re.compile(r"\breplica_device_ids: (\d+)")


def changed_settings(
    old: Mapping[str, str], new: Mapping[str, str]
) -> dict[str, tuple[str | None, str | None]]:
    """Returns the settings that differ, with old and new value, or None for the default."""
    return {
        name: (old.get(name), new.get(name))
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    }


def _lines(compilation: Compilation, kind: str) -> dict[str, str]:
    """The options of the files of a kind, one a line; comments are not taken."""
    found: dict[str, str] = {}
    for file in compilation.files_of(kind):
        try:
            options = read_options(file.text())
        except InputError:
            continue
        found.update({name: ",".join(values) for name, values in options.items()})
    return found


def _autotuning(compilation: Compilation, kind: str) -> dict[str, str]:
    """Autotuning results; the version alone does not count as one."""
    message = compilation.proto(kind)
    if message is None:
        return {}
    return {name: value for name, value in _flat(kind, message).items() if not name.endswith(".version")}


def _flat(prefix: str, message: TextMessage) -> dict[str, str]:
    """The fields of a message by their paths, repeated ones numbered."""
    found: dict[str, str] = {}
    pending = [(prefix, message)]
    while pending:
        path, one = pending.pop()
        for name, values in one.items():
            for number, value in enumerate(values):
                own = f"{path}.{name}" + (f"[{number}]" if len(values) > 1 else "")
                if isinstance(value, TextMessage):
                    pending.append((own, value))
                else:
                    found[own] = str(value).lower() if isinstance(value, bool) else str(value)
    return found

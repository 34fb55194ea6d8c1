"""Figures by which builds are compared; what reports and commands name without reading a dataset.

Each is exact, so that a change of any size is one of the program. `tables.history` reads them, `figures.sql` computes them.
"""

from __future__ import annotations

from collections.abc import Mapping

FIGURES: Mapping[str, tuple[str, str, str]] = {
    "peak_bytes": ("peak memory", "bytes", "buffers"),
    "least_seconds": ("minimum time", "seconds", "times"),
    "flops": ("flops", "operations", "costs"),
    "wire_bytes": ("bytes sent", "bytes", "collectives"),
    "instructions": ("instructions", "", "modules"),
    "findings": ("warnings", "", "findings"),
}
"""Figures of a build, for each its name, its unit and the table that tells it: less is better. Findings are counted as
`hlotext lint` counts them: errors and warnings, each once however many places it has, and no notes."""
MISSING = "missing"
"""In place of a figure: that a build lacks a module, or it could not be read there or not be told apart."""
TABLES = tuple(dict.fromkeys(("modules", "instructions", *(table for _, _, table in FIGURES.values()))))
"""The tables that a history needs."""

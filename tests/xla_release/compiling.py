"""Compiles one program of the corpus and leaves the dump, the final HLO and JAX's figures: run in the release's own
venv.

    python -m tests.xla_release.compiling PLATFORM PROGRAM TOPOLOGY FOLDER

It imports nothing of hlotext, which need not be installed there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

TEXT = "compiled.as_text"
PLAIN = "plain"
"""A dump as XLA writes it unasked: the text before and after."""
FACTS = "facts.json"


def main(platform: str, name: str, topology: str, folder: Path) -> None:
    import jax

    from corpus.programs import REGISTRY, Place

    program = REGISTRY[name]
    for setting, value in program.config.items():
        jax.config.update(setting, value)
    work = program.build(Place(platform, topology))
    options: dict[str, Any] = {
        "xla_dump_to": str(folder / "dump"),
        "xla_dump_hlo_pass_re": ".*",
        "xla_dump_large_constants": True,
        **program.flags,
    }
    if platform == "gpu":
        options["xla_gpu_autotune_level"] = 0  # autotuning would want the device
    lowered = jax.jit(work.function, **work.options).lower(*work.arguments)
    try:  # the compact form leaves out what passes see: an element that is read twice, or by nothing
        compiled = lowered.compile(compiler_options={**options, "xla_dump_compact_gte": False})
    except jax.errors.JaxRuntimeError as error:
        if "xla_dump_compact_gte" not in str(error):
            raise
        compiled = lowered.compile(compiler_options=options)  # a release from before that form
    else:
        lowered.compile(compiler_options={"xla_dump_to": str(folder / PLAIN), **program.flags})
    (folder / TEXT).write_text(compiled.as_text(), encoding="utf-8", errors="surrogateescape")
    cost = compiled.cost_analysis()
    facts = {
        "jax": jax.__version__,
        "platform": platform,
        "cost": cost[0] if isinstance(cost, list) else cost,
    }
    (folder / FACTS).write_text(json.dumps(facts, default=str), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]))

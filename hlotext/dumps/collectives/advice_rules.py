"""The rules by which an annotation is changed, with how often each was measured to spare traffic."""

from __future__ import annotations

from typing import Literal

import attrs

Where = Literal["cpu", "tpu", "gpu", "gspmd"]


@attrs.frozen
class Rule:
    """A rule that finds an annotation to change."""

    name: str
    what: str
    """The change, in a few words."""
    spared: dict[str, tuple[int, int]]
    """Where it was measured: how often less was sent, of how many recompilations."""


CONSTRAINED = "constraint"
"""The rule that changes what the program itself constrains."""

_ROWS = (
    # On CPU with Shardy only programs that no rule had been made with, at their first judgement: the held-out ones of XLA
    # 5a9e73cbd (by the collective that was to be spared), and 13 programs by JAX 0.12.0.1 (by the traffic in all). On TPU,
    # GPU and with GSPMD the rules made on CPU, recompiled there. All before changes were followed through the program:
    # those that would send more were counted too.
    ("result", "give the result the sharding that the tensor has", (1, 1), (2, 2), (2, 2), (13, 13)),
    (CONSTRAINED, "constrain to the sharding that the tensor has", (4, 4), (2, 2), (2, 2), (4, 4)),
    ("edge", "do not shard the dimension whose edges are read", (4, 7), (6, 6), (6, 6), (12, 12)),
    ("want", "use the sharding that the operation needs", (34, 49), (27, 32), (30, 35), (84, 94)),
    ("axes off", "do not shard it along the axes of the collective", (29, 42), (19, 23), (23, 28), (56, 66)),
    ("asked result", "give the result the sharding that the tensor has", (5, 7), (5, 7), (5, 7), (0, 3)),
    ("reader", "constrain the operation to the sharding that the tensor has", (2, 5), (6, 7), (8, 9), (4, 7)),
    ("summed off", "do not shard the summed dimension", (21, 34), (11, 18), (18, 25), (30, 45)),
    ("summed moved", "shard a dimension other than the summed one", (20, 28), (9, 27), (24, 32), (33, 51)),
    ("edge moved", "shard a dimension other than the one whose edges are read", (2, 6), (2, 10), (2, 10), (7, 16)),
    ("factor off", "do not shard the contracted dimension of one operand", (6, 12), (8, 22), (9, 23), (21, 99)),
)  # fmt: skip
RULES = {
    name: Rule(name, what, {"cpu": cpu, "tpu": tpu, "gpu": gpu, "gspmd": gspmd})
    for name, what, cpu, tpu, gpu, gspmd in _ROWS
}
"""The rules by name, the surest first."""

MEASURED_ON = {
    "cpu": "CPU with Shardy",
    "tpu": "TPU",
    "gpu": "GPU",
    "gspmd": "CPU with GSPMD",
}


TAKING = frozenset({"want", "axes off", "summed off", "factor off", "edge"})
"""Rules that make devices compute the same several times where they take an axis off."""

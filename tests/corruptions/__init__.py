"""Single semantic corruptions of real modules; see `base`."""

import random

from hlotext.ir.nodes.module import Module
from tests.corruptions import attributes, devices, operands, shapes
from tests.corruptions.base import KINDS, Corruption, near

__all__ = ["KINDS", "Corruption", "corrupt", "near"]

FILES = (attributes, devices, operands, shapes)
"""The modules that hold the kinds."""


def corrupt(module: Module, name: str, chance: random.Random) -> Corruption | None:
    """One corruption of that kind; None where the module has nothing of the sort."""
    return KINDS[name](module, chance)

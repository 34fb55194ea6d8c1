"""Assertions about HLO for tests: the pytest fixture `hlo`, and what it gives.

>>> from hlotext.testing import inspect
>>> inspect("ENTRY e { x = f32[8] parameter(0)  ROOT y = f32[8] negate(x) }").count("negate") == 1
True
"""

from hlotext.testing.inspected import Collectives, Count, Findings, Hlo, Instructions, inspect
from hlotext.testing.reading import module_of

__all__ = ["Collectives", "Count", "Findings", "Hlo", "Instructions", "inspect", "module_of"]

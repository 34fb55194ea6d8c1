"""Buffer assignment of scheduled modules, computed from the module alone exactly as by XLA.

>>> from hlotext import memory
>>> m = memory.assign(module)  # doctest: +SKIP
>>> m.peak().bytes, m.peak().values  # doctest: +SKIP
"""

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.memory import assignment as assignment
    from hlotext.memory import usage as usage
    from hlotext.memory import what_if as what_if
    from hlotext.memory import without as without
    from hlotext.memory.allocations import Allocation, Slice
    from hlotext.memory.assignment import Assignment, assign
    from hlotext.memory.compare import AssignmentDifference, differences
    from hlotext.memory.errors import MemoryModelError
    from hlotext.memory.files.companion_files import has_files
    from hlotext.memory.files.reading import joined, load, load_beside, read
    from hlotext.memory.files.writing import texts
    from hlotext.memory.peaks import MemoryStatistics, Peak
    from hlotext.memory.values import Use, Value

__getattr__ = lazy_submodules(
    __name__,
    "assignment",
    "usage",
    "what_if",
    "without",
    **{
        "allocations": ("Allocation", "Slice"),
        "assignment": ("Assignment", "assign"),
        "compare": ("AssignmentDifference", "differences"),
        "errors": ("MemoryModelError",),
        "files.companion_files": ("has_files",),
        "files.reading": ("joined", "load", "load_beside", "read"),
        "files.writing": ("texts",),
        "peaks": ("Peak", "MemoryStatistics"),
        "values": ("Use", "Value"),
    },
)

__all__ = [
    "Allocation",
    "Assignment",
    "AssignmentDifference",
    "MemoryModelError",
    "MemoryStatistics",
    "Peak",
    "Slice",
    "Use",
    "Value",
    "assign",
    "differences",
    "has_files",
    "joined",
    "load",
    "load_beside",
    "read",
    "texts",
]

"""Shareable reports of compiler faults: a single script with a reduced, anonymized module.

>>> from hlotext import bugreport, dumps
>>> folder = dumps.open("dumps/")  # doctest: +SKIP
>>> print(bugreport.make(folder.compilations[0], ["python", "compile.py", "{}"]).script)  # doctest: +SKIP
"""

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.bugreport.private import Leak, leaks
    from hlotext.bugreport.report import BugReport, BugReportError, CommandNotFoundError, make

__getattr__ = lazy_submodules(
    __name__,
    private=("Leak", "leaks"),
    report=("BugReport", "BugReportError", "CommandNotFoundError", "make"),
)

__all__ = ["BugReport", "BugReportError", "CommandNotFoundError", "Leak", "leaks", "make"]

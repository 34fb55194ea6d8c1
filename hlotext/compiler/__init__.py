"""The compiler, explained: the stages of a compilation.

>>> from hlotext import compiler
>>> compiler.stages.of("fusion", "priority-fusion").title
'Fusion'
"""

from hlotext.dumps.stages import stages

__all__ = ["stages"]

"""The compiler, explained: the stages of a compilation.

>>> from hlotext import compiler
>>> compiler.stages.of("fusion", "priority-fusion").title
'Fusion'
"""

from hlotext.compiler.decision import Decision, Outcome
from hlotext.compiler.executable import Executable, Kernel, Part, executable
from hlotext.dumps.stages import stages

__all__ = ["Decision", "Executable", "Kernel", "Outcome", "Part", "executable", "stages"]

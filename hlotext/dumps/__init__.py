"""XLA dump folders: each compilation of a module, with its steps, passes and side files.

>>> from hlotext import dumps
>>> folder = dumps.open("dumps/")                              # doctest: +SKIP
>>> [(step.stage, step.name) for step in folder["jit_step"].steps]  # doctest: +SKIP
"""

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.dumps import age as age
    from hlotext.dumps import causes as causes
    from hlotext.dumps import changes as changes
    from hlotext.dumps import collectives as collectives
    from hlotext.dumps import fingerprints as fingerprints
    from hlotext.dumps import identity as identity
    from hlotext.dumps.across_hosts import HostFinding, HostReport, hosts
    from hlotext.dumps.bisection import Bisection, Tried, bisect
    from hlotext.dumps.collectives.records import CollectiveCause, Place, Reason, Suggestion
    from hlotext.dumps.compilation import Compilation
    from hlotext.dumps.files import DumpFile
    from hlotext.dumps.folder import DumpFolder, open
    from hlotext.dumps.folder import opened as opened
    from hlotext.dumps.notes import Note
    from hlotext.dumps.sidecar_files import Options, PassRun
    from hlotext.dumps.step import Step
    from hlotext.dumps.texts import ModuleFile, module_texts, no_module
    from hlotext.dumps.timeline import TimelineEntry

__getattr__ = lazy_submodules(
    __name__,
    "age",
    "causes",
    "changes",
    "collectives",
    "fingerprints",
    "identity",
    across_hosts=("HostFinding", "HostReport", "hosts"),
    bisection=("Bisection", "Tried", "bisect"),
    compilation=("Compilation",),
    files=("DumpFile",),
    folder=("DumpFolder", "open", "opened"),
    notes=("Note",),
    sidecar_files=("Options", "PassRun"),
    step=("Step",),
    texts=("ModuleFile", "module_texts", "no_module"),
    timeline=("TimelineEntry",),
    **{"collectives.records": ("CollectiveCause", "Place", "Reason", "Suggestion")},
)

__all__ = [
    "Bisection",
    "CollectiveCause",
    "Compilation",
    "DumpFile",
    "DumpFolder",
    "HostFinding",
    "HostReport",
    "ModuleFile",
    "Note",
    "Options",
    "PassRun",
    "Place",
    "Reason",
    "Step",
    "Suggestion",
    "TimelineEntry",
    "Tried",
    "bisect",
    "hosts",
    "module_texts",
    "no_module",
    "open",
]

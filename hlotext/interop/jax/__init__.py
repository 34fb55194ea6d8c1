"""hlotext inside JAX: passes during compilation, conversion of programs to modules, execution. Extra: `hlotext[jax]`.

jaxlib parses HLO in this process and aborts the process on text that violates its invariants. `hlotext.verify` detects
such text, so everything is verified before it is passed to jaxlib.
"""

from typing import NoReturn

from hlotext.execution import NotExecutable
from hlotext.interop.jax.backend import CopyError, DonationError, NotEmittedError, ScheduleError
from hlotext.interop.jax.execution import assert_equivalent, random_inputs, run
from hlotext.interop.jax.explaining import CollectivesExplanation, Figures, Trial, explain
from hlotext.interop.jax.lowering import DryRun, change_lowered, dry_run
from hlotext.interop.jax.passes import ModulePass, register_pass
from hlotext.interop.jax.protos import from_jax, module_of_proto, proto_of_module
from hlotext.interop.jax.registration import PassOutcome, Registration
from hlotext.ir.lazy_imports import no_such_name

__all__ = [
    "CollectivesExplanation",
    "CopyError",
    "DonationError",
    "DryRun",
    "Figures",
    "ModulePass",
    "NotEmittedError",
    "NotExecutable",
    "PassOutcome",
    "Registration",
    "ScheduleError",
    "Trial",
    "assert_equivalent",
    "change_lowered",
    "dry_run",
    "explain",
    "from_jax",
    "module_of_proto",
    "proto_of_module",
    "random_inputs",
    "register_pass",
    "run",
]


def __getattr__(name: str) -> NoReturn:
    raise no_such_name(__name__, name)

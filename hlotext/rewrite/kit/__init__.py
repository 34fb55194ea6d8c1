"""Toolkit for writing rules and passes, which the built-in ones use as well.

- A rule: `rule` (op lines), `pattern` (a function, for a pattern or for opcodes), `Rewrite` (its context), `Result`.
- Edits as XLA makes them: `Editor`. New instructions by inferred shapes: `Builder`.
- Drivers: `apply_rules` with `worklist`, `post-order` or `once`; `PostOrder`, the traversal alone.
- Predicates on instructions: `hlotext.rewrite.kit.facts`. Limits: `InstructionBudget`.
"""

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.rewrite.kit.apply import RefusedRewriteWarning, apply_rules
    from hlotext.rewrite.kit.builder import Builder, shape_of
    from hlotext.rewrite.kit.drivers import Listener, PostOrder, Profile, RewriteError, RuleProfile
    from hlotext.rewrite.kit.edits import Editor
    from hlotext.rewrite.kit.limits import InstructionBudget, PassLimitError
    from hlotext.rewrite.kit.rules import Result, Rewrite, RewriteRule, pattern
    from hlotext.rewrite.kit.text_rules import rule
else:
    __getattr__ = lazy_submodules(
        __name__,
        apply=("RefusedRewriteWarning", "apply_rules"),
        builder=("Builder", "shape_of"),
        drivers=("Listener", "PostOrder", "Profile", "RewriteError", "RuleProfile"),
        edits=("Editor",),
        limits=("InstructionBudget", "PassLimitError"),
        rules=("Result", "Rewrite", "RewriteRule", "pattern"),
        text_rules=("rule",),
    )

__all__ = [
    "Builder",
    "Editor",
    "InstructionBudget",
    "Listener",
    "PassLimitError",
    "PostOrder",
    "Profile",
    "RefusedRewriteWarning",
    "Result",
    "Rewrite",
    "RewriteError",
    "RewriteRule",
    "RuleProfile",
    "apply_rules",
    "pattern",
    "rule",
    "shape_of",
]

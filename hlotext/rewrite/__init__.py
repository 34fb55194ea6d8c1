"""Transforming modules: a builder, rewrite rules, passes and pipelines.

>>> import hlotext as hlo
>>> from hlotext import matchers as m, rewrite
>>> @rewrite.pattern(m.sine(m.op("x")))
... def sine_to_cosine(r):
...     return r.b.cosine(r["x"])
>>> module = hlo.parse("ENTRY e { x = f32[4] parameter(0)  ROOT y = f32[4] sine(x) }")
>>> rewrite.apply_rules(module, [sine_to_cosine])
{'sine_to_cosine': 1}

- Rules: `rule` (op lines), `pattern` (a function), `apply_rules`, `load_rules`, `read_rules`, `ApplyRules` (rules as a
  pass).
- Editing: `Rewrite` (in a rule), `Editor` (in a custom pass), `kit`.
- New instructions and computations: `Builder`, `shape_of`, `clone_instruction`, `clone_computation`,
  `import_computation`.
- Arguments and results: `add_parameter`, `remove_parameter`, `add_result`, `remove_result`, `change_entry_layout`,
  `donate`.
- Propagated changes: `change_shape`, `change_operands`, `change_attributes`, `convert_region`.
- Loops: `add_loop_value`, `keep_loop_values`, `annotate_loop`.
- Regions: `outline`, `inline`, `extract`, `insert_after`, `sink_constants`, `reduce` (the smallest module that still
  fails).
- Order: `depends_on`, `move_after`, `next_instruction`, `previous_instruction`.
- Built-in passes: `PASSES`, `parse_passes`, `make_pass`, `Pipeline`, `bisect`.

Single edits are methods and attributes of the nodes: `Instruction.replace_with`, `Instruction.attributes`,
`Computation.root`, `Module.transaction`. `jax` has `register_pass`, `run` and `assert_equivalent`.
"""

from typing import TYPE_CHECKING

from hlotext.edit.cloning import clone_computation, clone_instruction
from hlotext.edit.parameters import add_parameter, remove_parameter
from hlotext.ir.errors import EditError
from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.rewrite.donation import donate
    from hlotext.rewrite.entry_layout import change_entry_layout
    from hlotext.rewrite.extraction import extract
    from hlotext.rewrite.importing import import_computation
    from hlotext.rewrite.kit import (
        Builder,
        Editor,
        Listener,
        Profile,
        RefusedRewriteWarning,
        Result,
        Rewrite,
        RewriteError,
        RewriteRule,
        RuleProfile,
        apply_rules,
        pattern,
        rule,
        shape_of,
    )
    from hlotext.rewrite.loop_state import add_loop_value, annotate_loop, keep_loop_values
    from hlotext.rewrite.ordering import (
        depends_on,
        move_after,
        next_instruction,
        previous_instruction,
        replace_preserving_sharding,
    )
    from hlotext.rewrite.outlining import inline, outline
    from hlotext.rewrite.passes import PASSES, Pass, PassResult, make_pass, parse_passes
    from hlotext.rewrite.pipeline import PassError, Pipeline, PipelineStep, bisect
    from hlotext.rewrite.propagation import change_attributes, change_operands, change_shape
    from hlotext.rewrite.reduction import Reduction, reduce
    from hlotext.rewrite.regions import convert_region, insert_after, sink_constants
    from hlotext.rewrite.results import add_result, remove_result
    from hlotext.rewrite.rule_files import ApplyRules, FileRule, RuleFileError, load_rules, read_rules
else:
    __getattr__ = lazy_submodules(
        __name__,
        donation=("donate",),
        entry_layout=("change_entry_layout",),
        extraction=("extract",),
        importing=("import_computation",),
        kit=(
            "Builder",
            "Editor",
            "Listener",
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
        ),
        loop_state=("add_loop_value", "annotate_loop", "keep_loop_values"),
        ordering=(
            "depends_on",
            "move_after",
            "next_instruction",
            "previous_instruction",
            "replace_preserving_sharding",
        ),
        outlining=("inline", "outline"),
        passes=("PASSES", "Pass", "PassResult", "make_pass", "parse_passes"),
        pipeline=("PassError", "Pipeline", "PipelineStep", "bisect"),
        propagation=("change_attributes", "change_operands", "change_shape"),
        reduction=("Reduction", "reduce"),
        regions=("convert_region", "insert_after", "sink_constants"),
        results=("add_result", "remove_result"),
        rule_files=("ApplyRules", "FileRule", "RuleFileError", "load_rules", "read_rules"),
    )

__all__ = [
    "PASSES",
    "ApplyRules",
    "Builder",
    "EditError",
    "Editor",
    "FileRule",
    "Listener",
    "Pass",
    "PassError",
    "PassResult",
    "Pipeline",
    "PipelineStep",
    "Profile",
    "Reduction",
    "RefusedRewriteWarning",
    "Result",
    "Rewrite",
    "RewriteError",
    "RewriteRule",
    "RuleFileError",
    "RuleProfile",
    "add_loop_value",
    "add_parameter",
    "add_result",
    "annotate_loop",
    "apply_rules",
    "bisect",
    "change_attributes",
    "change_entry_layout",
    "change_operands",
    "change_shape",
    "clone_computation",
    "clone_instruction",
    "convert_region",
    "depends_on",
    "donate",
    "extract",
    "import_computation",
    "inline",
    "insert_after",
    "keep_loop_values",
    "load_rules",
    "make_pass",
    "move_after",
    "next_instruction",
    "outline",
    "parse_passes",
    "pattern",
    "previous_instruction",
    "read_rules",
    "reduce",
    "remove_parameter",
    "remove_result",
    "replace_preserving_sharding",
    "rule",
    "shape_of",
    "sink_constants",
]

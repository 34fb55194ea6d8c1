"""Linter for HLO, with rules that find wasted time and memory from the module alone.

`run(module)` returns the findings of a parsed module. `lint_source` lints text and reports syntax errors too.
"""

from typing import TYPE_CHECKING

from hlotext.findings.finding import Finding
from hlotext.ir.lazy_imports import lazy_submodules
from hlotext.lint.baseline import Baseline, BaselineError, Comparison, Entry
from hlotext.lint.codes import INTERNAL, code_of, every_code
from hlotext.lint.config import Config, ConfigError, config_from_table, find_config, load_config
from hlotext.lint.engine import Linted, lint_source, run
from hlotext.lint.files import FileResult, lint_file, lint_files, modules_in, texts_in
from hlotext.lint.registry import ENTRY_POINTS, RuleError, all_rules, builtin_rules
from hlotext.lint.rule import FAMILIES, WASTES, Context, Report, Rule, make_context

if TYPE_CHECKING:
    from hlotext.lint.fix import fix_text
    from hlotext.lint.silence import Silence, explain_silence
    from hlotext.lint.table import rule_table

__getattr__ = lazy_submodules(
    __name__, fix=("fix_text",), silence=("Silence", "explain_silence"), table=("rule_table",)
)

__all__ = [
    "ENTRY_POINTS",
    "FAMILIES",
    "INTERNAL",
    "WASTES",
    "Baseline",
    "BaselineError",
    "Comparison",
    "Config",
    "ConfigError",
    "Context",
    "Entry",
    "FileResult",
    "Finding",
    "Linted",
    "Report",
    "Rule",
    "RuleError",
    "Silence",
    "all_rules",
    "builtin_rules",
    "code_of",
    "config_from_table",
    "every_code",
    "explain_silence",
    "find_config",
    "fix_text",
    "lint_file",
    "lint_files",
    "lint_source",
    "load_config",
    "make_context",
    "modules_in",
    "rule_table",
    "run",
    "texts_in",
]

"""Findings that a pass does away with: only passes that leave every result as it is."""

from __future__ import annotations

from hlotext.findings.errors import HloSyntaxError
from hlotext.ir.nodes.source import Source
from hlotext.lint.config import Config
from hlotext.lint.engine import run
from hlotext.lint.registry import all_rules
from hlotext.rewrite.passes import make_pass
from hlotext.semantics.infer import infer_shape
from hlotext.syntax.read import read_modules


def fix_text(source: Source, config: Config | None = None) -> tuple[str, tuple[str, ...]]:
    """Applies the passes that fix findings without changing results, and returns the text and their names.

    Only passes that changed the text are named. Unmodified lines are preserved byte for byte. Text that cannot be parsed
    or has several modules is returned unchanged. Raises the errors of `run`.
    """
    try:
        modules, _ = read_modules(source, infer=infer_shape)
    except HloSyntaxError:
        return source.text, ()
    if len(modules) != 1:
        return source.text, ()
    known = all_rules(config.rule_files if config is not None else ())
    (module,) = modules
    wanted = {known[finding.code].fix for finding in run(module, config) if finding.code in known}
    changed = tuple(name for name in sorted(wanted - {""}) if make_pass(name).run(module).changed)
    return (str(module) if changed else source.text), changed

"""Build step of the wheel and of an editable install: writes the parser's tables beside the code that reads them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class TablesHook(BuildHookInterface[Any]):
    """Makes hlotext/syntax/reading/tables.json."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        sys.path.insert(0, self.root)
        try:
            from hlotext.syntax.language import grammar
            from hlotext.syntax.reading import tables, terms
        finally:
            sys.path.remove(self.root)
        path = tables.write(grammar.text(), terms.STARTS)
        build_data["artifacts"].append(str(path.relative_to(Path(self.root))))

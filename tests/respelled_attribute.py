"""Respells an attribute in its row, and prints what is read, printed and counted under both names (run by test_traits.py)."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import sys
from types import ModuleType

ROWS = "hlotext.ir.tables.opcode_attributes"
OLD = 'AttributeUse("feature_group_count", _P.IF_NOT_DEFAULT, default=1)'
NEW = 'AttributeUse("feature_group_count", _P.IF_NOT_DEFAULT, default=1, spellings=("feature_groups",))'
TEXT = """ENTRY main {
  x = f32[1,8,8,16] parameter(0)
  k = f32[3,3,2,16] parameter(1)
  ROOT c = f32[1,8,8,16] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, NAME=8
}
"""
COMMENT = "NAME=/* a comment: the grammar reads this line */8"


class _Loader(importlib.machinery.SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        source = self.get_source(module.__name__) or ""
        assert OLD in source
        exec(compile(source.replace(OLD, NEW), self.path, "exec"), vars(module))


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: object, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != ROWS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)  # type: ignore[arg-type]
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin)
        return spec


def main() -> None:
    """Prints the answers as JSON, for each name and each reader."""
    sys.meta_path.insert(0, _Finder())
    import hlotext as hlo
    from hlotext import cost

    answers = []
    for name in ("feature_group_count", "feature_groups"):
        for text in (TEXT, TEXT.replace("NAME=8", COMMENT)):
            module = hlo.parse(text.replace("NAME", name))
            convolution = module.entry.root
            value = convolution.attributes["feature_group_count"]
            printed = module.to_text().count(f"{name}=8")
            convolution.name = "renamed"
            answers.append([value, cost.analyze(module).flops, printed, str(module).count(f"{name}=")])
    print(json.dumps(answers))


if __name__ == "__main__":
    main()

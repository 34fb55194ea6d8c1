"""Writes what is made from tables and classes: `python -m tests.stubs`.

Stubs of what is made from the opcode table at run time, which mypy and editors read, and the table of lint rules by which
they are chosen before they are imported. `tests/test_stubs.py` compares them with what they are made from.
"""

from __future__ import annotations

import importlib
import inspect
import keyword
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs

from hlotext.ir.tables import opcodes
from hlotext.ir.tables.attributes import ATTRIBUTES
from hlotext.ir.tables.opcode import AttributeUse, Opcode, Payload, Printing
from hlotext.ir.tables.opcode_attributes import COMMON_ATTRIBUTES
from hlotext.lint.merged import MergedRule
from hlotext.lint.rule import Rule
from hlotext.lint.rule_row import RuleNeeds, RuleRow
from hlotext.matchers.facts import COMMUTATIVE
from hlotext.rewrite.kit.builder import Builder
from tests.support import ROOT

PACKAGE = ROOT / "hlotext"

HEAD = '"""{doc} Made from the opcode table by `python -m tests.stubs`."""\n\n'

PLAIN = {
    "integer": "int",
    "list of integers": "Sequence[int]",
    "list of integers, or list of such lists": "Sequence[int] | Sequence[Sequence[int]]",
    "list of pairs": "Sequence[tuple[int, int]]",
    "boolean": "bool",
    "list of booleans": "Sequence[bool]",
    "number": "float",
    "string": "str",
    "computation": "Computation",
    "list of computations": "Sequence[Computation]",
    "list of instructions": "Sequence[Instruction]",
    "list of shapes": "Sequence[Shape]",
    "list of Precision": "Sequence[Precision]",
    "Literal with its shape": "Literal",
}
"""The Python type for each description of a value in the attribute table that is no class of its own."""


_OF_LISTS = ("ReplicaGroups", "PaddingConfig", "SliceDimensions")
"""Values that lists of their numbers mean too."""

_OF_PARTS = ("Metadata", "Statistics", "Window")
"""Values that a mapping of their parts means too."""


def attribute_type(name: str) -> str:
    """The type of an attribute's value."""
    words = ATTRIBUTES[name].value
    return PLAIN.get(words) or words.replace(" or ", " | ")


def given_type(name: str) -> str:
    """The type of what may be given for an attribute: the value, or what is converted to it."""
    read = attribute_type(name)
    if read == "FrontendAttributes":
        return "Mapping[str, str] | str"
    if read in _OF_LISTS:
        return f"{read} | Sequence[Sequence[int]] | str"
    if read == "Sequence[int]":
        return "Sequence[int] | int"
    if read in _OF_PARTS:
        return f"{read} | Mapping[str, object] | str"
    return f"{read} | str" if read[0].isupper() and not read.startswith(("Sequence", "Computation")) else read


def module_of(class_name: str) -> str:
    """The module of a value's class."""
    for path in sorted((PACKAGE / "ir" / "values").glob("*.py")):
        if re.search(rf"^class {class_name}\b", path.read_text(encoding="utf-8"), re.MULTILINE):
            return f"hlotext.ir.values.{path.stem}"
    raise KeyError(class_name)


def imports(body: str) -> str:
    """The imports of the values' classes that stand in a stub."""
    found: dict[str, set[str]] = {}
    words = {word for name in ATTRIBUTES for word in re.findall(r"[A-Z]\w+", attribute_type(name))}
    for word in sorted(words - {"Sequence", "Computation", "Instruction"}):
        if re.search(rf"\b{word}\b", body):
            found.setdefault(module_of(word), set()).add(word)
    return "".join(
        f"from {module} import {', '.join(sorted(names))}\n" for module, names in sorted(found.items())
    )


def method_name(row: Opcode) -> str:
    name = row.name.replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) else name


def is_required(row: Opcode, use: AttributeUse) -> bool:
    return (
        use.required
        and not use.optional_for_scalar
        and not any(use.name in names for names in row.alternatives)
    )


COMMON = tuple(use.name for use in COMMON_ATTRIBUTES if use.name != "result_accuracy")
"""What every instruction takes."""


def keywords(row: Opcode) -> list[str]:
    """The attributes of an opcode as keywords, but for those that all take: those that must be given first."""
    uses = [
        u
        for u in opcodes.allowed_attributes(row).values()
        if u.printed is not Printing.INPUT_ONLY and u.name not in COMMON
    ]
    first = [f"{keyword_of(u.name)}: {given_type(u.name)}" for u in uses if is_required(row, u)]
    rest = [
        f"{keyword_of(u.name)}: {given_type(u.name)} | None = ..." for u in uses if not is_required(row, u)
    ]
    return [*first, *rest]


def keyword_of(name: str) -> str:
    return name.replace("-", "_")


def common(type_of: Callable[[str], str]) -> str:
    """The class of the keywords that all take."""
    lines = "".join(f"    {keyword_of(name)}: {type_of(name)}\n" for name in COMMON)
    return f"class Common(TypedDict, total=False):\n    name: str | None\n{lines}\n"


def operands(row: Opcode) -> list[str]:
    """The operands as positional parameters."""
    fixed = [f"operand{n}: Operand" for n in range(row.arity.minimum)]
    if row.arity.maximum == row.arity.minimum:
        return [*fixed, "/"] if fixed else []
    return [*([*fixed, "/"] if fixed else []), "*operands: Operand"]


def signature(name: str, parameters: list[str], indent: str, result: str) -> str:
    return f"{indent}def {name}({', '.join(parameters)}) -> {result}: ...\n"


def builder_stub() -> str:
    """One method for each opcode that the builder does not define itself."""
    body = ""
    for row in opcodes.OPCODES.values():
        name = method_name(row)
        if name in vars(Builder) or row.payload is not Payload.OPERANDS:
            continue
        positional = operands(row)
        shape = "shape: Shape | str" if row.shape_rule is None else "shape: Shape | str | None = ..."
        star = [] if any(p.startswith("*") for p in positional) else ["*"]
        parameters = ["self", *positional, *star, shape, *keywords(row), "**common: Unpack[Common]"]
        body += signature(name, parameters, "    ", "Instruction")
    body = common(lambda name: f"{given_type(name)} | None") + "class OpcodeMethods:\n" + body
    return (
        HEAD.format(doc="The builder's methods, one for each opcode.")
        + "from collections.abc import Mapping, Sequence\nfrom typing import TypedDict, Unpack\n\n"
        + "from hlotext.ir.nodes.computation import Computation\nfrom hlotext.ir.nodes.instruction import Instruction\n"
        + "from hlotext.ir.tables.opcode import Opcode\n"
        + "from hlotext.rewrite.kit.typed_numbers import Operand\n"
        + imports(body)
        + "\nMETHODS: Mapping[str, Opcode]\n\n"
        + body
    )


def matcher_stub() -> str:
    """One function for each opcode that the matchers do not define themselves, and the commutative ones in any order."""
    body = common(lambda name: "object")
    for row in opcodes.OPCODES.values():
        if row.payload is not Payload.OPERANDS:
            continue
        names = [method_name(row)] + [f"{row.name}_any_order"] * (row.name in COMMUTATIVE)
        own = [name for name in opcodes.allowed_attributes(row) if name not in COMMON]
        for name in names:
            wanted = [f"{keyword_of(attribute)}: object = ..." for attribute in own]
            body += signature(
                name, ["*operands: Pattern", *wanted, "**common: Unpack[Common]"], "", "Pattern"
            )
    return (
        HEAD.format(doc="The matchers of opcodes.")
        + "from typing import TypedDict, Unpack\n\nfrom hlotext.matchers.pattern import Pattern\n\n"
        + body
    )


READ = {
    "list of integers": "tuple[int, ...]",
    "list of integers, or list of such lists": "tuple[int, ...] | tuple[tuple[int, ...], ...]",
    "list of pairs": "tuple[tuple[int, int], ...]",
    "list of booleans": "tuple[bool, ...]",
    "list of computations": "tuple[Computation, ...]",
    "list of instructions": "tuple[Instruction, ...]",
    "list of shapes": "tuple[Shape, ...]",
    "list of Precision": "tuple[Precision, ...]",
    "Literal with its shape": "LiteralValue",
}
"""The type of what is read, where it is narrower than what may be given."""


def attributes_stub() -> str:
    """What each attribute holds, by its name."""
    by_type: dict[str, list[str]] = {}
    for name, info in ATTRIBUTES.items():
        by_type.setdefault(READ.get(info.value) or attribute_type(name), []).append(name)
    body = "class TypedAttributes(MutableMapping[str, Any], metaclass=ABCMeta):\n"
    for type_, names in by_type.items():
        wanted = ", ".join(f'"{name}"' for name in names)
        body += f"    @overload\n    def __getitem__(self, name: Literal[{wanted}], /) -> {type_}: ...\n"
    body += "    @overload\n    def __getitem__(self, name: str, /) -> object: ...\n"
    remark = "  # type: ignore[override]"  # `Mapping.get` knows no names
    for type_, names in by_type.items():
        wanted = ", ".join(f'"{name}"' for name in names)
        body += (
            f"    @overload{remark}\n    def get(self, name: Literal[{wanted}], /) -> {type_} | None: ...\n"
        )
        remark = ""
    body += "    @overload\n    def get(self, name: str, /) -> Any: ...\n"
    body += "    @overload\n    def get(self, name: str, /, default: Any) -> Any: ...\n"
    found = imports(body.replace("Literal[", "[")).replace(
        "import Literal\n", "import Literal as LiteralValue\n"
    )
    if "LiteralValue" not in found:
        found += "from hlotext.ir.values.literal import Literal as LiteralValue\n"
    return (
        HEAD.format(doc="The types of attributes by name.")
        + "from abc import ABCMeta\nfrom collections.abc import MutableMapping\nfrom typing import Any, Literal, overload\n\n"
        + "from hlotext.ir.nodes.computation import Computation\nfrom hlotext.ir.nodes.instruction import Instruction\n"
        + found
        + "\n"
        + body
    )


RULES = '''"""The built-in rules by code: made from their classes by `python -m tests.stubs`."""

from hlotext.lint.rule_row import RuleNeeds, RuleRow

RULE_ROWS: dict[str, RuleRow] = {
'''


def rule_rows() -> str:
    """The table by which rules are chosen before they are imported."""
    found = {}
    for file in sorted((PACKAGE / "lint" / "rules").glob("[a-z]*.py")):
        module = importlib.import_module(f"hlotext.lint.rules.{file.stem}")
        for kind in vars(module).values():
            if inspect.isclass(kind) and issubclass(kind, Rule) and kind.__module__ == module.__name__:
                found[kind.code] = kind
    return RULES + "".join(f"{code!r}: {_row(kind)},\n" for code, kind in sorted(found.items())) + "}\n"


def _row(kind: type[Rule]) -> str:
    """A row of the table. A merged rule finds something where one of its parts does."""
    parts = kind.parts if issubclass(kind, MergedRule) else (kind,)
    needs = dict.fromkeys(part.needs() for part in parts)
    texts = [_text("RuleNeeds", [], attrs.asdict(one), RuleNeeds) for one in needs]
    values = {"is_default": kind.is_default, "former": kind.former}
    first = [repr(kind.__module__.rpartition(".")[2]), repr(kind.__name__)]
    last = [f"needs=({', '.join(texts)},)"] if RuleNeeds() not in needs else []
    return _text("RuleRow", first, values, RuleRow, last)


def _text(name: str, first: list[str], values: dict[str, Any], kind: type, last: Sequence[str] = ()) -> str:
    """A call with those arguments that differ from the defaults."""
    default = {field.name: field.default or frozenset() for field in attrs.fields(kind)}
    said = [
        f"{key}={(' '.join(sorted(value)) if isinstance(value, frozenset) else value)!r}"
        for key, value in values.items()
        if (value or frozenset()) != default[key]
    ]
    return f"{name}({', '.join([*first, *said, *last])})"


STUBS = {
    "ir/nodes/typed_attributes.pyi": attributes_stub,
    "rewrite/kit/opcode_methods.pyi": builder_stub,
    "matchers/opcode_matchers.pyi": matcher_stub,
    "lint/rule_rows.py": rule_rows,
}
"""The stubs, below the package, and what makes each."""


def formatted(text: str) -> str:
    """The text as ruff writes it."""
    for command in (["check", "-q", "--fix", "--select", "I"], ["format", "-q"]):
        words = [sys.executable, "-m", "ruff", *command, "--stdin-filename", "hlotext/stub.pyi", "-"]
        text = subprocess.run(words, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return text


def main() -> None:
    for name, make in STUBS.items():
        Path(PACKAGE / name).write_text(formatted(make()), encoding="utf-8")


if __name__ == "__main__":
    main()

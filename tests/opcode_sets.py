"""Sets of opcodes in the sources of hlotext: collects them, and compares them with the recorded ones.

`tests/data/opcode_sets.json` has the sets as they were when opcodes were still listed where they were asked for. A set that
became an expression over `hlotext.ir.tables.traits` must evaluate to the recorded opcodes; `added` and `removed` are
changes on purpose, and `now` is the expression where the name is gone. `python -m tests.opcode_sets`
prints the literal sets that are left; with `--record` it writes the file anew.
"""

from __future__ import annotations

import ast
import functools
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import OPCODES

ROOT = Path(__file__).parent.parent
RECORDED = ROOT / "tests" / "data" / "opcode_sets.json"
TABLES = "hlotext/ir/tables/"
FEWEST = 3
"""Minimum number of opcodes of a set that counts."""


@attrs.frozen
class OpcodeSet:
    """A set of opcodes in the sources."""

    module: str
    scope: str
    """Name of the variable, or of the function that holds the set, with those around it."""
    opcodes: tuple[str, ...]
    line: int = 0
    is_table: bool = False
    """True for the keys of a mapping, which says something else of each opcode."""


@functools.cache
def trees() -> dict[str, ast.Module]:
    """Syntax tree of every module outside the tables, by name."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): ast.parse(
            path.read_text("utf-8")
        )
        for path in sorted((ROOT / "hlotext").rglob("*.py"))
        if TABLES not in path.as_posix()
    }


@functools.cache
def literal_sets() -> list[OpcodeSet]:
    """Every literal set, tuple or list of three or more opcodes outside the tables, and the keys of such mappings."""
    return [found for module, tree in trees().items() for found in _in_node(tree, module, ())]


def _in_node(node: ast.AST, module: str, scope: tuple[str, ...]) -> Iterator[OpcodeSet]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        scope = (*scope, node.name)
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        scope = (*scope, ast.unparse(target)) if "self" not in ast.unparse(target) else scope
    elif isinstance(node, ast.Set | ast.Tuple | ast.List | ast.Dict | ast.BinOp):
        strings = list(_strings(node))
        opcodes = sorted({text for text in strings if text in OPCODES})
        if len(opcodes) >= FEWEST and 2 * len(opcodes) >= len(set(strings)):
            is_table = any(isinstance(inner, ast.Dict) for inner in ast.walk(node))
            yield OpcodeSet(module, ".".join(scope), tuple(opcodes), node.lineno, is_table)
            if not is_table:
                return
    for child in ast.iter_child_nodes(node):
        yield from _in_node(child, module, scope)


def _strings(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.BinOp):
        yield from _strings(node.left)
        yield from _strings(node.right)
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "frozenset" and node.args:
        yield from _strings(node.args[0])
    if not isinstance(node, ast.Set | ast.Tuple | ast.List | ast.Dict):
        return
    for element in node.keys if isinstance(node, ast.Dict) else node.elts:
        if isinstance(element, ast.Starred) and isinstance(element.value, ast.Tuple | ast.List | ast.Set):
            yield from _strings(element.value)
        elif isinstance(element, ast.Constant) and isinstance(element.value, str):
            yield element.value


def unknown_words() -> list[tuple[str, int, str]]:
    """Words in literal sets of opcodes that are spelled like opcodes and are none: module, line and word."""
    return [
        (module, node.lineno, word)
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Set | ast.Tuple | ast.List)
        for words in (set(_strings(node)),)
        if len(words & OPCODES.keys()) >= FEWEST - 1 and len(words & OPCODES.keys()) * 2 > len(words)
        for word in sorted(words - OPCODES.keys())
        if "-" in word
    ]


def value_sets() -> list[OpcodeSet]:
    """Every set of opcodes with a name of its own, as it is at run time, and the literal sets inside functions."""
    found = []
    for module, tree in trees().items():
        names = [
            ast.unparse(target)
            for node in tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        ]
        for name in dict.fromkeys(names):
            value = vars(importlib.import_module(module)).get(name)
            if isinstance(value, frozenset | set | tuple | list | dict) and all(
                isinstance(element, str) for element in value
            ):
                opcodes = sorted(set(value) & OPCODES.keys())
                if len(opcodes) >= FEWEST and 2 * len(opcodes) >= len(value):
                    found.append(OpcodeSet(module, name, tuple(opcodes)))
        found += [one for one in _in_node(tree, module, ()) if one.scope not in names]
    return found


@functools.cache
def evaluated(module: str) -> set[tuple[str, ...]]:
    """The sets of opcodes that the expressions over traits in a module evaluate to."""
    known = {**vars(importlib.import_module(module)), "traits": traits}
    found = set()
    for node in ast.walk(trees()[module]):
        if isinstance(node, ast.BinOp | ast.Attribute | ast.Call) and _is_of_traits(node):
            try:
                value = eval(ast.unparse(node), known)
            except NameError:
                continue
            if isinstance(value, frozenset | set | tuple):
                found.add(tuple(sorted(value)))
    return found


def _is_of_traits(node: ast.AST) -> bool:
    names = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    return "traits" in names and all(name in ("traits", "frozenset") or name.isupper() for name in names)


def differences() -> list[str]:
    """Recorded sets that became expressions over traits and have other opcodes now, those that are newer apart."""
    found = []
    literal = {(one.module, one.scope) for one in literal_sets()}
    rows = json.loads(RECORDED.read_text("utf-8"))
    known = {
        opcode for row in rows for opcode in (*row["opcodes"], *row.get("added", ()), *row.get("removed", ()))
    }
    for row in rows:
        module, scope, opcodes = row["module"], row["scope"], tuple(row["opcodes"])
        if (module, scope) in literal or (module not in trees() and "now" not in row):
            continue  # still listed, or the file has moved
        if "now" in row:
            values: set[tuple[str, ...]] = {tuple(sorted(eval(row["now"], {"traits": traits})))}
        else:
            value: Any = vars(importlib.import_module(module)).get(scope)
            is_set = isinstance(value, frozenset | set | tuple | list | dict)
            values = {tuple(sorted(OPCODES.keys() & set(value)))} if is_set else evaluated(module)
        opcodes = tuple(sorted({*opcodes, *row.get("added", ())} - {*row.get("removed", ())}))
        if opcodes not in {tuple(opcode for opcode in value if opcode in known) for value in values}:
            found.append(f"{module}: {scope} was {opcodes}")
    return found


def main() -> None:
    """Prints the literal sets, or records the sets as they are."""
    if "--record" in sys.argv:
        rows = [
            {"module": one.module, "scope": one.scope, "opcodes": list(one.opcodes)} for one in value_sets()
        ]
        lines = ",\n".join(json.dumps(row) for row in rows)
        RECORDED.write_text(f"[\n{lines}\n]\n", "utf-8")
    sets = [one for one in literal_sets() if not one.is_table]
    for one in sets:
        print(f"{one.module}:{one.line}: {one.scope}: {' '.join(one.opcodes)}")
    print(f"{len(sets)} sets, {len(literal_sets()) - len(sets)} mappings", file=sys.stderr)


if __name__ == "__main__":
    main()

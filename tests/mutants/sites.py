"""Places in the sources that can be mutated, and what is put there instead."""

from __future__ import annotations

import ast
import copy
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import attrs

PACKAGE = Path(__file__).resolve().parents[2] / "hlotext"

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


@attrs.frozen(order=True)
class Mutant:
    """One change of one file: the text between two places is replaced."""

    path: str
    """File, relative to the package."""
    lines: tuple[int, ...]
    """Lines that show, when they run, that the mutant may have been run."""
    start: tuple[int, int]
    """Line from 1 and byte in it from 0, as `ast` counts."""
    end: tuple[int, int]
    kind: str
    old: str
    new: str

    @property
    def key(self) -> str:
        """Names the mutant as long as the text of the line stays: `cost/dot.py: a < b -> a <= b`."""
        return f"{self.path}: {' '.join(self.old.split())} -> {' '.join(self.new.split())}"

    def apply(self, source: str) -> str:
        """The text of the file with the change."""
        lines = [line.encode() for line in source.splitlines(keepends=True)]
        (first, before), (last, after) = self.start, self.end
        text = lines[first - 1][:before] + self.new.encode() + lines[last - 1][after:]
        return b"".join([*lines[: first - 1], text, *lines[last:]]).decode()


def _variants(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The mutations of a node: their kinds and the nodes that replace it."""
    match node:
        case ast.Compare(ops=[operation]) if type(operation) in _COMPARISONS:
            changed = copy.deepcopy(node)
            changed.ops = [_COMPARISONS[type(operation)]()]
            yield "comparison", changed
        case ast.BoolOp(op=ast.And(), values=values):
            yield "condition", ast.BoolOp(ast.Or(), values)
        case ast.BoolOp(op=ast.Or(), values=values):
            yield "condition", ast.BoolOp(ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "condition", operand
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield "condition", ast.IfExp(test, orelse, body)
        case ast.Constant(value=bool() as value):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int() | float() as number):
            yield "constant", ast.Constant(number + 1)
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _ARITHMETIC:
            if not any(
                isinstance(side, ast.JoinedStr | ast.Tuple | ast.List) or _is_text(side)
                for side in (left, right)
            ):
                yield "arithmetic", ast.BinOp(left, _ARITHMETIC[type(operation)](), right)
        case ast.Set(elts=[_, _, *_] as elements):
            yield "element", ast.Set(elements[1:])
        case ast.Continue() | ast.Break() | ast.Expr(value=ast.Call() | ast.Yield()) | ast.AugAssign():
            yield "statement", ast.Pass()
        case ast.Return(value=ast.expr() as result) if not (
            isinstance(result, ast.Constant) and not result.value
        ):
            yield "statement", ast.Return(ast.Constant(None))


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _walk(node: ast.AST, statement: ast.stmt) -> Iterator[tuple[ast.expr | ast.stmt, ast.stmt]]:
    """The nodes below one with the innermost statement of each; no defaults, types, or `strict=` of what cannot differ."""
    if isinstance(node, ast.expr | ast.stmt):
        yield node, statement
    for field, value in ast.iter_fields(node):
        if field in ("args", "annotation", "returns") and not isinstance(node, ast.Call):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not (isinstance(child, ast.keyword) and child.arg == "strict"):
                yield from _walk(child, child if isinstance(child, ast.stmt) else statement)


def _bodies(tree: ast.Module) -> Iterator[tuple[ast.stmt, set[int]]]:
    """The mutated parts of a module: functions, and constants with the lines of the file that use them."""
    uses: dict[str, set[int]] = defaultdict(set)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            uses[node.id if isinstance(node, ast.Name) else node.attr].add(node.lineno)
    pending: list[ast.stmt] = list(tree.body)
    while pending:
        node = pending.pop(0)
        match node:
            case ast.FunctionDef():
                yield from ((statement, set()) for statement in node.body)
            case ast.ClassDef(body=body):
                pending.extend(body)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if name in uses and isinstance(node.value, ast.Constant | ast.Set | ast.BinOp):
                    yield node, uses[name]


def sites(path: Path) -> list[Mutant]:
    """Every mutant of a file, in the order of the text."""
    source = path.read_text()
    text = [line.encode() for line in source.splitlines(keepends=True)]

    def segment(node: ast.expr | ast.stmt) -> str:
        lines = text[node.lineno - 1 : node.end_lineno]
        whole = b"".join(lines)
        return whole[node.col_offset : len(whole) - len(lines[-1]) + (node.end_col_offset or 0)].decode()

    found = []
    for body, used in _bodies(ast.parse(source)):
        for node, statement in _walk(body, body):
            if isinstance(statement, ast.Raise | ast.Assert):
                continue
            for kind, changed in _variants(node):
                new = ast.unparse(ast.fix_missing_locations(changed))
                lines = used or {statement.lineno, *range(node.lineno, (node.end_lineno or node.lineno) + 1)}
                found.append(
                    Mutant(
                        str(path.relative_to(PACKAGE)),
                        tuple(sorted(lines)),
                        (node.lineno, node.col_offset),
                        (node.end_lineno or node.lineno, node.end_col_offset or 0),
                        kind,
                        segment(node),
                        f"({new})" if isinstance(node, ast.expr) else new,
                    )
                )
    return found


def sample(count: int, seed: int, prefixes: Sequence[str] = ("",)) -> list[Mutant]:
    """The same mutants for the same sources: one of every package at least, the rest by the number of sites.

    Args:
        count: how many.
        seed: another one gives others.
        prefixes: only files whose path below the package begins with one of these, e.g. `lint/`.
    """
    dice = random.Random(seed)
    packages: dict[str, list[Mutant]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        name = str(path.relative_to(PACKAGE))
        if name.startswith(tuple(prefixes)):
            packages[name.split("/")[0]].extend(sites(path))
    chosen = [dice.choice(found) for found in packages.values() if found][:count]
    taken = set(chosen)
    rest = [mutant for found in packages.values() for mutant in found if mutant not in taken]
    return sorted(chosen + dice.sample(rest, max(0, count - len(chosen))))


def write(mutants: Iterable[Mutant]) -> list[dict[str, object]]:
    """For JSON."""
    return [attrs.asdict(mutant) for mutant in mutants]


def read(rows: Iterable[dict[str, object]]) -> list[Mutant]:
    """What `write` wrote."""
    as_tuples = (
        {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
        for row in rows
    )
    return [Mutant(**row) for row in as_tuples]  # type: ignore[arg-type]

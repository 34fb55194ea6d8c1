"""`hlotext help opcode`: rows of the opcode table that reader and printer use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from hlotext.cli.common import FORMAT, write_json
from hlotext.cli.listing import Listing
from hlotext.cli.output import Output, TerminalTable, output
from hlotext.cli.usage import named_elsewhere
from hlotext.ir.spelling import suggestion
from hlotext.ir.tables import opcodes
from hlotext.ir.tables.attributes import ATTRIBUTES
from hlotext.ir.tables.opcode import AttributeUse, Calls, Derived, Opcode
from hlotext.ir.tables.other_names import opcode_suggested
from hlotext.ir.values.raw_value import value_text


@click.command("opcode")
@click.argument("name", required=False)
@FORMAT
def command(name: str | None, output_format: str) -> None:
    """Operands, attributes, called computations, shape rule and an example of an opcode; without a NAME, list all.

    \b
    Examples:
      hlotext help opcode
      hlotext help opcode all-gather

    Exit status: 0 success, 2 no such opcode.
    """
    rows = list(opcodes.OPCODES.values()) if name is None else [_row(name)]
    if output_format == "json":
        write_json({"opcodes": [_json(row) for row in rows]})
    elif name is None:
        output().table(_all(rows))
    else:
        _show(output(), rows[0])


def _row(name: str) -> Opcode:
    row = opcodes.opcode(name)
    if row is not None:
        return row
    wrapped = opcodes.async_wrapped(name)
    if wrapped is not None:
        raise click.UsageError(
            f"{name} is not an opcode but the short form of an {wrapped[0]} that wraps {wrapped[1]}"
        )
    close = [other for other in opcodes.OPCODES if name.lower() in other][:3]
    meant = (
        named_elsewhere(name)
        or opcode_suggested(name)
        or suggestion(close)
        or "`hlotext help opcode` lists all"
    )
    raise click.UsageError(f"no opcode {name}; {meant}")


def _all(rows: list[Opcode]) -> TerminalTable:
    families: dict[str, list[Opcode]] = {}
    for row in rows:
        families.setdefault(row.family.value, []).append(row)
    sorted_rows = [row for members in families.values() for row in members]
    listing: Listing[Opcode] = Listing(
        "opcodes.opcodes", lambda row: (row.name, row.family.value, str(row.arity), row.doc)
    )
    return listing.table(f"{len(rows)} opcodes", sorted_rows)


def _show(report: Output, row: Opcode) -> None:
    report.heading(row.name)
    report.facts(_facts(row))
    own, common = row.attributes, opcodes.common_attributes(row)
    listing = Listing("opcodes.attributes", _cells)
    report.table(listing.table("Attributes, as XLA prints them", own))
    report.table(listing.table("Attributes of every instruction", common))
    report.text("Example", row.example)


def _facts(row: Opcode) -> Iterator[tuple[str, str]]:
    yield "summary", row.doc
    yield "family", row.family.value
    yield "in parentheses", row.payload.value
    yield "operands", str(row.arity)
    yield "result shape", _shape_rule(row)
    for names in row.alternatives:
        yield "one of", " and ".join(names)
    if row.new:
        yield "since", "not in the XLA release whose printing hlotext follows"


def _shape_rule(row: Opcode) -> str:
    rule = f"rule {row.shape_rule}" if row.shape_rule is not None else "explicit: cannot be inferred"
    return f"{rule}; optional" if row.shape_optional else rule


def _cells(use: AttributeUse) -> list[str]:
    required = "yes" if use.required else ""
    if use.required and use.optional_for_scalar:
        required = "unless operand 0 is a scalar"
    printed = use.printed.value.replace("`AttributeUse.default`", _default(use) or "the default")
    if use.old:
        printed = "if present, in text from older releases"
    return [use.name, required, ATTRIBUTES[use.name].value, printed]


def _default(use: AttributeUse) -> str:
    """Meaning of an absent attribute; empty if none."""
    if isinstance(use.default, Derived):
        return use.default.value
    if isinstance(use.default, str):
        return use.default
    return "" if use.default is None else value_text(use.default, use.name)


def _json(row: Opcode) -> dict[str, Any]:
    return {
        "name": row.name,
        "family": row.family.value,
        "doc": row.doc,
        "payload": row.payload.value,
        "operands": {
            "minimum": row.arity.minimum,
            "maximum": row.arity.maximum,
            "count": row.arity.count.value,
        },
        "attributes": [_attribute_json(use) for use in row.attributes],
        "common_attributes": [_attribute_json(use) for use in opcodes.common_attributes(row)],
        "alternatives": [list(names) for names in row.alternatives],
        "shape_rule": row.shape_rule,
        "shape_optional": row.shape_optional,
        "new": row.new,
        "example": row.example,
    }


def _attribute_json(use: AttributeUse) -> dict[str, Any]:
    return {
        "name": use.name,
        "holds": ATTRIBUTES[use.name].value,
        "doc": ATTRIBUTES[use.name].doc,
        "required": use.required,
        "optional_for_scalar": use.optional_for_scalar,
        "printed": use.printed.name.lower(),
        "default": _default(use) or None,
        "calls": None if use.calls is Calls.NONE else use.calls.name.lower(),
        "new": use.new,
        "old": use.old,
    }

"""Versioned JSON Schemas (2020-12) of the commands' output.

Compatibility: within one version of a schema no field is removed, changes type or meaning, or stops being required.
Fields may be added, so readers must ignore unknown ones. Any other change increments the version, which is in the field
`version` of every document, and is announced in CHANGELOG.md.

`NAME.json` in this folder is the command-specific part of a schema, such as `dump-list.json` for `hlotext dump list`.
`fields.json` describes fields by name, for all schemas.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hlotext.schemas.command_table import current

FOLDER = Path(__file__).parent
DIALECT = "https://json-schema.org/draft/2020-12/schema"
FIELDS = "fields"
"""The file of what fields mean; no command has this name."""
SHARED = "shared"
"""The file of what several schemas hold; no command has this name."""

ERROR: dict[str, Any] = {
    "type": "object",
    "description": "One error.",
    "properties": {
        "kind": {
            "enum": ["usage", "unreadable", "not-found", "impossible", "internal"],
            "description": (
                "An invalid command line; unreadable input; an unknown name; a query without a result; "
                "a bug in hlotext."
            ),
        },
        "message": {"type": "string", "description": "The line printed on standard error."},
        "file": {"type": "string", "description": "The input concerned, if any."},
        "line": {"type": "integer", "minimum": 1},
        "column": {"type": "integer", "minimum": 1},
        "code": {
            "type": "string",
            "description": "The code of the finding; `hlotext help rule CODE` explains it.",
        },
    },
    "required": ["kind", "message"],
}
"""An error, in `errors` of any document."""


def commands() -> list[str]:
    """Returns the commands that have a schema, sorted, as typed: `show`, `dump list`."""
    return sorted(
        path.stem.replace("-", " ") for path in FOLDER.glob("*.json") if path.stem not in (FIELDS, SHARED)
    )


def version(command: str) -> int:
    """Returns the schema version of a command. Raises LookupError for a command without a schema."""
    return int(_read(command)["version"])


def schema(command: str) -> dict[str, Any]:
    """Returns the complete JSON schema of the output of `hlotext COMMAND --format json`.

    A document has `version`, and either the command's results or, if they could not be computed, only `errors`. Raises
    LookupError for a command without a schema.
    """
    command = _current(command)
    own = _read(command)
    number = own["version"]
    forms = own.get("forms") or [own["required"]]
    found = {
        "$schema": DIALECT,
        "$id": f"urn:hlotext:schema:{command.replace(' ', '-')}:{number}",
        "title": f"hlotext {command} --format json",
        "description": own["description"],
        "type": "object",
        "properties": {
            "version": {"const": number, "description": "The version of this schema."},
            **own["properties"],
            "errors": {
                "type": "array",
                "items": {"$ref": "#/$defs/error"},
                "description": "Errors, if any; the exit status is then not 0.",
            },
        },
        "required": ["version"],
        "anyOf": [*({"required": form} for form in forms), {"required": ["errors"]}],
        "$defs": {**_used(own, shared()), **own.get("$defs", {}), "error": ERROR},
    }
    _describe(found, fields())
    return found


def fields() -> dict[str, str]:
    """Returns the descriptions of fields by name; a field has the same meaning in every schema."""
    found: dict[str, str] = json.loads((FOLDER / f"{FIELDS}.json").read_text("utf-8"))
    return found


def shared() -> dict[str, Any]:
    """Returns the definitions shared by several schemas, by name: locations, findings, totals of arrays."""
    found: dict[str, Any] = json.loads((FOLDER / f"{SHARED}.json").read_text("utf-8"))
    return found


def _used(own: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Those that a schema refers to, and those that these refer to."""
    found: dict[str, Any] = {}
    waiting: list[Any] = [own]
    for one in _objects(waiting):
        name = str(one.get("$ref", "")).rpartition("/")[2]
        if name in known and name not in found:
            found[name] = known[name]
            waiting.append(known[name])
    return found


def _objects(waiting: list[Any]) -> Iterator[dict[str, Any]]:
    """All objects inside of some values; more may be added on the way."""
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting += one
        elif isinstance(one, dict):
            yield one
            waiting += one.values()


def _current(command: str) -> str:
    """The name of a command that may be spelled in a former way."""
    return " ".join(word for word in current(command.split()) if not word.startswith("-"))


def _read(command: str) -> dict[str, Any]:
    command = _current(command)
    path = FOLDER / f"{command.replace(' ', '-')}.json"
    if command not in commands():
        raise LookupError(f"no schema for {command}")
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def _describe(schema: dict[str, Any], fields: dict[str, str]) -> None:
    """Adds to each field that says nothing of itself what a field of its name means everywhere."""
    for one in _objects([schema]):
        for name, of_field in one.get("properties", {}).items():
            if "description" not in of_field and name in fields:
                of_field["description"] = fields[name]

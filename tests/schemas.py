"""The JSON of commands beside its schemas: the cases, a strict reading of a schema, and drafts of new ones.

`python -m tests.schemas COMMAND` writes into `hlotext/schemas/` what the cases of that command in
`tests/data/schemas/cases.txt` show: fields that are new, types that are wider. What is written there by hand stays. Read the
draft: fields that only some documents have are not `required`, an object whose keys are data (names, codes) needs
`additionalProperties` with the schema of its values instead of `properties`, what can be unknown is `null` too, and each
field needs a description, there or, for all of its name, in `fields.json`.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import click

from hlotext import schemas
from hlotext.cli import COMMANDS, current, main
from tests import support
from tests.cli_support import run

CASES = support.DATA / "schemas" / "cases.txt"


@attrs.frozen
class Case:
    """One command line."""

    line: str
    command: str
    arguments: tuple[str, ...]
    is_slow: bool


def cases() -> list[Case]:
    """Every command line of the file."""
    found = []
    for line in CASES.read_text("utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        words = line.removeprefix("slow ").split()
        words = current(words)
        name = " ".join(words[: 2 if words[0] in ("dump", "help") else 1])
        arguments = tuple(place for word in words for place in _places(word))
        found.append(Case(line, name, arguments, line.startswith("slow ")))
    return found


def _places(word: str) -> list[str]:
    if "*" not in word or "/" not in word:
        return [word]
    found = sorted(str(path.relative_to(support.ROOT)) for path in support.ROOT.glob(word))
    assert found, f"nothing fits {word}"
    return found


def document(case: Case) -> Any:
    """What the command writes to standard output."""
    result = run(*case.arguments, "--format", "json")
    assert result.stdout, f"{shlex.join(case.arguments)} writes nothing: {result.stderr}"
    return json.loads(result.stdout)


def leaves() -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, `dump list` for one of a group."""
    context = click.Context(main, info_name="hlotext")
    for name in COMMANDS:
        found = main.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            for inner in found.list_commands(context):
                one = found.get_command(context, inner)
                assert one is not None
                yield f"{name} {inner}", one
        else:
            yield name, found


def writes_json(command: click.Command) -> bool:
    """Whether it has `--format json`."""
    kinds = (p.type for p in command.params if "--format" in p.opts)
    return any(isinstance(kind, click.Choice) and "json" in kind.choices for kind in kinds)


def strict(schema: Any) -> Any:
    """The schema as the tests read it: a field that it does not name is refused."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            found[key] = {name: strict(one) for name, one in value.items()}
        elif key in ("const", "enum", "required"):
            found[key] = value
        else:
            found[key] = strict(value)
    if "properties" in found:
        found.setdefault("additionalProperties", False)
    return found


def undescribed(schema: Any, path: str = "") -> Iterator[str]:
    """The fields that say nothing of themselves."""
    if isinstance(schema, list):
        for one in schema:
            yield from undescribed(one, path)
    elif isinstance(schema, dict):
        for name, field in schema.get("properties", {}).items():
            if not field.get("description"):
                yield f"{path}.{name}"
        for key, value in schema.items():
            if key in ("properties", "$defs"):
                for name, one in value.items():
                    yield from undescribed(one, f"{path}.{name}")
            elif key not in ("const", "enum", "required"):
                yield from undescribed(value, path)


# ---- drafts

_TYPES: dict[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    type(None): "null",
    list: "array",
    dict: "object",
}


def widened(known: dict[str, Any] | None, value: Any, defs: Mapping[str, Any]) -> dict[str, Any]:
    """The schema, wide enough for one more value; `known` is None for the first."""
    is_first = known is None
    schema: dict[str, Any] = dict(known or {})
    if "$ref" in schema:
        one = defs[schema["$ref"].rpartition("/")[2]]
        one.update(widened(one, value, defs))
        return schema
    if "enum" in schema or "const" in schema:
        return schema
    if "anyOf" in schema:
        return schema
    types = [schema["type"]] if isinstance(schema.get("type"), str) else list(schema.get("type", ()))
    kind = _TYPES[type(value)]
    if kind not in types and not (kind == "integer" and "number" in types):
        types = [one for one in types if not (kind == "number" and one == "integer")]
        types = sorted({*types, kind}, key=lambda one: (one == "null", one))
    schema["type"] = types[0] if len(types) == 1 else types
    if isinstance(value, list):
        for one in value:
            schema["items"] = widened(schema.get("items"), one, defs)
    elif isinstance(value, dict):
        if isinstance(schema.get("additionalProperties"), dict):
            for one in value.values():
                inner = schema["additionalProperties"] or None
                schema["additionalProperties"] = widened(inner, one, defs)
        else:
            fields = schema.setdefault("properties", {})
            was_empty = is_first or not fields
            for name, one in value.items():
                fields[name] = widened(fields.get(name), one, defs)
            required = [*value] if was_empty else [n for n in schema.get("required", ()) if n in value]
            schema["required"] = required
    return schema


def draft(command: str) -> None:
    """Widens the schema of a command by its cases, or begins one."""
    path = schemas.FOLDER / f"{command.replace(' ', '-')}.json"
    known: dict[str, Any] = (
        json.loads(path.read_text("utf-8"))
        if path.exists()
        else {"version": 1, "description": "", "required": [], "properties": {}, "$defs": {}}
    )
    defs = {**schemas.shared(), **known.get("$defs", {})}
    forms: list[list[str]] = []
    for case in cases():
        if case.command != command:
            continue
        facts = {name: v for name, v in document(case).items() if name not in ("version", "errors")}
        for name, value in facts.items():
            known["properties"][name] = widened(known["properties"].get(name), value, defs)
        if facts and list(facts) not in forms:
            forms.append(list(facts))
    if not known.get("required") and not known.get("forms"):
        known.update({"required": forms[0]} if len(forms) == 1 else {"forms": forms})
    if not known.get("required"):
        known.pop("required", None)
    common = schemas.shared()
    known["$defs"] = {name: one for name, one in defs.items() if name not in common}
    if not known["$defs"]:
        del known["$defs"]
    _write(schemas.FOLDER / f"{schemas.SHARED}.json", {name: defs[name] for name in common})
    _write(path, known)
    print(path)
    print(*undescribed(schemas.schema(command)))


_WIDTH = 120


def written(value: Any, indent: str = "", used: int = 0) -> str:
    """JSON with an object on one line where it fits."""
    short = json.dumps(value, ensure_ascii=False)
    if len(indent) + used + len(short) <= _WIDTH or not isinstance(value, dict | list) or not value:
        return short
    inner = indent + "  "
    if isinstance(value, dict):
        keys = {json.dumps(name): one for name, one in value.items()}
        parts = [f"{inner}{key}: {written(one, inner, len(key) + 3)}" for key, one in keys.items()]
        return "{\n" + ",\n".join(parts) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + written(one, inner) for one in value) + f"\n{indent}]"


def _write(path: Path, value: Any) -> None:
    path.write_text(written(value) + "\n", "utf-8")


if __name__ == "__main__":
    draft(" ".join(sys.argv[1:]))

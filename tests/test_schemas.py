"""The JSON of the commands keeps its promise: every command has a schema, and all that is written is in it."""

from __future__ import annotations

import json

import jsonschema
import pytest

from hlotext import schemas
from tests.cli_support import run
from tests.schemas import Case, cases, document, leaves, strict, undescribed, writes_json

NO_JSON = {
    "bugreport": "writes a script",
    "convert": "writes files of other kinds",
    "fmt": "prints HLO text",
    "rewrite": "prints HLO text",
    "extract": "prints HLO text",
    "reduce": "prints HLO text",
    "report": "prints a page",
    "graph": "prints a page or a picture",
    "help schema": "prints a schema",
    "lsp": "speaks the language server protocol",
    "skill": "copies pages",
    "mcp": "speaks the model context protocol",
}
"""Commands whose product is a text that programs read as it is."""


def test_every_command_has_a_schema() -> None:
    """The list comes from the commands: each writes JSON and has a schema, or says above why not."""
    with_json = {name for name, command in leaves() if writes_json(command)}
    without = {name for name, command in leaves() if not writes_json(command)}
    assert without == set(NO_JSON)
    assert with_json == set(schemas.commands())


def test_every_schema_is_tried() -> None:
    """At least one command line of the cases is of each command."""
    assert set(schemas.commands()) == {case.command for case in cases()}


@pytest.mark.parametrize("name", schemas.commands())
def test_a_schema_is_one(name: str) -> None:
    """Valid by the dialect, with a description of itself and of each field."""
    schema = schemas.schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["description"]
    assert list(undescribed(schema)) == []
    assert json.loads(run("schema", *name.split()).stdout) == schema


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.slow) if case.is_slow else case for case in cases()],
    ids=lambda case: case.line[:60],
)
def test_what_commands_write(case: Case) -> None:
    """By the schema, and no field that it does not name."""
    validator = jsonschema.Draft202012Validator(strict(schemas.schema(case.command)))
    found = [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(document(case))]
    assert found[:5] == []


def test_every_field_that_is_described_is_used() -> None:
    """Of the words that all schemas share, none is left over."""
    text = " ".join(json.dumps(schemas.schema(name)) for name in schemas.commands())
    known = json.loads((schemas.FOLDER / f"{schemas.FIELDS}.json").read_text("utf-8"))
    assert [name for name in known if f'"{name}": {{' not in text] == []


def test_what_goes_wrong_is_json_too() -> None:
    """A wrong command line, a file that is not there, text that is none, a name that is not there: kind, message, place."""
    for arguments, kind, status in (
        (["show", "--nosuch"], "usage", 2),
        (["show", "nosuch.txt"], "unreadable", 2),
        (["show", "corpus/invalid/two_roots.txt"], "unreadable", 2),
        (["show", "corpus/handmade/map.txt", "-i", "nosuch"], "not-found", 1),
        (["dump", "list", "nosuch"], "unreadable", 2),
        (["opcodes", "nosuch"], "usage", 2),
        (["layout", "f32[2]", "--index", "7"], "impossible", 1),
    ):
        result = run(*arguments, "--format", "json")
        assert result.exit_code == status
        (error,) = json.loads(result.stdout)["errors"]
        assert error["kind"] == kind
        assert error["message"] in result.stderr
    result = run("show", "corpus/invalid/two_roots.txt", "--format=json")
    (error,) = json.loads(result.stdout)["errors"]
    assert (error["file"], error["line"], error["code"]) == ("corpus/invalid/two_roots.txt", 5, "X106")


def test_the_readable_files_stand_beside_the_error() -> None:
    """One unreadable file among others: its error, and the others' facts."""
    result = run("show", "corpus/handmade/map.txt", "nosuch.txt", "--format", "json")
    found = json.loads(result.stdout)
    assert [module["name"] for module in found["modules"]] == ["map"]
    assert [error["file"] for error in found["errors"]] == ["nosuch.txt"]

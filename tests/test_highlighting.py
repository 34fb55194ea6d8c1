"""The TextMate grammar: made from the table, and of one mind with the Pygments lexer about every token of the corpora."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hlotext.view.highlighting import SCOPES, textmate_grammar
from tests.support import ROOT

GRAMMAR = ROOT / "hlotext/view/hlo.tmLanguage.json"
CLASSES = {scope: name for name, scope in SCOPES.items()} | {"comment.line.double-slash.hlo": "Comment"}
FILES = sorted(path for path in (ROOT / "corpus").glob("[!i]*/*.txt") if path.stat().st_size < 120_000)


def test_the_file_is_current(golden: Callable[[Path, str], None]) -> None:
    """Made from the table with `--update-goldens`."""
    golden(GRAMMAR, json.dumps(textmate_grammar(), indent=1) + "\n")


def tokens(text: str) -> Iterator[tuple[int, int, str]]:
    """Tokens as an engine for TextMate grammars finds them: line by line, the leftmost match, of several the first."""
    patterns = json.loads(GRAMMAR.read_text("utf-8"))["patterns"]
    plain = [(re.compile(one["match"]), one) for one in patterns if "match" in one]
    [(begin, end, name)] = [
        (re.compile(one["begin"]), re.compile(one["end"]), one["name"]) for one in patterns if "begin" in one
    ]
    start, is_inside = 0, False
    for line in re.findall(r"[^\n]*\n|[^\n]+$", text):
        place = 0
        while place < len(line):
            if is_inside:
                found = end.search(line, place)
                stop = found.end() if found else len(line)
                yield start + place, start + stop, name
                is_inside, place = found is None, stop
                continue
            options = [(m, one) for rule, one in plain if (m := rule.match(line, place))]
            if opening := begin.match(line, place):
                yield start + place, start + opening.end(), name
                is_inside, place = True, opening.end()
            elif not options:
                place += 1  # as no rule looks behind, the leftmost match is found by trying each place
            else:
                found, one = options[0]
                if "name" in one:
                    yield start + found.start(), start + found.end(), one["name"]
                for number, capture in one.get("captures", {}).items():
                    yield start + found.start(int(number)), start + found.end(int(number)), capture["name"]
                place = found.end()
        start += len(line)


@pytest.mark.parametrize("path", FILES[::4], ids=lambda path: path.name)
def test_textmate_and_pygments_agree(path: Path) -> None:
    """Every character that is not blank has one class for both."""
    pygments_lexer = pytest.importorskip("hlotext.view.pygments_lexer")
    text = path.read_text("utf-8")
    wanted = ["Text"] * len(text)
    for place, kind, value in pygments_lexer.HloLexer().get_tokens_unprocessed(text):
        wanted[place : place + len(value)] = [
            str(kind).removeprefix("Token.").removeprefix("Literal.")
        ] * len(value)
    found = ["Text"] * len(text)
    for start, end, scope in tokens(text):
        found[start:end] = [CLASSES[scope]] * (end - start)
    differing = [
        n for n, (a, b) in enumerate(zip(wanted, found, strict=True)) if a != b and not text[n].isspace()
    ]
    assert [text[n - 20 : n + 20] for n in differing[:3]] == []
    named = sum(kind != "Text" for n, kind in enumerate(found) if not text[n].isspace())
    assert named > 0.99 * sum(not character.isspace() for character in text)

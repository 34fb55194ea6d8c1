"""Modules of different builds that are one program: by name, and where that is not enough by file and arguments.

Programs that have nothing to do with each other are often called alike (`jit_train_step` of two models), and a function
that is compiled twice gives two modules of one name. So in each build the modules of a name are looked for among those of
the builds before, by what is the same in both and in no third, the surest first: file and arguments, the file, the
arguments alone where a file was moved. What several would fit is left open, and said.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

OK, UNREADABLE, UNTOLD = "ok", "unreadable", "untold"
_NUMBERED = re.compile(r"module_\d+")
_APART = re.compile(r"[\s#\x00-\x1f\x7f]+")
"""Characters that no label has, as it stands in lines `MODULE BUILD METRIC  # why`."""


@attrs.frozen
class Text:
    """A row of `modules`, with what identifies its program."""

    module: str
    name: str | None
    """None for what could not be read."""
    build: str
    path: str
    arguments: str | None = None
    """Types and sizes of the entry's parameters, and the devices; None if they are not known."""


@attrs.frozen
class Row:
    """A program in a build."""

    program: str
    """The module's name, of several programs of one name with what tells their files apart: `jit_step@lm`."""
    name: str
    build: str
    status: str
    """`ok`; `unreadable` where its file could not be read; `untold` where several modules may be it."""
    module: str | None
    """The module's key; None if it is not `ok`."""
    why: str
    """Of `untold` which these are, in words."""


def programs(texts: Iterable[Text]) -> list[Row]:
    """Matches programs across builds, and returns a row for each program and build in which it is or may be."""
    places = _Places(list(texts))
    found: list[_Program] = []
    named = [(text.name, text) for text in places.texts if text.name is not None]
    named.sort(key=lambda one: (one[0], one[1].build, one[1].path, one[1].module))
    labels: dict[int, str] = {}
    for name, several in itertools.groupby(named, key=lambda one: one[0]):
        mine = _Matching(name, places).run([text for _, text in several])
        labels.update(_labels(name, mine, places))
        found += mine
    return list(_rows(found, labels, places))


def signed_names(texts: Iterable[Text]) -> set[str]:
    """Returns the names for which files may not suffice to distinguish programs, so that parameters are needed."""
    places = _Places(list(texts))
    files: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    found = set()
    for text in places.texts:
        if text.name is not None:
            if files.setdefault(text.name, places.file(text)) != places.file(text):
                found.add(text.name)
            if (text.name, text.build) in seen:
                found.add(text.name)
            seen.add((text.name, text.build))
    return found


@attrs.define(eq=False)
class _Program:
    name: str
    first: Text
    texts: dict[str, Text] = attrs.field(factory=dict)
    """By build."""
    last: Text = attrs.field(init=False)
    untold_since: str | None = None
    instead: list[_Program] = attrs.field(factory=list)
    """Of what is untold those that it may be."""

    def __attrs_post_init__(self) -> None:
        self.last = self.first

    def add(self, text: Text) -> None:
        self.texts[text.build] = self.last = text


@attrs.define
class _Places:
    """Places of texts, without what is another in each build: its name, its folder, the number of a compilation."""

    texts: list[Text]
    _files: dict[tuple[str, str], tuple[str, str]] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        for build, several in itertools.groupby(sorted(self.texts, key=_build_of), key=_build_of):
            mine = list(several)
            parts = [_parts(text) for text in mine]
            # Folders below the one that is called like the build are the program's, also where it is the only one.
            below = [_split(one).index(build) for one in mine if build in _split(one)[:-1]]
            root = min([_shared([one[:-1] for one in parts]), *below])
            for text, tokens in zip(mine, parts, strict=True):
                place = "/".join(_NUMBERED.sub("module", one) for one in tokens[root:])
                self._files[text.build, text.path] = "/".join(tokens), place

    def file(self, text: Text) -> str:
        """The path without the build's name."""
        return self._files[text.build, text.path][0]

    def place(self, text: Text) -> str:
        """The path below the folder of all texts of the build, without the number of its compilation."""
        return self._files[text.build, text.path][1]

    def keys(self, text: Text) -> Iterator[tuple[int, str, str | None]]:
        """Marks by which it is known, the surest first."""
        file, place = self._files[text.build, text.path]
        yield 0, file, text.arguments
        yield 1, place, text.arguments
        yield 2, file, None
        yield 3, place, None
        if text.arguments is not None:
            yield 4, "", text.arguments


def _build_of(text: Text) -> str:
    return text.build


def _split(text: Text) -> list[str]:
    return text.path.replace("\\", "/").split("/")


def _parts(text: Text) -> list[str]:
    """The folders of a path and its file, without what is the build's name: a folder, or a part of the file's name."""
    *folders, file = _split(text)
    name = ".".join(part for part in file.split(".") if part != text.build)
    return [*(folder for folder in folders if folder != text.build), name]


def _shared(lists: Sequence[list[str]]) -> int:
    """Number of elements that all lists begin with."""
    first, last = min(lists), max(lists)
    return next(
        (n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last))
    )


_Key = tuple[int, str, str | None]


@attrs.define
class _Matching:
    """The modules of one name, build by build."""

    name: str
    places: _Places
    open: dict[_Key, dict[int, _Program]] = attrs.field(factory=dict)
    """Programs that no module of the build is yet, by what they are known by."""

    def run(self, texts: Sequence[Text]) -> list[_Program]:
        found: list[_Program] = []
        for build, several in itertools.groupby(texts, key=_build_of):
            left = list(several)
            matched: list[tuple[_Program, Text]] = []
            for level in range(5):
                left = self._matched(left, level, matched)
            begun = [_Program(self.name, text) for text in left]
            self._untold(begun, build)
            for program, text in [*matched, *((one, one.first) for one in begun)]:
                program.add(text)
                self._move(program, is_open=True)
            found += begun
        return found

    def _matched(self, texts: Sequence[Text], level: int, matched: list[tuple[_Program, Text]]) -> list[Text]:
        """Matches by keys that one text and one program have; gives the texts that are left."""
        by: dict[_Key, list[Text]] = {}
        left = []
        for text in texts:
            key = next((one for one in self.places.keys(text) if one[0] == level), None)
            if key is None:
                left.append(text)
            else:
                by.setdefault(key, []).append(text)
        for key, mine in by.items():
            known = self.open.get(key, {})
            if len(mine) == len(known) == 1:
                (program,) = known.values()
                self._move(program, is_open=False)
                matched.append((program, mine[0]))
            else:
                left += mine
        return left

    def _untold(self, begun: Sequence[_Program], build: str) -> None:
        """Programs that one of these may be, as others may: from here on nobody can tell."""
        found: dict[int, _Program] = {}
        for one in begun:
            for key in self.places.keys(one.first):
                for number, program in self.open.get(key, {}).items():
                    found[number] = program
                    if one not in program.instead[-1:]:
                        program.instead.append(one)
        for program in found.values():
            program.untold_since = build
            self._move(program, is_open=False)

    def _move(self, program: _Program, *, is_open: bool) -> None:
        for key in self.places.keys(program.last):
            if is_open:
                self.open.setdefault(key, {})[id(program)] = program
            else:
                self.open.get(key, {}).pop(id(program), None)


def _labels(name: str, several: Sequence[_Program], places: _Places) -> Iterator[tuple[int, str]]:
    """A name for each: the module's, and where there are more of it with the part of the file's that others have not."""
    if len(several) == 1:
        yield id(several[0]), name
        return
    parts = [re.split(r"([/.])", places.file(one.first)) for one in several]
    start = _shared(parts)
    end = _shared([one[::-1] for one in parts])
    used: dict[str, int] = {}
    for program, part in zip(several, parts, strict=True):
        own = "".join(part[start : max(start + 1, len(part) - end)]).strip("/.")
        label = _APART.sub("_", f"{name}@{own}" if own else name)
        used[label] = used.get(label, 0) + 1
        yield id(program), label if own and used[label] == 1 else f"{label}:{used[label]}"


def _rows(several: Sequence[_Program], labels: Mapping[int, str], places: _Places) -> Iterator[Row]:
    files: dict[str, dict[int, _Program]] = {}
    below: dict[str, dict[int, _Program]] = {}
    for program in several:
        for text in program.texts.values():
            files.setdefault(places.file(text), {})[id(program)] = program
            below.setdefault(places.place(text), {})[id(program)] = program
    unread: dict[int, set[str]] = {}
    for text in places.texts:
        if text.name is None:
            for number in files.get(places.file(text)) or below.get(places.place(text), {}):
                unread.setdefault(number, set()).add(text.build)
    builds = sorted({text.build for text in places.texts})
    for program in several:
        label = labels[id(program)]
        for build, text in program.texts.items():
            yield Row(label, program.name, build, OK, text.module, "")
        end = (
            len(builds) if program.untold_since is None else bisect.bisect_left(builds, program.untold_since)
        )
        why = " or ".join(labels[id(one)] for one in program.instead)
        for build in builds[end:]:
            yield Row(label, program.name, build, UNTOLD, None, why)
        for build in sorted(unread.get(id(program), set()) - program.texts.keys() - set(builds[end:])):
            yield Row(label, program.name, build, UNREADABLE, None, "")

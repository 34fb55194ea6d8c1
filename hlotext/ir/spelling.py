"""Words that are not what they should be, and what they may be meant for: a known name; a text, or the path of a file."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Sized
from typing import Literal


class UnknownNameError(KeyError):
    """Raised if no node has a name (a KeyError). The message says where else the name is (`elsewhere`), or suggests similar
    ones, which are only computed when shown.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        known: Callable[[], Iterable[str]],
        elsewhere: Callable[[], str] | None = None,
    ) -> None:
        super().__init__(f"no {kind} is named {name}")
        self._name, self._known, self._elsewhere = name, known, elsewhere

    def __str__(self) -> str:
        meant = (self._elsewhere() if self._elsewhere is not None else "") or self._meant()
        return f"{self.args[0]}; {meant}" if meant else str(self.args[0])

    def _meant(self) -> str:
        known = list(self._known())
        alike = did_you_mean(self._name, known) or suggestion(self._siblings(known))
        if alike or not 0 < len(known) <= _FEW:
            return alike
        return f"known: {', '.join(known)}"

    def _siblings(self, known: Iterable[str]) -> list[str]:
        """The first names that differ in their number alone, as `dot.1` from `dot.999`."""
        stem, _, number = self._name.rpartition(".")
        siblings = (
            one for one in known if number.isdecimal() and (one == stem or one.rpartition(".")[0] == stem)
        )
        return list(itertools.islice(siblings, 3))

    def __reduce__(self) -> tuple[type[KeyError], tuple[str]]:
        """Pickles as a KeyError with the whole message: the names belong to a module."""
        return KeyError, (str(self),)


_FEW = 8
"""The most names that are listed where none is like the unknown one."""


def unknown(kind: str, name: object, known: Callable[[], Iterable[str]]) -> KeyError | TypeError:
    """Returns the error for a missing key: UnknownNameError, or TypeError if the key is not a string."""
    if isinstance(name, str):
        return UnknownNameError(kind, name, known)
    return TypeError(f"the name of {with_article(kind)} is a string, not {type(name).__name__}")


def attribute_error(owner: str, name: str, known: Collection[str]) -> AttributeError:
    """Returns the error for `owner.attributes.name`, which says to use `owner.attributes["name"]`."""
    if name.startswith("_"):
        return AttributeError(name)
    dashed = name.replace("_", "-")
    keys = [dashed if dashed in known else name] if {name, dashed} & set(known) else nearest(name, known)
    shown = " or ".join(f'{owner}.attributes["{key}"]' for key in keys)
    use = f"use {shown}" if shown else f"the {owner} has no attribute {name!r}"
    return AttributeError(f"attributes are items, not properties: {use}", name=None, obj=None)


def bare_name(name: object, among: str = "computation.instructions", listed: Sized | None = None) -> str:
    """Returns a name without `%`. Raises TypeError unless it is a string; `listed` is what `among` gives, if known."""
    if not isinstance(name, str):
        use = ""
        if isinstance(name, int):
            use = f"; {among}[{name}] is the one at position {name}"
            if listed is not None and not -len(listed) <= name < len(listed):
                use = f"; {among} is indexed by position, and has {len(listed)}, numbered from 0"
        raise TypeError(f"a name is a string, not {type(name).__name__}{use}")
    return name.removeprefix("%")


def with_article(words: str) -> str:
    """Returns words preceded by `a` or `an`."""
    vowels = ("a", "e", "i", "o", "hlo")  # HLO is spelled out
    return f"{'an' if words.lower().startswith(vowels) else 'a'} {words}"


_ALIKE = 0.66
"""Minimum similarity of a word to a suggestion: two of three letters, in order."""
_MOST_AS_NEAR = 3
_LOOKS_ALIKE = str.maketrans("oil|_ ", "0111--")
"""Characters that are read, or typed, for each other."""


def did_you_mean(word: str, known: Collection[str]) -> str:
    """Returns `did you mean ...?` with the known words nearest to a word; empty if none is near."""
    return suggestion(nearest(word, known))


def suggestion(names: Iterable[str]) -> str:
    """Returns `did you mean ...?` with these names; empty without names."""
    shown = " or ".join(f"`{name}`" for name in names)
    return f"did you mean {shown}?" if shown else ""


def nearest(word: str, known: Collection[str]) -> list[str]:
    """Returns the known words nearest to a word, at most three equally near ones; empty if none is near."""
    plain = _plain(word)
    close = [name for name in known if _plain(name) == plain]
    close = [name for name in close if name.lower() == word.lower()] or close
    close = close or [name for name in known if _is_swapped(plain, _plain(name))]
    start = word[: -(-3 * len(word) // 4)]
    begins = [name for name in known if _begins(name, start)]  # most slips are behind the beginning
    close = close or _closest(word, begins, _ALIKE_BEHIND) or _closest(word, known)
    close = close or [name for name in known if _begins(name, word) or _begins(word, _stem(name))]
    return sorted(close if len(close) <= _MOST_AS_NEAR else close[:1])


def codes_meant(word: str, known: Iterable[str]) -> list[str]:
    """The codes of findings that a word is a slip of: of its family only, since the first letter of `F401` is no slip.

    A letter behind the first that looks like a digit is one: `C1O1`.
    """
    shown = word[:1].upper() + word[1:].upper().translate(_DIGITS)
    family = [code for code in known if code[:1] == shown[:1]]
    return [shown] if shown in family else nearest(shown, family)


_DIGITS = str.maketrans("OIL", "011")


def slip_of(word: str, known: Collection[str]) -> list[str]:
    """Returns the known word that differs from a word by a typing slip, in a list; empty if there is none.

    Stricter than `nearest`, for lists of hundreds of words.
    """
    return sorted(_closest(word, known, _SLIP))[-1:]


def is_slip(word: str, name: str) -> bool:
    """Returns True if a word differs from a name by a typing slip, such as two letters exchanged."""
    return _is_swapped(word, name) or bool(slip_of(word, [name]))


_SLIP = 0.75
"""Minimum similarity of a word to the one that it is a slip of."""


def _begins(one: str, other: str) -> bool:
    """True if one name is another one, of three letters or more, with something behind it."""
    return len(other) > _SHORT and one.lower().startswith(other.lower())


_SHORT = 2


def _stem(name: str) -> str:
    """A name without the number behind it: `reduce` of `reduce.3`."""
    stem, _, number = name.rpartition(".")
    return stem if number.isdecimal() else name


def _is_swapped(one: str, other: str) -> bool:
    """True if two neighboring letters are exchanged between two words, which difflib counts as two slips."""
    if len(one) != len(other):
        return False
    places = [place for place, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    return (
        len(places) == 2
        and places[1] == places[0] + 1
        and one[places[0]] == other[places[1]]
        and one[places[1]] == other[places[0]]
    )


def _plain(word: str) -> str:
    return word.lower().translate(_LOOKS_ALIKE)


def _closest(word: str, known: Collection[str], least: float = _ALIKE) -> list[str]:
    """The first of `difflib.get_close_matches`, which computes the full ratio for many more words, and those as near."""
    import difflib  # takes milliseconds, and most texts are right

    letters = tuple(set(word))
    counts = tuple(map(word.count, letters))
    bounds = []
    for name in known:
        length = len(name) + len(word)
        shared = sum(map(min, counts, map(name.count, letters)))
        bound = 2.0 * shared / length if length else 1.0
        if bound >= least:
            bounds.append((bound, name))
    bounds.sort(reverse=True)
    best, found = least, list[str]()
    matcher: difflib.SequenceMatcher[str] = difflib.SequenceMatcher()
    matcher.set_seq2(word)
    for bound, name in bounds:
        if bound < best:
            break
        matcher.set_seq1(name)
        ratio = matcher.ratio()
        if ratio > best or (ratio == best and not found):
            best, found = ratio, [name]
        elif ratio == best:
            found.append(name)
    return sorted(found, reverse=True)


def text_or_path(value: str) -> Literal["text", "path", ""]:
    """Guesses whether a string is HLO text or a path; empty if it may be either, such as a single word.

    Does not check whether the path exists.
    """
    if re.match(r"(?s:.*\n)|\s*(?:HloModule |ENTRY |ROOT |\S+ = |[a-z]\w*\[)", value) is not None:
        return "text"
    is_path = re.fullmatch(r"\S*[/\\]\S*|\S+\.[A-Za-z]{2,4}", value) is not None
    return "path" if is_path else ""


_ALIKE_BEHIND = 0.5
"""The same of words with an equal beginning."""

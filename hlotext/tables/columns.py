"""Columns: the values of one name for all rows, each distinct text once, without an object for each row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise
from typing import Any, TypeAlias, TypeVar

import attrs
import numpy as np
import numpy.typing as npt

T = TypeVar("T")
Array: TypeAlias = npt.NDArray[Any]

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


@attrs.frozen(eq=False)
class Numbers:
    """A column of numbers or booleans. A value may be null."""

    values: Array
    is_null: Array | None = None
    """A boolean for each row; None if there are no nulls."""

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def of(cls, values: Iterable[Any], dtype: Any = np.int64) -> Numbers:
        """Makes a column of Python numbers; None, and integers out of the range of int64, become null."""
        found = list(values)
        kept = [0 if one is None or not _fits(one) else one for one in found]
        is_null = np.fromiter((one is None or not _fits(one) for one in found), bool, len(found))
        return cls(np.array(kept, dtype), is_null if is_null.any() else None)

    def to_list(self) -> list[Any]:
        """Returns the values as Python numbers; None for nulls."""
        values: list[Any] = self.values.tolist()
        if self.is_null is None:
            return values
        return [None if null else one for one, null in zip(values, self.is_null.tolist(), strict=True)]

    def taken(self, index: Array) -> Numbers:
        """Returns the rows at these indices, in this order."""
        return Numbers(self.values[index], None if self.is_null is None else self.is_null[index])

    @staticmethod
    def joined(parts: Sequence[Numbers]) -> Numbers:
        """Concatenates columns."""
        values = np.concatenate([part.values for part in parts])
        if all(part.is_null is None for part in parts):
            return Numbers(values)
        nulls = [np.zeros(len(part), bool) if part.is_null is None else part.is_null for part in parts]
        return Numbers(values, np.concatenate(nulls))


def _fits(number: Any) -> bool:
    return not isinstance(number, int) or _LEAST <= number <= _MOST


@attrs.frozen(eq=False)
class Words:
    """A dictionary-encoded column of texts."""

    codes: Array
    """For each row the place of its text; -1 for null."""
    texts: Sequence[str]

    def __len__(self) -> int:
        return len(self.codes)

    @classmethod
    def of(cls, texts: Iterable[str | None]) -> Words:
        """Makes a column of texts; None is null."""
        every = list(texts)
        found = dict.fromkeys(every)
        found.pop(None, None)
        numbers: dict[str | None, int] = dict(zip(found, range(len(found)), strict=True))
        numbers[None] = -1
        return cls(np.fromiter(map(numbers.__getitem__, every), np.int32, len(every)), clean(list(found)))

    @classmethod
    def repeated(cls, text: str | None, count: int) -> Words:
        """Makes a column of `count` equal texts; None is null."""
        code, texts = (-1, []) if text is None else (0, clean([text]))
        return cls(np.full(count, code, np.int32), texts)

    def to_list(self) -> list[str | None]:
        """Returns the texts; None for nulls."""
        texts: list[str | None] = [*self.texts, None]  # which -1 finds
        return [texts[code] for code in self.codes.tolist()]

    def taken(self, index: Array) -> Words:
        """Returns the rows at these indices, in this order."""
        return Words(self.codes[index], self.texts)

    @staticmethod
    def joined(parts: Sequence[Words]) -> Words:
        """Concatenates columns, with one dictionary."""
        numbers: dict[str, int] = {}
        codes = []
        for part in parts:
            renumbered = np.array(
                [*(numbers.setdefault(text, len(numbers)) for text in part.texts), -1], np.int32
            )
            codes.append(renumbered[part.codes])
        return Words(np.concatenate(codes), list(numbers))


@attrs.frozen(eq=False)
class Texts:
    """A column of texts that are mostly distinct."""

    texts: Sequence[str | None]

    def __len__(self) -> int:
        return len(self.texts)

    @classmethod
    def of(cls, texts: Iterable[str | None]) -> Texts:
        """Makes a column of texts; None is null."""
        return cls(clean(list(texts)))

    def to_list(self) -> list[str | None]:
        """Returns the texts; None for nulls."""
        return list(self.texts)

    def taken(self, index: Array) -> Texts:
        """Returns the rows at these indices, in this order."""
        return Texts([self.texts[one] for one in index.tolist()])

    @staticmethod
    def joined(parts: Sequence[Texts]) -> Texts:
        """Concatenates columns."""
        return Texts([text for part in parts for text in part.texts])


@attrs.frozen(eq=False)
class Lists:
    """A column of lists of numbers or texts. A list may be null."""

    offsets: Array
    """Where each list begins among the values; one more at the end."""
    values: Numbers | Texts
    is_null: Array | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def of(cls, lists: Iterable[Sequence[Any] | None], dtype: Any = np.int64) -> Lists:
        """Makes a column of sequences; None is null. `dtype` is that of numbers, and None for texts."""
        found = list(lists)
        offsets = offsets_of(np.fromiter((len(one or ()) for one in found), np.int64, len(found)))
        flat = chain.from_iterable(one or () for one in found)
        is_null = np.fromiter((one is None for one in found), bool, len(found))
        values = Texts.of(flat) if dtype is None else Numbers.of(flat, dtype)
        return cls(offsets, values, is_null if is_null.any() else None)

    def to_list(self) -> list[list[Any] | None]:
        """Returns the lists; None for nulls."""
        flat, offsets = self.values.to_list(), self.offsets.tolist()
        lists: list[list[Any] | None] = [flat[a:b] for a, b in pairwise(offsets)]
        if self.is_null is not None:
            for place in np.flatnonzero(self.is_null).tolist():
                lists[place] = None
        return lists

    def taken(self, index: Array) -> Lists:
        """Returns the rows at these indices, in this order."""
        lengths = np.diff(self.offsets)[index]
        places = spread(self.offsets[:-1][index], lengths)
        return Lists(
            offsets_of(lengths),
            self.values.taken(places),
            None if self.is_null is None else self.is_null[index],
        )

    @staticmethod
    def joined(parts: Sequence[Lists]) -> Lists:
        """Concatenates columns."""
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        values = [part.values for part in parts]
        nulls = None
        if any(part.is_null is not None for part in parts):
            nulls = np.concatenate(
                [np.zeros(len(part), bool) if part.is_null is None else part.is_null for part in parts]
            )
        return Lists(offsets_of(lengths), type(values[0]).joined(values), nulls)  # type: ignore[arg-type]


AnyColumn: TypeAlias = Numbers | Words | Texts | Lists


def clean(texts: list[Any]) -> list[Any]:
    """Returns texts as Arrow can store them: bytes of the source that are not UTF-8 become U+FFFD."""
    if "".join(filter(None, texts)).isascii():
        return texts
    return [None if text is None else _clean(text) for text in texts]


def _clean(text: str) -> str:
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def distinct(values: Sequence[T]) -> tuple[Array, list[T]]:
    """Returns the index of each value's object, and the distinct objects.

    Objects are compared by identity, so the caller must keep them alive.
    """
    ids = list(map(id, values))
    objects = dict(zip(ids, values, strict=True))
    places = dict(zip(objects, range(len(objects)), strict=True))
    return np.fromiter(map(places.__getitem__, ids), np.int64, len(ids)), list(objects.values())


def words_of(index: Array, objects: Sequence[T], text: Callable[[T], str | None]) -> Words:
    """Returns a column of texts of objects, given by index; the text of each object is computed once."""
    return Words.of(map(text, objects)).taken(index)


def offsets_of(lengths: Array) -> Array:
    """Returns the offsets of lists with these lengths, and the end offset of the last one."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def places_in(counts: Array) -> Array:
    """Returns `0, 1, ...` for the members of each group, concatenated, given the group sizes."""
    return spread(np.zeros(len(counts), np.int64), counts)


def spread(starts: Array, lengths: Array) -> Array:
    """Returns `start, start + 1, ...` for each list, concatenated."""
    offsets = offsets_of(lengths)
    return np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])

"""Two logs of JAX's compilation cache side by side: which part of a key made the cache miss."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping

import attrs

from hlotext import messages
from hlotext.messages import Message


@attrs.frozen
class CacheKeyPair:
    """The cache keys of one module in both logs."""

    module: str | None
    """Name of the module, or None if the logs do not name it."""
    parts: Mapping[str, tuple[str | None, str | None]]
    """Key components that differ, with both hashes, or None if a log lacks the component."""


@attrs.frozen
class CacheKeyDiff:
    """Differences between the compilation-cache keys in two logs."""

    pairs: tuple[CacheKeyPair, ...]
    """Paired keys, in the order of the old log."""
    only_old: int
    """Number of keys that are only in the old log."""
    only_new: int

    @property
    def is_same(self) -> bool:
        """True if the logs have the same keys with the same components."""
        return not self.only_old and not self.only_new and not any(pair.parts for pair in self.pairs)


def cache_keys(old: str, new: str) -> CacheKeyDiff | None:
    """Compares the keys of JAX's compilation cache in two logs (`jax._src.cache_key` at level DEBUG).

    Keys are paired by module name if the log has it, then by the hash of the program, then in order.

    Args:
        old: Text of the old log.
        new: Text of the new log.

    Returns:
        The paired keys. None if one of the logs has no keys.
    """
    first, second = (messages.read(text).of("cache-key") for text in (old, new))
    if not first or not second:
        return None
    by_program = _grouped(second, lambda key: (key.module, _program(key)))
    partners: list[Message | None] = []
    for message in first:  # those with the same program first, so that a key more on one side shifts nothing
        same = by_program[message.module, _program(message)]
        partners.append(same.pop() if same else None)
    taken = {id(partner) for partner in partners}
    left = _grouped((key for key in second if id(key) not in taken), lambda key: key.module)
    pairs = []
    for message, partner in zip(first, partners, strict=True):
        if partner is None and left[message.module]:
            partner = left[message.module].pop()
        if partner is not None:
            pairs.append(_pair(message, partner))
    return CacheKeyDiff(tuple(pairs), len(first) - len(pairs), len(second) - len(pairs))


def _grouped(keys: Iterable[Message], group: Callable[[Message], Hashable]) -> dict[Hashable, list[Message]]:
    """By a group, the first of each last, to be taken from the end."""
    found: dict[Hashable, list[Message]] = defaultdict(list)
    for key in keys:
        found[group(key)].append(key)
    for some in found.values():
        some.reverse()
    return found


def _program(key: Message) -> Hashable:
    program: str | None = key.facts["parts"].get("computation")
    return program


def _pair(old: Message, new: Message) -> CacheKeyPair:
    ours, theirs = old.facts["parts"], new.facts["parts"]
    names = [*ours, *(name for name in theirs if name not in ours)]
    parts = {name: (ours.get(name), theirs.get(name)) for name in names if ours.get(name) != theirs.get(name)}
    return CacheKeyPair(old.module, parts)

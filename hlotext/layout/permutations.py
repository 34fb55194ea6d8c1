"""Permutations as XLA's `permutation_util` writes them: tuples p where position i takes what was at p[i]."""

from __future__ import annotations

from collections.abc import Sequence

Permutation = tuple[int, ...]


def compose(first: Sequence[int], second: Sequence[int]) -> Permutation:
    """Returns `first[second[i]]` for each i (XLA's `ComposePermutations`)."""
    return tuple(first[number] for number in second)


def inverse(permutation: Sequence[int]) -> Permutation:
    """Returns the inverse of a permutation (XLA's `InversePermutation`)."""
    result = [0] * len(permutation)
    for place, number in enumerate(permutation):
        result[number] = place
    return tuple(result)


def descending(rank: int) -> Permutation:
    """Returns `(rank-1, ..., 1, 0)`."""
    return tuple(range(rank - 1, -1, -1))

"""Op_names that XLA writes for several operations at once."""

from __future__ import annotations

import itertools

from hlotext.ir.caches import weighted_cache

_MOST_LEVELS = 8
"""Combiners that ran one after the other; what is inside stays as it is."""


@weighted_cache(4096)
def joined_names(op_name: str) -> tuple[str, ...]:
    """The op_names of the collectives that XLA combined into one of this name, in order; empty for any other name.

    Since June 2026 the combiners write what all share once: `jit(f)/(a/psum:b/psum)` is `jit(f)/a/psum` and `jit(f)/b/psum`.
    The frame beside it is that of one of them.
    """
    names = _split(op_name)
    for _ in range(_MOST_LEVELS):
        within = [_split(name) for name in names]
        if not any(within):
            break
        names = tuple(one for name, parts in zip(names, within, strict=True) for one in parts or (name,))
    return names


def _split(op_name: str) -> tuple[str, ...]:
    if not op_name.endswith(")") or ":" not in op_name:
        return ()
    depth, ends = 0, []
    for place in range(len(op_name) - 1, -1, -1):
        character = op_name[place]
        if character == ")":
            depth += 1
        elif character == ":" and depth == 1:
            ends.append(place)
        elif character == "(":
            depth -= 1
            if not depth:
                break
    else:
        return ()
    if not ends or (place and op_name[place - 1] != "/"):  # as in `transpose(jvp(a:b))`
        return ()
    bounds = [place, *reversed(ends), len(op_name) - 1]
    return tuple(op_name[:place] + op_name[start + 1 : end] for start, end in itertools.pairwise(bounds))

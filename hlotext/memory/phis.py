"""Removes redundant phis: a phi with one distinct input becomes that input (`PhiGraph::Optimize`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hlotext.memory.values import Value


def replaced(inputs: Mapping[Value, Sequence[Value]]) -> dict[Value, Value]:
    """Returns the replacement of each redundant phi, given the inputs of every phi.

    A phi is redundant if all inputs other than itself are one value, or if only one non-phi value reaches it through
    phis.
    """
    users: dict[Value, list[Value]] = {}
    for phi, given in inputs.items():
        for value in given:
            if value in inputs:
                users.setdefault(value, []).append(phi)
    found = _single_source(inputs, users)

    # What is left may still have one input alone: a phi that itself stays.
    def final(value: Value) -> Value:
        while value in found:
            value = found[value]
        return value

    worklist = [phi for phi in inputs if phi not in found]
    while worklist:
        phi = worklist.pop()
        if phi in found:
            continue
        others = {final(value) for value in inputs[phi]} - {phi}
        if len(others) == 1:
            found[phi] = others.pop()
            worklist.extend(users.get(phi, ()))
            users.setdefault(found[phi], []).extend(users.get(phi, ()))
    return {phi: final(phi) for phi in found}


def _single_source(
    inputs: Mapping[Value, Sequence[Value]], users: Mapping[Value, Sequence[Value]]
) -> dict[Value, Value]:
    """The phis that one value alone reaches that is no phi, and that value."""
    many = Value(None, "", (), None)
    source: dict[Value, Value] = {}
    worklist: list[Value] = []

    def meet(phi: Value, value: Value) -> None:
        known = source.get(phi)
        if known is None:
            source[phi] = value
        elif known is value or known is many:
            return
        else:
            source[phi] = many
        worklist.append(phi)

    for phi, given in inputs.items():
        for value in given:
            if value not in inputs:
                meet(phi, value)
    while worklist:
        phi = worklist.pop()
        value = source[phi]
        for user in users.get(phi, ()):
            meet(user, value)
    return {phi: value for phi, value in source.items() if value is not many}

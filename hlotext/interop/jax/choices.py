"""Validation of string options: the error lists the choices and suggests the closest one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hlotext.ir.spelling import did_you_mean


def check(what: str, word: str, known: Iterable[str]) -> None:
    """Raises ValueError for a word that is not one of the choices.

    >>> check("stage", "pre_schedule", ("pre_scheduler", "post_scheduler"))
    Traceback (most recent call last):
    ValueError: there is no stage pre_schedule; known: post_scheduler, pre_scheduler; did you mean `pre_scheduler`?
    """
    choices = sorted(known)
    if word not in choices:
        meant = did_you_mean(word, choices)
        raise ValueError(
            f"there is no {what} {word}; known: {', '.join(choices)}" + (f"; {meant}" if meant else "")
        )


def check_platforms(platforms: Sequence[str] | str | None) -> None:
    """Raises ValueError for a platform that this JAX does not know, whether or not it has such devices."""
    if platforms is None:
        return
    from jax._src import xla_bridge

    known = {"cpu", *xla_bridge.known_platforms()}
    for platform in [platforms] if isinstance(platforms, str) else platforms:
        check("platform", platform, known)

"""Facts about a module, found on demand and kept until the module is edited."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from hlotext.ir import gc_control
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.module import Module

_P = ParamSpec("_P")
_T = TypeVar("_T")


def fact(find: Callable[Concatenate[Module, _P], _T]) -> Callable[Concatenate[Module, _P], _T]:
    """Decorator that caches a function of a module per revision of the module and per arguments.

    Arguments must be hashable. Results are stored on the module and freed with it; callers must not modify them.
    """
    whole = f"{find.__module__}.{find.__qualname__}"

    @functools.wraps(find)
    def cached(module: Module, /, *further: _P.args, **named: _P.kwargs) -> _T:
        expect_module(module)
        if module._facts is None or module._facts[0] != module.revision:
            module._facts = module.revision, {}
        known = module._facts[1]
        name = (whole, further, *named.items()) if further or named else whole
        if name not in known:
            with gc_control.gc_paused(
                collect_first=False
            ):  # an answer stays, and what is made on the way is no cycle
                known[name] = find(module, *further, **named)
        answer: _T = known[name]
        return answer

    return cached

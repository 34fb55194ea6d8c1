"""Packages whose modules are imported when they are first used: the one way in which start-up is kept short.

A package that is a door imports nothing. `from hlotext.syntax import reading` costs nothing, and the first
`reading.terms.read(...)` brings what that needs, with Lark. An import inside a function is for what no door can say.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any, NoReturn

from hlotext.ir import arguments


def lazy_submodules(package: str, *modules: str, **names: Sequence[str]) -> Callable[[str], Any]:
    """Returns a `__getattr__` for a package that imports submodules on first access.

    Args:
        package: Name of the package.
        modules: Submodules to import lazily.
        names: Names re-exported by the package, by the submodule that defines them. A name shared with a submodule
            is the re-exported one. `dir()` and `help()` list the package's `__all__`, or all names including these if
            it has none.
    """
    homes = {name: module for module, owned in names.items() for name in owned}
    if (opening := sys.modules.get(package)) is not None:
        vars(opening)["__dir__"] = lambda: sorted(_listed(vars(opening), homes))
        make_door(opening, names)

    def opened(name: str) -> Any:
        if name in homes:
            return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
        if name not in modules:
            raise no_such_name(package, name)
        return importlib.import_module(f"{package}.{name}")  # which makes it an attribute of the package

    return opened


def no_such_name(package: str, name: str, among: str = "") -> Exception:
    """Returns the error for a missing name of a package, with a suggestion, for a module's `__getattr__` to raise.

    `among` is a sentence about similar names that the package creates on access.
    """
    frame = sys._getframe(2)
    if (
        frame.f_globals.get("__name__") == "importlib._bootstrap"
    ):  # it asks before it imports a module of that name
        return AttributeError(name)
    missing_names = importlib.import_module("hlotext.ir.missing_names")  # only failures need it
    found: Exception = missing_names.missing(package, name, frame, among)
    return found


class _Guide:
    """Says what is meant by `import hlotext.passes`, which no finder before it has found."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        package, _, own = name.rpartition(".")
        asker = sys._getframe(2).f_code.co_name  # `importlib.util.find_spec` asks whether there is one
        if package.partition(".")[0] != _OWN or asker != "_find_and_load_unlocked":
            return
        missing_names = importlib.import_module("hlotext.ir.missing_names")
        if meant := missing_names.meant_in(package, own):
            raise ModuleNotFoundError(f"No module named {name!r}; {meant}", name=name)


def answer_for_imports() -> None:
    """Makes `import` of a module that does not exist here say what may be meant."""
    if not any(isinstance(one, _Guide) for one in sys.meta_path):
        sys.meta_path.append(_Guide())


def late_module(name: str) -> Any:
    """Returns a stand-in for a module of another package that imports it on first attribute access.

    Importing numpy takes as long as everything a small text needs. Types still import it, under `TYPE_CHECKING`.
    """
    return _Late(name)


_OWN = "hlotext"


class _Late(ModuleType):
    def __getattr__(self, name: str) -> Any:
        found = getattr(importlib.import_module(self.__name__), name)
        self.__dict__[name] = found
        return found


def make_door(package: ModuleType, names: Mapping[str, Sequence[str]], rooms: Collection[str] = ()) -> None:
    """Turns a package into one that explains missing names, and names the functions to call if it is called itself.

    `names` are the lazily imported names by module, and `rooms` the public subpackages, whose functions then report
    arguments of a wrong type (`arguments`).
    """
    own = vars(package)
    own.update(_names=names, _rooms=rooms)
    if "__getattr__" not in own:

        def opened(name: str) -> Any:
            raise no_such_name(package.__name__, name)

        own["__getattr__"] = opened
    package.__class__ = _Door


class _Door(ModuleType):
    """A package that shows names of its modules, each of which is set here when it is imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType):
            own = vars(self)
            if name in own["_rooms"]:
                if type(value) is ModuleType:
                    make_door(value, {})
                arguments.answer_for(value, vars(value).get("__all__", ()))
            arguments.answer_for(value, own["_names"].get(name, ()))
            if any(name in shown for shown in own["_names"].values()):
                return  # the name is that of a function too, which it is to stay
        super().__setattr__(name, value)

    def __call__(self, *given: object, **named: object) -> NoReturn:
        """Raises TypeError with the functions to call instead."""
        raise TypeError(not_callable(self))


def not_callable(package: ModuleType) -> str:
    """Returns the message for a package that was called, which names its functions to call instead."""
    public = [name for name in package.__dict__.get("__all__", ()) if name.islower()]
    called = [f"{package.__name__}.{name}" for name in _CALLED if name in public] or [
        f"{package.__name__}.{name}" for name in public
    ]
    return f"{package.__name__} is a package; call {' or '.join(called[:3])}"


_CALLED = ("run", "assign", "analyze", "compare", "open", "predict", "apply_rules")
"""Names of the function that people mean by the name of its package."""


def _listed(package: Mapping[str, Any], homes: Iterable[str]) -> set[str]:
    """Names of a package that `dir()` lists."""
    public = package.get("__all__")
    return {*package, *homes} if public is None else {*public, *(n for n in package if n.startswith("__"))}

"""Nodes in the order of the text: tuples that answer for names where positions are wanted."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn, TypeVar

N = TypeVar("N")


class AnsweringTuple(tuple[N, ...]):
    """A tuple of nodes. What a tuple does not have is answered with what has it; what it has is as fast as ever."""

    __slots__ = ()
    what: ClassVar[str]
    """The property that gives the list."""
    finder: ClassVar[str]
    """The expression that finds one of its nodes by name."""
    changers: ClassVar[str]
    """The calls that add nodes and remove them."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            use = ""
        elif name in _CHANGES:
            use = f"; it is a copy: use {self.changers}"
        else:
            use = f"; {self._by_name(name)}"
        raise AttributeError(f"{self.what} has no attribute {name!r}{use}", name=None, obj=None)

    def __call__(self, *arguments: object, **named: object) -> NoReturn:
        raise TypeError(f"{self.what} is a property, not a method: leave out the ()")

    def __setitem__(self, index: object, node: object) -> NoReturn:
        raise TypeError(f"{self.what} is a copy; use {self.changers}")

    def __delitem__(self, index: object) -> NoReturn:
        raise TypeError(f"{self.what} is a copy; use {self.changers}")

    def _by_name(self, name: object) -> str:
        if not isinstance(name, str):
            kind, finder = type(name).__name__, self.finder.format("name")
            return f"{self.what} is indexed by position, not by {kind}; {finder} takes a name"
        return f"{self.what} is indexed by position; {self.finder.format(repr(name))} finds one by name"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (tuple(self),)


AnsweringTuple.__call__.is_refusal = True  # type: ignore[attr-defined]  # see `foreign_names.supports`


class OperandList(AnsweringTuple[N]):
    """Operands of an instruction."""

    __slots__ = ()
    what = "operands"
    finder = "computation[{}]"
    changers = "instruction.replace_operand(number, new), or set instruction.operands = [...]"


NO_OPERANDS: OperandList[Any] = OperandList()


class UserList(AnsweringTuple[N]):
    """Users of an instruction."""

    __slots__ = ()
    what = "users"
    finder = "computation[{}]"
    changers = "user.replace_operand(number, new), or instruction.replace_all_uses_with(new)"


class NodeList(AnsweringTuple[N]):
    """A tuple of nodes that also answers for names as its indices.

    Only an index pays for that: properties make a new tuple with each access, so nobody takes many elements by number.
    """

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        try:
            return tuple.__getitem__(self, index)
        except TypeError:
            raise TypeError(self._by_name(index)) from None
        except IndexError:
            raise IndexError(
                f"index {index} is out of range for {len(self)} {self.what}, numbered from 0"
            ) from None

    def __contains__(self, node: object) -> bool:
        if isinstance(node, str):
            raise TypeError(f"{self.what} holds no names; use {node!r} in [one.name for one in {self.what}]")
        return tuple.__contains__(self, node)


class ComputationList(NodeList[N]):
    """The computations of a module, as a tuple."""

    __slots__ = ()
    what = "computations"
    finder = "module.computation({})"
    changers = "module.add(computation) and module.remove(computation)"


class InstructionList(NodeList[N]):
    """The instructions of a computation, as a tuple."""

    __slots__ = ()
    what = "instructions"
    finder = "computation[{}]"
    changers = "computation.add(instruction) and computation.remove(instruction)"


class CompilationList(NodeList[N]):
    """The compilations of a dump folder, as a tuple."""

    __slots__ = ()
    what = "compilations"
    finder = "folder[{}]"
    changers = "hlotext.dumps.open(path) of another folder"

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, int) and not self:
            raise IndexError(
                "there are no compilations: the folder has no files named like those of --xla_dump_to"
            )
        return super().__getitem__(index)


class ModuleList(list[N]):
    """The modules of a text. What a list does not have is answered with one of them that may have it."""

    def __getattr__(self, name: str) -> NoReturn:
        use = "" if name.startswith("_") else f"; use [0].{name} for the first of them"
        raise AttributeError(f"a list of modules has no attribute {name!r}{use}", name=None, obj=None)


class ParameterList(NodeList[N]):
    """The parameters of a computation, as a tuple."""

    __slots__ = ()
    what = "parameters"
    finder = "computation[{}]"
    changers = "hlotext.rewrite.add_parameter and remove_parameter"


_CHANGES = {"append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "add", "discard"}
"""Methods that lists have and tuples do not."""

"""Values that a loop carries: added, dropped, and put into another order; what its config says of its counter."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from hlotext.analysis.trip_count import Counter, counter
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.enums import ShardingType
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.sharding import OpSharding, Sharding, TupleSharding
from hlotext.rewrite.effects import is_dead
from hlotext.rewrite.kit.apply import apply_rules
from hlotext.rewrite.kit.builder import Builder
from hlotext.rewrite.kit.rules import RewriteRule
from hlotext.rewrite.passes.loops.loop_rebuilding import body_of, condition_of, parameter_of
from hlotext.rewrite.passes.loops.while_loop_simplifier import Loops
from hlotext.rewrite.passes.simplify.tuple_simplifier import RULES
from hlotext.rewrite.reduction.loop_state import renumber_config

Step = Callable[[Builder, Instruction, Sequence[Instruction]], Instruction]
"""Makes the value for the next iteration of the value in this one and of the other values for the next."""


def add_loop_value(loop: Instruction, start: Instruction, step: Step | None = None) -> Instruction:
    """Adds a loop-carried value as the last element of a loop's state. A new loop replaces the old one.

    The loop's computations are copied; unless they have other callers, the copies take over all names. Metadata,
    frontend attributes and shardings are kept; a value without a sharding is replicated in tuple shardings.

    >>> import hlotext as hlo
    >>> module = hlo.parse('''
    ... c { s = (s32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(3)
    ...     ROOT r = pred[] compare(i, n), direction=LT }
    ... b { s = (s32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(1)
    ...     a = s32[] add(i, n)  ROOT r = (s32[]) tuple(a) }
    ... ENTRY e { z = s32[] constant(0)  t = (s32[]) tuple(z)  ROOT w = (s32[]) while(t), condition=c, body=b }''')
    >>> loop = add_loop_value(module.entry.root, module.entry.instructions[0], lambda b, value, state: b.add(value, 2))
    >>> print(loop.shape)
    (s32[], s32[])
    >>> hlo.verify(module)
    []

    Args:
        loop: A while whose state is a tuple.
        start: The initial value, in the loop's computation.
        step: Creates the value for the next iteration, given a builder in the body, the value of this iteration, and
            the other elements of the new state (their operands lead to the old state). None leaves the value unchanged.

    Returns:
        The new loop. The final value is its last element.

    Raises:
        EditError: The instruction is not a while with a tuple as its state, or `step` returns another type. Nothing is
            changed then.
    """
    module, shape = _state(loop)
    if start.shape is None:
        raise EditError(f"the type of {start.name} is unknown")
    count = len(shape.tuple_shapes)
    wide = Shape.tuple((*shape.tuple_shapes, start.shape))
    editor = Loops(module)

    def old_form(value: Instruction) -> Instruction:
        return editor.tuple([editor.element(value, n) for n in range(count)], value.computation)

    def new_form(root: Instruction, given: Instruction) -> Instruction:
        assert root.computation is not None
        state = [editor.element(root, n) for n in range(count)]
        value = editor.element(given, count)
        following = value if step is None else step(Builder(root.computation), value, state)
        if following.shape != start.shape:
            raise EditError(f"the step produces {following.shape}, but {start.name} is {start.shape}")
        return editor.tuple((*state, following), root.computation)

    with module.transaction():
        notes = _Notes.of(loop, {n: n for n in range(count)}, start)
        editor.place = loop
        before = editor.elements(loop.operands[0])
        init = editor.tuple((*before, start), loop.computation)
        old = body_of(loop), condition_of(loop)
        new = editor.transformed(loop, wide, init, old_form, new_form, relay_control=True)
        return _tidied(editor, new, old, notes)


def keep_loop_values(loop: Instruction, numbers: Sequence[int]) -> Instruction:
    """Drops or reorders loop-carried values. A new loop replaces the old one.

    A dropped value may only be used to compute its own next value. Users of the loop must be `get-tuple-element`s,
    which are updated. Names and annotations are kept as by `add_loop_value`.

    Args:
        loop: A while whose state is a tuple, created by a `tuple` at the body's root.
        numbers: Indices of the elements to keep, in their new order.

    Returns:
        The new loop.

    Raises:
        EditError: A dropped value is needed, `numbers` are not distinct indices, the loop has control dependencies, or
            the state is used as a whole. Nothing is changed then.
    """
    module, shape = _state(loop)
    count = len(shape.tuple_shapes)
    kept = list(numbers)
    if len(set(kept)) != len(kept) or not all(0 <= n < count for n in kept):
        raise EditError(f"{kept} are not indices of the {count} values of {loop.name}")
    if body_of(loop).root.opcode != "tuple" or loop.control_predecessors or loop.control_successors:
        raise EditError(
            f"the root of {body_of(loop).name} is not a tuple, or {loop.name} has control dependencies"
        )
    for taker in (loop, parameter_of(body_of(loop)), parameter_of(condition_of(loop))):
        if taker.is_root or any(user.opcode != "get-tuple-element" for user in taker.users):
            raise EditError(f"{taker.name} is used as a whole; make its users take elements")
    for number in sorted(set(range(count)) - set(kept)):
        needed = _needs(loop, number, kept)
        if needed is not None:
            raise EditError(f"value {number} of {loop.name} is needed by {needed.name}")
    with module.transaction():
        notes = _Notes.of(loop, {old: new for new, old in enumerate(kept)})
        editor = Loops(module)
        editor.place = loop
        old = body_of(loop), condition_of(loop)
        new = _tidied(editor, editor.without(loop, kept), old, notes)
        renumber_config(new, kept)
        return new


def annotate_loop(loop: Instruction) -> Mapping[str, Any]:
    """Updates the annotations in a loop's backend config, such as `known_trip_count`, to match the loop.

    Call this after changing the start, step, limit or body of a loop, since compilers and hlotext trust
    `known_trip_count`, `known_init_step` and `known_induction_variable`. Annotations that can no longer be derived are
    removed; other parts of the config are kept.

    >>> import hlotext as hlo
    >>> module = hlo.parse('''
    ... c { s = (s32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(3)
    ...     ROOT r = pred[] compare(i, n), direction=LT }
    ... b { s = (s32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(1)
    ...     a = s32[] add(i, n)  ROOT r = (s32[]) tuple(a) }
    ... ENTRY e { z = s32[] constant(0)  t = (s32[]) tuple(z)  ROOT w = (s32[]) while(t), condition=c, body=b }''')
    >>> annotate_loop(module.entry.root)["known_trip_count"]
    {'n': '3'}

    Args:
        loop: A while.

    Returns:
        The config. It is empty if nothing can be derived and there was no config.

    Raises:
        EditError: The instruction is not a while, or its config is not JSON.
    """
    if loop.opcode != "while":
        raise EditError(f"{loop.name} is {loop.opcode}, not while")
    try:
        config = loop.backend_config.json() if loop.backend_config is not None else {}
    except ValueError as error:
        raise EditError(f"{loop.name}: {error}") from None
    if not isinstance(config, dict):
        raise EditError(f"the backend config of {loop.name} is not a JSON object")
    found = counter(loop)
    said = {} if found is None else _noted(found)
    config = {k: v for k, v in {**config, **said}.items() if k in said or k not in _OF_COUNTER}
    if config:
        loop.attributes["backend_config"] = config
    elif loop.backend_config is not None:
        del loop.attributes["backend_config"]
    return config


def _noted(found: Counter) -> dict[str, dict[str, str]]:
    return {
        "known_trip_count": {"n": str(found.trips)},
        "known_init_step": {"init": str(found.first), "step": str(found.step)},
        "known_induction_variable": {"tuple_index": str(found.element)},
    }


_OF_COUNTER = frozenset(_noted(Counter(0, 0, 0, 0)))


def _state(loop: Instruction) -> tuple[Module, Shape]:
    home = loop.computation
    if loop.opcode != "while" or home is None or home.module is None:
        raise EditError(f"{loop.name} is not a while in a module")
    if loop.shape is None or not loop.shape.is_tuple:
        raise EditError(f"{loop.name} carries {loop.shape}, which is not a tuple")
    return home.module, loop.shape


@attrs.frozen
class _Origins:
    """Hands the names of replaced instructions to what takes their places, where that has none of its own."""

    origins: dict[Instruction | Computation, str | None]

    def replaced(self, rule: RewriteRule, old: Instruction, new: Instruction) -> None:
        if self.origins.get(new, "") is None:
            self.origins[new] = self.origins.get(old, old.name)


_KEPT = ("sharding", "frontend_attributes", "metadata")
"""Attributes that say something of a value, and do not change it."""


def _states(loop: Instruction) -> tuple[Instruction, ...]:
    """Where the state of a loop is: itself, what its computations are given, where it starts, and what the body returns."""
    given = parameter_of(body_of(loop)), parameter_of(condition_of(loop))
    return loop, *given, loop.operands[0], body_of(loop).root


@attrs.frozen
class _Notes:
    """Names and kept attributes of a loop's state and of its elements, to write on those of another loop."""

    states: list[tuple[str, str, dict[str, Any]]]
    elements: list[dict[int, list[tuple[str, dict[str, Any]]]]]
    """For what is taken apart, by the new element's number."""

    @classmethod
    def of(cls, loop: Instruction, places: Mapping[int, int], start: Instruction | None = None) -> _Notes:
        """Notes of a loop whose elements get other places; `start` is the one that is added as the last."""
        states: list[tuple[str, str, dict[str, Any]]] = []
        elements = []
        for state in _states(loop):
            own = _kept(state)
            sharding = own.pop("sharding", None)
            if state.shape is not None and sharding is not None:
                # As the last one, so that Shardy's note of the old one goes.
                own["sharding"] = _sharding(sharding, state.shape, places, start)
            states.append((state.opcode, state.name, own))
        for state in _states(loop)[:3]:
            taken: dict[int, list[tuple[str, dict[str, Any]]]] = {}
            for user in state.users:
                if user.opcode == "get-tuple-element" and user.attributes["index"] in places:
                    place = places[user.attributes["index"]]
                    taken.setdefault(place, []).append((user.name, _kept(user)))
            elements.append(taken)
        return cls(states, elements)

    def write(self, editor: Loops, loop: Instruction) -> None:
        """Writes them where the new loop has none."""
        found = _states(loop)
        for state, (opcode, name, own) in zip(found, self.states, strict=True):
            if state.opcode == opcode:
                _write(state, own)
                editor.origins.setdefault(state, name)
        for state, taken in zip(found[:3], self.elements, strict=True):
            for user in state.users:
                notes = taken.get(user.attributes["index"]) if user.opcode == "get-tuple-element" else None
                if notes:
                    name, own = notes.pop(0)
                    _write(user, own)
                    if editor.origins.get(user) is None:
                        editor.origins[user] = name


def _kept(i: Instruction) -> dict[str, Any]:
    return {name: i.attributes[name] for name in _KEPT if name in i.attributes}


def _write(i: Instruction, own: Mapping[str, Any]) -> None:
    for name, value in own.items():
        if name not in i.attributes and value is not None:
            i.attributes[name] = value


def _sharding(
    old: Sharding, shape: Shape, places: Mapping[int, int], start: Instruction | None
) -> Sharding | None:
    """A tuple's sharding for the elements that stay and the one that is added; None if it does not fit the shape."""
    if not old.is_tuple:
        return old
    given = iter(old.tuple_elements)
    counts = [sum(not leaf.is_tuple for _, leaf in part.leaves()) for part in shape.tuple_shapes]
    if sum(counts) != len(old.tuple_elements):
        return None
    parts = [list(itertools.islice(given, count)) for count in counts]
    found = [one for n in sorted(places, key=places.__getitem__) for one in parts[n]]
    if start is not None and start.shape is not None:
        own = start.sharding or OpSharding(ShardingType.REPLICATED)
        count = sum(not leaf.is_tuple for _, leaf in start.shape.leaves())
        found += own.tuple_elements if own.is_tuple else [own] * count
    return TupleSharding(tuple(found))


def _tidied(editor: Loops, loop: Instruction, old: tuple[Computation, ...], notes: _Notes) -> Instruction:
    """The loop, without tuples that are only taken apart, and without the computations that it called before, whose names
    its own take over.
    """
    home, module = loop.computation, editor.module
    assert home is not None
    places = home, body_of(loop), condition_of(loop)
    apply_rules(module, RULES, computations=places, listeners=[_Origins(editor.origins)], on_refused="raise")
    notes.write(editor, loop)
    sources = {i.name: i for computation in old for i in computation if i.called_computations}
    gone = [c for c in old if c.module is module and not module.calls_of(c)]
    for computation in gone:
        module.remove(computation)
    if len(gone) == len(old):
        _call_originals(places[1:], editor.origins, sources)
    kept = {computation.name for computation in old if computation.module is module}
    for node, name in editor.origins.items():
        place = node.computation if isinstance(node, Instruction) else node
        if name is None or place is None or editor.origins.get(place) in kept:
            continue  # what has no origin, is gone again, or stands beside its origin
        if node is place or name not in place:
            node.name = name
    return loop


def _call_originals(
    computations: Sequence[Computation],
    origins: Mapping[Instruction | Computation, str | None],
    sources: Mapping[str, Instruction],
) -> None:
    """Lets copies call what the instructions called that they were made of, where nothing else does any more."""
    for computation in computations:
        for i in computation:
            source = sources.get(origins.get(i) or "")
            if (
                source is None
                or source.opcode != i.opcode
                or i.called_computations == source.called_computations
            ):
                continue
            module = computation.module
            assert module is not None
            if any(module.calls_of(c) for c in source.called_computations):
                continue
            copies = i.called_computations
            i.attributes["calls"] = source.attributes["calls"]
            for copy in copies:
                if not module.calls_of(copy):
                    module.remove(copy)


def _needs(loop: Instruction, number: int, kept: Sequence[int]) -> Instruction | None:
    """An instruction that needs a value, besides what makes its own next one."""
    after = next((u for u in loop.users if u.attributes["index"] == number and (u.users or u.is_root)), None)
    if after is not None:
        return after
    body, condition = body_of(loop), condition_of(loop)
    for computation, ends in (
        (condition, [condition.root]),
        (body, [body.root.operands[n] for n in kept]),
    ):
        derived = _derived(computation, number)
        for i in derived:
            if i in ends or not (is_dead(i) or i.users):
                return i
    return None


def _derived(computation: Computation, number: int) -> dict[Instruction, None]:
    """The instructions that are computed from an element of the state."""
    takers = [u for u in parameter_of(computation).users if u.attributes["index"] == number]
    found = dict.fromkeys(takers)
    pending = list(takers)
    while pending:
        for user in pending.pop().users:
            if user not in found and not (user.is_root and user.opcode == "tuple"):
                found[user] = None
                pending.append(user)
    return found

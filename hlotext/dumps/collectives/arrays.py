"""The arrays and operations of the text before partitioning, as shardings spread through them.

An element of a tuple is the array that it is, wherever it is passed: through loops, branches and calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

import hlotext as hlo
from hlotext.analysis import DeviceMesh
from hlotext.analysis.call_graph import call_graph
from hlotext.dumps.collectives.annotations import Annotations, Site
from hlotext.dumps.collectives.factors import Rule, rule_of, rule_of_alike
from hlotext.dumps.collectives.places import is_annotation
from hlotext.dumps.collectives.shardings import Shardings, sharding_of
from hlotext.dumps.collectives.specs import Dims, Spec, Specs, dimensions_of
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.tables import opcodes, traits

Axes = tuple[tuple[str, ...], ...]
EDGE, RESULT = "edge", "result"
"""Operations that only pass an array on: into and out of a loop or a branch; to a result of the program."""
_MOST_PASSED = 256
"""Maximum number of tuples and parameters that an array is followed through."""


@attrs.define(eq=False)
class Value:
    """An array before partitioning. An element of a tuple is the same array wherever the tuple is passed."""

    dimensions: Dims
    width: float
    now: Axes | None
    """Its sharding in the text; None if no PartitionSpec says it."""
    node: hlo.Instruction | None = None
    fixed: Axes | None = None
    """Its annotation."""
    uses: int = 0
    operations: list[Operation] = attrs.field(factory=list)
    """Those that it may spread through."""
    is_constant: bool = False
    """True for a constant and for what is computed of constants alone: no device sends it."""


@attrs.define(eq=False)
class Operation:
    """An operation through which shardings propagate."""

    opcode: str
    values: tuple[Value, ...]
    """Operands, then results."""
    operands: int
    rule: Rule | None
    runs: int
    node: hlo.Instruction | None
    number: int
    ids: tuple[int, ...] = attrs.field(init=False)
    """Of the values: shardings are kept by them."""
    is_elementwise: bool = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.ids = tuple(map(id, self.values))
        self.is_elementwise = self.opcode in opcodes.ELEMENTWISE or self.opcode in ("copy", EDGE, RESULT)


class Arrays:
    """The arrays of the HLO before partitioning."""

    def __init__(self, shardings: Shardings, annotations: Annotations) -> None:
        assert shardings.mesh is not None
        self._shardings = shardings
        self._annotations = annotations
        self._parts = self._parts_of(shardings.mesh)
        """The axes that each axis is taken as: itself, or parts of it where shardings use parts."""
        self.sizes = {name: size for parts in self._parts.values() for name, size in parts}
        self._specs = Specs(
            attrs.evolve(shardings.mesh, names=tuple(self.sizes), sizes=tuple(self.sizes.values()))
        )
        self._values: dict[object, Value] = {}
        self.results: dict[int, Value] = {}
        """The results of the program, by their number."""
        self.operations: list[Operation] = []
        self._runs = call_graph(annotations.module).runs
        self._pinned: dict[int, list[Value]] = {}
        self._constrained: dict[int | None, dict[Spec, list[Value]]] = {}
        self._entered: set[Computation] = set()
        self._build()

    def _parts_of(self, mesh: DeviceMesh) -> dict[str, list[tuple[str, int]]]:
        """The axes, cut into their prime factors if a sharding uses a part of one."""
        spec = self._shardings.spec
        is_cut = any(
            spec(node) is None and (found := sharding_of(node)) is not None and "manual" not in str(found)
            for computation in self._annotations.module.computations
            for node in computation
            if dimensions_of(node)
        )
        if not is_cut:
            return {name: [(name, size)] for name, size in zip(mesh.names, mesh.sizes, strict=True)}
        return {
            name: [(f"{name}:{n}", prime) for n, prime in enumerate(_primes(size))] or [(name, size)]
            for name, size in zip(mesh.names, mesh.sizes, strict=True)
        }

    # ---- arrays

    def value(self, node: hlo.Instruction) -> Value | None:
        """Returns the array that an instruction yields, or None for tuples and scalars."""
        dimensions = dimensions_of(node)
        if not dimensions:
            return None
        key = self._key(node)
        found = self._values.get(key)
        if found is None:
            assert node.shape is not None
            spec = self._specs.of(sharding_of(node), len(dimensions))
            width = node.shape.element_type.byte_width
            found = Value(dimensions, float(width), spec.axes if spec is not None else None, node)
            self._values[key] = found
        return found

    def is_of(self, node: hlo.Instruction, other: hlo.Instruction) -> bool:
        """Returns True if two instructions yield the same array, which is passed from one to the other."""
        return dimensions_of(node) == dimensions_of(other) and self.value(node) is self.value(other)

    def _key(self, node: hlo.Instruction) -> object:
        """The key of an array: the operation that made it, if it only was passed on."""
        for _ in range(_MOST_PASSED):
            if node.opcode == "get-tuple-element":
                index = node.attributes.get("index")
                found = self._element(node.operands[0], index if isinstance(index, int) else 0)
            elif node.opcode == "parameter":
                found = self._passed(node, None)
            else:
                return node
            if not isinstance(found, hlo.Instruction):
                return found
            if found is node:
                return node
            node = found
        return node

    def _element(self, source: hlo.Instruction, index: int) -> object:
        for _ in range(_MOST_PASSED):
            if source.opcode == "tuple":
                return source.operands[index]
            if source.opcode == "opt-barrier":
                source = source.operands[0]
            elif source.opcode == "parameter":
                found = self._passed(source, index)
                if not isinstance(found, hlo.Instruction):
                    return found
                if found is source:
                    return source, index
                source = found
            else:
                return source, index
        return source, index

    def _passed(self, parameter: hlo.Instruction, index: int | None) -> object:
        """The value of a parameter: the loop's state, or the caller's operand; itself where that is not known."""
        home, number = parameter.computation, parameter.parameter_number
        if home is None or home.is_entry or number is None or len(home.callers) != 1:
            return parameter
        caller = home.callers[0]
        if caller.opcode == "while":
            return (caller, index or 0)
        if caller.opcode == "conditional":
            places = [n for n, one in enumerate(caller.called_computations) if one is home]
            return caller.operands[places[0] + 1] if len(places) == 1 else parameter
        if caller.opcode == "call" and number < len(caller.operands):
            return caller.operands[number]
        return parameter

    # ---- operations

    def _build(self) -> None:
        module = self._annotations.module
        self._results(module.entry)
        self._enter(module.entry)
        self._annotate(module)
        for one in self.operations:
            for value in one.values[: one.operands]:
                value.uses += 1
            if one.rule is not None and any(v.fixed is None and v.now is not None for v in one.values):
                for value in dict.fromkeys(one.values):
                    value.operations.append(one)

    def _enter(self, computation: Computation) -> None:
        """The operations of a computation, with those of what it calls where it calls them."""
        runs = self._runs.get(computation) or 1
        for node in computation:
            if node.opcode in traits.CONTROL_FLOW:
                if node.opcode == "while":
                    self._passed_on(node, runs)
                for called in node.called_computations:
                    if called not in self._entered:
                        self._entered.add(called)
                        self._enter(called)
                if node.opcode != "while":
                    self._passed_on(node, runs)
            elif node.opcode not in traits.TUPLES and node.opcode not in ("parameter", "opt-barrier"):
                self._add(node, runs)

    def _operation(
        self,
        opcode: str,
        operands: Sequence[Value],
        results: Sequence[Value],
        rule: Rule | None,
        runs: int,
        node: hlo.Instruction | None,
    ) -> None:
        self.operations.append(
            Operation(opcode, (*operands, *results), len(operands), rule, runs, node, len(self.operations))
        )

    def _add(self, node: hlo.Instruction, runs: int) -> None:
        operands = [self.value(one) for one in node.operands]
        if node.shape is not None and node.shape.is_tuple:
            results = [self.value(one) for one in node.user_view if one.opcode == "get-tuple-element"]
        else:
            results = [self.value(node)]
        arrays, made = ([one for one in some if one is not None] for some in (operands, results))
        if not made and not arrays:
            return
        arrays = [self._used(one, n) if one.is_constant else one for n, one in enumerate(arrays)]
        whole = [dimensions_of(one) or () for one in node.operands]
        told = [one.dimensions if one is not None else () for one in results]
        is_copy = is_annotation(node)  # before partitioning it is one; in the program it is a custom call
        try:
            rule = rule_of_alike(told[0]) if is_copy else rule_of(node, whole, told or [()])
        except (IndexError, ValueError):
            rule = None
        if rule is not None and (len(arrays) < len(operands) or len(made) < len(results)):
            kept = [n for n, one in enumerate((*operands, *results)) if one is not None]
            rule = attrs.evolve(rule, dims=tuple(rule.dims[n] for n in kept))
        if all(one.is_constant for one in arrays) and (arrays or _is_constant(node)):
            for one in made:
                one.is_constant = True
        self._operation("copy" if is_copy else node.opcode, arrays, made, rule, runs, node)

    def _used(self, value: Value, number: int) -> Value:
        """A constant for one that reads it.

        Shardy gives each reader its own before it spreads shardings, so that none passes from one to another; they are
        merged only behind it.
        """
        copied = Value(value.dimensions, value.width, value.now, value.node, is_constant=True)
        self._values[value.node, "read by", len(self.operations), number] = copied
        return copied

    def _passed_on(self, node: hlo.Instruction, runs: int) -> None:
        """Arrays that enter and leave a loop or a branch."""
        if node.shape is None:
            return
        count = len(node.shape.tuple_shapes) if node.shape.is_tuple else None
        roots = [one.root for one in node.called_computations if len(one)]
        if node.opcode == "while":
            body = node.attributes["body"]
            sources = [(node.operands[0], runs), (body.root, self._runs.get(body) or runs)]
        else:
            sources = [(root, runs) for root in roots]
        for index in range(count or 1):
            made = self._values.get((node, index)) if count is not None else self.value(node)
            if made is None and count is not None:
                made = self._of_state(node, index)
            if made is None:
                continue
            for source, times in sources:
                key = self._element(source, index) if count is not None else source
                if isinstance(key, hlo.Instruction):
                    key = self._key(key)
                value = self._values.get(key)
                if value is None and isinstance(key, hlo.Instruction):
                    value = self.value(key)
                if value is None or value is made:
                    continue
                rule = rule_of_alike(made.dimensions)
                self._operation(EDGE, [value], [made], rule, times, node)

    def _of_state(self, node: hlo.Instruction, index: int) -> Value | None:
        """An element of a loop's state: whoever reads it inside or behind the loop."""
        readers = [one for one in node.user_view if one.opcode == "get-tuple-element"]
        if node.opcode == "while":
            for computation in node.called_computations:
                for parameter in computation.parameters:
                    readers += [one for one in parameter.user_view if one.opcode == "get-tuple-element"]
        for one in readers:
            if one.attributes.get("index") == index:
                return self.value(one)
        return None

    def _annotate(self, module: hlo.Module) -> None:
        free = module.attributes.get("allow_spmd_sharding_propagation_to_parameters")
        flags = list(free) if isinstance(free, tuple) else [free]
        for n, one in enumerate(module.entry.parameters):
            value = self.value(one)
            is_free = flags[n] if n < len(flags) and len(flags) > 1 else flags[0]
            if value is not None and is_free is not True:
                value.fixed = value.now
        for computation in (module.entry, *self._entered):
            for one in computation:
                if one.opcode not in ("copy", "custom-call"):
                    continue
                value = self.value(one)
                if value is None:
                    continue
                target = one.attributes.get("custom_call_target")
                if target == "SPMDFullToShardShape":
                    whole = self.value(one.operands[0])
                    if whole is not None:
                        whole.fixed = whole.now
                elif is_annotation(one):
                    value.fixed = value.now
                    site = self._annotations.site(one)
                    if site is not None:
                        self._constrained.setdefault(site.line, {}).setdefault(site.spec, []).append(value)
                elif target == "SPMDShardToFullShape":
                    value.fixed = value.now
        for computation in (module.entry, *self._entered):
            for one in computation:
                if is_annotation(one):
                    self._pin(one)

    def _pin(self, node: hlo.Instruction) -> None:
        """Shardy annotates what a constraint takes as well, unless it is a block's argument or others disagree."""
        value, taken = self.value(node), self.value(node.operands[0])
        if value is None or taken is None or taken.fixed is not None:
            return
        if node.operands[0].opcode in ("parameter", "get-tuple-element"):
            return
        others = [self.value(one) for one in node.operands[0].user_view if is_annotation(one)]
        if all(one is None or one.now == value.now for one in others):
            self._pinned.setdefault(id(value), []).append(taken)
            taken.fixed = value.now

    def _results(self, entry: Computation) -> None:
        root = entry.root
        shape = root.shape
        if shape is None:
            return
        leaves = list(root.operands) if root.opcode == "tuple" else [root]
        if root.opcode == "get-tuple-element" and root.operands[0].opcode == "tuple":
            leaves = [root.operands[0].operands[0]]
        for n, one in enumerate(leaves):
            value = self.value(one)
            if value is None:
                continue
            fixed = None
            if self._annotations.is_fixed(n):
                spec = self._specs.of(self._shardings.result_sharding(n), len(value.dimensions))
                fixed = spec.axes if spec is not None else None
            made = Value(value.dimensions, value.width, fixed or value.now, None, fixed)
            self._values["result", n] = self.results[n] = made
            self._operation(RESULT, [value], [made], rule_of_alike(value.dimensions), 1, None)

    def changed(
        self, site: Site | None, node: hlo.Instruction, result: int | None, axes: Axes
    ) -> dict[int, Axes]:
        """Returns the new shardings, by array id, if an annotation is changed; a line may constrain several arrays.

        Empty if the line also constrains arrays to other shardings, since that would change several annotations.
        """
        if result is not None:
            found = [self.results.get(result)]
        elif site is not None and site.kind == "constraint":
            others = self._constrained.get(site.line, {})
            found = list(others[site.spec]) if list(others) == [site.spec] else []
        else:
            found = [self.value(node)]
        axes = tuple(tuple(name for a in cut for name, _ in self._parts[a]) for cut in axes)
        made: dict[int, Axes] = {}
        for one in found:
            if one is not None and len(one.dimensions) == len(axes):
                made[id(one)] = axes
                made.update((id(taken), axes) for taken in self._pinned.get(id(one), ()))
        return made

    def is_wrong(self, value: Value, spec: Mapping[int, Axes]) -> bool:
        """Returns True if the predicted sharding of an array differs from that in the text. Never for constants, which
        are not sent.
        """
        if value.is_constant:
            return False
        return value.fixed is None and value.now is not None and spec[id(value)] != value.now

    @property
    def values(self) -> Sequence[Value]:
        return list(self._values.values())


def _primes(size: int) -> list[int]:
    found, prime = [], 2
    while prime * prime <= size:
        while not size % prime:
            found.append(prime)
            size //= prime
        prime += 1
    return [*found, size] if size > 1 else found


def _is_constant(node: hlo.Instruction) -> bool:
    """True for an operation without arrays as operands whose result is the same on every device."""
    if node.opcode == "broadcast":
        return node.operands[0].opcode == "constant"
    return node.opcode in ("constant", "iota") or node.opcode in opcodes.ELEMENTWISE

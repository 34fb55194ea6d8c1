"""Values of the rules in metadata.lark."""

from __future__ import annotations

from typing import Any, NamedTuple

from hlotext.findings.errors import TermError
from hlotext.ir.values.accuracy import ResultAccuracy, Tolerance
from hlotext.ir.values.configs import BackendConfig, FrontendAttributes
from hlotext.ir.values.enums import ResultAccuracyMode
from hlotext.ir.values.metadata import Metadata, metadata_from_fields
from hlotext.ir.values.original_value import OriginalArray, OriginalNode, OriginalValue
from hlotext.ir.values.statistics import Statistic, Statistics
from hlotext.syntax.language.words import integer
from hlotext.syntax.reading.builders.values import (
    Children,
    Field,
    name_of,
    number,
    one_of,
    unique_fields,
    unquote_at,
)
from hlotext.syntax.source.limits import MAX_NESTING


class MetadataBuilder:
    """Builds the values of the rules in metadata.lark."""

    # ---- metadata

    def metadata(self, children: Children) -> Metadata:
        return metadata_from_fields(unique_fields(children, "metadata"))

    def metadata_field(self, children: Children) -> Field:
        name, value = children
        if name.type == "METADATA_TEXT":
            return Field(name_of(name), unquote_at(value), name)
        if name.type == "METADATA_NUMBERS":
            return Field(name_of(name), value, name)
        number = integer(value)
        if not -(2**31) <= number < 2**31:
            raise TermError(f"{name_of(name)} must fit into 32 bits, but is {value}", value.start_pos)
        return Field(name_of(name), number, name)

    def other_metadata_field(self, children: Children) -> Field:
        name, value = children
        return Field(name_of(name), value if isinstance(value, str) else opaque_text(value), name)

    def metadata_list(self, children: Children) -> tuple[Metadata, ...]:
        return tuple(children)

    # ---- notes and configurations

    def frontend_attributes(self, children: Children) -> FrontendAttributes:
        return FrontendAttributes(dict(child for child in children if child is not None))

    def frontend_attribute(self, children: Children) -> tuple[str, str]:
        name, value = children
        return name_of(name), _text_or_dict(value)

    def backend_config(self, children: Children) -> BackendConfig:
        return BackendConfig(_text_or_dict(children[0]))

    def opaque_dict(self, children: Children) -> list[Any]:
        # Pieces are joined at the outermost brace only: joining at each would copy deep nests over and over.
        return children

    opaque_braces = opaque_dict

    # ---- numbers about a value

    def statistics(self, children: Children) -> Statistics:
        pairs = [
            (children[i], children[i + 1]) for i in range(0, len(children) - 1, 2) if children[i] is not None
        ]
        if not pairs:
            return Statistics()
        (_, index), *rest = pairs
        if not index.removeprefix("-").isdecimal():
            raise TermError(
                f"the first field of the statistics must be the number of the one to show, not {index}",
                index.start_pos,
            )
        return Statistics(
            integer(index), tuple(Statistic(name_of(name), number(value)) for name, value in rest)
        )

    def result_accuracy(self, children: Children) -> ResultAccuracy:
        kind, *rest = children
        if kind == "mode=":
            word = rest[0]
            mode = next((mode for mode in ResultAccuracyMode if mode.value == word.lower()), None)
            return ResultAccuracy(mode or ResultAccuracyMode(one_of(word, ResultAccuracyMode, "mode")))
        # Of two equal fields XLA's reader takes the last.
        fields = {field.name: field.value for field in rest if field is not None}
        return ResultAccuracy(tolerance=Tolerance(**fields))

    def tolerance_field(self, children: Children) -> Field:
        name, value = children
        return Field(name_of(name), integer(value) if name == "ulps=" else number(value), name)

    # ---- values before optimisation

    def origin(self, children: Children) -> OriginalValue:
        _, node, _, calls = children
        tree = () if node is None else node.value
        return OriginalValue(tree, call_hierarchy=None if calls is None else unquote_at(calls))

    def synthetic_origin(self, children: Children) -> OriginalValue:
        return OriginalValue(is_synthetic_call=True)

    def original_node(self, children: Children) -> _Node:
        return _Node(children[0])

    def original_tuple(self, children: Children) -> _Node:
        opening, *nodes = children
        parts = [node for node in nodes if node is not None]
        depth = 1 + max((part.depth for part in parts), default=0)
        if depth > MAX_NESTING:
            message = f"original values nest deeper than {MAX_NESTING} levels"
            raise TermError(message, opening.start_pos, code="X124")
        return _Node(tuple(part.value for part in parts), depth)

    def original_leaf(self, children: Children) -> OriginalArray | None:
        name, index, history = children
        if name is None:
            return None
        return OriginalArray(unquote_at(name), index or (), "" if history is None else unquote_at(history))


class _Node(NamedTuple):
    """One node of an original value's tree; wrapped, since a node without an array is None itself."""

    value: OriginalNode
    depth: int = 0
    """Levels of tuples in each other."""


def opaque_text(pieces: list[Any]) -> str:
    """Returns the text of an `opaque_dict` value, including braces."""
    texts = ["{"]
    stack = [iter(pieces)]
    while stack:
        for piece in stack[-1]:
            if isinstance(piece, list):
                texts.append("{")
                stack.append(iter(piece))
                break
            texts.append(piece)
        else:
            texts.append("}")
            stack.pop()
    return "".join(texts)


def _text_or_dict(value: Any) -> str:
    return opaque_text(value) if isinstance(value, list) else unquote_at(value)

"""Attributes that every instruction may have, to and from the messages that hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hlotext.ir.values import enums
from hlotext.ir.values.accuracy import ResultAccuracy, Tolerance
from hlotext.ir.values.configs import FrontendAttributes
from hlotext.ir.values.original_value import OriginalArray, OriginalNode, OriginalValue
from hlotext.ir.values.raw_value import RawValue
from hlotext.ir.values.statistics import Statistic, Statistics
from hlotext.proto import wire
from hlotext.proto.codec import Tools, number_of, word
from hlotext.proto.errors import ProtoError
from hlotext.proto.literals import field
from hlotext.proto.metadata import string_field, text
from hlotext.proto.pool import raw
from hlotext.proto.shapes import decoded


def read_frontend(found: bytes, t: Tools) -> FrontendAttributes | None:
    """Parses a `FrontendAttributes`; returns None if it is empty."""
    entries: dict[str, str] = {}
    for number, kind, start, end in wire.scan(found, 0, len(found)):
        if number == 1 and kind == wire.BYTES:
            parts = {n: found[a:b] for n, k, a, b in wire.scan(found, start, end) if k == wire.BYTES}
            entries[text(parts.get(1, b""))] = text(parts.get(2, b""))
    return FrontendAttributes(entries) if entries else None


def write_frontend(value: Mapping[str, str], t: Tools) -> bytes:
    """Serializes to `FrontendAttributes`, sorted by key."""
    return b"".join([field(1, string_field(1, key) + string_field(2, value[key])) for key in sorted(value)])


def read_statistics(found: bytes, t: Tools) -> Statistics | None:
    """Parses a `StatisticsViz`; returns None if it is empty."""
    m = decoded(t.classes, "StatisticsViz", found)
    parts = [decoded(t.classes, "Statistic", one) for one in m.statistics]
    if not parts:
        return None
    return Statistics(m.stat_index_to_visualize, tuple([Statistic(p.stat_name, p.stat_val) for p in parts]))


def write_statistics(value: Statistics, t: Tools) -> bytes:
    """Serializes to `StatisticsViz`."""
    parts = [
        raw(t.classes.Statistic(stat_name=one.stat_name, stat_val=one.stat_val)) for one in value.statistics
    ]
    return raw(
        t.classes.StatisticsViz(stat_index_to_visualize=value.stat_index_to_visualize, statistics=parts)
    )


def read_accuracy(found: bytes, t: Tools) -> ResultAccuracy | None:
    """Parses a `ResultAccuracy`; returns None for the default. Raises ProtoError for an unknown mode."""
    m = decoded(t.classes, "ResultAccuracy", found)
    if m.WhichOneof("specs") == "tolerance":
        p = decoded(t.classes, "Tolerance", m.tolerance)
        return ResultAccuracy(tolerance=Tolerance(p.atol, p.rtol, p.ulps))
    mode = word(enums.ResultAccuracyMode, m.mode)
    if isinstance(mode, RawValue):
        raise ProtoError(f"unknown accuracy mode {mode}")
    return None if mode is enums.ResultAccuracyMode.DEFAULT else ResultAccuracy(mode)


def write_accuracy(value: ResultAccuracy, t: Tools) -> bytes:
    """Serializes to `ResultAccuracy`; empty for the default."""
    if value.tolerance is not None:
        p = value.tolerance
        return raw(
            t.classes.ResultAccuracy(
                tolerance=raw(t.classes.Tolerance(atol=p.atol, rtol=p.rtol, ulps=p.ulps))
            )
        )
    mode = number_of(value.mode)
    return raw(t.classes.ResultAccuracy(mode=mode)) if mode else b""


def read_array(found: bytes, t: Tools) -> OriginalArray:
    """Parses an `OriginalArrayProto`."""
    m = decoded(t.classes, "OriginalArrayProto", found)
    return OriginalArray(m.instruction_name, tuple(m.shape_index))


def write_array(value: OriginalArray, t: Tools) -> bytes:
    """Serializes to `OriginalArrayProto`."""
    return raw(
        t.classes.OriginalArrayProto(instruction_name=value.instruction_name, shape_index=value.shape_index)
    )


def read_origin(found: bytes, t: Tools) -> OriginalValue:
    """Parses an `OriginalValueProto`, whose leaves give their index in the tree."""
    m = decoded(t.classes, "OriginalValueProto", found)
    if m.is_synthetic_call:
        return OriginalValue(is_synthetic_call=True)
    root: list[Any] = []
    for one in m.elements:
        part = decoded(t.classes, "OriginalValueElementProto", one)
        leaf = read_array(part.original_array, t) if part.HasField("original_array") else None
        _put(root, tuple(part.shape_index), leaf)
    calls = m.call_hierarchy if m.HasField("call_hierarchy") else None
    return OriginalValue(_tree(root[0] if root else []), call_hierarchy=calls)


MAX_WIDTH = 1 << 20
"""Elements of one tuple among original values."""


def _put(root: list[Any], index: tuple[int, ...], leaf: OriginalArray | None) -> None:
    """Puts a leaf into a tree of lists; the elements that are missing so far are empty lists."""
    if len(index) > 50:
        raise ProtoError("an original value nests deeper than 50 levels")
    place, number = root, 0
    for step in (*index, None):
        if number < 0 or number > MAX_WIDTH or number > len(place):
            raise ProtoError(f"an original value has no element {list(index)}")
        if number == len(place):
            place.append([] if step is not None else leaf)
            if step is None:
                return
        if step is None:
            place[number] = leaf
            return
        if not isinstance(place[number], list):
            raise ProtoError(f"an original value has element {list(index)} inside of an array")
        place, number = place[number], step


def _tree(node: Any) -> OriginalNode:
    return tuple(map(_tree, node)) if isinstance(node, list) else node


def write_origin(value: OriginalValue, t: Tools) -> bytes:
    """Serializes to `OriginalValueProto`."""
    if value.is_synthetic_call:
        return raw(t.classes.OriginalValueProto(is_synthetic_call=True))
    m = t.classes.OriginalValueProto()
    if value.call_hierarchy is not None:
        m.call_hierarchy = value.call_hierarchy
    stack: list[tuple[tuple[int, ...], OriginalNode]] = [((), value.tree)]
    while stack:
        index, node = stack.pop()
        if isinstance(node, tuple):
            stack.extend(((*index, i), node[i]) for i in range(len(node) - 1, -1, -1))
            continue
        part = t.classes.OriginalValueElementProto(shape_index=index)
        if node is not None:
            part.original_array = write_array(node, t)
        m.elements.append(raw(part))
    return raw(m)

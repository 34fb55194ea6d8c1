"""The sentences of the answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hlotext.analysis import byte_text
from hlotext.analysis.formatting import format_percent
from hlotext.dumps.collectives.places import is_named_constraint
from hlotext.dumps.collectives.records import (
    CONSTRAINT,
    HALO,
    HOST,
    LOOP,
    PARTIAL,
    PROGRAM,
    RESHARD,
    RESULT,
    UNKNOWN,
    CollectiveCause,
    Place,
    Reason,
)

if TYPE_CHECKING:
    from hlotext.dumps.collectives.partitioner import Written

NO_MESH = "the text does not name the mesh axes (Shardy's texts do); pass --mesh (dp=2,tp=4) for axes and PartitionSpecs"
UNTOLD = "unknown"


def by_a_pass(name: str | None) -> str:
    """Formats the reason for a collective that the partitioner did not create."""
    return "a pass after the partitioner added it" + (f": {name}" if name else "")


LATER_PASS = "a later pass"
BY_EXCLUSION = "the partitioner did not insert it, and the pass that did is unknown"
OF_OTHERS = (
    "the partitioner did not insert it, but some collectives that it did insert are missing: "
    "a pass may have combined them"
)


def of_missing(count: int) -> str:
    """Returns the note on collectives whose names a combined one has, but which the HLO after partitioning lacks."""
    return (
        f"it was combined from {count} more that the HLO after partitioning does not have under their names"
    )


def of_lookup(lookup: Place, argument: str) -> str:
    """Formats the advice for a collective that sends values of a whole batch because of a lookup."""
    batch = f"the batch of {argument}" if argument else "the batch"
    return (
        f"{batch} is sharded, but {lookup} gives its result the sharding of the table; with_sharding_constraint after the "
        "lookup would keep the batch sharded"
    )


def of_experts(
    array: Place, size: int, factor: Place, factor_size: int, axes: tuple[str, ...], rank: int
) -> str:
    """Formats the advice for a gathered array whose looked-up entries are multiplied with something smaller."""
    spec = f"P({_axes(axes)}{', None' * (rank - 1)})"
    return (
        f"move what {array} is multiplied with instead: {_value(factor, 'the other factor')} is smaller "
        f"({byte_text(factor_size)}, against {byte_text(size)}); send each row to the device that holds its entry "
        f"(jax.lax.all_to_all in jax.shard_map), or collect the rows by entry, constrained to {spec}, for one batched "
        "matmul"
    )


def of_batch(other: Place, other_size: int, size: int, spec: str) -> str:
    """Formats the advice for a gathered operand of a product that is sharded along the batch, if the other one is
    smaller.
    """
    value = (
        f"what line {other.line} constrains"
        if is_named_constraint(other.op_name) and other.line
        else _value(other, "the other one")
    )
    return (
        f"move the smaller operand instead: {value} ({byte_text(other_size)}, against "
        f"{byte_text(size)}), constrained to {spec} before the matmul"
    )


def _axes(axes: tuple[str, ...]) -> str:
    return repr(axes[0]) if len(axes) == 1 else f"({', '.join(map(repr, axes))})"


def rewritten(kind: str, final: str) -> str:
    """Formats the origin of a collective that a pass rewrote into one of another kind."""
    return f"the partitioner created an {kind}, which {LATER_PASS} rewrote into a {final}"


def constraint(place: Place) -> str:
    """Formats a constraint of the program."""
    called = "reshard" if place.label == "reshard" else "constraint"
    return f"the {called} on line {place.line}" if place.line else f"a {called}"


def asks(label: str) -> str:
    """Formats the annotation that requires another sharding of an operand."""
    return f"{label} asks for it"


def along(axes: tuple[str, ...]) -> str:
    """Formats axes for sentences."""
    return " and ".join(axes) if axes else "unnamed mesh axes"


def sentence(reason: Reason, part: Written | None = None) -> str:
    """Formats the reason for a collective, in one sentence."""
    if reason.cause == RESHARD:
        return _reshard(reason, part)
    if reason.cause == HOST:
        is_named = reason.user is not None and reason.user.op_name
        return f"host transfer of {reason.user}" if is_named else "host transfer"
    user = _acting(reason.user)
    if reason.cause == PARTIAL:
        return f"because {user} reduces over a dimension that is sharded along {along(reason.axes)}"
    if reason.cause == HALO:
        return f"because {user} reads {_edge(part)} across the shard boundary of {_named(reason.tensor, 'its operand')}"
    if reason.cause == PROGRAM:
        line = f", line {reason.user.line}" if reason.user is not None and reason.user.line else ""
        return f"because the program requests it (shard_map{line})"
    return f"{UNTOLD}: {'; '.join(reason.doubts)}" if reason.doubts else UNTOLD


def sure_of(reason: Reason) -> str:
    """Formats which parts of a reason are certain, and the doubts."""
    known = [
        name
        for name, is_known in (
            ("operation", reason.user is not None),
            ("tensor", reason.tensor is not None and reason.tensor is not reason.user),
            ("axes", bool(reason.axes)),
            ("sharding", reason.have is not None and reason.want is None),
            ("both shardings", reason.have is not None and reason.want is not None),
        )
        if is_known
    ]
    parts = " and ".join(filter(None, [", ".join(known[:-1]), *known[-1:]]))
    verb = "is" if len(known) == 1 and not parts.endswith("s") else "are"
    only = "only " if reason.cause == UNKNOWN else ""
    told = f"{reason.confidence}: {only}{parts} {verb} known" if known else reason.confidence
    # The doubts of an unknown cause are its sentence already.
    has_doubts = reason.doubts and reason.cause != UNKNOWN
    return f"{told} (uncertain: {'; '.join(reason.doubts)})" if has_doubts else told


def facts(cause: CollectiveCause) -> list[tuple[str, str]]:
    """Returns all facts about a collective as (name, sentence): a sentence for each reason, and shared facts once.

    The confidence is a row of its own if it is the same for all reasons, and otherwise follows each reason.
    """
    told = joined(cause.reasons)
    sure = list(dict.fromkeys(sure_of(members[0]) for _, members in told))
    found: list[tuple[str, str]] = []
    for text, members in told:
        name = "cause" if members[0].cause == UNKNOWN else "because"
        found.append((name, text if len(sure) == 1 else f"{text} ({sure_of(members[0])})"))
        found += _annotations(members)
    if len(sure) == 1:
        found.append(("confidence", sure[0]))
    return list(dict.fromkeys(found))


def joined(reasons: Iterable[Reason]) -> list[tuple[str, list[Reason]]]:
    """Formats reasons as sentences without "because", merging those that differ only in the operation, unknown ones
    last.
    """
    told: dict[str, list[Reason]] = {}
    for reason in sorted(reasons, key=lambda one: one.cause == UNKNOWN):
        told.setdefault(reason.because.removeprefix("because "), []).append(reason)
    found: dict[tuple[object, ...], list[Reason]] = {}
    for text, members in told.items():
        one, user = members[0], f"{_acting(members[0].user)} "
        more = frozenset((each.origin, each.scheme, each.suggestions) for each in members)
        is_alike = one.cause == PARTIAL and text.startswith(user)
        key = (text.removeprefix(user), more, sure_of(one)) if is_alike else (text,)
        found.setdefault(key, []).extend(members)
    return [(_joined(str(key[0]), members), members) for key, members in found.items()]


def _joined(rest: str, members: Sequence[Reason]) -> str:
    """One sentence of all: `dot_general (lines 886 and 891) and reduce_sum (line 866) reduce ...`."""
    if len({one.because for one in members}) == 1:
        return members[0].because.removeprefix("because ")
    lines: dict[str, dict[str, None]] = {}
    for one in members:
        if one.user is not None:
            lines.setdefault(one.user.label, {}).update({str(one.user.line): None} if one.user.line else {})
    names = [
        f"{label} (line{'s' if len(at) > 1 else ''} {_listed(list(at))})" if at else label
        for label, at in lines.items()
    ]
    verb, _, more = rest.partition(" ")
    return f"{_listed(names)} {verb.removesuffix('s')} {more}"


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _annotations(reasons: Sequence[Reason]) -> list[tuple[str, str]]:
    """Origins of the shardings of reasons, and what may change them."""
    return [
        *(("sharding", one.origin) for one in reasons if one.origin),
        *(("scheme", one.scheme) for one in reasons if one.scheme),
        *(("try", one.instead) for one in reasons if one.instead),
        *(("try", f"{s.because} ({s.confidence})") for one in reasons for s in one.suggestions),
    ]


def groups(causes: Iterable[CollectiveCause]) -> list[list[CollectiveCause]]:
    """Groups collectives by kind and reason, host transfers in both directions together, by bytes sent, most first."""
    found: dict[tuple[str, str], list[CollectiveCause]] = {}
    for one in sorted(
        causes, key=lambda one: -(one.communication.sent_bytes * (one.communication.runs or 1))
    ):
        kind = "" if one.communication.is_host_transfer else one.communication.kind
        found.setdefault((kind, one.why), []).append(one)
    return list(found.values())


def is_told(cause: CollectiveCause) -> bool:
    """Returns True if any reason is known."""
    return any(reason.cause != UNKNOWN for reason in cause.reasons)


def suggestion(
    label: str,
    spec: str,
    what: str,
    spared: int | None,
    least: int | None,
    grows: int | None,
    is_inner: bool,
    results: Sequence[int],
    free: Sequence[int],
    lost: Sequence[Place],
    measured: tuple[int, int],
    measured_on: str,
    work: float = 0.0,
) -> str:
    """Formats a suggested change with its effects.

    `spared` are the bytes saved in this collective, and `least` the minimum saved in all, if known. For an inner array
    (neither argument nor result), other arrays may grow too. `results` must be annotated in the same way; `free` ones,
    which the program does not annotate, take the shardings that follow.
    """
    total = f"at least an estimated {byte_text(least)}" if least else "an unknown amount"
    if spared:
        sends = f"each device sends {byte_text(spared)} less in this collective per run, and {total} less in total"
    elif spared is None:
        sends = f"each device sends {total} less in total"
    else:
        sends = f"this collective remains, but each device sends {total} less in total"
    price = [sends]
    if grows and is_inner:
        price.append(f"the array takes {byte_text(abs(grows))} {'more' if grows > 0 else 'less'} memory")
    elif grows:
        following = f" with {_results(results)} sharded the same way" if results else ""
        following += f", including what {_results(free)} then takes" if free else ""
        price.append(
            f"each device needs {byte_text(abs(grows))} {'more' if grows > 0 else 'less'} memory{following}"
        )
    if work > 0:
        price.append(f"each device computes {format_percent(work, 1)} more matmul FLOPs")
    elif lost:
        price.append(f"each device computes more of {' and '.join(dict.fromkeys(map(str, lost)))}")
    price.append(
        f"such changes reduced traffic in {measured[0]} of {measured[1]} recompilations on {measured_on}"
    )
    return "; ".join((f"{label} as {spec} ({what})", *price))


def _results(numbers: Sequence[int]) -> str:
    return _listed([f"result[{n}]" for n in numbers])


def _edge(part: Written | None) -> str:
    if part is None or part.shifted is None:
        return "elements"
    what = "element" if part.shifted == 1 else "elements"
    where = f" of dimension {part.dimension}" if part.dimension is not None else ""
    return f"{part.shifted} {what}{where}"


def _reshard(reason: Reason, part: Written | None) -> str:
    tensor = _named(reason.tensor, "its operand")
    have = reason.have or reason.have_sharding
    want = reason.want or reason.want_sharding
    if reason.wanted_by == RESULT:
        number = f"result {reason.result} of the program"
        if reason.result is None:
            number = "a result of the program"
        if want is None:
            return f"because {number} is returned with a different sharding from {tensor}{f', {have}' if have else ''}"
        return f"because {number} must be {want}{f', but {tensor} is {have}' if have else ''}"
    user = _asking(reason)
    if reason.readers > 1:
        user += f" and {reason.readers - 1} other{'s' if reason.readers > 2 else ''}"
    if (
        part is not None
        and part.side == "result"
        and reason.user is not None
        and reason.user.opcode == "reduce"
    ):
        over = f"over a dimension that is sharded along {along(reason.axes)}"
        return f"because {user} reduces {over}, so the partial results are gathered and reduced again"
    if part is not None and part.side == "result":
        needed = f"as {want}, but is computed in another sharding" if want else "in a different sharding"
        return f"because the result of {user} is needed {needed}"
    is_loop = reason.wanted_by == LOOP or (reason.user is not None and reason.user.opcode == "while")
    value = _value(reason.tensor, "its state" if is_loop else "its operand")
    if tensor == user and not (have or want):
        # Of a roll, slices and their concatenation have one name: the operation moves elements along a sharded dimension.
        return f"because {user} needs elements that other devices hold"
    as_ = f"as {want}" if want else "in a different sharding"
    is_ = f", but it is {have}" if have else ""
    cut = (
        "; it is gathered in full and sliced again (full rematerialization), which moves the most data"
        if reason.is_rematerialized
        else ""
    )
    if reason.tensor is not None and reason.tensor.label and user in ("an operation", tensor):
        return f"because {value} is needed {as_}{is_}{cut}"
    needs = "need" if reason.readers > 1 else "needs"
    return f"because {user} {needs} {value} {as_}{is_}{cut}"


def as_it_is_read(reason: Reason) -> str:
    """Formats the repair of a reshard briefly: the tensor, its new sharding, and the reader; empty if unknown."""
    if reason.tensor is None or not reason.tensor.label or reason.user is None:
        return ""
    needed = _asking(reason)
    verb = "need" if reason.readers > 1 else "needs"
    value = _value(reason.tensor, "")
    if not value or value == needed or _named(reason.tensor, "") == needed:
        return ""
    return f"shard {value} as {needed} {verb} it{f', {reason.want}' if reason.want else ''}"


def _asking(reason: Reason) -> str:
    """The operation that needs a sharding; loops and constraints, whose op_names say only their primitives, by their kind."""
    user = reason.user
    if user is None:
        return _acting(user)
    is_loop = reason.wanted_by == LOOP or user.opcode == "while"
    is_constraint = reason.wanted_by == CONSTRAINT and user.label != "reshard"
    called = "the sharding constraint" if is_constraint else "the loop" if is_loop else ""
    line = f" (line {user.line})" if user.line else ""
    return called + line if called else _acting(user)


def _acting(place: Place | None) -> str:
    """The operation that needs or sums something; an argument, which does neither, only marks where it is."""
    return _named(place if place is None or place.opcode != "parameter" else None, "an operation")


def _value(place: Place | None, otherwise: str) -> str:
    """An array: an argument by its name, else as the result of the operation that computes it."""
    named = _named(place, otherwise)
    return named if place is None or named == otherwise or not _computes(place) else f"the result of {named}"


def _computes(place: Place) -> bool:
    """False for an argument, whose name a collective of it may carry too."""
    return place.opcode not in ("", "parameter") and ("/" in place.op_name or not place.op_name)


def _named(place: Place | None, otherwise: str) -> str:
    return str(place) if place is not None and place.label else otherwise

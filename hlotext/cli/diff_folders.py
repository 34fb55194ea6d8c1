"""`hlotext diff` of two dump folders, and of two logs of JAX's cache key."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from typing import Any

from hlotext import diff, dumps
from hlotext.analysis import SourceLocations
from hlotext.analysis.age import Mark, joined
from hlotext.analysis.formatting import pluralize
from hlotext.cli.common import Unreadable, age_json
from hlotext.cli.listing import Listing, Row
from hlotext.cli.output import echo, output
from hlotext.diff import CacheKeyDiff, FolderDiff, FolderPair, report
from hlotext.diff.changes import CHANGED, Change, Changes
from hlotext.diff.totals import Totals
from hlotext.findings.errors import HloSyntaxError, brief
from hlotext.findings.escape import markdown, markdown_code
from hlotext.ir.nodes.module import Module
from hlotext.syntax.source.inputs import InputError, decode, read_data

_DEFAULT = "default"
_UNKNOWN = "unknown"


def compare_folders(old: str, new: str, exact: bool) -> FolderDiff:
    """Compares the compilations of two dump folders. Raises Unreadable."""
    try:
        found = diff.folders(old, new, exact=exact)
    except InputError as error:
        raise Unreadable(str(error)) from None
    if not (found.pairs or found.only_old or found.only_new):
        raise Unreadable(
            f"neither {old} nor {new} has files named like those of --xla_dump_to (module_0001.NAME.STAGE.txt); "
            "name two files"
        )
    for place, other, some in ((old, new, found.only_new), (new, old, found.only_old)):
        if not found.pairs and len(some) == len(found.only_old) + len(found.only_new):
            raise Unreadable(
                f"{place} has no files named like those of --xla_dump_to (module_0001.NAME.STAGE.txt); {other} has"
            )
    return found


def compare_logs(old: str, new: str) -> CacheKeyDiff | None:
    """Compares the keys of JAX's compilation cache in two logs; None if a log has none. Raises Unreadable."""
    try:
        texts = [data if isinstance(data, str) else decode(data) for data, _ in map(read_data, (old, new))]
    except InputError as error:
        raise Unreadable(str(error)) from None
    return diff.cache_keys(texts[0], texts[1])


# ---- folders


def show(found: FolderDiff, limit: int) -> None:
    """Prints a comparison: for each pair its settings, then differences in its programs."""
    out = output()
    out.heading(summary(found))
    for pair in found.pairs:
        facts = _facts(pair)
        if not pair.is_same or len(found.pairs) == 1:
            out.heading(_title(pair))
            rows = [(name, *_values(values)) for name, values in pair.settings.items()]
            if rows:
                out.table(Listing[Row]("diff.settings", tuple).table("different settings", rows, limit))
                echo("")
            out.facts(facts)
    facts = []
    if len(found.pairs) > 1:
        for title, is_renamed in (("the same", False), ("equal but renamed", True)):
            same = [_title(pair) for pair in found.pairs if pair.is_same and pair.is_renamed == is_renamed]
            facts += [(title, ", ".join(same))] if same else []
    facts += [
        (title, ", ".join(_label(one) for one in some))
        for title, some in (("only in the first", found.only_old), ("only in the second", found.only_new))
        if some
    ]
    if found.only_old and found.only_new and (command := _by_hand(found)):
        facts.append(("to compare two", command))
    if facts:
        out.heading("others")
        out.facts(facts)


def summary(found: FolderDiff) -> str:
    """Returns one line with the number of pairs and what changed."""
    settings = sum(bool(pair.settings) for pair in found.pairs)
    names = sum(pair.names_only for pair in found.pairs)
    programs = sum(
        "different" in (None if pair.names_only else pair.before, pair.after) for pair in found.pairs
    )
    text = f"{pluralize(len(found.pairs), 'compilation')} in both folders"
    for some, where in ((found.only_old, "first"), (found.only_new, "second")):
        if some:
            text += f", {len(some):,} only in the {where}"
    renamed = sum(pair.is_renamed and not pair.is_left_over for pair in found.pairs)
    if any(pair.is_left_over for pair in found.pairs):
        text += ", one of them under different names, paired as the only ones left"
    if renamed:
        text += f", {renamed:,} renamed"
    releases = dict.fromkeys(pair.release for pair in found.pairs if pair.release is not None)
    unknown = _unknown(found)
    if found.is_same:
        moved = " but source lines" if any(pair.moved for pair in found.pairs) else ""
        if not all(pair.before and pair.after for pair in found.pairs):
            unknown = f"; not all texts can be compared{unknown}"
        return f"{text}: no differences" + (" but the XLA release" if releases else moved) + unknown
    exact = any(pair.exact for pair in found.pairs)
    what = []
    if releases:
        told = "; ".join(_both(*release) for release in releases)
        key = ", which is part of the cache key" if exact else ""
        what.append(f"the XLA release differs ({told}){key}")
    chips = dict.fromkeys(pair.chips for pair in found.pairs if pair.chips[0] != pair.chips[1])
    if chips:
        what.append(f"the chip differs ({'; '.join(_both(*_known(two)) for two in chips)})")
    if settings:
        what.append(f"settings differ{_among(settings, found)}{_first_setting(found)}")
    if programs:
        what.append(f"programs differ{_among(programs, found)}{_first_change(found)}")
    if names:
        what.append(f"only names differ{_among(names, found)}")
    if any(pair.after == "reordered" for pair in found.pairs):
        what.append("operations are in a different order")
    if settings and not programs:
        what.append("no operations differ")
    return (f"{text}: {', '.join(what)}" if what else text) + unknown


def _among(count: int, found: FolderDiff) -> str:
    """In how many compilations, unless both folders have only one."""
    return "" if len(found.pairs) == 1 else f" in {count:,}"


def _unknown(found: FolderDiff) -> str:
    """A remark on constants that equal texts do not show."""
    elided = max((pair.elided for pair in found.pairs), default=0)
    if not elided:
        return ""
    return (
        f"; whether {pluralize(elided, 'constant')} elided as {{...}} have equal values is unknown"
        " (dump with xla_dump_large_constants)"
    )


def _first_setting(found: FolderDiff) -> str:
    """The setting that most pairs have with the same values, the first of these."""
    counts = Counter((name, values) for pair in found.pairs for name, values in pair.settings.items())
    if not counts:
        return ""
    (name, values), _ = counts.most_common(1)[0]
    more = len({name for name, _ in counts}) - 1
    return f" ({name} {' -> '.join(_values(values))}{f' and {more} more' if more else ''})"


def _first_change(found: FolderDiff) -> str:
    """The first change of the programs before optimization, else a remark that only the final ones differ."""
    pairs = [pair for pair in found.pairs if pair.before == "different" and not pair.names_only]
    changes = {pair.changes[0].kind: pair.changes[0] for pair in reversed(pairs) if pair.changes}
    if changes:
        return f" ({'; '.join(change.text for change in reversed(changes.values()))})"
    if pairs:
        return ""
    is_explained = any(
        pair.settings or pair.release or pair.chips[0] != pair.chips[1] for pair in found.pairs
    )
    cause = "" if is_explained else ": the cause is not in these files"
    return f" (after optimization only{cause})"


def _title(pair: FolderPair) -> str:
    return (
        _label(pair.old)
        if pair.old.name == pair.new.name and pair.old.number == pair.new.number
        else f"{_label(pair.old)} -> {_label(pair.new)}"
    )


def _by_hand(found: FolderDiff) -> str:
    """The command that compares the final modules of the first compilations that are in one folder only."""
    steps = [next(reversed(some[0].steps), None) for some in (found.only_old, found.only_new)]
    paths = [step.path for step in steps if step is not None and os.path.exists(step.path)]
    return f"hlotext diff {shlex.join(paths)}" if len(paths) == 2 else ""


def _label(one: dumps.Compilation) -> str:
    return f"{one.name} (module {one.number})"


def _values(values: tuple[str | None, str | None]) -> list[str]:
    return [_DEFAULT if value is None else value for value in values]


def _facts(pair: FolderPair) -> list[tuple[str, str]]:
    facts = [("XLA", _releases(pair))]
    if any(pair.chips):
        facts.append(("chip", _both(*_known(pair.chips))))
    facts += [("changed", change.text) for change in pair.changes]
    if pair.moved is not None:
        facts.append(("moved", pair.moved))
    facts.append(("before optimization", _program(pair, "before")))
    facts.append(("after optimization", _program(pair, "after")))
    totals = _totals(pair)
    if totals is not None:
        facts += [
            (total.name.replace("_", " "), f"{_both(*report.figures(total))}: {report.difference(total)}")
            for total in report.different_totals(totals)
        ]
        if equal := report.equal_totals(totals):
            facts.append(("equal totals", equal))
    return facts


def _totals(pair: FolderPair) -> Totals | None:
    """Figures of the final programs; None if they are the same program or one is missing."""
    modules = _texts(pair, "after") if pair.after == "different" else None
    return Totals(*modules) if modules is not None else None


def _releases(pair: FolderPair) -> str:
    """Both compilers where they differ, else one, by the marks of both."""
    if pair.release is not None:
        return _both(*pair.release)
    age = joined(Mark("a folder", age.since, age.until) for age in pair.age)
    return f"{age}, both" if age.is_known else _UNKNOWN


def _both(old: str, new: str) -> str:
    return old if old == new else f"{old} -> {new}"


def _known(chips: tuple[str | None, str | None]) -> tuple[str, str]:
    return chips[0] or _UNKNOWN, chips[1] or _UNKNOWN


def _program(pair: FolderPair, end: str) -> str:
    state = pair.before if end == "before" else pair.after
    if state is None:
        return f"unknown: {_why_unknown(pair, end)}"
    if state == "same":
        elided = (
            f", except for {pluralize(pair.elided, 'elided constant')}, whose values are unknown"
            if pair.elided
            else ""
        )
        return ("the same except for the module name" if pair.is_renamed else "the same") + (
            elided if end == "before" else ""
        )
    if pair.names_only and end == "before":
        return _names(pair)
    if state == "reordered":
        return "the same operations with different names or in a different order"
    changes, first = _changes(pair, end)
    text = _counts(changes) if changes is not None else "different"
    if first is None:
        return text
    what = "".join(f", {part}" for part in first.parts[:1])
    place = SourceLocations().place(first.node) if first.node is not None else None
    where = f", {place.file}:{place.line}" if place is not None else ""
    return f"{text}; first: {first.name} ({first.opcode}){what}{where}"


def _names(pair: FolderPair) -> str:
    """The cause of a miss in JAX's compilation cache where nothing but names differs."""
    if pair.is_renamed:
        return f"the same except for the module name, which is part of the cache key: {pair.old.name} -> {pair.new.name}"
    return "the same except for names of instructions or computations"


def _counts(changes: Changes) -> str:
    if not len(changes):
        return "the same operations, but collectives in a different order"
    header = [change.parts[0].name for change in changes if change.node is None and change.parts]
    counts = Counter(change.kind for change in changes if change.node is not None)
    parts = [f"{counts[kind]:,} {kind}" for kind in ("added", "removed", "changed") if counts[kind]]
    told = [f"header: {', '.join(header)}"] if header else []
    return "; ".join(told + ([f"operations {', '.join(parts)}"] if parts else []))


def _texts(pair: FolderPair, end: str) -> tuple[Module, Module] | None:
    """The two texts; None if one is missing or unreadable."""
    try:
        old, new = (one.before if end == "before" else one.after for one in (pair.old, pair.new))
    except (InputError, HloSyntaxError):
        return None
    return (old, new) if old is not None and new is not None else None


def _why_unknown(pair: FolderPair, end: str) -> str:
    """The text of a compilation that is missing or cannot be read."""
    missing = []
    for one, which in ((pair.old, "first"), (pair.new, "second")):
        try:
            found = one.before if end == "before" else one.after
        except (InputError, HloSyntaxError) as error:
            return brief(error)
        if found is None:
            missing.append(f"the {which} folder has no")
    if not missing:
        return "a text is missing or unreadable"
    which = missing[0] if len(missing) == 1 else "neither folder has a"
    return f"{which} text of {pair.old.name} {end} optimization"


_OPERANDS_OF_OTHERS = {"parameter", "constant"}


def _changes(pair: FolderPair, end: str) -> tuple[Changes | None, Change | None]:
    """Differences between the programs, and the first one: an operation rather than what it is given, if there is one."""
    modules = _texts(pair, end)
    if modules is None:
        return None, None
    old, new = modules
    changes = diff.compare(old, new).changes
    some = [change for change in changes if change.node is not None]
    real = [change for change in some if change.opcode not in _OPERANDS_OF_OTHERS]
    if real or some:
        return changes, (real or some)[0]
    ours, theirs = dumps.fingerprints.first_difference(old, new, inside=True)
    return changes, Change(CHANGED, "", theirs, ours) if ours is not None or theirs is not None else None


def markdown_of(found: FolderDiff) -> str:
    """Returns a Markdown summary for an issue or pull request."""
    md, code = markdown, markdown_code
    out = [f"### hlotext diff: {md(summary(found))}", ""]
    for pair in found.pairs:
        if pair.is_same and len(found.pairs) > 1:
            continue
        out += [f"**{md(_title(pair))}**", ""]
        if pair.settings:
            out += ["| setting | before | after |", "|---|---|---|"]
            out += [
                f"| {code(name)} | {' | '.join(md(value) for value in _values(values))} |"
                for name, values in pair.settings.items()
            ]
            out.append("")
        out += [f"- {title}: {md(text)}" for title, text in _facts(pair)]
        out.append("")
    for title, some in (("only in the first", found.only_old), ("only in the second", found.only_new)):
        if some:
            out.append(f"- {title}: {md(', '.join(_label(one) for one in some))}")
    return "\n".join(out).rstrip() + "\n"


def _totals_json(totals: Totals | None) -> dict[str, Any]:
    different = report.different_totals(totals) if totals is not None else ()
    return {total.name: {"old": total.old, "new": total.new} for total in different}


def json_of(found: FolderDiff) -> dict[str, Any]:
    """Returns the comparison as JSON values."""
    return {
        "is_same": found.is_same,
        "pairs": [
            {
                "old": _compilation(pair.old),
                "new": _compilation(pair.new),
                "settings": {name: {"old": old, "new": new} for name, (old, new) in pair.settings.items()},
                "is_renamed": pair.is_renamed,
                "names_only": pair.names_only,
                "before": _end(pair, "before"),
                "after": _end(pair, "after"),
                "changed": [{"kind": one.kind, "text": one.text} for one in pair.changes],
                "moved": pair.moved,
                "elided_constants": pair.elided,
                "totals": _totals_json(_totals(pair)),
            }
            for pair in found.pairs
        ],
        "only_old": [_compilation(one) for one in found.only_old],
        "only_new": [_compilation(one) for one in found.only_new],
    }


def _compilation(one: dumps.Compilation) -> dict[str, Any]:
    return {
        "module": one.name,
        "number": one.number,
        "folder": one.folder,
        "chip": one.chip.name if one.chip is not None else None,
        "age": age_json(one.age),
    }


def _end(pair: FolderPair, end: str) -> dict[str, Any]:
    state = pair.before if end == "before" else pair.after
    changes, first = _changes(pair, end) if state == "different" else (None, None)
    return {
        "state": state,
        "changes": dict(changes.counts()) if changes is not None else None,
        "instruction": first.name if first is not None else None,
        "opcode": first.opcode if first is not None else None,
    }


# ---- logs


def show_keys(found: CacheKeyDiff) -> None:
    """Prints the parts of cache keys that differ."""
    out = output()
    out.heading(keys_summary(found))
    rows = [
        (pair.module, part, *(hash_ or "not there" for hash_ in hashes))
        for pair in found.pairs
        for part, hashes in pair.parts.items()
    ]
    out.table(Listing[Row]("diff.key_parts", tuple).table("different parts", rows))


def keys_summary(found: CacheKeyDiff) -> str:
    """Returns one line with the number of paired keys, and which parts differ."""
    names = dict.fromkeys(part for pair in found.pairs for part in pair.parts)
    text = f"{pluralize(len(found.pairs), 'key')} of JAX's compilation cache in both logs"
    if found.only_old or found.only_new:
        text += f", {found.only_old:,} only in the first, {found.only_new:,} only in the second"
    return f"{text}: {', '.join(names)}" if names else f"{text}: all parts equal"


def keys_json(found: CacheKeyDiff) -> dict[str, Any]:
    """Returns the comparison of cache keys as JSON values."""
    return {
        "is_same": found.is_same,
        "keys": [
            {
                "module": pair.module,
                "parts": {name: {"old": old, "new": new} for name, (old, new) in pair.parts.items()},
            }
            for pair in found.pairs
        ],
        "keys_only_old": found.only_old,
        "keys_only_new": found.only_new,
    }


def keys_markdown(found: CacheKeyDiff) -> str:
    """Returns a Markdown summary of the cache keys for an issue."""
    out = [f"### hlotext diff: {markdown(keys_summary(found))}", ""]
    rows = [
        f"| {markdown(pair.module or '')} | {markdown(part)} | {' | '.join(markdown(h or '') for h in hashes)} |"
        for pair in found.pairs
        for part, hashes in pair.parts.items()
    ]
    if rows:
        out += ["| module | part of the key | before | after |", "|---|---|---|---|", *rows]
    return "\n".join(out).rstrip() + "\n"

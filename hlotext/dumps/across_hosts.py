"""The dumps of many hosts that run one program: who compiled something else, where it begins, and what would hang."""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Literal, TypeVar

import attrs

import hlotext as hlo
from hlotext.dumps.age import other_release
from hlotext.dumps.compilation import Compilation
from hlotext.dumps.fingerprints import (
    NOTATION,
    Collective,
    collective_order,
    fingerprint,
    first_difference,
    is_for_one_device,
    is_same_computation,
    other_notation,
)
from hlotext.dumps.folder import open as open_folder
from hlotext.dumps.program_changes import elided_constants, operation_change, program_changes
from hlotext.dumps.settings import DEVICES, changed_settings, device_order, header_settings, settings
from hlotext.findings.errors import HloSyntaxError, brief
from hlotext.syntax.source.inputs import InputError

Verdict = Literal["same", "local", "different"]
Kind = Literal["missing", "order", "different", "unfinished", "options", "collectives", "unreadable", "local"]
_WORST: Sequence[Kind] = (
    "collectives",
    "missing",
    "different",
    "unfinished",
    "options",
    "unreadable",
    "order",
    "local",
)
"""The kinds of findings, what breaks most first."""
_CAUSES = ("collectives", "different", "unfinished", "options", "unreadable")
"""Kinds after which a host may end, and compile no more."""
T = TypeVar("T", bound=Hashable)
Key = tuple[str, int]
"""A module's name, and the how manieth of that name on its host."""


@attrs.frozen
class HostFinding:
    """A difference between the dumps of several hosts: one module, the hosts that differ, and how."""

    kind: Kind
    """Kind of difference.

    `missing`: not all hosts have a module for several devices. `order`: such modules are compiled in a different order
    (note). `different`: the program differs, before optimization unless `message` says otherwise. `unfinished`: no
    final HLO. `options`: settings differ. `collectives`: collectives execute in a different order, which hangs.
    `unreadable`: a file cannot be read. `local`: a module runs on a single host (note).
    """
    module: str
    hosts: tuple[str, ...]
    """Hosts outside the majority; all hosts if there is no majority."""
    message: str
    instruction: str | None = None
    """The first instruction that differs, named as in the majority."""
    opcode: str | None = None
    setting: str | None = None
    """The first setting that differs."""
    settings: Mapping[str, tuple[str | None, str | None]] = attrs.field(
        factory=dict[str, "tuple[str | None, str | None]"]
    )
    """All settings that differ, with the values of the majority and of the first of `hosts`."""


@attrs.frozen
class HostReport:
    """Differences between the dumps of several hosts, created by `hosts`."""

    hosts: tuple[str, ...]
    modules: int
    """Number of modules compared."""
    findings: tuple[HostFinding, ...]
    """Findings, most severe first."""
    elided_constants: int = 0
    """Number of constants that are elided (`{...}`) on all hosts, and so may differ."""

    @property
    def verdict(self) -> Verdict:
        """`same`, `local` if only programs that run on a single host differ, or `different`. Order is ignored."""
        kinds = {finding.kind for finding in self.findings} - {"order"}
        if not kinds:
            return "same"
        return "local" if kinds == {"local"} else "different"


@attrs.frozen
class _Compiled:
    """Properties of one compilation that are compared across hosts."""

    name: str
    number: int
    is_local: bool
    before: str | None
    after: str | None
    settings: tuple[tuple[str, str], ...]
    collectives: tuple[Collective, ...]
    problem: str | None = None
    elided: int = 0

    @property
    def has_collectives(self) -> bool | None:
        """None without the final HLO: the partitioner inserts them."""
        return bool(self.collectives) if self.after is not None else None

    @property
    def meetings(self) -> Hashable:
        return tuple(one.meeting for one in self.collectives)


def hosts(paths: Iterable[str | os.PathLike[str]], *, jobs: int = 1) -> HostReport:
    """Compares the dumps of several hosts that run the same program, module by module.

    Modules are matched by name, and by order among equal names, never by XLA's numbers.

    Args:
        paths: The dump folders, one per host, or a single folder with a subfolder per host.
        jobs: Number of processes that read the folders.

    Raises:
        InputError: A path is not a dump folder.
        ValueError: There are fewer than two hosts.
    """
    folders = _folders([os.fspath(path) for path in paths])
    names = list(folders)
    if len(names) < 2:
        raise ValueError("at least two hosts are needed: pass their folders, or the folder that holds them")
    places = list(folders.values())
    if jobs > 1:
        with ProcessPoolExecutor(min(jobs, len(places))) as pool:
            found = list(pool.map(_read_host, places))
    else:
        found = [_read_host(place) for place in places]
    return _Comparison(dict(zip(names, found, strict=True)), folders).report()


def _folders(paths: Sequence[str]) -> dict[str, str]:
    """Folders by the name of their host."""
    if len(paths) == 1 and os.path.isdir(paths[0]):
        inner = sorted(entry.path for entry in os.scandir(paths[0]) if entry.is_dir())
        paths = inner or paths
    names = [os.path.basename(os.path.normpath(path)) for path in paths]
    counts = Counter(names)
    return {name if counts[name] == 1 else path: path for name, path in zip(names, paths, strict=True)}


def _read_host(place: str) -> list[_Compiled]:
    folder = open_folder(place)
    return [_compiled(one) for one in sorted(folder.compilations, key=lambda c: (c.folder, c.number))]


def _compiled(compilation: Compilation) -> _Compiled:
    try:
        before, after = compilation.before, compilation.after
        module = after or before
        is_local = module is not None and is_for_one_device(module)
        given = {**settings(compilation), **header_settings(compilation)}
        if compilation.chip is not None:
            given["chip"] = compilation.chip.name
        if not is_local:  # of one device each host has its own
            given.update(device_order(compilation))
        return _Compiled(
            compilation.name,
            compilation.number,
            is_local,
            fingerprint(before) if before is not None else None,
            fingerprint(after) if after is not None else None,
            tuple(sorted(given.items())),
            collective_order(after) if after is not None else (),
            elided=elided_constants(before) if before is not None else 0,
        )
    except (InputError, HloSyntaxError) as error:
        problem = brief(error)
        return _Compiled(compilation.name, compilation.number, False, None, None, (), (), problem)


class _Comparison:
    """Finds what differs, rule after rule; of one module and host the first rule that tells it apart speaks."""

    def __init__(self, found: Mapping[str, list[_Compiled]], folders: Mapping[str, str]) -> None:
        self._folders = folders
        self._opened: dict[tuple[Key, str], Compilation | None] = {}
        """Compilations of the module that is being compared, with the texts that were read of them."""
        self._hosts = list(found)
        self._of: dict[Key, dict[str, _Compiled]] = defaultdict(dict)
        self._orders: dict[str, list[Key]] = {}
        for host, compiled in found.items():
            counts: Counter[str] = Counter()
            order: list[Key] = []
            for one in compiled:
                key = one.name, counts[one.name]
                counts[one.name] += 1
                self._of[key][host] = one
                order.append(key)
            self._orders[host] = order

    def report(self) -> HostReport:
        found: list[tuple[Key, HostFinding]] = []
        for key, rows in self._of.items():
            if len(rows) < len(self._hosts):
                found.append((key, self._missing(key, rows)))
            if not all(one.is_local for one in rows.values()) or len(rows) == len(self._hosts):
                found += [(key, finding) for finding in self._differing(key, rows)]
                self._opened.clear()
        findings = self._causes_first(found)
        order = self._order()
        if order is not None:
            findings.append(order)
        findings = [
            attrs.evolve(finding, hosts=tuple(sorted(finding.hosts, key=self._hosts.index)))
            for finding in findings
        ]
        elided = sum(max(one.elided for one in rows.values()) for rows in self._of.values() if len(rows) > 1)
        return HostReport(tuple(self._hosts), len(self._of), tuple(findings), elided)

    def _causes_first(self, found: Sequence[tuple[Key, HostFinding]]) -> list[HostFinding]:
        """The worst first; but a module that hosts no longer reached is behind what differs in an earlier one."""
        places = {key: place for place, key in enumerate(self._of)}
        differing = [places[key] for key, finding in found if finding.kind in _CAUSES]
        first = min(differing, default=len(places))

        def rank(row: tuple[Key, HostFinding]) -> tuple[bool, int]:
            key, finding = row
            is_later = finding.kind == "missing" and places[key] > first and self._is_end(key)
            return is_later, _WORST.index(finding.kind)

        return [finding for _, finding in sorted(found, key=rank)]

    def _is_end(self, key: Key) -> bool:
        """True if the hosts without a module, fewer than those with it, compiled no other one after it would have come."""
        have = [host for host in self._hosts if host in self._of[key]]
        lack = [host for host in self._hosts if host not in self._of[key]]
        if len(lack) >= len(have):
            return False
        usual = self._orders[have[0]]
        later = set(usual[usual.index(key) :])
        return not any(later.intersection(self._orders[host]) for host in lack)

    def _missing(self, key: Key, rows: Mapping[str, _Compiled]) -> HostFinding:
        have = [host for host in self._hosts if host in rows]
        lack = [host for host in self._hosts if host not in rows]
        odd = tuple(have if len(have) <= len(lack) else lack)
        said = f"compiled on {len(have)} of {len(self._hosts)} hosts"
        if all(one.is_local for one in rows.values()):
            return HostFinding("local", key[0], odd, f"{said}; it runs on one device without collectives")
        if self._is_end(key):
            said += f"; {_named(lack)} compiled nothing from here on: it ended earlier, is waiting, or does not run it"
        waits = {
            True: "it has collectives, so it deadlocks if devices of several hosts take part",
            False: "it runs on several devices but has no collectives, so no host waits for another",
            None: "it runs on several devices; whether it has collectives is unknown without the final HLO",
        }
        return HostFinding("missing", key[0], odd, f"{said}; {waits[self._has_collectives(key)]}")

    def _has_collectives(self, key: Key) -> bool | None:
        answers = {one.has_collectives for one in self._of[key].values()}
        return True if True in answers else None if None in answers else False

    def _order(self) -> HostFinding | None:
        """Modules for several devices that all hosts have, in another order; first those with collectives."""
        shared = [
            key
            for key, rows in self._of.items()
            if len(rows) == len(self._hosts) and not all(one.is_local for one in rows.values())
        ]
        known = {key: self._has_collectives(key) for key in shared}
        meeting = [key for key in shared if known[key]]
        both = "both have collectives, so they deadlock if the hosts also run them in this order"
        rest = "this matters only if both have collectives, which is unknown without the final HLO"
        if None not in known.values():
            rest = "no host waits for another, since not both have collectives"
        return self._order_of(meeting, both) or self._order_of(shared, rest)

    def _order_of(self, keys: Collection[Key], consequence: str) -> HostFinding | None:
        kept = set(keys)
        orders = {host: tuple(key for key in order if key in kept) for host, order in self._orders.items()}
        split = _split(orders)
        if split is None:
            return None
        usual, odd = split
        place = next(
            i for i, (one, other) in enumerate(zip(usual, orders[odd[0]], strict=True)) if one != other
        )
        name, other = usual[place][0], orders[odd[0]][place][0]
        return HostFinding(
            "order", name, odd, f"{other} is compiled where others compile {name}; {consequence}"
        )

    def _differing(self, key: Key, rows: Mapping[str, _Compiled]) -> list[HostFinding]:
        """Findings of all rules: hosts that one rule tells apart are left out of the next, the others go on."""
        found: list[HostFinding] = []
        left = dict(rows)
        while len(left) > 1 and (findings := self._first_differing(key, left)):
            found += findings
            odd = {host for finding in findings for host in finding.hosts}
            if odd >= left.keys():
                break
            left = {host: one for host, one in left.items() if host not in odd}
        return found

    def _first_differing(self, key: Key, rows: Mapping[str, _Compiled]) -> list[HostFinding]:
        """Findings of the first rule that tells hosts apart."""
        name = key[0]
        if any(one.problem is not None for one in rows.values()):
            odd = tuple(host for host, one in rows.items() if one.problem is not None)
            return [HostFinding("unreadable", name, odd, str(rows[odd[0]].problem))]
        reference, odd = self._told_apart(rows, lambda one: one.before)
        if odd:
            return self._of_programs(key, reference, odd)
        reference, odd = self._told_apart(rows, lambda one: one.after is None)
        if odd:
            lacking = tuple(host for host, one in rows.items() if one.after is None)
            return [
                HostFinding(
                    "unfinished", name, lacking, "it has no final HLO: the compilation did not finish"
                )
            ]
        reference, odd = self._told_apart(rows, lambda one: one.settings)
        if odd:
            return [self._of_settings(key, reference, odd)]
        reference, odd = self._told_apart(rows, lambda one: one.meetings)
        if odd:
            return [self._of_collectives(key, reference, odd)]
        reference, odd = self._told_apart(rows, lambda one: one.after)
        return [self._first_instruction(key, reference, odd, is_final=True)] if odd else []

    def _of_programs(self, key: Key, reference: str, odd: tuple[str, ...]) -> list[HostFinding]:
        """Programs that differ before optimization, with the order of their collectives where it would hang."""
        release = self._release(key, reference, odd[0])
        early, late = (self._meeting(key, (reference, odd[0]), is_final) for is_final in (False, True))
        certain = next(
            (two for two in (late, early) if _parting(*two) is not None and _is_certain(*two)), None
        )
        if release is None and certain is not None:
            finding = self._first_instruction(key, reference, odd, is_final=False)
            deadlock = _meeting_finding(key[0], certain, (reference, odd[0]), odd)
            message = f"{deadlock.message}; {finding.message}"
            return [attrs.evolve(deadlock, message=message), finding]
        old, new = (self._module(key, host) for host in (reference, odd[0]))
        inner = None
        if old is not None and new is not None:
            if release is None:
                release = other_notation(old, new)
            is_same = is_same_computation(old, new)
            inner = (None, None) if is_same else first_difference(old, new, inside=True, left_out=NOTATION)
        finding = self._first_instruction(key, reference, odd, is_final=False)
        apart = _apart(late, (reference, odd[0]))
        waits = f"; as a result, {apart}, so they fail or hang" if apart is not None else ""
        if release is None:
            return [attrs.evolve(finding, message=finding.message + waits)]
        if inner is None:
            program = ""
        elif inner == (None, None):
            program = "; the program before optimization is the same, in different notation"
        else:
            first = operation_change(*inner, self._words(reference, odd))
            program = f"; the program before optimization differs too, first: {first}"
        return [
            attrs.evolve(
                finding,
                message=f"compiled by a different XLA or JAX release: {release[1]}, elsewhere {release[0]}{program}{waits}",
                setting="XLA",
                settings={"XLA": release},
            )
        ]

    def _of_settings(self, key: Key, reference: str, odd: tuple[str, ...]) -> HostFinding:
        rows = self._of[key]
        changes = changed_settings(dict(rows[reference].settings), dict(rows[odd[0]].settings))
        first = next(iter(changes))
        usual, own = (value if value is not None else "the default" for value in changes[first])
        more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
        if first == DEVICES:
            usual, own = (value if value is not None else "unknown" for value in changes[first])
            message = f"its device order differs: {own}, elsewhere {usual}{more}"
            message += ", so its collectives pair different devices" if self._has_collectives(key) else ""
        else:
            message = f"{first} is {own}, elsewhere {usual}{more}"
        apart = _apart((rows[reference].collectives, rows[odd[0]].collectives), (reference, odd[0]))
        message += f"; as a result, {apart}, so they fail or hang" if apart is not None else ""
        release = self._release(key, reference, odd[0])
        if release is not None:
            message = f"compiled by a different XLA release: {release[1]}, elsewhere {release[0]}; {message}"
        return HostFinding("options", key[0], odd, message, setting=first, settings=changes)

    def _of_collectives(self, key: Key, reference: str, odd: tuple[str, ...]) -> HostFinding:
        rows, two = self._of[key], (reference, odd[0])
        return _meeting_finding(key[0], (rows[two[0]].collectives, rows[two[1]].collectives), two, odd)

    def _meeting(self, key: Key, hosts: tuple[str, str], is_final: bool) -> _TwoOrders:
        """Collectives of two hosts: of the final modules, none where one is missing, or of those before optimization."""
        rows = [self._of[key][host] for host in hosts]
        if is_final:
            is_known = all(one.after is not None for one in rows)
            return (rows[0].collectives, rows[1].collectives) if is_known else ((), ())
        one, other = (
            collective_order(module) if module is not None else ()
            for module in (self._module(key, host) for host in hosts)
        )
        return one, other

    def _release(self, key: Key, reference: str, odd: str) -> tuple[str, str] | None:
        one, other = (self._compilation(key, host) for host in (reference, odd))
        return other_release(one, other) if one is not None and other is not None else None

    def _told_apart(
        self, rows: Mapping[str, _Compiled], ask: Callable[[_Compiled], Hashable]
    ) -> tuple[str, tuple[str, ...]]:
        """A host of the majority, else the first; and the odd ones, else none."""
        answers = {host: ask(rows[host]) for host in self._hosts if host in rows}
        split = _split(answers)
        if split is None:
            return self._hosts[0], ()
        usual, odd = split
        reference = next(host for host, answer in answers.items() if answer == usual)
        others = tuple(host for host in odd if answers[host] != usual)
        return reference, (*others, *(host for host in odd if host not in others))

    def _first_instruction(
        self, key: Key, reference: str, odd: tuple[str, ...], *, is_final: bool
    ) -> HostFinding:
        old, new = (self._module(key, host, is_final=is_final) for host in (reference, odd[0]))
        when = "only after optimization" if is_final else "before optimization"
        message = f"the program differs {when}{self._programs(key, {reference, *odd}, is_final)}"
        words = self._words(reference, odd)
        shown = None
        if old is not None and new is not None:
            one, other = first_difference(old, new)
            shown = one or other
            inner = first_difference(old, new, inside=True)
            changes = () if is_final else program_changes(old, new)
            around = [str(one) for one in changes if one.kind not in ("opcodes", "operations")]
            message += f"; compared with the others: {'; '.join(around)}" if around else ""
            message += f"; first: {operation_change(*inner, words)}" if inner != (None, None) else ""
        return HostFinding(
            "different",
            key[0],
            odd,
            message,
            shown.name if shown is not None else None,
            shown.opcode if shown is not None else None,
        )

    def _words(self, reference: str, odd: tuple[str, ...]) -> tuple[str, str, str]:
        """Words for an operation that differs: with the names of two hosts where no majority has it."""
        if reference not in odd:
            return "which only the others have", "which only it has", "{own}, elsewhere {usual}"
        return (
            f"which {reference} has and {odd[0]} lacks",
            f"which {odd[0]} has and {reference} lacks",
            f"{{own}} on {odd[0]}, {{usual}} on {reference}",
        )

    def _programs(self, key: Key, hosts: Collection[str], is_final: bool) -> str:
        """The number of programs of some hosts where there are more than two."""
        rows = [self._of[key][host] for host in hosts]
        count = len({one.after if is_final else one.before for one in rows})
        if count < 3:
            return ""
        own = ": each host has its own, as happens when it contains a process number, a seed or a hash order"
        return f" in {count} forms{own if count == len(rows) else ''}"

    def _module(self, key: Key, host: str, *, is_final: bool = False) -> hlo.Module | None:
        compilation = self._compilation(key, host)
        if compilation is None:
            return None
        return compilation.after if is_final else compilation.before

    def _compilation(self, key: Key, host: str) -> Compilation | None:
        if (key, host) not in self._opened:
            number = self._of[key][host].number
            every = open_folder(self._folders[host]).compilations
            found = (one for one in every if one.number == number and one.name == key[0])
            self._opened[key, host] = next(found, None)
        return self._opened[key, host]


_TwoOrders = tuple[Sequence[Collective], Sequence[Collective]]
"""The collectives of a host of the majority and of an odd one."""


def _apart(two: _TwoOrders, hosts: tuple[str, str]) -> str | None:
    """The first collectives that do not meet, in words; None if all do."""
    place = _parting(*two)
    if place is None:
        return None
    usual, own = (str(some[place]) if place < len(some) else "none" for some in two)
    return f"collective number {place + 1} in execution order is {own} on {hosts[1]}, {usual} on {hosts[0]}"


def _parting(usual: Sequence[Collective], own: Sequence[Collective]) -> int | None:
    for place, (one, other) in enumerate(itertools.zip_longest(usual, own)):
        if one is None or other is None or one.meeting != other.meeting:
            return place
    return None


def _is_certain(usual: Sequence[Collective], own: Sequence[Collective]) -> bool:
    """True unless only sizes or numbers of channels differ, as in a program for another batch."""
    groups = [[_partners(one) for one in some] for some in (usual, own)]
    shapes = [[shape for one in some for shape in _arrays(one)] for some in (usual, own)]
    is_permuted = shapes[0] != shapes[1] and Counter(shapes[0]) == Counter(shapes[1])
    return groups[0] != groups[1] or is_permuted


def _partners(one: Collective) -> Hashable:
    return one.kind, one.devices


_ARRAY = re.compile(r"\w+\[[\d,<=]*\]")


def _arrays(one: Collective) -> tuple[str, ...]:
    """The arrays that it sends, without layouts: a combined one has several."""
    return tuple(_ARRAY.findall(one.shape))


def _meeting_finding(name: str, two: _TwoOrders, hosts: tuple[str, str], odd: tuple[str, ...]) -> HostFinding:
    place = _parting(*two)
    assert place is not None
    named = two[0][place] if place < len(two[0]) else two[1][place]
    return HostFinding(
        "collectives",
        name,
        odd,
        f"deadlock: {_apart(two, hosts)}; each waits for a partner that never arrives",
        named.instruction,
        named.kind,
    )


def _named(hosts: Sequence[str]) -> str:
    left = len(hosts) - 3
    return ", ".join(hosts[:3]) + (f" and {left} more" if left > 0 else "")


def _split(answers: Mapping[str, T]) -> tuple[T, tuple[str, ...]] | None:
    """The answer of the majority and the hosts outside of it; without a majority the first answer and all hosts.

    None if all agree.
    """
    counts = Counter(answers.values())
    if len(counts) == 1:
        return None
    usual, count = counts.most_common(1)[0]
    if 2 * count > len(answers):
        return usual, tuple(host for host, answer in answers.items() if answer != usual)
    return next(iter(answers.values())), tuple(answers)

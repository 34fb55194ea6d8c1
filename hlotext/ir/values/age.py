"""Age of the XLA that wrote a text: the one notion for everything that differs between releases.

XLA's texts have no version number, but changes have dates, so an age is an interval of days that contains the date of the
source; `hlotext.analysis.age_of` finds it. Users may also give a day, or a release of jaxlib.
"""

from __future__ import annotations

import re
from datetime import date

import attrs

from hlotext.ir.values.value import Value

RELEASES: dict[str, tuple[date, date]] = {
    "0.4.35": (date(2024, 10, 4), date(2024, 11, 30)),
    "0.5.3": (date(2025, 2, 1), date(2025, 3, 31)),
    "0.6.2": (date(2025, 5, 16), date(2025, 6, 30)),
    "0.7.2": (date(2025, 7, 23), date(2025, 9, 22)),
    "0.8.3": (date(2025, 12, 2), date(2026, 2, 18)),
    "0.9.2": (date(2026, 3, 9), date(2026, 3, 27)),
    "0.10.2": (date(2026, 6, 14), date(2026, 6, 14)),
    "0.11.0": (date(2026, 6, 15), date(2026, 7, 26)),
    "0.11.1": (date(2026, 8, 6), date(2026, 8, 22)),
    "0.11.2": (date(2026, 8, 22), date(2026, 9, 17)),
    "0.12.0.1": (date(2026, 9, 17), date(2026, 11, 5)),
}
"""Releases of jaxlib that were tried, and the days between which their XLA was written, libtpu's included."""

_RELEASE = re.compile(r"v?(\d{1,4}(?:\.\d{1,4}){1,3})")


@attrs.frozen(repr=False)
class XlaAge(Value):
    """Age of an XLA version: an interval of dates, both ends inclusive, None for an open end."""

    since: date | None = None
    until: date | None = None
    marks: tuple[str, ...] = ()
    """Descriptions of the evidence; empty if there is none."""

    def has(self, change: date) -> bool:
        """Returns True if this XLA version may include a change that was made on a date.

        If the date is inside the interval, the newest version in it is assumed.
        """
        return self.until is None or self.until >= change

    @property
    def is_known(self) -> bool:
        """True if there is any evidence of the age."""
        return self.since is not None or self.until is not None

    def __str__(self) -> str:
        if self.since is not None and self.until is not None:
            if self.since == self.until:
                return f"XLA of {self.since}"
            return f"XLA of {self.since} to {self.until}"
        if self.since is not None:
            return f"XLA of {self.since} or later"
        return "XLA of any age" if self.until is None else f"XLA of {self.until} or before"


def as_age(age: XlaAge | date | str | None) -> XlaAge | None:
    """Converts an `age=` argument to an XlaAge: a date, an ISO date as text, or a jaxlib release ("0.12", "0.10.2").

    A prefix of several releases means the newest of them; an untested release is placed between its neighbors. An
    XlaAge is returned as it is, and None, which means that the age is to be inferred, as None. Raises ValueError for
    any other value.
    """
    if age is None or isinstance(age, XlaAge):
        return age
    if isinstance(age, date):
        day = date(age.year, age.month, age.day)
        return XlaAge(day, day, ("as given",))
    given: object = age  # a number, too, where nobody checks types
    text = given.strip() if isinstance(given, str) else ""
    if (match := _RELEASE.fullmatch(text)) is not None:
        return _of_release(match[1])
    try:
        return as_age(date.fromisoformat(text))
    except ValueError:
        pass
    raise ValueError(
        f"{age!r} is not an XLA age; use a jaxlib release such as 0.12 or 0.10.2, a date such as 2026-06-14, or an XlaAge"
    )


def _of_release(text: str) -> XlaAge:
    wanted = _numbers(text)
    known = sorted((_numbers(name), days) for name, days in RELEASES.items())
    marks = (f"jaxlib {text}, as given",)
    same = [days for numbers, days in known if numbers[: len(wanted)] == wanted]
    if same:
        return XlaAge(*same[-1], marks)
    before = [days for numbers, days in known if numbers < wanted]
    behind = [days for numbers, days in known if numbers > wanted]
    return XlaAge(before[-1][0] if before else None, behind[0][1] if behind else None, marks)


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))

"""Domains: borders inside a computation across which a property, such as the sharding, changes."""

from __future__ import annotations

import attrs

from hlotext.ir.sharding import Sharding
from hlotext.ir.value import Value


@attrs.frozen(repr=False)
class Domain(Value):
    """`domain=` (`DomainMetadata`): `{kind="sharding", entry={replicated}, exit={manual}}`."""

    kind: str
    """Always `sharding`; XLA has no other."""
    entry: Sharding
    """On the users' side."""
    exit: Sharding
    """On the operand's side."""

    def __str__(self) -> str:
        return f'{{kind="{self.kind}", entry={self.entry}, exit={self.exit}}}'

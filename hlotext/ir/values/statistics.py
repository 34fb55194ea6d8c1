"""Numbers that go with an instruction to be shown in a picture."""

from __future__ import annotations

import attrs

from hlotext.ir.values.text import braced, short_float
from hlotext.ir.values.value import Value


@attrs.frozen(repr=False)
class Statistic(Value):
    """A named number (`Statistic`)."""

    stat_name: str
    stat_val: float

    def __str__(self) -> str:
        return f"{self.stat_name}={short_float(self.stat_val)}"


@attrs.frozen(repr=False)
class Statistics(Value):
    """`statistics=` (`StatisticsViz`): numbers to show in visualizations, such as `{visualizing_index=0,count_nan=1}`."""

    stat_index_to_visualize: int = 0
    """Index of the statistic that the graph shows."""
    statistics: tuple[Statistic, ...] = ()

    def __str__(self) -> str:
        # Without numbers the index means nothing, and XLA prints no attribute.
        if not self.statistics:
            return "{}"
        return braced((f"visualizing_index={self.stat_index_to_visualize}", *self.statistics))

"""M103: a large result that could take the place of an argument."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import attrs

from hlotext.analysis import arrays_of, byte_text
from hlotext.lint.helpers import donors, size_of, unaliased_results
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class MissingDonation(Rule):
    code = "M103"
    name = "missing-donation"
    title = "a large result that could take the place of an argument"
    is_default = False
    needs_schedule = True

    min_bytes: int = 1 << 20
    """Bytes of the result from which on it is worth a finding."""

    def check_module(self, context: Context) -> Iterator[Report]:
        config = context.module.attributes.get("input_output_alias")
        aliased = (
            {(e.parameter_number, e.parameter_index) for e in config.entries} if config is not None else set()
        )
        given = {id(parameter) for parameter, _ in donors(context)}
        free = Counter(result.without_layout() for result in unaliased_results(context))
        for parameter in context.module.entry.parameters:
            for index, array in arrays_of(parameter.shape):
                size, plain = size_of(array), array.without_layout()
                if (
                    size < self.min_bytes
                    or (parameter.parameter_number, index) in aliased
                    or id(parameter) in given
                ):
                    continue
                if free[plain] > 0:
                    free[plain] -= 1
                    yield Report(
                        parameter,
                        f"a result of shape {plain} could take the {byte_text(size)} of this argument",
                        "donate the argument if the caller does not need it afterwards",
                        size,
                        str(plain),
                    )

"""Checks that compare collectives of a module with each other; those of single collectives are in `semantics/devices.py`."""

from __future__ import annotations

from hlotext.verify.findings import FindingCollector
from hlotext.verify.survey import Survey


def check_constrained(survey: Survey, findings: FindingCollector) -> None:
    """Checks that either all or no all-reduces constrain their layout (`VerifyLayoutConstrainedAllReduce`)."""
    if not survey.all_reduces:
        return
    first = survey.all_reduces[0]
    for other in survey.all_reduces[1:]:
        if bool(other.attributes.get("constrain_layout")) != bool(first.attributes.get("constrain_layout")):
            findings.at(
                other, "V508", f"constrain_layout differs from that of {first.name}", "constrain_layout",
                related=[("the first all-reduce", first)],
            )  # fmt: skip
            return

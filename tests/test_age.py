"""How old the XLA is that wrote a text: marks, and what users say."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from typing import Any

import pytest

import hlotext as hlo
from hlotext.analysis import XlaAge, age_for, age_of, as_age
from hlotext.ir.values.age import RELEASES
from tests.xla import installed_age

BODY = """HloModule m, is_scheduled=true

ENTRY %main (p: (f32[4], f32[4])) -> f32[4] {{
  %p = (f32[4]{{0}}, f32[4]{{0}}) parameter(0)
{lines}
}}
"""
WRITTEN = "  %a = f32[4]{0} get-tuple-element(%p), index=0\n  ROOT %b = f32[4]{0} negate(%a)"
COMPACT = "  ROOT %b = f32[4]{0} negate(%p#0)"
DUMPED = "dump/module_0001.m.cpu_after_optimizations.txt"


def parsed(lines: str, name: str = "<text>") -> hlo.Module:
    return hlo.parse(BODY.format(lines=lines), name=name)


def test_a_text_without_marks_is_of_any_age() -> None:
    age = age_of(parsed(WRITTEN))
    assert (age.since, age.until, age.marks, age.is_known) == (None, None, (), False)
    assert age.has(date(2030, 1, 1))  # the newest is taken


def test_marks_of_the_form_count_in_dumped_files_alone() -> None:
    age = age_of(parsed(WRITTEN, DUMPED))
    assert (age.since, age.until) == (date(2025, 3, 11), date(2026, 7, 12))
    assert age.marks == ("long form without operand shapes", "get-tuple-element written out")
    assert not age.has(date(2026, 8, 1))


def test_operands_with_paths_are_new_everywhere() -> None:
    assert age_of(parsed(COMPACT)).since == date(2026, 6, 16)


@pytest.mark.parametrize(
    ("tail", "since", "until"),
    [
        (', frontend_attributes={is_spmd_generated="true"}', date(2026, 6, 15), None),
        (', metadata={op_name="a is_spmd_generated=\\"true\\""}', None, None),
        (
            ', metadata={op_name="jit(f)/jit(main)/neg" source_file="a.py" source_line=1}',
            None,
            date(2025, 7, 22),
        ),
        (', metadata={op_name="jit(f)/neg" source_file="a.py" source_line=1}', None, date(2025, 12, 1)),
        (', metadata={op_name="neg" source_file="model.cc" source_line=1}', None, None),  # not of JAX
        (', metadata={op_name="jit(f)/neg" stack_frame_id=1}', date(2025, 12, 2), None),
        (', backend_config={"communication_domain":"1"}', date(2026, 8, 10), None),
        (', metadata={op_name="replica_groups=mesh[x]"}', None, None),
        (', metadata={op_name="a = b(%x#1"}', None, None),
    ],
)
def test_marks_stand_where_xla_writes_them(tail: str, since: date | None, until: date | None) -> None:
    age = age_of(
        parsed(f"  %a = f32[4]{{0}} get-tuple-element(%p), index=0\n  ROOT %b = f32[4]{{0}} negate(%a){tail}")
    )
    assert (age.since, age.until) == (since, until)


LOWERED = """HloModule jit_f{header}, frontend_attributes={{xla.sdy.meshes={{mesh = #sdy.mesh<["d"=2]>}}}}

ENTRY main.1 {{
  x.1 = f32[4]{{0}} parameter(0), frontend_attributes={{xla.sdy.sharding="#sdy.sharding<@mesh, [{{\\"d\\"}}]>"}}
  ROOT neg.1 = f32[4]{{0}} negate(x.1)
}}
"""


@pytest.mark.parametrize(
    ("header", "until"),
    [
        ("", None),  # `lower(...).as_text(dialect="hlo")` writes the same with 0.10 and with 0.12
        (", is_scheduled=true", date(2026, 9, 17)),
        (", num_partitions=2", date(2026, 9, 17)),
        (", allow_spmd_sharding_propagation_to_output={true}", date(2026, 9, 17)),
    ],
)
def test_shardings_of_a_lowered_text_have_one_form_at_all_times(header: str, until: date | None) -> None:
    age = age_of(hlo.parse(LOWERED.format(header=header)))
    assert (age.since, age.until, bool(age.marks)) == (None, until, until is not None)


@pytest.mark.xla
def test_what_jax_lowers_is_not_of_another_time() -> None:
    """Every text of a lowered program, with and without a mesh, allows for the release that wrote it."""
    release = installed_age()
    done = subprocess.run(
        [sys.executable, "-c", LOWERING], capture_output=True, text=True, timeout=300, check=True
    )
    texts = done.stdout.split("\f")
    assert len(texts) == 6
    for text in texts:
        age = age_of(hlo.parse(text))
        assert age.since is None or release.until is None or age.since <= release.until
        assert age.until is None or release.since is None or age.until >= release.since


LOWERING = """
import os
os.environ.update(JAX_PLATFORMS="cpu", XLA_FLAGS="--xla_force_host_platform_device_count=2")
import jax
import numpy as np

mesh = jax.sharding.Mesh(np.array(jax.devices()), ("d",))
split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))
texts = []
for sharding in (None, split):
    x = jax.ShapeDtypeStruct((8, 8), "float32", sharding=sharding)
    lowered = jax.jit(lambda x: (jax.numpy.sort(x @ x), x.sum())).lower(x)
    texts += [lowered.as_text(dialect="hlo", debug_info=told) for told in (False, True)]
    texts.append(lowered.compile().as_text())
print("\\f".join(texts), end="")
"""


def test_what_is_said_with_less_right_gives_way() -> None:
    """A program of today whose dump was written with get-tuple-elements in full."""
    lines = WRITTEN + ', backend_config={"communication_domain":"1"}'
    age = age_of(parsed(lines, DUMPED))
    assert (age.since, age.until) == (date(2026, 8, 10), None)
    assert "get-tuple-element written out" not in age.marks


def test_what_users_say() -> None:
    assert as_age(None) is None
    assert as_age(" v0.10.2 ") == XlaAge(date(2026, 6, 14), date(2026, 6, 14), ("jaxlib 0.10.2, as given",))
    for release, days in {
        "0.11.1.5": (RELEASES["0.11.1"][0], RELEASES["0.11.2"][1]),
        "0.12": RELEASES["0.12.0.1"],
        "1.0": (RELEASES["0.12.0.1"][0], None),
        "0.3": (None, RELEASES["0.4.35"][1]),
    }.items():
        found = as_age(release)
        assert found is not None
        assert (found.since, found.until) == days
    assert as_age("2026-06-14") == as_age(date(2026, 6, 14))
    age = XlaAge(date(2026, 1, 1), None, ("x",))
    assert as_age(age) is age
    assert age_for(parsed(WRITTEN, DUMPED), age) is age
    wrongs: list[Any] = ["", "new", "0.12rc1", "12", "2026-13-01", 0.12, ("0.12",)]
    for wrong in wrongs:
        with pytest.raises(ValueError, match="not an XLA age"):
            as_age(wrong)


def test_releases_follow_each_other() -> None:
    days = list(RELEASES.values())
    assert all(since <= until for since, until in days)
    assert days == sorted(days)

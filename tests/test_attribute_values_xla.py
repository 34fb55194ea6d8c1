"""Attributes as XLA itself reads and prints them, where jaxlib is installed; see tests/attribute_cases.py."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from random import Random
from typing import Any

import pytest

import hlotext as hlo
from hlotext.ir.values.replica_groups import ReplicaGroups
from hlotext.syntax.reading import terms
from tests.attribute_cases import BAD, CASES, GOOD, Case, canonical, read, text_of
from tests.xla import is_newest

_BODIES = """add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

step {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] add(a, b)
  ROOT d = (f32[], f32[]) tuple(c, c)
}

"""
_ENTRY = """ENTRY e {
  p = f32[4,4]{1,0} parameter(0)
  s = f32[] parameter(1)
  i = s32[4,4]{1,0} parameter(2)
  t = token[] after-all()
  u = (f32[4]{0}, f32[4]{0}) parameter(3)
  v = f32[4]{0} parameter(4)
  ROOT x = LINE
}
"""
_HEADER_ENTRY = """

ENTRY e {
  p = (f32[4]{0}, f32[4]{0}) parameter(0)
  a = f32[4]{0} get-tuple-element(p), index=0
  b = f32[4]{0} get-tuple-element(p), index=1
  ROOT x = (f32[4]{0}, f32[4]{0}) tuple(a, b)
}
"""

_DOT = "f32[4,4]{1,0} dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}, @"
_CONVOLUTION = "f32[4,4]{1,0} convolution(p, p), dim_labels=bf_io->bf, @"
_CUSTOM_CALL = 'f32[4,4]{1,0} custom-call(p, s), custom_call_target="c", @'
_GATHER = (
    "f32[4,4]{1,0} gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
    "index_vector_dim=1, slice_sizes={1,4}, @"
)
_SCATTER = (
    "f32[4,4]{1,0} scatter(p, i, p), update_window_dims={1}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add, @"
)
_RAGGED = (
    "f32[4,4]{1,0} ragged-dot(p, p, i), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
    "lhs_ragged_dims={0}, rhs_group_dims={0}, @"
)
_ALL_REDUCE = "f32[4,4]{1,0} all-reduce(p), channel_id=1, replica_groups={}, to_apply=add, @"
_SCAN = "(f32[4,4]{1,0}, f32[]) scan(p, s), dimensions={0}, num_carries=1, to_apply=step, @"
_SOLVE = "f32[4,4]{1,0} triangular-solve(p, p), @"

TEMPLATES = {
    "algorithm": _DOT,
    "api_version": _CUSTOM_CALL,
    "async_execution_thread": "((f32[], f32[]), f32[], s32[]) async-start(s, s), calls=add, @",
    "batch_group_count": _CONVOLUTION,
    "channel_id": _ALL_REDUCE,
    "collapsed_slice_dims": _GATHER,
    "constrain_layout": _ALL_REDUCE,
    "convolution_kind": _CONVOLUTION,
    "cross_program_prefetch_index": "(f32[4,4]{1,0}, f32[4,4]{1,0}, u32[]) copy-start(p), @",
    "custom-call": _CUSTOM_CALL,
    "custom_call_has_side_effect": _CUSTOM_CALL,
    "custom_call_target": _CUSTOM_CALL,
    "delta": "u64[4]{0} rng-get-and-update-state(), @",
    "dim_labels": _CONVOLUTION,
    "dimensions": "f32[4,4]{1,0} transpose(p), @",
    "direction": "pred[4,4]{1,0} compare(p, p), @",
    "distribution": "f32[4,4]{1,0} rng(s, s), @",
    "domain": "f32[4,4]{1,0} domain(p), @",
    "dynamic_slice_sizes": "f32[4,4]{1,0} dynamic-slice(p, s, s), @",
    "epsilon": "f32[4,4]{1,0} batch-norm-training(p, s, s), feature_index=0, @",
    "exponent_bits": "f32[4,4]{1,0} reduce-precision(p), mantissa_bits=1, @",
    "feature_group_count": _CONVOLUTION,
    "feature_index": "f32[4,4]{1,0} batch-norm-training(p, s, s), epsilon=1, @",
    "fft_length": "c64[4,4]{1,0} fft(p), fft_type=FFT, @",
    "fft_type": "c64[4,4]{1,0} fft(p), fft_length={4}, @",
    "index": "f32[4]{0} get-tuple-element(u), @",
    "index_vector_dim": _GATHER,
    "indices_are_sorted": _GATHER,
    "infeed_config": "(f32[4]{0}, token[]) infeed(t), @",
    "inferred_dimension": "f32[16]{0} reshape(p), @",
    "input_batching_dims": _SCATTER,
    "inserted_window_dims": _SCATTER,
    "iota_dimension": "s32[4,4]{1,0} iota(), @",
    "is_associative": _SCAN,
    "is_composite": "f32[] call(s, s), to_apply=add, @",
    "is_host_transfer": "(f32[4,4]{1,0}, u32[], token[]) send(p, t), channel_id=1, @",
    "is_reverse": _SCAN,
    "is_stable": "f32[4,4]{1,0} sort(p), dimensions={0}, to_apply=add, @",
    "k": "(f32[4,1]{1,0}, s32[4,1]{1,0}) topk(p), largest=true, @",
    "kind": "f32[] fusion(s, s), calls=add, @",
    "largest": "(f32[4,1]{1,0}, s32[4,1]{1,0}) topk(p), k=1, @",
    "left_side": _SOLVE,
    "lhs_batch_dims": _DOT,
    "lhs_contracting_dims": _DOT,
    "lhs_ragged_dims": _RAGGED,
    "lower": _SOLVE,
    "mantissa_bits": "f32[4,4]{1,0} reduce-precision(p), exponent_bits=1, @",
    "mode": _ALL_REDUCE,
    "num_carries": _SCAN,
    "offset_dims": _GATHER,
    "operand_batching_dims": _GATHER,
    "operand_layout_constraints": _CUSTOM_CALL,
    "operand_precision": _DOT,
    "outfeed_config": "token[] outfeed(p, t), @",
    "output_to_operand_aliasing": _CUSTOM_CALL,
    "padding": "f32[4,4]{1,0} pad(p, s), @",
    "padding_type": _CUSTOM_CALL,
    "parameter_replication": "(f32[4]{0}, f32[4]{0}) parameter(5), @",
    "replica_groups": _ALL_REDUCE,
    "result_accuracy": "f32[4,4]{1,0} exponential(p), @",
    "rhs_batch_dims": _DOT,
    "rhs_contracting_dims": _DOT,
    "rhs_group_dims": _RAGGED,
    "rng-bit-generator": "(u64[2]{0}, u32[8]{0}) rng-bit-generator(v), @",
    "scatter_dims_to_operand_dims": _SCATTER,
    "scatter_indices_batching_dims": _SCATTER,
    "schedule": _CUSTOM_CALL,
    "slice": "f32[4,4]{1,0} slice(p), @",
    "slice_sizes": _GATHER,
    "source_target_pairs": "f32[4,4]{1,0} collective-permute(p), @",
    "sparsity_config": _CONVOLUTION,
    "start_index_map": _GATHER,
    "start_indices_batching_dims": _GATHER,
    "transpose_a": _SOLVE,
    "tuple": "(f32[], f32[]) tuple(s, s), @",
    "type": "pred[4,4]{1,0} compare(p, p), direction=LT, @",
    "unique_indices": _SCATTER,
    "unit_diagonal": _SOLVE,
    "update_window_dims": _SCATTER,
    "use_global_device_ids": _ALL_REDUCE,
    "window": "f32[4,4]{1,0} reduce-window(p, s), to_apply=add, @",
}
"""For each attribute an op line that may have it, `@` where it comes; any other goes on an add."""

_ATTRIBUTE = re.compile(r", (?=[\w\-]+=|@)")

_WORKER = """
import json, os, sys
from jaxlib import _hlo

preset, texts = json.load(sys.stdin)
options = getattr(_hlo.HloPrintOptions, preset)() if preset else _hlo.HloPrintOptions()
for text in texts:
    receiver, sender = os.pipe()
    child = os.fork()
    if not child:  # XLA aborts the process on some texts
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            answer = _hlo.hlo_module_from_text(text).to_string(options)
        except Exception:
            answer = None
        os.write(sender, json.dumps(answer).encode())
        os._exit(0)
    os.close(sender)
    with os.fdopen(receiver) as stream:
        print(stream.read() or "null")
    os.waitpid(child, 0)
"""


def module_text(case: Case) -> str:
    """A module that XLA can read, with the case's attribute in it and no other of that name."""
    name = case["text"].partition("=")[0].strip()
    if case["rule"] == "header_attribute":
        return f"HloModule m, {case['text']}{_HEADER_ENTRY}"
    line = TEMPLATES.get(case.get("template", name), "f32[4,4]{1,0} add(p, p), @")
    parts = [part for part in _ATTRIBUTE.split(line) if not part.startswith(f"{name}=")]
    return f"HloModule m\n\n{_BODIES}{_ENTRY}".replace("LINE", ", ".join(parts)).replace("@", case["text"])


def ask_xla(texts: list[str], preset: str = "") -> list[str | None]:
    """What XLA prints for each module, None where it does not take it; in a process of its own."""
    pytest.importorskip("jaxlib")
    run = subprocess.run(
        [sys.executable, "-c", _WORKER],
        input=json.dumps([preset, texts]), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.fixture(scope="module")
def xla_answers() -> dict[str, str | None]:
    """What XLA prints for each case's module."""
    texts = [module_text(case.values[0]) for case in CASES if "reference" not in case.values[0]]
    return dict(zip(texts, ask_xla(texts), strict=True))


def _asked_of_xla(case: Case) -> bool:
    return case.get("xla", True) is not False and "reference" not in case


def expected_of(case: Case, *, newest: bool) -> Any:
    """The attribute as XLA prints it: "" for nothing, False where it refuses the text or was not asked."""
    old = case.get("xla", case.get("canonical", case.get("prints", case["text"])))
    return case.get("newest", old) if newest else old


@pytest.mark.xla
@pytest.mark.parametrize(
    "case",
    [
        case
        for case in GOOD
        if _asked_of_xla(case.values[0]) or case.values[0].get("newest", False) is not False
    ],
)
def test_xla_prints_the_same(case: Case, xla_answers: dict[str, str | None]) -> None:
    """XLA's text of the attribute is the canonical form's, or what the case says of the release that is installed."""
    answer = xla_answers[module_text(case)]
    name = case["text"].partition("=")[0]
    expected = expected_of(case, newest=is_newest())
    if expected is False:
        assert answer is None
        return
    assert answer is not None
    if expected:
        assert any(f" {expected}{follower}" in answer for follower in (",", "\n"))
    else:
        line = next(line for line in answer.splitlines() if "ROOT %x" in line or line.startswith("HloModule"))
        assert f" {name}=" not in line


@pytest.mark.parametrize("case", [case for case in GOOD if "newest" in case.values[0]])
@pytest.mark.parametrize("age", ["0.10.2", "0.12"])
def test_each_release_has_its_own_words(case: Case, age: str) -> None:
    """What a release is said to print is what `reread` gives for its age."""
    expected = expected_of(case, newest=age == "0.12")
    if expected is False:
        return
    text = hlo.reread(hlo.parse(module_text(case)), age=age).to_text()
    assert f" {expected}" in text if expected else f" {case['text'].partition('=')[0]}=" not in text


@pytest.mark.xla
@pytest.mark.parametrize("case", [case for case in BAD if _asked_of_xla(case.values[0])])
def test_xla_refuses_the_same(case: Case, xla_answers: dict[str, str | None]) -> None:
    """What is an error here is one for XLA."""
    assert xla_answers[module_text(case)] is None


def random_iota(random: Random, sizes: list[int]) -> str:
    """`<=[...]T(...)` for as many devices as the sizes multiply to, cut at random places."""
    reshape = [size for size in sizes if random.random() < 0.7]
    reshape.append(math.prod(sizes) // math.prod(reshape))
    random.shuffle(reshape)
    order = random.sample(range(len(reshape)), len(reshape))
    numbers = f"[{','.join(map(str, reshape))}]"
    return numbers if len(order) == 1 else f"{numbers}T({','.join(map(str, order))})"


def random_sharding(random: Random) -> str:
    """A tiled sharding with subgroups, as an iota or as a list of devices."""
    types = random.choices(["manual", "replicated", "unreduced"], k=random.randint(0, 3))
    sizes = [random.choice([1, 2, 2, 3, 4]) for _ in range(random.randint(1, 3) + len(types))]
    devices = list(range(math.prod(sizes)))
    if len(devices) < 2 or random.random() < 0.7:
        text = f"<={random_iota(random, sizes)}"
    else:
        random.shuffle(devices)
        text = ",".join(map(str, devices))
    last = f" last_tile_dims={{{','.join(types)}}}" if types else ""
    return f"sharding={{devices=[{','.join(map(str, sizes))}]{text}{last}}}"


def random_groups(random: Random) -> str:
    """Replica groups as an iota, or along some axes of a mesh, whole or in part."""
    sizes = random.choices([2, 3, 4, 8], k=random.randint(1, 3))
    if random.random() < 0.3:
        count = math.prod(random.sample(sizes, random.randint(0, len(sizes))))
        return f"replica_groups=[{count},{math.prod(sizes) // count}]<={random_iota(random, sizes)}"
    axes = []
    for name, size in zip("xyz", sizes, strict=False):
        if size == 8 and random.random() < 0.7:
            parts = random.sample([f"'{name}':({place})2" for place in (1, 2, 4)], random.choice([1, 2]))
            axes += parts
        elif random.random() < 0.7 or not axes:
            axes.append(f"'{name}'")
    mesh = ",".join(f"'{name}'={size}" for name, size in zip("xyz", sizes, strict=False))
    ids = f", device_ids=({random_iota(random, sizes)})" if random.random() < 0.5 else ""
    return f"replica_groups=mesh[{mesh}]{ids} {{{','.join(random.sample(axes, len(axes)))}}}"


@pytest.mark.xla
def test_xla_simplifies_random_shardings_the_same() -> None:
    """The canonical form of any tiled sharding is XLA's, however its subgroups are mixed."""
    random = Random(7)
    cases: list[Case] = [{"rule": "attribute", "text": random_sharding(random)} for _ in range(500)]
    for case, answer in zip(cases, ask_xla([module_text(case) for case in cases]), strict=True):
        assert answer is not None, case["text"]
        told = answer.replace(' metadata={op_type="sdy::reduction_op" op_name="SUM"}', "")  # since 0.11
        assert f" {text_of('sharding', canonical(read(case).value))}\n" in told, case["text"]


@pytest.mark.xla
def test_xla_writes_out_random_replica_groups_the_same() -> None:
    """The groups of any iota and any mesh are those of XLA's fingerprint, in the same order."""
    random = Random(7)
    cases: list[Case] = [{"rule": "attribute", "text": random_groups(random)} for _ in range(300)]
    answers = ask_xla([module_text(case) for case in cases], "fingerprint")
    assert sum(answer is not None for answer in answers) > 250
    for case, answer in zip(cases, answers, strict=True):
        if answer is not None:  # XLA aborts on parts of an axis that run on
            groups = read(case).value
            assert isinstance(groups, ReplicaGroups)
            assert f" replica_groups={groups.full_list()}," in answer, case["text"]


@pytest.mark.xla
@pytest.mark.parametrize(
    ("shape", "op"), [("()", "tuple()"), ("(f32[], (f32[], ()))", "tuple(s, y)"), ("token[]", "after-all()")]
)
def test_xla_repeats_a_sharding_for_each_leaf(shape: str, op: str) -> None:
    """A single sharding of a tuple is that of each of its leaves."""
    entry = _ENTRY.replace("  ROOT", "  z = () tuple()\n  y = (f32[], ()) tuple(s, z)\n  ROOT")
    line = f"{shape} {op}, sharding={{manual}}"
    (answer,) = ask_xla([f"HloModule m\n\n{entry.replace('LINE', line)}"])
    assert answer is not None
    expected = terms.read("sharding", "{manual}").for_shape(terms.read("shape", shape))
    assert f" sharding={expected}\n" in answer

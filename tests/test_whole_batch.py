"""Batches that a lookup makes whole: `hlotext.dumps.collectives.whole_batch`, and what C119 and the causes say of them."""

from __future__ import annotations

import hlotext as hlo
from hlotext import dumps, lint
from hlotext.dumps.collectives.whole_batch import whole_batches
from hlotext.syntax.source.inputs import read_source
from tests import support

COMPILED = support.DATA / "lint" / "compiled" / "waste_lookup_loses_batch.cpu_8.after_optimizations.txt.xz"
FIRES, SILENT = hlo.parse_all((support.DATA / "lint" / "C119.txt").read_text())


def test_the_dimension_is_followed_through_loops_and_fusions() -> None:
    """Compiled by XLA 0.12 with two loops: the forward and the backward pass."""
    module = hlo.parse(read_source(COMPILED).text)
    (batch,) = whole_batches(module)
    assert (batch.argument.metadata or hlo.Metadata()).op_name == "tokens"
    assert (batch.devices, batch.dimension) == (8, 0)
    assert len(batch.collectives) == 4
    assert any(one.computation is not module.entry for one in batch.collectives)


def test_an_exchange_after_the_lookup_splits_the_batch_again() -> None:
    assert len(whole_batches(FIRES)) == 1
    assert whole_batches(SILENT) == ()


def test_positions_that_meet_are_no_batch() -> None:
    """The scores of attention have the dimension twice: a sequence that is gathered has to be whole."""
    text = str(FIRES).replace(
        "ROOT z = f32[32,512,1024]{2,1,0} tanh(y)",
        "ROOT z = f32[512,32,512,32]{3,2,1,0} dot(y, y), lhs_contracting_dims={2}, rhs_contracting_dims={2}",
    )
    text = text.replace("(z", "(z").replace(
        "f32[512,32,512,32]{3,2,1,0} dot", "f32[32,512,32,512]{3,2,1,0} dot"
    )
    assert whole_batches(hlo.parse(text)) == ()


def test_a_program_that_gathers_by_itself_means_it() -> None:
    text = str(FIRES).replace(
        "dimensions={0}\n  x", 'dimensions={0}, metadata={op_name="jit(f)/shard_map/all_gather"}\n  x'
    )
    assert "shard_map" in text
    assert whole_batches(hlo.parse(text)) == ()


def test_many_weights_are_more_to_send_than_a_small_batch() -> None:
    """With a hundredth of the tokens the sums of activations are the lesser traffic, and the compiler is right."""
    small = str(FIRES).replace("32,512", "32,4").replace("8,512", "8,4")
    assert {one.code for one in _said(FIRES)} == {"C119"}
    assert not _said(hlo.parse(small))


def test_the_edit_is_named_where_the_text_has_the_axis() -> None:
    named = str(FIRES).replace(
        "replica_groups={{0,1,2,3}}, dimensions", "replica_groups=mesh['fsdp'=4] {'fsdp'}, dimensions"
    )
    (said,) = _said(hlo.parse(named))
    assert "x = with_sharding_constraint(x, P('fsdp', None, None)) right after the lookup" in said.help


def test_the_lookup_is_the_cause_of_the_collectives_that_come_of_it() -> None:
    causes = dumps.collectives.of_module(FIRES)
    told = [one.why for one in causes if one.communication.kind == "all-reduce"]
    assert told
    assert all("the sharding of the table" in why for why in told)
    assert not any(reason.scheme for one in causes for reason in one.reasons)
    assert "table" not in "".join(one.why for one in dumps.collectives.of_module(SILENT))


def _said(module: hlo.Module) -> list[lint.Finding]:
    return list(lint.run(module, lint.Config(select=("C119",), **support.SAY_ALL)))


def test_training_sends_the_weights_for_both_passes_and_the_sum() -> None:
    """1.48 MiB of table and weights, and 3 MiB of rows, to three others: once where the module trains nothing."""
    text = str(FIRES)
    updated = text.replace(
        "ROOT z = f32[32,512,1024]{2,1,0} tanh(y)",
        "z = f32[32,512,1024]{2,1,0} tanh(y)\n  new = f32[64,1024]{1,0} add(weights, weights)\n"
        "  ROOT both = (f32[32,512,1024]{2,1,0}, f32[64,1024]{1,0}) tuple(z, new)",
    )
    backward = text.replace("tanh(y)", 'tanh(y), metadata={op_name="jit(f)/transpose(jvp(f))/tanh"}')
    for one, sent in ((text, "4.48 MiB"), (updated, "11.9 MiB"), (backward, "11.9 MiB")):
        (said,) = _said(hlo.parse(one))
        assert f"sends at most {sent}" in said.help

"""Why a jitted program communicates, asked without a folder, and suggestions that are compiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.support import ROOT

pytest.importorskip("jax")

_PROGRAM = """
import json
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from hlotext.interop.jax import explain

mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("dp", "tp"))

def arg(shape, *spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))

def mlp(x, params):
    return jnp.tanh(x @ params["w1"]) @ params["w2"]

def say(found):
    return {
        "why": [one.why for one in found.collectives],
        "sent": found.figures.traffic,
        "trials": [
            (t.suggestion.name, t.suggestion.spec, t.is_spared, t.after and t.after.traffic, t.problem) for t in found.trials
        ],
        "text": str(found),
    }

x = arg((64, 128), "dp", None)
params = {"w1": arg((128, 256), None, "tp"), "w2": arg((256, 128), None, "tp")}
answers = {"mlp": say(explain(mlp, x, params, try_suggestions=True, chip="v5e"))}
lowered = jax.jit(mlp).lower(x, params)
answers["lowered"] = say(explain(lowered))
try:
    explain(lowered, try_suggestions=True)
except ValueError as error:
    answers["refused"] = str(error)
exp = jax.jit(lambda x: jnp.exp(x), out_shardings=NamedSharding(mesh, P("dp", None)))
answers["result"] = say(explain(exp, arg((64, 128), "dp", "tp"), try_suggestions=True))
jax.config.update("jax_use_shardy_partitioner", False)
answers["gspmd"] = say(explain(mlp, x, params))
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """What a process with eight devices is told."""
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "PYTHONPATH": str(ROOT),
    }
    run = subprocess.run(
        [sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


def test_a_function_is_explained(answers: dict[str, Any]) -> None:
    (why,) = answers["mlp"]["why"]
    assert "needs the result of tanh" in why
    assert why.endswith("as P('dp', None), but it is P('dp', 'tp')")
    assert answers["mlp"]["sent"] == 24576
    assert answers["lowered"]["why"] == answers["mlp"]["why"]
    assert answers["lowered"]["trials"] == []
    assert "not a Lowered" in answers["refused"]


def test_suggestions_are_proved(answers: dict[str, Any]) -> None:
    (name, spec, is_spared, after, problem) = answers["mlp"]["trials"][0]
    assert (name, spec, is_spared, after, problem) == ("params['w1']", "P(None, None)", True, 0, "")
    assert "sends 24,576 -> 0 bytes" in answers["mlp"]["text"]
    assert "minimum time" in answers["mlp"]["text"]


def test_results_are_tried(answers: dict[str, Any]) -> None:
    assert [trial[:4] for trial in answers["result"]["trials"]] == [
        ["result[0]", "P('dp', 'tp')", True, 0],
        ["x", "P('dp', None)", True, 0],
    ]


def test_the_mesh_is_that_of_the_arguments(answers: dict[str, Any]) -> None:
    assert answers["gspmd"]["why"][0].endswith("as P('dp', None), but it is P('dp', 'tp')")

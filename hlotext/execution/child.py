"""The process that compiles and runs: reads jobs line by line, says which one it tries first, and may die of it.

Started by path, so that nothing of hlotext is imported: `python child.py`. A job is a line of JSON with `number`, `text` (a
file of plain HLO), `inputs` (files of arrays, one for each run) and `devices`. Each array of a job for several devices has
their parts stacked along its first dimension; so have results.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import jax
import ml_dtypes
import numpy as np
from jaxlib import _hlo, _jax, xla_client


def read(path: str) -> list[Any]:
    """Returns the arrays of a file: a line of JSON with types and sizes, then their bytes."""
    with open(path, "rb") as file:
        head = json.loads(file.readline())
        found = []
        for name, sizes in head:
            type_ = np.dtype(getattr(ml_dtypes, name, name))
            count = int(np.prod(sizes, dtype=np.int64))
            found.append(np.frombuffer(file.read(count * type_.itemsize), type_).reshape(sizes))
    return found


def write(path: str, arrays: list[Any]) -> None:
    """Writes arrays to a file in the format that `read` reads."""
    head = [[array.dtype.name, list(array.shape)] for array in arrays]
    with open(path, "wb") as file:
        file.write(json.dumps(head).encode() + b"\n")
        for array in arrays:
            file.write(np.ascontiguousarray(array).tobytes())


def program(path: str) -> str:
    """Returns the program of an HLO text file as StableHLO, which the client compiles."""
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        module = _hlo.hlo_module_from_text(file.read())
    computation = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
    found: str = _jax.mlir.xla_computation_to_mlir_module(computation)
    return found


def options(devices: int) -> Any:
    """Returns compile options in which each device is a replica."""
    found = xla_client.CompileOptions()
    found.num_replicas = devices
    found.num_partitions = 1
    found.device_assignment = xla_client.DeviceAssignment.create(np.arange(devices).reshape(devices, 1))
    return found


def run(executable: Any, arrays: list[Any], devices: list[Any]) -> list[Any]:
    """Executes a program on the devices and returns its results as numpy arrays.

    With several devices, the first dimension of each argument and result is the device.
    """
    if len(devices) == 1:
        buffers = [jax.device_put(array, devices[0]) for array in arrays]
        return [np.asarray(result) for result in executable.execute(buffers)]
    mesh = jax.sharding.Mesh(np.array(devices), ("d",))
    everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    sharded = [
        # The parts are not the same, but so they come to their devices.
        jax.make_array_from_single_device_arrays(
            array.shape[1:], everywhere, [jax.device_put(p, d) for p, d in zip(array, devices, strict=True)]
        )
        for array in arrays
    ]
    parts = executable.execute_sharded(sharded).disassemble_into_single_device_arrays()
    return [np.stack([np.asarray(one) for one in of_all]) for of_all in parts]


def work(job: dict[str, Any]) -> dict[str, Any]:
    """Compiles a job's program and runs it on each of its inputs. Returns the output files and the seconds of each run."""
    devices = jax.devices("cpu")[: job["devices"]]
    loaded = devices[0].client.compile_and_load(
        program(job["text"]), _jax.DeviceList(tuple(devices)), options(len(devices))
    )
    seconds, outputs = [], []
    for path in job["inputs"]:
        arrays = read(path)
        start = time.perf_counter()
        results = run(loaded, arrays, devices)
        seconds.append(time.perf_counter() - start)
        outputs.append(f"{path}.{job['number']}.out")
        write(outputs[-1], results)
    return {"outputs": outputs, "seconds": seconds}


def main() -> None:
    """Reads jobs from standard input, one JSON object per line, and answers each in the same form until the input ends."""
    jax.config.update("jax_enable_x64", True)
    for line in sys.stdin:
        job = json.loads(line)
        print(json.dumps({"tries": job["number"]}), flush=True)
        try:
            answer = work(job)
        except Exception as error:
            answer = {"error": str(error).strip() or type(error).__name__}
        print(json.dumps({"number": job["number"], **answer}), flush=True)


if __name__ == "__main__":
    main()

"""Read-only facts about modules: call graph and execution counts, communication, memory.

Nothing here changes a module. Facts are computed on first access and cached until the module is edited.
"""

from typing import TYPE_CHECKING

from hlotext.analysis.call_graph import CallEdge, CallGraph, call_graph
from hlotext.analysis.census import Census, census
from hlotext.analysis.loops import Loop, invariant_instructions, loops
from hlotext.analysis.scopes import Phase, Scope, Scopes, places, scopes
from hlotext.analysis.trip_count import most_trips, trip_count
from hlotext.ir.doors import door
from hlotext.ir.values.age import XlaAge, as_age

if TYPE_CHECKING:
    from hlotext.analysis.age import age_for, age_of
    from hlotext.analysis.axes import FoundMesh, MeshSource, axes_of, mesh_of
    from hlotext.analysis.backend import Backend, backend_of, is_optimized
    from hlotext.analysis.chip_choice import ChipChoice, choose_chip
    from hlotext.analysis.communication import Communication, Interconnect, communications
    from hlotext.analysis.devices import Devices, Mode, devices_of, joined_devices, shardings_of
    from hlotext.analysis.facts import fact
    from hlotext.analysis.inheritance import MetadataSource, inherited
    from hlotext.analysis.meshes import DeviceMesh, parse_mesh
    from hlotext.analysis.origins import Origins, SourceLocation, causing_frame, causing_frames
    from hlotext.analysis.shards import (
        Shard,
        argument_shards,
        is_partitioned,
        largest_shards,
        result_shards,
        shards_of,
    )
    from hlotext.analysis.sizes import (
        Total,
        array_bytes,
        arrays_of,
        byte_text,
        memory_space,
        total_of,
        written_arrays,
        written_bytes,
    )
    from hlotext.analysis.summary import Summary, summarize
else:
    __getattr__ = door(
        __name__,
        age=("age_for", "age_of"),
        axes=("FoundMesh", "MeshSource", "axes_of", "mesh_of"),
        backend=("Backend", "backend_of", "is_optimized"),
        chip_choice=("ChipChoice", "choose_chip"),
        communication=("Communication", "Interconnect", "communications"),
        devices=("Devices", "Mode", "devices_of", "joined_devices", "shardings_of"),
        facts=("fact",),
        inheritance=("MetadataSource", "inherited"),
        meshes=("DeviceMesh", "parse_mesh"),
        origins=("Origins", "SourceLocation", "causing_frame", "causing_frames"),
        shards=("Shard", "argument_shards", "is_partitioned", "largest_shards", "result_shards", "shards_of"),
        sizes=(
            "Total",
            "array_bytes",
            "arrays_of",
            "byte_text",
            "memory_space",
            "total_of",
            "written_arrays",
            "written_bytes",
        ),
        summary=("Summary", "summarize"),
    )

__all__ = [
    "Backend",
    "CallEdge",
    "CallGraph",
    "Census",
    "ChipChoice",
    "Communication",
    "DeviceMesh",
    "Devices",
    "FoundMesh",
    "Interconnect",
    "Loop",
    "MeshSource",
    "MetadataSource",
    "Mode",
    "Origins",
    "Phase",
    "Scope",
    "Scopes",
    "Shard",
    "SourceLocation",
    "Summary",
    "Total",
    "XlaAge",
    "age_for",
    "age_of",
    "argument_shards",
    "array_bytes",
    "arrays_of",
    "as_age",
    "axes_of",
    "backend_of",
    "byte_text",
    "call_graph",
    "causing_frame",
    "causing_frames",
    "census",
    "choose_chip",
    "communications",
    "devices_of",
    "fact",
    "inherited",
    "invariant_instructions",
    "is_optimized",
    "is_partitioned",
    "joined_devices",
    "largest_shards",
    "loops",
    "memory_space",
    "mesh_of",
    "most_trips",
    "parse_mesh",
    "places",
    "result_shards",
    "scopes",
    "shardings_of",
    "shards_of",
    "summarize",
    "total_of",
    "trip_count",
    "written_arrays",
    "written_bytes",
]

"""Read-only facts about modules: call graph, execution counts, communication, sharding, source locations.

Facts are computed on first access and cached until the module is edited.
"""

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.analysis.age import age_for, age_of
    from hlotext.analysis.array_origins import ArrayOrigin, array_origin
    from hlotext.analysis.axes import FoundMesh, MeshSource, axes_of, mesh_of
    from hlotext.analysis.backend import Backend, backend_of, is_optimized
    from hlotext.analysis.call_graph import CallEdge, CallGraph, call_graph
    from hlotext.analysis.census import Census, census
    from hlotext.analysis.chip_choice import ChipChoice, chip_or_default, choose_chip, other_platform
    from hlotext.analysis.communication import Communication, Interconnect, communications
    from hlotext.analysis.devices import (
        CollectiveGroupMode,
        Devices,
        devices_of,
        participant_groups,
        shardings_of,
    )
    from hlotext.analysis.facts import fact
    from hlotext.analysis.loops import Loop, invariant_instructions, loops
    from hlotext.analysis.meshes import DeviceMesh, parse_mesh
    from hlotext.analysis.metadata_propagation import MetadataSource, propagated
    from hlotext.analysis.origins import (
        SourceLocation,
        SourceLocations,
        responsible_frame,
        responsible_frames,
    )
    from hlotext.analysis.scopes import Phase, Scope, Scopes, called_lines, scopes, source_locations
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
        shown_bytes,
        total_of,
        written_arrays,
        written_bytes,
    )
    from hlotext.analysis.summary import Summary, summarize
    from hlotext.analysis.trip_count import most_trips, trip_count
    from hlotext.ir.values.age import XlaAge, as_age
else:
    __getattr__ = lazy_submodules(
        __name__,
        age=("XlaAge", "age_for", "age_of", "as_age"),
        array_origins=("ArrayOrigin", "array_origin"),
        axes=("FoundMesh", "MeshSource", "axes_of", "mesh_of"),
        backend=("Backend", "backend_of", "is_optimized"),
        call_graph=("CallEdge", "CallGraph", "call_graph"),
        census=("Census", "census"),
        chip_choice=("ChipChoice", "chip_or_default", "choose_chip", "other_platform"),
        communication=("Communication", "Interconnect", "communications"),
        devices=("Devices", "CollectiveGroupMode", "devices_of", "participant_groups", "shardings_of"),
        facts=("fact",),
        metadata_propagation=("MetadataSource", "propagated"),
        loops=("Loop", "invariant_instructions", "loops"),
        meshes=("DeviceMesh", "parse_mesh"),
        origins=("SourceLocations", "SourceLocation", "responsible_frame", "responsible_frames"),
        scopes=("Phase", "Scope", "Scopes", "called_lines", "scopes", "source_locations"),
        shards=("Shard", "argument_shards", "is_partitioned", "largest_shards", "result_shards", "shards_of"),
        sizes=(
            "Total",
            "array_bytes",
            "arrays_of",
            "byte_text",
            "memory_space",
            "shown_bytes",
            "total_of",
            "written_arrays",
            "written_bytes",
        ),
        summary=("Summary", "summarize"),
        trip_count=("most_trips", "trip_count"),
    )

__all__ = [
    "ArrayOrigin",
    "Backend",
    "CallEdge",
    "CallGraph",
    "Census",
    "ChipChoice",
    "CollectiveGroupMode",
    "Communication",
    "DeviceMesh",
    "Devices",
    "FoundMesh",
    "Interconnect",
    "Loop",
    "MeshSource",
    "MetadataSource",
    "Phase",
    "Scope",
    "Scopes",
    "Shard",
    "SourceLocation",
    "SourceLocations",
    "Summary",
    "Total",
    "XlaAge",
    "age_for",
    "age_of",
    "argument_shards",
    "array_bytes",
    "array_origin",
    "arrays_of",
    "as_age",
    "axes_of",
    "backend_of",
    "byte_text",
    "call_graph",
    "called_lines",
    "census",
    "chip_or_default",
    "choose_chip",
    "communications",
    "devices_of",
    "fact",
    "invariant_instructions",
    "is_optimized",
    "is_partitioned",
    "largest_shards",
    "loops",
    "memory_space",
    "mesh_of",
    "most_trips",
    "other_platform",
    "parse_mesh",
    "participant_groups",
    "propagated",
    "responsible_frame",
    "responsible_frames",
    "result_shards",
    "scopes",
    "shardings_of",
    "shards_of",
    "shown_bytes",
    "source_locations",
    "summarize",
    "total_of",
    "trip_count",
    "written_arrays",
    "written_bytes",
]

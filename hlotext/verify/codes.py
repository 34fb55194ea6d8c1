"""Every code of the verifier: its severity, and what is wrong in one line. Each has a page, `pages/V101.md` and so on."""

from __future__ import annotations

from hlotext.findings.codes import Code
from hlotext.findings.errors import Severity

_E, _W, _N = Severity.ERROR, Severity.WARNING, Severity.NOTE

_ROWS: tuple[tuple[str, Severity, str], ...] = (
    # Shapes and types
    ("V101", _E, "a result shape that is not what operands and attributes give"),
    ("V102", _E, "operands that do not fit the operation, or one another"),
    ("V103", _E, "an attribute that does not fit the operands"),
    ("V104", _E, "dimension numbers that do not fit the operands of a dot, convolution, gather or scatter"),
    ("V105", _E, "a called computation that takes or gives something else than its caller"),
    ("V106", _E, "floats of different precision where they may not mix"),
    ("V107", _N, "a dimension without a bound"),
    ("V108", _E, "a shape that is too large to exist"),
    ("V109", _E, "a literal that does not have the shape of its constant"),
    ("V110", _E, "a comparison type that does not fit the compared elements"),
    ("V111", _W, "a dimension that is dynamic on one side only"),
    ("V112", _E, "a buffer where none may be, or that two operations write"),
    ("V113", _E, "a composite call whose frontend attributes do not say what it stands for"),
    ("V114", _E, "a custom call that XLA knows, with another signature than XLA knows"),
    ("V115", _W, "an entry computation that takes a buffer"),
    ("V116", _E, "an operand that nothing takes"),
    # Layouts and memory
    ("V201", _E, "a layout that is no permutation of the dimensions"),
    ("V202", _E, "tiles, padding or splits that make no layout"),
    ("V203", _E, "what is left of the layout of a sparse array"),
    ("V204", _E, "elements that do not fit into the bits that the layout gives them"),
    ("V205", _E, "a value that is passed on with another layout"),
    ("V206", _E, "an instruction that changes the layout and may not"),
    ("V207", _E, "a bitcast between different numbers of bytes"),
    ("V208", _E, "a move between host and device memory that does more than move"),
    ("V209", _W, "a computation on host memory that does not run on the host"),
    ("V210", _E, "operands of a custom call in other layouts than it demands"),
    ("V211", _W, "narrow elements that are not packed although the module is scheduled"),
    # The graph
    ("V301", _E, "an operand from another computation"),
    ("V302", _E, "instructions that need one another's results"),
    ("V303", _E, "a use before the definition"),
    ("V304", _E, "a control dependency that cannot be kept"),
    ("V305", _E, "a computation that calls itself"),
    ("V306", _E, "a fusion's computation that something else calls too"),
    ("V307", _E, "a fusion's root that is used inside the fusion"),
    ("V308", _E, "an instruction in a fusion that nothing uses"),
    ("V309", _N, "a computation that nothing calls"),
    ("V310", _E, "a called computation on another execution thread"),
    ("V311", _E, "nodes that do not belong to the module"),
    ("V312", _E, "parameter numbers that are not 0, 1, 2, ..."),
    ("V313", _E, "an entry computation that something calls"),
    # Asynchronous operations and channels
    ("V401", _E, "an asynchronous operation that is not finished exactly once"),
    ("V402", _E, "a done that finishes something else than its start"),
    ("V403", _E, "the state of an asynchronous operation used as data"),
    ("V404", _E, "an asynchronous computation that is more than one operation"),
    ("V405", _E, "an asynchronous operation on another thread than its computation"),
    ("V406", _E, "the two halves of a transfer that differ"),
    ("V407", _E, "host transfers of one channel that differ"),
    ("V408", _E, "a channel id that is not positive"),
    # Devices
    ("V501", _E, "a device that stands in more than one place of the replica groups"),
    ("V502", _E, "a replica group without devices"),
    ("V503", _E, "replica groups of different sizes"),
    ("V504", _E, "replica groups that do not hold exactly the devices of the module"),
    ("V505", _E, "replica groups that are missing"),
    ("V506", _E, "a device that sends or receives twice"),
    ("V507", _E, "a source or target that is no device of the module"),
    ("V508", _W, "all-reduces of which some constrain their layout and some do not"),
    ("V509", _E, "a sharding that does not have the structure of the shape"),
    ("V510", _E, "a tile assignment of another rank than the array"),
    ("V511", _E, "a sharding over other devices than the module has"),
    ("V512", _E, "mesh axes that do not exist, do not divide, or overlap"),
    ("V513", _E, "shardings that change on the way into or out of a loop or branch"),
    ("V514", _E, "offsets of a collective-permute that do not fit its buffers"),
    ("V515", _N, "a sharding over several times the module's devices"),
    # The header, aliasing and donation
    ("V601", _E, "an alias to a parameter, or a part of one, that does not exist"),
    ("V602", _E, "an alias of something that is no array"),
    ("V603", _E, "an alias between buffers that differ"),
    ("V604", _E, "a parameter that two outputs alias"),
    ("V605", _E, "a donated parameter, or a part of one, that does not exist or is no array"),
    ("V606", _E, "a parameter that is both aliased and donated"),
    ("V607", _E, "an entry_computation_layout that contradicts the entry computation"),
    ("V608", _E, "an aliasing of operands and result that names what is not there"),
    ("V609", _E, "an operand and a result that share a buffer and differ"),
    # Where instructions come from
    ("V701", _E, "a stack frame that does not exist"),
    ("V702", _E, "a row of the stack-frame tables that refers to a missing row"),
    ("V703", _E, "an original value that does not have the structure of the shape"),
)

CODES: dict[str, Code] = {
    name: Code(name, severity, title, "hlotext.verify") for name, severity, title in _ROWS
}
"""Every code by its name, in order."""

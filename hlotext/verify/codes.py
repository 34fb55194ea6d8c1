"""Every code of the verifier: its severity, and what is wrong in one line. Each has a page, `pages/V101.md` and so on."""

from __future__ import annotations

from hlotext.findings.codes import Code
from hlotext.findings.errors import Severity
from hlotext.semantics.problems import MILD

_ROWS: tuple[tuple[str, str], ...] = (
    # Shapes and types
    ("V101", "a result shape that is not what operands and attributes give"),
    ("V102", "operands that do not fit the operation, or one another"),
    ("V103", "an attribute that does not fit the operands"),
    ("V104", "dimension numbers that do not fit the operands of a dot, convolution, gather or scatter"),
    ("V105", "a called computation that takes or gives something else than its caller"),
    ("V106", "floats of different precision where they may not mix"),
    ("V107", "a dimension without a bound"),
    ("V108", "a shape that is too large to exist"),
    ("V109", "a literal that does not have the shape of its constant"),
    ("V110", "a comparison type that does not fit the compared elements"),
    ("V111", "a dimension that is dynamic on one side only"),
    ("V112", "a buffer where none may be, or that two operations write"),
    ("V113", "a composite call whose frontend attributes do not say what it stands for"),
    ("V114", "a custom call that XLA knows, with another signature than XLA knows"),
    ("V115", "an entry computation that takes a buffer"),
    ("V116", "an operand that nothing takes"),
    # Layouts and memory
    ("V201", "a layout that is no permutation of the dimensions"),
    ("V202", "tiles, padding or splits that make no layout"),
    ("V203", "a layout with leftovers of sparse arrays"),
    ("V204", "elements that do not fit into the bits that the layout gives them"),
    ("V205", "a value that is passed on with another layout"),
    ("V206", "an instruction that changes the layout and may not"),
    ("V207", "a bitcast between different numbers of bytes"),
    ("V208", "a transfer between host and device memory that changes the array"),
    ("V209", "a computation on host memory that does not run on the host"),
    ("V210", "operands of a custom call in other layouts than it demands"),
    ("V211", "narrow elements that are not packed although the module is scheduled"),
    # The graph
    ("V301", "an operand from another computation"),
    ("V302", "instructions that need one another's results"),
    ("V303", "a use before the definition"),
    ("V304", "a control dependency that cannot be kept"),
    ("V305", "a computation that calls itself"),
    ("V306", "a fusion's computation that something else calls too"),
    ("V307", "a fusion's root that is used inside the fusion"),
    ("V308", "an instruction in a fusion that nothing uses"),
    ("V309", "a computation that nothing calls"),
    ("V310", "a called computation on another execution thread"),
    ("V311", "nodes that do not belong to the module"),
    ("V312", "parameter numbers that are not 0, 1, 2, ..."),
    ("V313", "an entry computation that something calls"),
    # Asynchronous operations and channels
    ("V401", "an asynchronous operation that is not finished exactly once"),
    ("V402", "a done that finishes something else than its start"),
    ("V403", "the state of an asynchronous operation used as data"),
    ("V404", "an asynchronous computation that is more than one operation"),
    ("V405", "an asynchronous operation on another thread than its computation"),
    ("V406", "the two halves of a transfer that differ"),
    ("V407", "host transfers of one channel that differ"),
    ("V408", "a channel id that is not positive"),
    # Devices
    ("V501", "a device that stands in more than one place of the replica groups"),
    ("V502", "a replica group without devices"),
    ("V503", "replica groups of different sizes"),
    ("V504", "replica groups that do not hold exactly the devices of the module"),
    ("V505", "replica groups that are missing"),
    ("V506", "a device that sends or receives twice"),
    ("V507", "a source or target that is no device of the module"),
    ("V508", "all-reduces of which some constrain their layout and some do not"),
    ("V509", "a sharding that does not have the structure of the shape"),
    ("V510", "a tile assignment of another rank than the array"),
    ("V511", "a sharding over other devices than the module has"),
    ("V512", "mesh axes that do not exist, do not divide, or overlap"),
    ("V513", "shardings that change on the way into or out of a loop or branch"),
    ("V514", "offsets of a collective-permute that do not fit its buffers"),
    ("V515", "a sharding over several times the module's devices"),
    # The header, aliasing and donation
    ("V601", "an alias to a parameter, or a part of one, that does not exist"),
    ("V602", "an alias of something that is no array"),
    ("V603", "an alias between buffers that differ"),
    ("V604", "a parameter that two outputs alias"),
    ("V605", "a donated parameter, or a part of one, that does not exist or is no array"),
    ("V606", "a parameter that is both aliased and donated"),
    ("V607", "an entry_computation_layout that contradicts the entry computation"),
    ("V608", "an aliasing of operands and result that names what is not there"),
    ("V609", "an operand and a result that share a buffer and differ"),
    # Where instructions come from
    ("V701", "a stack frame that does not exist"),
    ("V702", "a row of the stack-frame tables that refers to a missing row"),
    ("V703", "an original value that does not have the structure of the shape"),
)

CODES: dict[str, Code] = {
    name: Code(name, MILD.get(name, Severity.ERROR), title, "hlotext.verify") for name, title in _ROWS
}
"""Every code by its name, in order."""

"""Every code of the verifier: its severity, and what is wrong in one line. Each has a page, `pages/V101.md` and so on."""

from __future__ import annotations

from hlotext.findings.codes import Code
from hlotext.findings.errors import Severity
from hlotext.semantics.problems import MILD

_ROWS: tuple[tuple[str, str], ...] = (
    # Shapes and types
    ("V101", "result shape does not match the inferred shape"),
    ("V102", "operands are incompatible with the operation or with each other"),
    ("V103", "attribute is incompatible with the operands"),
    ("V104", "invalid dimension numbers of a dot, convolution, gather or scatter"),
    ("V105", "signature of a called computation does not match its caller"),
    ("V106", "mixed floating-point precision where it is not allowed"),
    ("V107", "unbounded dynamic dimension"),
    ("V108", "shape size overflows"),
    ("V109", "literal shape does not match its constant"),
    ("V110", "comparison type does not match the compared elements"),
    ("V111", "dimension is dynamic on one side only"),
    ("V112", "buffer-typed value used where it is not allowed, or written twice"),
    ("V113", "composite call with invalid frontend attributes"),
    ("V114", "wrong signature of a custom call that XLA defines"),
    ("V115", "entry parameter of buffer type"),
    ("V116", "operand without a matching parameter"),
    # Layouts and memory
    ("V201", "layout is not a permutation of the dimensions"),
    ("V202", "invalid tiles, padding or splits in a layout"),
    ("V203", "layout with fields of sparse arrays"),
    ("V204", "element size in bits of the layout is too small"),
    ("V205", "forwarded value changes its layout"),
    ("V206", "instruction changes the layout where it must not"),
    ("V207", "bitcast between shapes of different byte size"),
    ("V208", "transfer between host and device memory changes the array"),
    ("V209", "computation on host memory that does not run on the host"),
    ("V210", "operand layout does not match the custom call's constraint"),
    ("V211", "sub-byte elements not packed in a scheduled module"),
    # The graph
    ("V301", "operand from another computation"),
    ("V302", "cyclic dependency between instructions"),
    ("V303", "operand used before its definition"),
    ("V304", "control dependency that cannot be satisfied"),
    ("V305", "recursive computation"),
    ("V306", "fusion computation with another caller"),
    ("V307", "root of a fusion used inside the fusion"),
    ("V308", "unused instruction in a fusion"),
    ("V309", "computation without a caller"),
    ("V310", "called computation on another execution thread"),
    ("V311", "node that does not belong to the module"),
    ("V312", "parameter numbers are not 0, 1, 2, ..."),
    ("V313", "entry computation called from inside the module"),
    # Asynchronous operations and channels
    ("V401", "asynchronous start without exactly one done"),
    ("V402", "done does not match its start"),
    ("V403", "state of an asynchronous operation used as data"),
    ("V404", "asynchronous computation with more than one operation"),
    ("V405", "execution thread of an async op differs from its computation's"),
    ("V406", "send or recv does not match its done"),
    ("V407", "different host transfers on one channel"),
    ("V408", "channel id is not positive"),
    # Devices
    ("V501", "device listed more than once in the replica groups"),
    ("V502", "empty replica group"),
    ("V503", "replica groups of different sizes"),
    ("V504", "replica groups do not cover exactly the devices of the module"),
    ("V505", "missing replica groups"),
    ("V506", "device sends or receives twice"),
    ("V507", "source or target is not a device of the module"),
    ("V508", "constrain_layout set on some all-reduces only"),
    ("V509", "sharding does not match the tuple structure of the shape"),
    ("V510", "rank of the tile assignment does not match the array"),
    ("V511", "sharding over devices that the module does not have"),
    ("V512", "mesh axes that are missing, do not divide, or overlap"),
    ("V513", "sharding changes across a loop or branch boundary"),
    ("V514", "collective-permute offsets do not match its buffers"),
    ("V515", "sharding over a multiple of the module's devices"),
    # The header, aliasing and donation
    ("V601", "alias to a missing parameter or element"),
    ("V602", "alias of a value that is not an array"),
    ("V603", "alias between incompatible buffers"),
    ("V604", "parameter aliased by two outputs"),
    ("V605", "donated parameter or element is missing or not an array"),
    ("V606", "parameter both aliased and donated"),
    ("V607", "entry_computation_layout does not match the entry computation"),
    ("V608", "output_to_operand_aliasing refers to a missing operand or element"),
    ("V609", "aliased operand and result differ in shape"),
    # Where instructions come from
    ("V701", "missing stack frame"),
    ("V702", "stack-frame table refers to a missing row"),
    ("V703", "original value does not match the structure of the shape"),
)

CODES: dict[str, Code] = {
    name: Code(name, MILD.get(name, Severity.ERROR), title, "hlotext.verify") for name, title in _ROWS
}
"""Every code by its name, in order."""

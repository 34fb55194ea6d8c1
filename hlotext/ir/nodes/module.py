"""Modules: what one HLO text holds."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, MutableMapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NoReturn

import attrs

from hlotext.ir import gc_control
from hlotext.ir.errors import EditError
from hlotext.ir.foreign_names import text_formatted, with_foreign_names
from hlotext.ir.nodes import edit_backend, printing
from hlotext.ir.nodes.bound_methods import Method
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Form, Instruction
from hlotext.ir.nodes.methods import ModuleMethods
from hlotext.ir.nodes.node_list import ComputationList
from hlotext.ir.short_names import Abbreviated
from hlotext.ir.spelling import UnknownNameError, attribute_error, bare_name, unknown
from hlotext.ir.tables.opcodes import CALLS_NOTHING
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.value import mimebundle

if TYPE_CHECKING:
    from hlotext.ir.nodes.naming import NameUniquer
    from hlotext.ir.nodes.operand_index import OperandIndex
    from hlotext.ir.nodes.order import Order
    from hlotext.ir.nodes.record import EditRecord, Listener
    from hlotext.ir.nodes.source import Source
    from hlotext.ir.values.frames import StackFrameIndex
    from hlotext.ir.values.print_options import PrintOptions

ENTRY_LAYOUT = "entry_computation_layout"


class _Instructions(itertools.chain[Instruction]):
    """Instructions one after the other, each once; what lists do is answered with `list()`."""

    def __len__(self) -> NoReturn:
        raise TypeError(
            "instructions() yields one at a time and has no len(); use len(list(module.instructions()))"
        )

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, index: object) -> NoReturn:
        use = (
            f"module.instruction({index!r}) finds one by name"
            if isinstance(index, str)
            else f"use list(module.instructions())[{index!r}]"
        )
        raise TypeError(f"instructions() yields one at a time; {use}")


class ModuleAttributes(MutableMapping[str, Any]):
    """Mutable mapping of the attributes of a module's header. Setting or deleting one edits the header, or raises
    EditError.
    """

    __slots__ = ("_module",)

    def __init__(self, module: Module) -> None:
        self._module = module

    def __getitem__(self, name: str) -> Any:
        try:
            return self._module._attributes[name]
        except KeyError:
            raise unknown("attribute", name, self._module._attributes.keys) from None

    def __setitem__(self, name: str, value: Any) -> None:
        edit_backend.backend.set_header(self._module, name, value)

    def __delitem__(self, name: str) -> None:
        if name not in self._module._attributes:
            raise unknown("attribute", name, self._module._attributes.keys)
        edit_backend.backend.remove_header(self._module, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._module._attributes)

    def __len__(self) -> int:
        return len(self._module._attributes)

    def __getattr__(self, name: str) -> NoReturn:
        raise attribute_error("module", name, self._module._attributes)

    def __repr__(self) -> str:
        return repr(self._module._attributes)


@with_foreign_names
@attrs.define(eq=False, repr=False)
class Module(ModuleMethods, Abbreviated):
    """An HLO module. Mutable and compared by identity; `str()` is the source text except for modified lines."""

    _name: str
    _attributes: dict[str, Any] = attrs.field(factory=dict)
    _computations: list[Computation] = attrs.field(factory=list)
    _entry: Computation | None = None
    _stack_frames: StackFrameIndex | None = None
    """None if the text has no tables and `stack_frames` was not accessed."""
    _source: Source | None = None
    _start: int = 0
    _header_end: int = 0
    """Offset of the end of the header and its tables, before the first computation."""
    _end: int = 0
    _tables_start: int | None = None
    """Offset of the tables, including preceding blanks; they end at `_header_end`. None if there are none."""
    _header_start: int = -1
    """Offset of the word HloModule; negative for text without a header."""
    _has_config: bool = True
    _is_guess: bool = False
    """True if `parse_tolerant` could not read the header of the module or of a computation: the structure is a guess."""
    _parts: list[tuple[str, str, Shape | Literal | int | dict[str, Any], bool]] = attrs.field(factory=list)
    """Parts of op lines, each once and in the order in which it was first read: its text, the opcode on the line, the
    value (the shape, whose text goes on to the opcode, the literal or number in the parentheses, the attributes), and
    whether XLA's default text of the value is known to be this one."""
    _removed: list[Computation] = attrs.field(factory=list)
    """Removed computations, whose text is still in the source."""
    _is_modified: bool = False
    _is_header_modified: bool = False
    _has_new_tables: bool = False
    """True once stack frames other than those in the text were set."""
    _revision: int = 0
    _journal: Any = None
    """Undo log of the edit backend during an edit; None between edits."""
    _listeners: tuple[Listener, ...] = ()
    _mixes_precisions: bool | None = None
    """True if there are tiled layouts, so that precisions may mix; None until the edit backend needs it."""
    _wide: tuple[tuple[Instruction, ...], OperandIndex] | None = None
    """Operands of the last edited instruction with many operands, and an index of their positions."""
    _strict_facts: Any = None
    """Facts by which the edit backend checks instructions, and the header attributes and tables they are derived from."""
    _memories: tuple[bool, bool] | None = None
    """True if there are values of buffer type, and values in host memory; None until the edit backend needs it."""
    _surveyed: dict[Computation, Any] | None = None
    """Verifier's survey of each computation that was not edited since."""
    _callers: dict[Computation, dict[Instruction, None]] | None = None
    _order: Order[Computation] | None = None
    _by_name: tuple[int, dict[str, Instruction | Computation]] | None = None
    _instruction_names: NameUniquer | None = None
    _computation_names: NameUniquer | None = None
    _carried: bytes = b""
    """Serialized proto fields that a module cannot represent; written back by `to_proto`."""
    _stored: tuple[str, ...] = ()
    """Names of the computations in the order of the proto that was read, if it differs; `to_proto` restores it."""
    _stored_bodies: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Names of computations, with their instructions ordered by the ids of the proto that was read, if instructions that
    call others have another order: XLA's order of computations follows the ids."""
    _facts: tuple[int, dict[Any, Any]] | None = None
    """Facts computed by `hlotext.analysis`, by name and arguments, with the revision for which they hold."""

    @property
    def name(self) -> str:
        """The name in the header; for text without a header, the name that XLA would generate.

        Setting it raises EditError for an invalid name.
        """
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        edit_backend.backend.rename_module(self, name)

    @property
    def start(self) -> int:
        """Offset of the module's first character in the text of `source`; meaningless if `source` is None."""
        return self._start

    @property
    def has_config(self) -> bool:
        """False if the module was read from a proto without XLA's config, which numbers of devices in the header are of."""
        return self._has_config

    @property
    def attributes(self) -> ModuleAttributes:
        """The typed attributes of the header, by name, in text order."""
        return ModuleAttributes(self)

    @property
    def source(self) -> Source | None:
        """The text that the module was parsed from, or None if it was built or read from a proto."""
        return self._source

    @property
    def is_modified(self) -> bool:
        """True if any part of the module was edited."""
        return self._is_modified

    @property
    def is_header_modified(self) -> bool:
        """True if the header line was edited."""
        return self._is_header_modified

    @property
    def revision(self) -> int:
        """Counter that increases with every edit, for caches of derived facts."""
        return self._revision

    @property
    def computations(self) -> tuple[Computation, ...]:
        """All computations in text order; inline bodies come before the computation that contains them."""
        return ComputationList(self._computations)

    @property
    def entry(self) -> Computation:
        """The computation marked ENTRY, or else the last computation. Raises ValueError if there are no computations."""
        if self._entry is not None:
            return self._entry
        if not self._computations:
            raise ValueError(f"module {self._name} has no computations, so it has no entry")
        return self._computations[-1]

    @property
    def op_line(self) -> Instruction | None:
        """Root of a module that was parsed from a single op line and still consists of it; otherwise None."""
        entry = self.entry
        *parameters, root = entry._instructions or (None,)
        if not entry._is_sugared or root is None or root._start < 0 or self.is_header_modified:
            return None
        if entry.root is not root or entry._name != "_" or entry._execution_thread != "main":
            return None
        if any(
            computation is not entry and not computation.is_printed_inline
            for computation in self._computations
        ):
            return None
        if len(self._computations) > 1 and any(p._is_modified for p in parameters):
            return None  # what the line says of them is printed anew, and with it the bodies inside
        taken = list(dict.fromkeys(root._operands))
        if parameters != taken or any(p._form is not Form.IMPLICIT or p._attributes for p in parameters):
            return None
        return root if [p.parameter_number for p in parameters] == list(range(len(taken))) else None

    @property
    def stack_frames(self) -> StackFrameIndex:
        """The stack-frame tables between the header and the first computation; empty if absent."""
        if self._stack_frames is None:
            from hlotext.ir.values.frames import StackFrameIndex  # small texts have no tables

            self._stack_frames = StackFrameIndex()
        return self._stack_frames

    @stack_frames.setter
    def stack_frames(self, stack_frames: StackFrameIndex) -> None:
        edit_backend.backend.set_stack_frames(self, stack_frames)

    @property
    def is_scheduled(self) -> bool:
        """True if the order of the instructions is the execution order."""
        return self._attributes.get("is_scheduled") is True

    @Method("module.instruction({})", "[i for i in module.instructions() if i.opcode == 'dot'] chooses some")
    def instructions(self) -> Iterator[Instruction]:
        """Yields all instructions of all computations, in text order."""
        return _Instructions.from_iterable(computation._instructions for computation in self._computations)

    def walk(
        self, among: Iterable[Computation] | None = None, *, only_callers: bool = False
    ) -> Iterator[Computation]:
        """Yields computations one at a time, for analyses that do not keep references to instructions.

        For a lazily loaded file (`load`), computations parsed along the way are unloaded from time to time, so that
        memory stays bounded. Names, numbers, frozen values and computations may be kept, but the instructions of a
        computation that is accessed again are new objects. Edited computations are never unloaded.

        Args:
            among: The computations to visit; None visits all.
            only_callers: Skip computations that call nothing, if that is known without parsing them.
        """
        found = self._computations if among is None else among
        return iter(tuple(found)) if self._source is None else self._source.walk(found, only_callers)

    def find_all(self, name: str) -> Iterator[Instruction | Computation]:
        """Yields all instructions, then all computations, with a name (`%` optional).

        In a lazily loaded file only computations that may contain the name are parsed.
        """
        name = name.removeprefix("%")
        computations = self._computations
        for computation in (
            computations if self._source is None else self._source.defining(computations, name)
        ):
            yield from (i for i in computation._instructions if i._name == name)
        yield from (computation for computation in computations if computation._name == name)

    def find(self, name: str) -> Instruction | Computation | None:
        """Returns the instruction or computation with a name (`%` optional), or None if there is none.

        Instructions come before computations, and earlier ones in the text before later ones.
        """
        if self._by_name is None or self._by_name[0] != self._revision:
            names: dict[str, Instruction | Computation] = {}
            for instruction in self.instructions():
                names.setdefault(instruction.name, instruction)
            for computation in self._computations:
                names.setdefault(computation.name, computation)
            self._by_name = self._revision, names
        return self._by_name[1].get(bare_name(name, "list(module.instructions())"))

    def __getitem__(self, name: object) -> NoReturn:
        """Raises TypeError naming the methods: one name may be that of an instruction and of a computation."""
        if isinstance(name, str):
            use = f"module.instruction({name!r}) or module.computation({name!r})"
        else:
            use = "module.computations, module.instructions() or module.find(name)"
        raise TypeError(f"a Module has no items; use {use}")

    def instruction(self, name: str) -> Instruction:
        """Returns the first instruction in text order with this name (`%` optional). Raises KeyError if there is none."""
        found = self.find(name)
        if isinstance(found, Instruction):
            return found
        raise UnknownNameError(
            "instruction", bare_name(name), lambda: [one.name for one in self.instructions()]
        )

    def computation(self, name: str) -> Computation:
        """Returns the computation with this name (`%` optional). Raises KeyError if there is none."""
        name = bare_name(name, "module.computations", self._computations)
        for computation in self._computations:
            if computation._name == name:
                return computation
        raise UnknownNameError("computation", name, lambda: [one.name for one in self._computations])

    def callers_of(self, computation: Computation) -> tuple[Instruction, ...]:
        """Returns the instructions that call a computation, in text order."""
        found = self.calls_of(computation)
        if len(found) < 2:
            return tuple(found)
        order = self.order
        return tuple(sorted(found, key=lambda i: (order[i.computation], i.computation.order[i])))  # type: ignore[index,union-attr]

    def calls_of(self, computation: Computation) -> Collection[Instruction]:
        """Returns the instructions that call a computation, without duplicates and in no particular order.

        Cheaper than `callers_of`.
        """
        if self._callers is None:
            self._callers = {}
            for one in self._computations:
                for instruction in [i for i in one._instructions if i._head.opcode not in CALLS_NOTHING]:
                    self._add_call_edge(instruction)
        return self._callers.get(computation, {}).keys()

    def _add_call_edge(self, instruction: Instruction) -> None:
        """Remembers an instruction of the module as a caller; edits say so."""
        if self._callers is not None:
            for callee in instruction.called_computations:
                self._callers.setdefault(callee, {})[instruction] = None

    def _remove_call_edge(self, instruction: Instruction) -> None:
        """Forgets an instruction as a caller, before it changes or goes."""
        if self._callers is not None:
            for callee in instruction.called_computations:
                self._callers.get(callee, {}).pop(instruction, None)

    def materialize(self) -> Module:
        """Parses everything that is read lazily, and returns the module.

        Does nothing unless the module was loaded lazily (see `load`). Raises HloSyntaxError for invalid HLO in a
        computation that had not been parsed, and InputError if the file was modified since.
        """
        if self._source is not None:
            with gc_control.gc_paused(collect_first=False):
                self._source.read_all(self._computations)
        return self

    # ---- editing

    @property
    def instruction_names(self) -> NameUniquer:
        """Generator of instruction names that are unique in the module: `module.instruction_names.unique("add")`."""
        if self._instruction_names is None:
            from hlotext.ir.nodes.naming import NameUniquer  # only edits need it

            names = [i._name for c in self._computations for i in c._instructions]
            self._instruction_names = NameUniquer(names)
        return self._instruction_names

    @property
    def computation_names(self) -> NameUniquer:
        """Generator of computation names that are unique in the module: `module.computation_names.unique("body")`."""
        if self._computation_names is None:
            from hlotext.ir.nodes.naming import NameUniquer

            self._computation_names = NameUniquer(c._name for c in self._computations)
        return self._computation_names

    def add(self, computation: Computation, before: Computation | None = None) -> Computation:
        """Inserts a new computation at the end, or before another computation, and returns it.

        Raises EditError if the name is taken, or if it calls a computation that is not in the module.
        """
        edit_backend.backend.add_computation(self, computation, before)
        return computation

    @property
    def order(self) -> Order[Computation]:
        """Order of the computations: `order[a] < order[b]` compares two positions in constant time.

        The numbers ascend with gaps; `order.index(a)` is the index in `computations`.
        """
        if self._order is None:
            from hlotext.ir.nodes.order import Order

            self._order = Order(self._computations)
        return self._order

    def remove(self, computation: Computation) -> None:
        """Removes a computation. Raises EditError if it is the entry, has callers, or is not in the module."""
        self.remove_all([computation])

    def remove_all(self, computations: Iterable[Computation]) -> None:
        """Removes computations that are called only by each other. Raises EditError as `remove` does."""
        edit_backend.backend.remove_computations(self, computations)

    def set_entry(self, computation: Computation) -> None:
        """Makes a computation the entry. Raises EditError if it has callers or is not in the module."""
        edit_backend.backend.set_entry(self, computation)

    def rename(self, node: Computation | Instruction, name: str) -> None:
        """Renames a computation or an instruction and updates every line that refers to it.

        Raises EditError if the name is taken or invalid, or if the node is not in the module.
        """
        computation = node if isinstance(node, Computation) else node.computation
        if computation is None or computation.module is not self:
            raise EditError(f"{node.name} is not in module {self._name}")
        node.name = name

    @Method()
    def clone(self) -> Module:
        """Returns a deep copy, which prints like this module, including edits."""
        return edit_backend.backend.clone(self)

    @Method()
    def transaction(self, *, typed: bool = True) -> AbstractContextManager[EditRecord]:
        """Returns a context manager that rolls back all edits if an exception leaves the block.

        `with module.transaction() as record:`. Inside the block, the module may be temporarily invalid as a result of
        edits with `typed=False` and computations under construction. At the end it is validated: if the edits
        introduced an error, EditError is raised and everything is rolled back. The record lists the nodes inserted,
        modified and removed, and can undo it later.

        Args:
            typed: Check the types of each edit immediately. False makes `typed=False` the default inside the block; the
                changes of `rewrite.change_shape`, `change_operands` and `change_attributes` are then propagated
                together at the end.
        """
        return edit_backend.backend.transaction(self, typed=typed)

    def listen(self, listener: Listener) -> AbstractContextManager[None]:
        """Returns a context manager that calls a listener's methods after each edit inside the block.

        The methods are `inserted`, `modified` and `removed`; each is given the instruction or computation. Undoing an edit
        calls the method of the inverse edit.
        """
        return edit_backend.backend.listen(self, listener)

    def __copy__(self) -> Module:
        return self.clone()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles and copies the whole module, including its text and edits."""
        return edit_backend.backend.reduced(self)

    # ---- text

    @Method("", "pathlib.Path(path).write_bytes(module.to_proto()) writes a file")
    def to_proto(self, *, fill_elided: bool = False) -> bytes:
        """Serializes the module to an `HloModuleProto` that XLA can read; instructions keep the order of the text.

        Unknown fields of a module that was read from a proto are written back. The replica and partition counts in the
        header are not part of this message. See `outside_of_proto`, and `with_config`, which writes them too.

        Args:
            fill_elided: Write elided constants as zeros.

        Raises:
            HloSyntaxError: A constant is elided (unless `fill_elided` is set), or the module cannot be represented as a
                proto.
            MissingProtobuf: The extra `hlotext[proto]` is not installed (an ImportError).
        """
        return printing.proto_writer()(self, fill_elided)

    def to_text(self, options: PrintOptions | None = None) -> str:
        """Returns the text of the module as XLA prints it with these options, by default with its default preset."""
        from hlotext.ir.values.print_options import PrintOptions

        return printing.printer().module(self, options or PrintOptions.default())

    def __str__(self) -> str:
        return printing.printer().source(self)

    __format__ = text_formatted
    _repr_mimebundle_ = mimebundle

    def __repr__(self) -> str:
        return f"<Module {self._name} with {len(self._computations)} computations>"


def release(module: Module) -> None:
    """Dismantles a module of which nobody holds any node: its memory is freed as soon as the module is dropped.

    Nodes form reference cycles, which otherwise wait for the garbage collector and cost a third of the reading time. For
    programs that read one module after another and keep only values. An empty module is left.
    """
    for computation in (*module._computations, *module._removed):
        for instruction in computation._instructions:
            instruction._operands = ()
            instruction._users = instruction._computation = None
        computation._instructions.clear()
        computation._root = computation._module = None
        computation._by_name = computation._order = computation._successors = None
    module._computations.clear()
    module._removed.clear()
    module._entry = module._facts = module._callers = module._order = module._by_name = None
    module._wide = module._strict_facts = module._surveyed = module._journal = None
    module._listeners = ()

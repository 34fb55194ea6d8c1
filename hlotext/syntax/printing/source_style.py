"""Style "source": the text that was read, with only the edited lines printed anew, in the style of the text around them."""

from __future__ import annotations

import operator
import re
from typing import Any

import attrs

from hlotext.edit.hooks import reader
from hlotext.ir.nodes.bad_instruction import BadInstruction
from hlotext.ir.nodes.computation import Computation, with_rare_fields
from hlotext.ir.nodes.instruction import Form, Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.raw import NodeState
from hlotext.ir.nodes.source import Source
from hlotext.ir.values.print_options import PrintOptions
from hlotext.ir.values.shape import Shape
from hlotext.syntax.printing.header import header_text, stack_frame_tables
from hlotext.syntax.printing.splices import Splices
from hlotext.syntax.printing.xla_styles import TextPrinter, signature


def source_text(module: Module) -> str:
    """Returns a module's text in the style of its source.

    A module without source is printed with XLA's default options and all constants.
    """
    source = module.source
    if source is None:
        return _whole(module)
    if not module.is_modified:
        return source.text[module._start : module._end]
    if module._computations and module.entry._is_sugared:
        return _op_line(module, source.text)
    return _Copier(module, source).text()


def _whole(module: Module) -> str:
    return TextPrinter(PrintOptions(print_large_constants=True, syntax_sugar_async_ops=False)).module(module)


def _op_line(module: Module, source: str) -> str:
    """An edited module that was read from a single op line: that line, or a whole module where it takes more to say."""
    root = module.op_line
    if root is None:
        return _whole(module)
    before = source[root._start : root._end]
    if not (root.is_modified or any(parameter.is_modified for parameter in module.entry.parameters)):
        return source[module._start : module._end]
    options = Style.of(module, source).options
    if any(parameter.is_modified for parameter in module.entry.parameters):
        options = attrs.evolve(options, print_operand_shape=True)
    printer = _SourceLine(options)
    line = printer.instruction(root, printer.names(module.entry))
    if root._name == "_" and not _NAMED.match(before):
        line = line.partition(" = ")[2]
    mark = "ROOT " if before.startswith("ROOT ") else ""
    return source[module._start : root._start] + mark + line + source[root._end : module._end]


_NAMED = re.compile(r"(?:ROOT\s+)?%?_\s*=")


class _Copier:
    """Prints one edited module."""

    def __init__(self, module: Module, source: Source) -> None:
        self.module = module
        self.source = source.text
        self.style = Style.of(module, source.text)
        self.printer = _SourceLine(self.style.options)
        self.run = Splices(source.text, module._start)
        self.unmarked_entry: Computation | None = None
        """The entry, where the source does not call it so and it has ceased to be the last computation."""
        self.on_one_line: Computation | None = None
        """The computation that comes first now, where the name that stands alone on its line would be read as a table's."""

    def text(self) -> str:
        module, run = self.module, self.run
        if module.is_header_modified or not self.names_module():
            run.add(self.header())
        else:
            run.copy(module._start, module._header_end)
        unusual = with_rare_fields(module._computations)
        inside = {c for c in unusual if c._is_inline or (c._is_sugared and c._start < 0)}
        read = [c for c in module._computations if c not in inside] if inside else module._computations
        if read and read[-1] is not module._entry:
            self.unmarked_entry = self._unmarked_entry()
        if read and self._reads_as_table(read[0]):
            self.on_one_line = read[0]
        starts = [c._start for c in read]
        if module._removed or (starts and min(starts) < 0) or starts != sorted(starts):
            self._moved_computations(read)
        else:  # what was not edited need not be looked at
            position = module._header_end
            changed = {c for c in unusual if c._is_modified} - inside
            changed |= {c for c in (self.unmarked_entry, self.on_one_line) if c is not None}
            for computation in sorted(changed, key=_start):
                run.copy(position, computation._start)
                self.computation(computation)
                position = computation._end
            run.copy(position, module._end)
        return run.text()

    def _moved_computations(self, computations: list[Computation]) -> None:
        """Prints computations in their present order, each with what stood before it in the source."""
        module, run = self.module, self.run
        ends = self._starts_of_gaps()
        is_apart = written = False
        for place, computation in enumerate(computations):
            if computation._start < 0:
                run.add(("" if is_apart else "\n\n") + self.style.new_computation(computation))
                following = computations[place + 1]._start if place + 1 < len(computations) else -1
                is_apart = following < 0 or "\n" not in self.source[ends[following] : following]
                run.add("\n\n" if is_apart else "")
                continue
            gap = ends[computation._start]
            if written and gap == computation._start and run.end != gap and not is_apart:
                run.add("\n\n")  # it came first in the text
            run.copy(gap, computation._start)
            self.computation(computation)
            written, is_apart = True, False
        last = max(ends.get(-1, module._header_end), module._header_end)
        run.copy(last, module._end)

    def names_module(self) -> bool:
        """True if the text without a header still gives the module its name, which readers derive from the entry's."""
        module = self.module
        return (
            module._header_start >= 0
            or not module._computations
            or module._name == f"module_{module.entry._name}"
        )

    def header(self) -> str:
        """The header printed anew; what stands before it, and the tables behind it unless they are others now, are copied."""
        module = self.module
        if module._header_start < 0:  # the text began without one, behind blanks and comments
            before = self.source[module._start : module._header_end]
            text = header_text(module, PrintOptions())
            if not module.stack_frames.is_empty:
                text += f"\n\n{stack_frame_tables(module.stack_frames).rstrip()}"
            return f"{before}{text}\n\n"
        text = self.source[module._start : module._header_start] + header_text(module, PrintOptions())
        if module._tables_start is None and "\n" not in self.source[module._header_end : self._first_start()]:
            text += "\n\n"  # a value that is not known ends with its line
        if module._has_new_tables:
            index = module.stack_frames
            return text if index.is_empty else f"{text}\n\n{stack_frame_tables(index).rstrip()}"
        if module._tables_start is None:
            return text
        return text + self.source[module._tables_start : module._header_end]

    def _first_start(self) -> int:
        """Where the first computation of the source begins."""
        listed = (*self.module._computations, *self.module._removed)
        starts = [c._start for c in listed if c._start >= 0 and not c._is_inline]
        return min(starts, default=self.module._end)

    def _reads_as_table(self, first: Computation) -> bool:
        """True if a header would precede a name that is alone on its line, which is how tables begin."""
        module = self.module
        if module._header_start >= 0:
            is_new = first._start != self._first_start()
        else:
            is_new = module.is_header_modified or not self.names_module()
        return (
            is_new
            and first._start >= 0
            and _ALONE.match(self.source[first._start : first._brace + 1]) is not None
        )

    def _unmarked_entry(self) -> Computation | None:
        """The entry, where the source does not call it so; for a module whose last computation it is not."""
        entry = self.module._entry
        if entry is None or entry._start < 0 or _is_word(self.source, entry._start, "ENTRY"):
            return None
        return entry

    def _starts_of_gaps(self) -> dict[int, int]:
        """For each computation of the source by start: where the blanks and comments before it begin; -1: after the last."""
        places = sorted(
            (c._start, c._end)
            for c in (*self.module.computations, *self.module._removed)
            if c._start >= 0 and not c.is_inline
        )
        gaps = {}
        position = self.module._header_end
        for start, end in places:
            gaps[start] = position
            position = end
        gaps[-1] = position
        return gaps

    def computation(self, computation: Computation) -> None:
        """One computation that was read."""
        run = self.run
        is_header_new = computation._is_signature_touched or computation is self.on_one_line
        if computation is self.unmarked_entry and not is_header_new:
            run.add("ENTRY ")
        if not (computation.is_modified or is_header_new):
            run.copy(computation._start, computation._end)
            return
        if is_header_new:
            run.add(self.style.computation_header(computation))
            run.copy(computation._brace, computation._brace + 1)
        else:
            run.copy(computation._start, computation._brace + 1)
        if computation._removed_spans or not self._lines_in_order(computation):
            self._moved_lines(computation)

    def _lines_in_order(self, computation: Computation) -> bool:
        """Prints the lines of a computation from which none was taken and in which none was moved; else does nothing.

        Looks at no more of an untouched line than where it ends, so an edit in a large computation costs little.
        """
        changes: list[tuple[Instruction, Instruction | None]] = []
        last: Instruction | None = None
        number: int | None = 0  # of the last line, if that is what is known of its place
        unmarked = unmarked_root(computation, self.source)
        for instruction in computation._instructions:
            place: Any = instruction._state
            if type(place) is NodeState and not place.is_modified:
                place = place.place
            if type(place) is int and number is not None and instruction is not unmarked:
                if place < number:
                    return False
                last, number = instruction, place
                continue
            if type(place) is not int or instruction is unmarked:
                if instruction.form is not Form.LINE:
                    continue
                changes.append((instruction, last))
                place = instruction._place
                if place is None:
                    continue
            if last is not None and instruction._start < last._end:
                return False
            last, number = instruction, place if type(place) is int else None
        run = self.run
        position = computation._brace + 1
        for instruction, last in changes:
            if instruction._place is None:
                position, start = max(last._end if last is not None else 0, position), position
                run.copy(start, position)
                run.add(f"{self.style.line_start}{self.line(instruction)}")
            elif instruction.is_modified:
                run.copy(position, instruction._start)
                run.add(self.line(instruction))
                position = instruction._end
            elif instruction is unmarked:
                run.copy(position, instruction._start)
                run.add("ROOT ")
                position = instruction._start
        self._close(computation, position)
        return True

    def _close(self, computation: Computation, position: int) -> None:
        """Prints what stands behind the last line."""
        if not computation._has_new_thread:
            self.run.copy(position, computation._end)
            return
        ends = [i._end for i in computation._instructions if i._start >= 0]
        ends += [end for _, end in computation._removed_spans]
        last = max(position, *ends)
        brace = _CLOSING.search(self.source[last : computation._end])
        if brace is not None:
            self.run.copy(position, last + brace.start() + 1)
        else:  # the text is cut off
            self.run.copy(position, computation._end)
            self.run.add("\n}")
        if computation._execution_thread != "main":
            self.run.add(f', execution_thread="{computation._execution_thread}"')
        if computation._backend_config is not None:
            self.run.add(f", backend_config={computation._backend_config}")

    def _moved_lines(self, computation: Computation) -> None:
        """Prints the lines of a computation in their present order, each with what stood before it in the source."""
        run = self.run
        gaps = self._gaps_in(computation, computation._brace + 1)
        unmarked = unmarked_root(computation, self.source)
        is_bad = False
        for instruction in computation:
            if instruction.form is not Form.LINE:
                continue
            if instruction._start < 0:
                run.add(f"{self.style.line_start}{self.line(instruction)}")
                continue
            if is_bad and "\n" not in self.source[gaps[instruction._start] : instruction._start]:
                run.add(self.style.line_start)  # what cannot be read ends with its line
            else:
                run.copy(gaps[instruction._start], instruction._start)
            is_hidden = is_bad and self._is_hidden(instruction)
            is_bad = isinstance(instruction, BadInstruction)
            if instruction.is_modified or is_hidden:
                run.add(self.line(instruction))
                continue
            if instruction is unmarked:
                run.add("ROOT ")
            run.copy(instruction._start, instruction._end)
        self._close(computation, gaps[-1])

    def _is_hidden(self, instruction: Instruction) -> bool:
        """True if nobody sees the beginning of a line behind one that cannot be read: a comment before `=` is enough."""
        return _BEGINNING.match(self.source[instruction._start : instruction._end]) is None and all(
            operand._form is Form.LINE for operand in instruction._operands
        )

    def _gaps_in(self, computation: Computation, position: int) -> dict[int, int]:
        """For each op line of the source by start: where the blanks before it begin; -1: after the last line."""
        gaps = {}
        places = [(i._start, i._end) for i in computation if i._start >= 0]
        for start, end in sorted((*places, *computation._removed_spans)):
            gaps[start] = position
            position = end
        gaps[-1] = position
        return gaps

    def line(self, instruction: Instruction) -> str:
        """An op line printed anew; one that could not be read as it stands."""
        if isinstance(instruction, BadInstruction):
            owner = instruction._computation
            is_unmarked = owner is not None and unmarked_root(owner, self.source) is instruction
            return f"ROOT {instruction.text}" if is_unmarked else instruction.text
        root = "ROOT " if instruction.is_root and self.style.marks_root(instruction, self.source) else ""
        return root + self.printer.instruction(
            instruction, self.printer.names(instruction.computation or Computation(""))
        )


def unmarked_root(computation: Computation, source: str) -> Instruction | None:
    """Returns the root if the source does not mark it with ROOT and it is no longer the last instruction; else None."""
    root = computation._root
    if (
        root is None
        or root is computation._instructions[-1]
        or root._start < 0
        or root._form is not Form.LINE
    ):
        return None
    return None if _is_word(source, root._start, "ROOT") else root


_BEGINNING = re.compile(r"(?:ROOT[ \t]+)?%?[\w.-]+[ \t]*=")
_ALONE = re.compile(r"(?:ENTRY[ \t]+)?+%?+[\w.-]++[ \t]*+[\r\n]")
"""The name of a computation whose header goes on in another line."""


def _is_word(source: str, start: int, word: str) -> bool:
    """True if the keyword `word` is at that offset, not a name that is the word or begins with it."""
    text = source[start : start + 200]
    return _MARK.match(text) is not None and text.startswith(word)


_CLOSING = re.compile(r'\}(?:[^}]*")?\Z')
"""A closing brace and the thread behind it; comments before it may hold braces."""
_MARK = re.compile(r"(?:ROOT|ENTRY)(?![\w.\-])(?!\s*=)")


def _writes_layouts(module: Module) -> bool:
    """True if the text writes arrays with layouts, judged by the first one that has dimensions."""
    shapes = (i._head.shape for i in module.instructions() if i._start >= 0 and i._head.shape is not None)
    leaves = (leaf for shape in shapes for _, leaf in shape.leaves() if leaf.dimensions)
    first = next(leaves, None)
    return first is not None and first.layout is not None


_is_sugared, _start = operator.attrgetter("_is_sugared"), operator.attrgetter("_start")


@attrs.frozen
class Style:
    """Style of a source, for lines that are printed anew."""

    options: PrintOptions
    line_start: str
    """Line end and indentation of op lines."""

    @classmethod
    def of(cls, module: Module, text: str) -> Style:
        """Returns the style of a module's source, judged by its first lines."""
        first = next((i for i in module.instructions() if i._start >= 0 and i.form is Form.LINE), None)
        used = next((i for i in module.instructions() if i._start >= 0 and i.operands), None)
        line = text[first._start : first._end].removeprefix("ROOT ") if first is not None else "%"
        use = text[used._start : used._end] if used is not None else ""
        header = next(
            (text[c._start : c._brace] for c in module.computations if c._start >= 0 and not c.is_inline), ""
        )
        operand = re.search(r" [a-z][a-z\-]*\(([^%\"]{0,400})", use)
        before = text[max(0, first._start - 200) : first._start] if first is not None else "\n  "
        start = re.search(r"[\r\n]*[ \t]*\Z", before)
        return cls(
            PrintOptions(
                print_large_constants=True,
                print_percent=line.startswith("%"),
                print_operand_shape=operand is not None and "[" in operand[1].split(")")[0],
                print_program_shape="->" in header,
                include_layout_in_shapes=_writes_layouts(module),
                print_operand_index_annotation_interval=5
                if text.rfind("/*index=", module._header_end) >= 0  # most likely in the last root
                else 0,
                syntax_sugar_async_ops=any(map(_is_sugared, with_rare_fields(module._computations))),
            ),
            start[0] if start is not None and start[0].strip(" \t") else "\n  ",
        )

    def marks_root(self, instruction: Instruction, source: str) -> bool:
        """True if ROOT is to be written; in a text without the word, the root is last."""
        computation = instruction.computation
        return instruction._start < 0 or computation is None or computation._root is not None

    def computation_header(self, computation: Computation) -> str:
        """Returns the header of a computation up to its brace."""
        entry = "ENTRY " if computation.is_entry else ""
        name = _SourceLine(self.options).name(computation.name)
        nodes = (*computation.parameters, computation.root)
        is_known = all(node._head.shape is not None for node in nodes)
        shapes = f"{signature(computation)} " if self.options.print_program_shape and is_known else ""
        return f"{entry}{name} {shapes}"

    def new_computation(self, computation: Computation) -> str:
        """Returns the text of a computation that is not in the source."""
        return _SourceLine(self.options).computation(computation, is_entry=computation.is_entry)


class _SourceLine(TextPrinter):
    """Prints lines with nothing left out that the instruction holds."""

    def name(self, name: str) -> str:
        """As the text around writes it, but a reserved word is only a name behind a percent sign."""
        text = super().name(name)
        return text if text.startswith("%") or reader().is_name(text) else f"%{text}"

    def shape(self, shape: Shape) -> str:
        """Every layout that says something; the descending one, which goes without saying, as the text around writes it."""
        text = self._shapes.get(id(shape))
        if text is None:
            plain = shape.without_layout()
            if self.options.include_layout_in_shapes:
                text = str(shape.with_default_layout())
            elif plain.with_default_layout() == shape.with_default_layout():
                text = str(plain)
            else:
                text = str(shape)
            self._shapes[id(shape)] = text
        return text

    def sugared(self, instruction: Instruction) -> Instruction | None:
        """As XLA, but a body that has a text of its own (because it was edited) is named."""
        wrapped = super().sugared(instruction)
        body = wrapped.computation if wrapped is not None else None
        return wrapped if body is not None and body.is_sugared else None

    def names_left_out(self, instruction: Instruction) -> bool:
        """Wherever the attribute still has them: edits take them out of what ceases to be compact."""
        return True

    def hidden_of_wrapped(self, start: Instruction) -> frozenset[str]:
        """As XLA, but what would stand there twice, and could not be read, stands there once."""
        return super().hidden_of_wrapped(start) | start._attributes.keys()


def computation_text(computation: Computation) -> str:
    """Returns the text of a computation as in its module's text."""
    module = computation.module
    source = module.source if module is not None else None
    if module is None or source is None or computation._start < 0:
        return _SourceLine(PrintOptions(print_large_constants=True)).computation(
            computation, 0, computation.is_entry
        )
    if not computation.is_modified:
        return source.text[computation._start : computation._end]
    copier = _Copier(module, source)
    copier.run = Splices(source.text, computation._start)
    copier.computation(computation)
    return copier.run.text()


def op_lines(computation: Computation) -> str:
    """Returns a text whose lines 1, 2, ... are the op lines of a computation, up to blanks.

    For an unedited computation this is a part of the source, whose text before and after these lines has no meaning.
    """
    source = computation.module.source if computation.module is not None else None
    instructions = computation.instructions
    if source is not None and not computation.is_modified:
        places = [one._state for one in instructions]
        lines = list(range(1, len(places) + 1))
        if places == lines or [one._place for one in instructions] == lines:
            text = source.text[computation._brace : computation._end]
            if "\r" not in text:
                return text
    return "".join(["\n" + instruction_text(one).replace("\n", " ") for one in instructions])


def instruction_text(instruction: Instruction) -> str:
    """Returns an op line as in its module's text, without indentation."""
    computation = instruction.computation
    module = computation.module if computation is not None else None
    source = module.source if module is not None else None
    if computation is None or module is None or source is None:
        printer = _SourceLine(PrintOptions(print_large_constants=True))
        return printer.instruction(instruction, printer.names(computation or Computation("")))
    start, end = instruction.bounds
    if start >= 0 and not instruction.is_modified:
        text = source.text[start:end]
        is_unmarked = computation.is_modified and unmarked_root(computation, source.text) is instruction
        return f"ROOT {text}" if is_unmarked else text
    return _Copier(module, source).line(instruction)

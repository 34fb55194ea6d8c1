"""The styles of `hlotext fmt`: print options from words on the command line, and what each leaves out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs
import click

from hlotext.ir.nodes.instruction import Form
from hlotext.ir.nodes.module import Module
from hlotext.ir.spelling import did_you_mean
from hlotext.ir.values.age import XlaAge, as_age
from hlotext.ir.values.print_options import PrintOptions, SubcomputationMode
from hlotext.syntax.printing.xla_styles import TextPrinter
from hlotext.syntax.reread import reread
from hlotext.view.annotations import annotated

SOURCE = "source"


def dumped() -> PrintOptions:
    """Returns the options of XLA's dumps: the defaults without `xla_syntax_sugar_async_ops`."""
    return attrs.evolve(PrintOptions.default(), syntax_sugar_async_ops=False)


def dumped_short() -> PrintOptions:
    """Returns the options of dumps with `xla_dump_hlo_as_long_text=false`: short, with metadata."""
    return attrs.evolve(PrintOptions.short_parsable(), syntax_sugar_async_ops=False, print_metadata=True)


STYLES: dict[str, Callable[[], PrintOptions] | None] = {
    SOURCE: None,
    "default": dumped,
    "short": dumped_short,
    "canonical": PrintOptions.canonical,
    "fingerprint": PrintOptions.fingerprint,
}
"""Styles by their names on the command line, as XLA dumps them, and its other presets; None for the text as it was read."""
_DUMPED = ("default", "short")

_MODE = "print_subcomputation_mode"
_KEEPS: dict[str, tuple[tuple[Any, ...], str]] = {
    "print_large_constants": ((True,), "constants"),
    "print_only_essential_constants": ((False,), "constants"),
    "print_metadata": ((True,), "metadata"),
    "print_metadata_only_op_name": ((False,), "metadata"),
    "print_inline_stack_frames": ((False,), "stack frames"),
    "print_operand_names": ((True,), "names"),
    "canonicalize_instruction_names": ((False,), "names"),
    "print_ids": ((True,), "names"),
    "compact_operands": ((False,), "operands"),
    "compact_gte": ((False,), "names and metadata of get-tuple-elements"),
    "print_backend_config": ((True,), "backend configs"),
    "print_infeed_outfeed_config": ((True,), "infeed and outfeed configs"),
    "print_original_value": ((True,), "original values"),
    "print_control_dependencies": ((True,), "control dependencies"),
    "print_extra_attributes": ((True,), "attributes"),
    "print_frontend_attributes": ((True,), "frontend attributes"),
    "print_channel_id": ((True,), "channel ids"),
    "print_parameter_number": ((True,), "parameter numbers"),
    "include_layout_in_shapes": ((True,), "layouts"),
    "print_result_shape": ((True,), "result shapes"),
    _MODE: ((SubcomputationMode.NAME_ONLY, SubcomputationMode.FULL_BODIES), "called computations"),
}
"""For each option that can leave something out, the values that do not, and what the others leave out."""


@attrs.frozen
class PrintStyle:
    """Options for printing modules."""

    name: str
    options: PrintOptions | None
    """None for the text as it was read."""
    is_reread: bool = False
    """True to print modules as XLA does after reading them."""
    age: XlaAge | None = None
    """Age of the XLA that reads them; None for the newest."""
    follows_source: bool = False
    """True to print elements of tuples in the form of the source: XLA's dumps are compact or not, by option."""

    is_annotated: bool = False
    """True to add comments to op lines (`hlotext.view.annotations`)."""

    def text(self, modules: Iterable[Module]) -> str:
        """Returns the text of modules."""
        return "".join(map(self._module, modules))

    def _module(self, module: Module) -> str:
        if self.options is None:
            return annotated(module) if self.is_annotated else str(module)
        if self.is_reread:
            return reread(module, age=self.age).to_text(self.options)
        if module.entry.is_sugared:
            # One op line on its own stays one.
            printer = TextPrinter(self.options)
            return f"{printer.instruction(module.entry.root, printer.names(module.entry))}\n"
        if self.follows_source and _is_compact(module):
            return module.to_text(attrs.evolve(self.options, compact_gte=True))
        return module.to_text(self.options)

    def annotating(self) -> PrintStyle:
        """Returns the style that keeps the text and adds a comment after each op line."""
        return PrintStyle("source", None, is_annotated=True)

    @property
    def losses(self) -> list[str]:
        """Parts that this style drops or regenerates, as words; empty if it keeps everything."""
        if self.options is None:
            return []
        lost = (what for name, (keep, what) in _KEEPS.items() if getattr(self.options, name) not in keep)
        return [*dict.fromkeys([*lost, *(["names", "the order"] if self.is_reread else [])])]


def _is_compact(module: Module) -> bool:
    """True if the source writes elements of tuples behind the tuples' names, `%t#0`, and gives none but roots a line."""
    elements = [i for i in module.instructions() if i.opcode == "get-tuple-element" and not i.is_root]
    return bool(elements) and all(i.form is Form.COMPACT for i in elements)


def print_style(
    name: str,
    elide_constants: bool,
    settings: Iterable[str],
    *,
    is_reread: bool = False,
    age: str | None = None,
) -> PrintStyle:
    """Returns the style with a name, printing large constants unless elided, with options changed by `NAME=VALUE`.

    `age` is that of the XLA that rereads the text. Raises click.UsageError.
    """
    if age is not None and not is_reread:
        raise click.UsageError("--age selects the XLA that reads the text, so it needs --reread")
    try:
        release = as_age(age)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    preset = STYLES[name]
    if preset is None:
        if elide_constants or is_reread or any(settings):
            raise click.UsageError("style source keeps the text unchanged; options need another --style")
        return PrintStyle(name, None)
    options = preset()
    if not elide_constants:
        options = attrs.evolve(options, print_large_constants=True, print_only_essential_constants=False)
    elif not options.print_only_essential_constants:
        options = attrs.evolve(options, print_large_constants=False)
    changes: dict[str, Any] = dict(map(_setting, settings))
    follows = name in _DUMPED and "compact_gte" not in changes
    return PrintStyle(name, attrs.evolve(options, **changes), is_reread, release, follows)


def _setting(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    defaults = attrs.asdict(PrintOptions())
    if name not in defaults:
        meant = did_you_mean(name, defaults) or f"there are {', '.join(defaults)}"
        raise click.UsageError(f"no print option {name}; {meant}")
    default = defaults[name]
    words: dict[str, Any]
    if isinstance(default, SubcomputationMode):
        words = {mode.name.lower(): mode for mode in SubcomputationMode}
    elif isinstance(default, bool):
        words = {"true": True, "false": False}
    elif value.isascii() and value.isdigit():
        return name, int(value)
    else:
        raise click.UsageError(f"--option {name} needs a number, as in {name}={default}")
    if value not in words:
        raise click.UsageError(
            f"--option {name} needs one of {', '.join(words)}, as in {name}={next(iter(words))}"
        )
    return name, words[value]

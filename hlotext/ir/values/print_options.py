"""XLA's print options and presets, by XLA's names (`HloPrintOptions`)."""

from __future__ import annotations

import enum

import attrs


class SubcomputationMode(enum.Enum):
    """Style of printing called computations."""

    OFF = "off"
    """Not at all."""
    NAME_ONLY = "name only"
    FULL_BODIES = "full bodies"
    NON_SEQUENTIAL_BODIES = "non-sequential bodies"
    """Bodies, except on call, while and conditional, which print nothing."""


@attrs.frozen(kw_only=True)
class PrintOptions:
    """Options of `Module.to_text`. Fields, defaults and presets are named as in XLA."""

    print_operand_index_annotation_interval: int = 5
    """Number of operands between `/*index=N*/` comments; 0 for no comments."""
    print_subcomputation_mode: SubcomputationMode = SubcomputationMode.NAME_ONLY
    indent_amount: int = 0
    """Indentation of the text, in units of two spaces."""
    print_large_constants: bool = False
    """Print constants of more than 10 elements and tuples in full, rather than as `{...}`."""
    print_only_essential_constants: bool = False
    print_original_value: bool = True
    print_metadata: bool = True
    """Print metadata, metadata inside shardings, and the stack-frame tables."""
    print_metadata_only_op_name: bool = False
    print_backend_config: bool = True
    sort_backend_config: bool = False
    print_infeed_outfeed_config: bool = True
    compact_operands: bool = False
    """Print at most four operands. Such text cannot be parsed again."""
    include_layout_in_shapes: bool = True
    print_result_shape: bool = True
    print_operand_shape: bool = False
    print_operand_names: bool = True
    print_program_shape: bool = True
    """Print the signature after a computation's name."""
    print_percent: bool = True
    print_control_dependencies: bool = True
    canonicalize_instruction_names: bool = False
    """Print the names `tmp_0, tmp_1, ...`; requires `print_percent=False`, as in XLA."""
    is_in_nested_computation: bool = False
    print_ids: bool = True
    canonicalize_computations: bool = False
    """Print computations in an order that depends on calls only."""
    print_extra_attributes: bool = True
    """Print opcode-specific attributes."""
    syntax_sugar_async_ops: bool = True
    """Print `all-to-all-start(...)` instead of `async-start(...), calls=...` where equivalent."""
    print_frontend_attributes: bool = True
    print_name_after_closing_brace: bool = False
    print_full_replica_group_list: bool = False
    print_parameter_number: bool = True
    print_channel_id: bool = True
    print_inline_stack_frames: bool = False
    compact_gte: bool = False
    """Print `%t#0` instead of a get-tuple-element. Newer than the reference release."""

    @classmethod
    def default(cls) -> PrintOptions:
        """Returns XLA's default preset, as used by `HloModule.to_string()`."""
        return cls()

    @classmethod
    def short_parsable(cls) -> PrintOptions:
        """Returns the preset for short parsable text: no metadata or percent signs, all constants in full."""
        return cls(
            print_large_constants=True,
            print_metadata=False,
            print_operand_index_annotation_interval=0,
            print_program_shape=False,
            print_percent=False,
            print_control_dependencies=False,
        )

    @classmethod
    def canonical(cls) -> PrintOptions:
        """Returns the preset for text independent of names, for comparing modules."""
        return cls(
            print_subcomputation_mode=SubcomputationMode.FULL_BODIES,
            print_metadata=False,
            print_backend_config=False,
            print_operand_names=False,
            print_operand_shape=True,
            print_operand_index_annotation_interval=0,
            print_program_shape=False,
            print_percent=False,
            print_control_dependencies=False,
            canonicalize_instruction_names=True,
        )

    @classmethod
    def fingerprint(cls) -> PrintOptions:
        """Returns the preset whose text XLA hashes to compare computations."""
        return attrs.evolve(
            cls.canonical(),
            print_infeed_outfeed_config=False,
            print_only_essential_constants=True,
            print_ids=False,
            canonicalize_computations=True,
            print_full_replica_group_list=True,
        )

    @classmethod
    def module_fingerprint(cls) -> PrintOptions:
        """Returns the preset whose text XLA hashes to compare modules."""
        return attrs.evolve(cls.fingerprint(), print_operand_shape=False)

"""The builder that Lark calls: all builder classes joined."""

from __future__ import annotations

from hlotext.syntax.builders.attributes import AttributeBuilder
from hlotext.syntax.builders.header import HeaderBuilder
from hlotext.syntax.builders.instruction import InstructionBuilder
from hlotext.syntax.builders.literal import LiteralBuilder
from hlotext.syntax.builders.metadata import MetadataBuilder
from hlotext.syntax.builders.shape import ShapeBuilder
from hlotext.syntax.builders.sharding import ShardingBuilder
from hlotext.syntax.builders.tokens import TokenBuilder
from hlotext.syntax.builders.values import ValueBuilder


class Builder(
    InstructionBuilder,
    AttributeBuilder,
    HeaderBuilder,
    ValueBuilder,
    ShardingBuilder,
    MetadataBuilder,
    LiteralBuilder,
    ShapeBuilder,
    TokenBuilder,
):
    """Every rule of the grammar."""

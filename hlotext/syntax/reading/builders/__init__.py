"""Lark callbacks for grammar rules, with one class per grammar file, combined into one.

A method has the name of its rule and receives the rule's children: named tokens and the values of inner rules, None for
an absent optional part. Lark calls it during parsing, so deep nesting does not cause recursion.
"""

from __future__ import annotations

from hlotext.syntax.reading.builders.attributes import AttributeBuilder
from hlotext.syntax.reading.builders.header import HeaderBuilder
from hlotext.syntax.reading.builders.instruction import InstructionBuilder
from hlotext.syntax.reading.builders.literal import LiteralBuilder
from hlotext.syntax.reading.builders.metadata import MetadataBuilder
from hlotext.syntax.reading.builders.shape import ShapeBuilder
from hlotext.syntax.reading.builders.sharding import ShardingBuilder
from hlotext.syntax.reading.builders.values import TokenBuilder, ValueBuilder


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
    """Builds the values of all rules of the grammar."""

"""What each grammar rule becomes: one builder class for each grammar file, joined into the one that Lark calls.

A method bears the name of its rule and gets the rule's children (named tokens and the values of inner rules; None for an
absent optional part). Lark calls it while it parses, so nothing here recurses, however deep the text nests.
"""

from __future__ import annotations

from hlotext.syntax.builders.attributes import AttributeBuilder
from hlotext.syntax.builders.instruction import InstructionBuilder
from hlotext.syntax.builders.literal import LiteralBuilder
from hlotext.syntax.builders.metadata import MetadataBuilder
from hlotext.syntax.builders.shape import ShapeBuilder
from hlotext.syntax.builders.sharding import ShardingBuilder
from hlotext.syntax.builders.tokens import TokenBuilder
from hlotext.syntax.builders.values import ValueBuilder

__all__ = ["Builder"]


class Builder(
    InstructionBuilder,
    AttributeBuilder,
    ValueBuilder,
    ShardingBuilder,
    MetadataBuilder,
    LiteralBuilder,
    ShapeBuilder,
    TokenBuilder,
):
    """Every rule of the grammar."""

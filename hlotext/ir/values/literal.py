"""Literals: the values of constants, exact to the bit, and their text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import attrs

from hlotext.ir.foreign_names import with_foreign_names
from hlotext.ir.short_names import Abbreviated
from hlotext.ir.values import numbers
from hlotext.ir.values.shape import Shape, default_layout
from hlotext.ir.values.types import ELEMENT_TYPES, TOKEN, TypeKind

if TYPE_CHECKING:
    import numpy as np

ELIDED_TEXT = "{...}"
"""Text of elided numbers."""

MAX_SHOWN_ELEMENTS = 10
"""Maximum number of elements of arrays that are shown with XLA's default options (`HloConstantInstruction`)."""

MAX_ESSENTIAL_ELEMENTS = 500_000
"""Maximum number of elements of integer arrays that are shown with `print_only_essential_constants`."""

MAX_BARE_BYTES = 1 << 31
"""Maximum size of an array materialized from a bare number."""

MAX_EMPTY_BRACES = 1 << 20
"""An array without elements prints as `{...}` where its nested braces would be more than this."""


@with_foreign_names
@attrs.frozen(eq=False, repr=False)
class Literal(Abbreviated):
    """The value of a constant: an array, a tuple of literals or a token. `str()` is XLA's text with every number.

    Literals are equal if their shapes and bits are equal, so NaN equals itself and -0 differs from 0. Arrays are
    read-only and may be shared.
    """

    shape: Shape
    """Shape of the value; for a buffer, the shape of the array."""
    tuple_literals: tuple[Literal, ...] = ()
    """Elements of a tuple; empty for non-tuples and elided tuples."""
    is_elided: bool = False
    """True if the whole value is elided (`{...}`)."""
    is_bare: bool = False
    """True for a single number without braces in place of an array, which is printed the same way."""
    unknown_text: str | None = None
    """Text of a value with an unknown element type; otherwise None."""
    _values: np.ndarray[Any, Any] | Callable[[], np.ndarray[Any, Any]] | None = None
    """The elements, flat and row-major, or what makes them; the one given if `is_bare`; None if no array is known."""

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.shape, Shape):
            given = type(self.shape).__name__
            raise TypeError(f"a Literal has a Shape, not {given}; Literal.from_array makes one of an array")

    # ---- making literals

    @classmethod
    def from_array(cls, array: Any, shape: Shape | None = None) -> Literal:
        """Creates a literal from an array, which is copied.

        The shape defaults to the array's, with the descending layout. Raises TypeError for a dtype without an element
        type, and ValueError if the array's dimensions or dtype are not those of the given shape.
        """
        import numpy as np

        array = np.asarray(array)
        if shape is None:
            names = [
                row.name
                for row in ELEMENT_TYPES.values()
                if row.dtype_name and row.dtype_name == array.dtype.name
            ]
            if not names:
                raise TypeError(f"no HLO element type can hold a {array.dtype}")
            shape = Shape(ELEMENT_TYPES[names[0]], array.shape, layout=default_layout(array.ndim))
        is_fitting = shape.is_array and array.shape == shape.dimensions
        if not is_fitting or array.dtype.name != shape.element_type.dtype.name:
            raise ValueError(
                f"an array of {array.dtype}{list(array.shape)} is not a value of {shape.without_layout()}"
            )
        values = array.reshape(-1)
        if shape.element_type.is_integral and shape.element_type.bits < 8:
            values = values.astype(np.int8).astype(
                values.dtype
            )  # the unused bits of a byte are nobody's value
        return cls.from_values(shape, np.array(values, dtype=shape.element_type.dtype))

    @classmethod
    def from_values(cls, shape: Shape, values: np.ndarray[Any, Any], *, is_bare: bool = False) -> Literal:
        """Creates an array literal from flat row-major values without checking or copying them.

        Args:
            shape: Shape of the literal.
            values: The elements, of the dtype of the shape's element type. The array becomes read-only.
            is_bare: True if `values` is the single number that stands in the text for an array.
        """
        values.flags.writeable = False
        return cls(shape, is_bare=is_bare, values=values)

    @classmethod
    def tuple(cls, literals: Iterable[Literal]) -> Literal:
        """Creates a tuple literal from its elements."""
        literals = tuple(literals)
        return cls(Shape.tuple(tuple(literal.shape for literal in literals)), literals)

    @classmethod
    def elided(cls, shape: Shape) -> Literal:
        """Returns a literal of this shape whose value is elided (`{...}`)."""
        return cls(shape, is_elided=True)

    @classmethod
    def token(cls) -> Literal:
        """Returns the literal of `token[]`, which occurs inside tuples."""
        return cls(Shape(TOKEN))

    # ---- values

    @property
    def _elements(self) -> np.ndarray[Any, Any] | None:
        """The elements, made now if need be: most programs ask for the numbers of few constants, or of none."""
        values = self._values
        if callable(values):
            values = values()
            values.flags.writeable = False
            object.__setattr__(self, "_values", values)
        return values

    @property
    def array(self) -> np.ndarray[Any, Any]:
        """The value as a read-only numpy array in logical order.

        A bare number for an array sets the first element, and the others are zero, as in XLA's parser. Raises
        ValueError for elided values, tuples, tokens, unknown element types, and bare numbers for huge shapes.
        """
        import numpy as np

        if self.is_elided:
            raise ValueError(f"the text leaves out the value of this {self.shape} ({ELIDED_TEXT})")
        values = self._elements
        if values is None:
            raise ValueError(f"a literal of {self.shape} is not an array")
        if not self.is_bare:
            return values.reshape(self.shape.dimensions)
        size = self.shape.element_count * values.dtype.itemsize
        if size > MAX_BARE_BYTES:
            raise ValueError(f"one number for all of {self.shape}: an array of {size} bytes is not built")
        array = np.zeros(self.shape.dimensions, values.dtype)
        array.reshape(-1)[0] = values[0]
        array.flags.writeable = False
        return array

    def leaves(self) -> Iterator[Literal]:
        """Yields all leaf literals in order: arrays, tokens, elided literals and empty tuples."""
        stack = [self]
        while stack:
            literal = stack.pop()
            if literal.tuple_literals:
                stack.extend(reversed(literal.tuple_literals))
            else:
                yield literal

    @property
    def known_array(self) -> np.ndarray[Any, Any] | None:
        """The value as an array, or None if it is not an array or if the text lacks some elements."""
        is_given = self.shape.is_array and not (
            self.is_elided or self.is_bare or self.unknown_text is not None
        )
        return self.array if is_given else None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Returns `known_array` to NumPy, which would otherwise make an array of one object.

        Raises TypeError if there is none.
        """
        import numpy as np

        array = self.known_array
        if array is None:
            raise TypeError(f"the text does not have the elements of {self.shape}; its known_array is None")
        return np.array(array, dtype=dtype, copy=copy) if copy is not None else np.asarray(array, dtype=dtype)

    @property
    def is_partly_elided(self) -> bool:
        """True if any value inside is elided."""
        return any(leaf.is_elided for leaf in self.leaves())

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Literal):
            return NotImplemented
        return self.shape == other.shape and all(
            a._is_same_leaf(b) for a, b in zip(self.leaves(), other.leaves(), strict=False)
        )

    def _is_same_leaf(self, other: Literal) -> bool:
        flags = (self.is_elided, self.is_bare, self.unknown_text)
        if self.shape != other.shape or flags != (other.is_elided, other.is_bare, other.unknown_text):
            return False
        mine, theirs = self._elements, other._elements
        if mine is None or theirs is None:
            return mine is theirs
        return bool((mine.view("u1") == theirs.view("u1")).all())

    def __hash__(self) -> int:
        # A few bytes tell most literals apart; the rest is for __eq__.
        leaf = next(self.leaves())
        values = leaf._elements
        sample = b"" if values is None else values[:16].tobytes() + values[-16:].tobytes()
        return hash((self.shape, self.is_elided, self.is_bare, self.unknown_text, sample))

    # ---- text

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"Literal({self.shape} {self.abbreviated_text()})"

    def to_text(self) -> str:
        """Returns the literal as text on one line with every number, as XLA prints it with `print_large_constants`."""
        return self._assembled(Literal._leaf_text)

    def text_with_shape(self) -> str:
        """Returns the literal as text with the shape in front of each array, as in the attribute `literal=`."""
        return self._assembled(lambda leaf: f"{leaf.shape} {leaf._leaf_text()}")

    def _assembled(self, leaf_text: Callable[[Literal], str]) -> str:
        """The texts of all leaves inside their tuples' parentheses."""
        pieces: list[str] = []
        stack: list[Literal | str] = [self]
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                pieces.append(item)
            elif item.shape.is_tuple and not item.is_elided:
                stack.append(" )")
                for i in range(len(item.tuple_literals) - 1, -1, -1):
                    stack.append(item.tuple_literals[i])
                    if i:
                        stack.append(", ")
                stack.append("( ")
            else:
                pieces.append(leaf_text(item))
        return "".join(pieces)

    def abbreviated_text(self) -> str:
        """Returns the literal as text in XLA's default form: `{...}` for tuples and for arrays of more than 10 elements."""
        is_shown = self.is_bare or (self.shape.is_array and self.shape.element_count <= MAX_SHOWN_ELEMENTS)
        return self.to_text() if is_shown else ELIDED_TEXT

    def essential_text(self) -> str:
        """Returns the literal as text in the form that XLA prints with `print_only_essential_constants`.

        The text is `0` or `1` if all elements have that value, all numbers for integer arrays of up to 500,000
        elements, and otherwise `{...}`.
        """
        if self.is_bare:
            return self.to_text()
        for number in (0, 1):
            if self._is_all(number):
                return str(number)
        if self.shape.is_array and self.shape.element_count > MAX_ESSENTIAL_ELEMENTS:
            return ELIDED_TEXT
        are_integers = all(shape.element_type.is_integral for _, shape in self.shape.leaves())
        return self.to_text() if are_integers else ELIDED_TEXT

    def _is_all(self, number: int) -> bool:
        """True where every element has the bits of that number, as XLA's `Literal::IsAll` for 0 and 1."""
        import numpy as np

        values = self._elements
        if values is None:
            return False
        type_ = self.shape.element_type
        part = numbers.component_type(type_)
        if part.is_floating:
            wanted = numbers.narrow(np.array([number], dtype=np.float64), part)
        else:
            wanted = np.array([number], dtype=np.int8).astype(part.dtype)
        if float(wanted[0]) != number:  # there is no 0 in f8e8m0fnu and no 1 in s1
            return False
        rows = values.view("u1").reshape(-1, values.dtype.itemsize)
        return bool((rows == wanted.astype(type_.dtype).view("u1")).all())

    def _leaf_text(self) -> str:
        if self.is_elided:
            return ELIDED_TEXT
        if self.unknown_text is not None:
            return self.unknown_text
        values = self._elements
        if values is None:
            return str(self.shape.element_type)
        type_ = self.shape.element_type
        texts = numbers.number_texts(values, type_)
        if self.is_bare or not self.shape.dimensions:
            return {"1": "true", "0": "false"}[texts[0]] if type_.kind is TypeKind.PREDICATE else texts[0]
        if not texts and _brace_count(self.shape.dimensions) > MAX_EMPTY_BRACES:
            return ELIDED_TEXT
        return _nested_text(self.shape.dimensions, texts)


def _brace_count(dimensions: tuple[int, ...]) -> int:
    """Number of inner pairs of braces that an array without elements is written with."""
    return math.prod(dimensions[: dimensions.index(0)])


def _nested_text(dimensions: tuple[int, ...], texts: list[str]) -> str:
    """Elements in nested braces, as XLA's `DenseArrayPrintHelper` writes them on one line.

    Innermost braces with one element or none have no blanks, and beyond three dimensions a comment `/*i0=1*/`
    stands behind each brace that is neither outermost nor innermost. Works from the inside out, level by
    level.
    """
    rank = len(dimensions)
    if rank == 1:
        return "{" + ", ".join(texts) + "}"
    depth = dimensions.index(0) if 0 in dimensions else rank - 1  # of the innermost braces that are written
    count = math.prod(dimensions[:depth])
    size = dimensions[depth]
    if depth < rank - 1:
        nodes = [_opening(dimensions, depth, i) + " }" for i in range(count)]
    elif size <= 1:
        nodes = ["{" + text + "}" for text in texts or [""] * count]
    else:
        nodes = ["{ " + ", ".join(texts[i : i + size]) + " }" for i in range(0, len(texts), size)]
    # Braces around a single element inside others of that kind are the same text everywhere: they are
    # gathered and written at once, so that a long row of sizes 1 costs no more than its text.
    gathered: list[str] = []
    for level in range(depth - 1, -1, -1):
        size = dimensions[level]
        if size == 1 and level and dimensions[level - 1] == 1:
            gathered.append(_opening(dimensions, level, 0))
            continue
        if gathered:
            opening, closing = "".join(reversed(gathered)), " }" * len(gathered)
            nodes = [opening + node + closing for node in nodes]
            gathered = []
        groups = range(0, len(nodes), size)
        nodes = [
            _opening(dimensions, level, i) + ", ".join(nodes[start : start + size]) + " }"
            for i, start in enumerate(groups)
        ]
    return nodes[0]


def _opening(dimensions: tuple[int, ...], depth: int, number: int) -> str:
    """The opening brace of the `number`th group at that depth, none of the innermost."""
    if len(dimensions) <= 3 or not depth:
        return "{ "
    comment = f"/*i{depth - 1}={number % dimensions[depth - 1]}*/"
    return f"{{ {comment} " if dimensions[depth] else f"{{ {comment}"

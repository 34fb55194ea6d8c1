"""Names that JAX, numpy, StableHLO, LLVM and XLA have for opcodes, attributes and their words in HLO text."""

from __future__ import annotations

import re
from collections.abc import Collection

from hlotext.ir.spelling import did_you_mean, suggestion
from hlotext.ir.tables.opcodes import OPCODES

_OPCODES: dict[str, str] = {
    "add": "add plus addition sum_of",
    "all-gather": "allgather",
    "all-reduce": "allreduce psum pmean pmax pmin crossreplicasum cross_replica_sum",
    "all-to-all": "alltoall",
    "and": "logical_and bitwise_and",
    "broadcast": "broadcast_in_dim broadcast_to tile repeat expand_dims",
    "ceil": "ceiling",
    "clamp": "clip",
    "collective-permute": "ppermute",
    "compare": "eq ne ge gt le lt equal not_equal greater less greater_equal less_equal",
    "concatenate": "concat stack hstack vstack",
    "convert": "cast astype convert_element_type",
    "convolution": "conv conv2d conv_general_dilated",
    "custom-call": "ffi_call pure_callback",
    "divide": "div true_divide",
    "dot": "matmul mm bmm gemm einsum tensordot dot_general matmult",
    "dynamic-slice": "ds dynamic_slice_in_dim",
    "dynamic-update-slice": "dus",
    "exponential": "exp",
    "exponential-minus-one": "expm1",
    "gather": "take",
    "get-tuple-element": "gte",
    "iota": "arange",
    "is-finite": "isfinite",
    "log": "ln",
    "log-plus-one": "log1p",
    "maximum": "max relu",
    "minimum": "min",
    "multiply": "mul times",
    "negate": "neg minus",
    "not": "logical_not bitwise_not invert",
    "or": "logical_or bitwise_or",
    "power": "pow",
    "reduce": "reduce_sum reduce_max reduce_min sum mean argmax argmin any all",
    "reduce-scatter": "psum_scatter reducescatter",
    "remainder": "rem mod",
    "reshape": "flatten squeeze view",
    "reverse": "flip",
    "rsqrt": "inverse_sqrt",
    "select": "where",
    "sign": "sgn",
    "cosine": "cos",
    "sine": "sin",
    "sqrt": "square_root",
    "subtract": "sub",
    "transpose": "permute swapaxes",
    "tuple": "make_tuple",
    "while": "scan fori_loop while_loop loop",
    "conditional": "cond case if switch",
    "xor": "logical_xor bitwise_xor",
}
_BY_OTHER_NAME = {
    other: name for name, words in _OPCODES.items() for other in words.split() if other not in OPCODES
}

_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "comparator": ("to_apply",),
    "computation": ("to_apply",),
    "reducer": ("to_apply",),
    "cond": ("condition",),
    "permutation": ("dimensions",),
    "axis": ("dimensions",),
    "axes": ("dimensions",),
    "precision_config": ("operand_precision",),
    "source_pairs": ("source_target_pairs",),
    "target": ("custom_call_target",),
    "aliasing": ("output_to_operand_aliasing",),
    "contracting_dims": ("lhs_contracting_dims", "rhs_contracting_dims"),
}

_WORDS: dict[str, str] = {
    "EQ": "EQUAL EQUALS OEQ UEQ = ==",
    "NE": "NOT_EQUAL NOTEQUAL NEQ ONE UNE != <>",
    "LT": "LESS LESS_THAN LESSTHAN SLT ULT OLT <",
    "LE": "LESS_EQUAL LESS_OR_EQUAL LESS_THAN_OR_EQUAL LEQ SLE ULE OLE <=",
    "GT": "GREATER GREATER_THAN GREATERTHAN SGT UGT OGT >",
    "GE": "GREATER_EQUAL GREATER_OR_EQUAL GREATER_THAN_OR_EQUAL GEQ SGE UGE OGE >=",
    "TOTALORDER": "TOTAL",
    "SIGNED": "INT",
    "UNSIGNED": "UINT",
    "FFT": "FORWARD C2C",
    "IFFT": "INVERSE BACKWARD",
    "RFFT": "R2C",
    "IRFFT": "C2R",
    "NO_TRANSPOSE": "N NONE FALSE",
    "TRANSPOSE": "T TRUE TRANS",
    "ADJOINT": "C H CONJUGATE CONJ_TRANSPOSE",
    "rng_normal": "GAUSSIAN",
}
"""Words in attributes, and what StableHLO, LLVM, numpy and BLAS call them."""
_BY_OTHER_WORD = {other: name for name, words in _WORDS.items() for other in words.split()}

_DIALECT = re.compile(r"(?:stablehlo|mhlo|jnp|np|lax|jax)\.")


def opcode_meant(word: str) -> str:
    """Returns a suggestion for a word that is another language's name of an opcode; empty for other words."""
    plain = _DIALECT.sub("", word.lower())
    dashed = plain.replace("_", "-")
    name = _BY_OTHER_NAME.get(plain.replace("-", "_")) or (dashed if dashed in OPCODES else None)
    return suggestion([name]) if name is not None and name != word else ""


def opcode_named(word: str) -> str:
    """Returns the opcode that a word is another name or spelling of, such as `TopK` or `AllReduce`; else the word."""
    if word in OPCODES:
        return word
    plain = _DIALECT.sub("", word.lower())
    dashed = plain.replace("_", "-")
    glued = {name.replace("-", ""): name for name in OPCODES}
    return _BY_OTHER_NAME.get(plain.replace("-", "_")) or glued.get(dashed.replace("-", ""), word)


def opcode_suggested(word: str) -> str:
    """Returns a suggestion for an unknown opcode, by its name in other languages or by spelling; may be empty."""
    return opcode_meant(word) or did_you_mean(word.rstrip("_").replace("_", "-"), OPCODES)


def word_meant(word: str, known: Collection[str]) -> str:
    """Returns a suggestion for a word that an attribute does not take, by its name elsewhere or by spelling; may be empty."""
    other = word_elsewhere(word)
    return suggestion([other]) if other in known else did_you_mean(word, known)


def word_elsewhere(word: str) -> str:
    """Returns the word of an attribute that has another name elsewhere, such as `LT` for `<`; empty if there is none."""
    return _BY_OTHER_WORD.get(word.upper().replace("-", "_"), "")


def attribute_meant(word: str, known: Collection[str]) -> str:
    """Returns a suggestion for an unknown attribute, by its name in other languages or by spelling; may be empty."""
    other = [name for name in _ATTRIBUTES.get(word, ()) if name in known]
    return _all_of(other) or did_you_mean(word, known)


def attribute_elsewhere(word: str) -> str:
    """Returns a suggestion for a word that is another language's name of an attribute of any opcode; empty for others."""
    return _all_of(_ATTRIBUTES.get(word, ()))


def _all_of(names: Collection[str]) -> str:
    return f"did you mean {' and '.join(f'`{name}`' for name in names)}?" if names else ""

"""Terminals of the grammar in the reader's words, for "expected ..." messages."""

from __future__ import annotations

from hlotext.ir.caches import weighted_cache

_GROUPS: tuple[tuple[frozenset[str], str, frozenset[str]], ...] = (
    (
        frozenset({"ENTRY", "NAME"}),
        "a computation",
        frozenset({"COMMA", "$END", "SECTION_NAME", "EXECUTION_THREAD", "HLO_MODULE"}),
    ),
    (
        frozenset({"EXECUTION_THREAD", "BACKEND_CONFIG_ATTRIBUTE"}),
        "`execution_thread=`, `backend_config=`",
        frozenset(),
    ),
    (frozenset({"ROOT", "NAME"}), "an instruction", frozenset()),
    (frozenset({"TYPE", "BUFFER"}), "a shape", frozenset({"LPAREN", "LPAR"})),
    (frozenset({"OPCODE", "PARAMETER", "CONSTANT"}), "an opcode with its operands", frozenset()),
    (frozenset({"WINDOW_FIELD", "WINDOW_PAD"}), "a field of the window", frozenset()),
    (
        frozenset({"SHARDING_WORD", "SHARDING_DEVICES"}),
        "a part of the sharding",
        frozenset(
            {
                "SHARDING_DEVICE",
                "LAST_TILE_DIMS",
                "SHARD_GROUP",
                "SHARDING_METADATA",
                "MESH",
                "SINGLE_DEVICE",
                "LBRACE",
            }
        ),
    ),
    (
        frozenset({"METADATA_TEXT", "METADATA_NUMBER"}),
        "a field of the metadata",
        frozenset({"METADATA_NUMBERS", "ATTRIBUTE_NAME"}),
    ),
    (
        frozenset({"LITERAL_NUMBER", "LITERAL_WORD"}),
        "a value",
        frozenset({"DOTS", "COMMA", "LBRACE", "LPAREN"}),
    ),
    (
        frozenset({"TILES", "SC"}),
        "a part of the layout",
        frozenset({"D", "E", "HASH", "L", "M", "P", "S", "STAR"}),
    ),
    (
        frozenset({"BOUNDED", "UNBOUNDED", "INT"}),
        "a dimension",
        frozenset(),
    ),
)
"""Terminals that must appear together for one thing: those that tell it, its name, and what is not worth a word beside it."""

_WORDS = {
    "NAME": "a name",
    "TYPE": "a shape",
    "BUFFER": "a shape",
    "OPCODE": "an opcode with its operands",
    "CONSTANT": "an opcode with its operands",
    "PARAMETER": "an opcode with its operands",
    "ATTRIBUTE_NAME": "an attribute",
    "INT": "an integer",
    "NUMBER": "a number",
    "STRING": "a string",
    "BOOL": "`true` or `false`",
    "WORD": "a word",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LPAREN": "`(`",
    "RPAREN": "`)`",
    "LSQUARE": "`[`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "COMMA": "`,`",
    "TRAILING_COMMA": "`,`",
    "EQUAL": "`=`",
    "COLON": "`:`",
    "ARROW": "`->`",
    "ROOT": "an instruction",
    "ENTRY": "a computation",
    "HLO_MODULE": "`HloModule`",
    "SECTION_NAME": "a table",
    "LAYOUT_OPEN": "a layout",
    "COMPACT_INDEX": "an index such as `#0`",
    "UNBOUNDED": "`?`",
    "OPEN_DIMENSION": "`?`",
    "BOUNDED": "`<=`",
    "LESSTHAN": "`<=`",
    "EXECUTION_THREAD": "`execution_thread=`",
    "SIGNATURE_NAME": "a parameter's name",
    "OPAQUE_PIECE": "text",
    "LITERAL_NUMBER": "a number",
    "LITERAL_WORD": "a value",
    "DOTS": "`...`",
    "DIM_LABELS": "labels such as `b01f_01io->b01f`",
    "PADS": "pads such as `1_1x0_0`",
    "WINDOW_NUMBERS": "numbers joined with `x`",
    "DOT_SPARSITY": "a sparsity such as `L.1@2:4`",
    "TILE_SIZE": "a tile's size",
    "SPARSE_TYPE": "an element type",
    "LEVEL_TYPE": "a dimension's level type",
    "TILES": "a part of the layout such as `T(8,128)`",
    "AXIS_NAME": "an axis",
    "MESH": "`mesh[`",
    "SINGLE_DEVICE": "`single_device[`",
    "DEVICE_ID": "`device_id=`",
    "SHARDING_METADATA": "`metadata=`",
    "DEVICE_IDS": "`device_ids=`",
    "AXES_WORD": "`replicated`, `unreduced` or `manual`",
    "AXES_PART": "axes such as `replicated={...}`",
    "SHARDING_TYPE": "a kind such as `manual`",
    "SHARDING_DEVICE": "`device=`",
    "REDUCTION": "a reduction such as `max`",
    "RAW_TEXT": "a value",
    "RAW_OPEN": "a value",
    "RAW_INNER": "text",
    "RAW_CLOSE": "a closing bracket",
    "ALIAS_KIND": "`may-alias` or `must-alias`",
    "RESULT_MODE": "`mode=`",
    "TOLERANCE": "`tolerance=`",
    "TOLERANCE_FIELD": "`atol=` or `rtol=`",
    "ULPS": "`ulps=`",
    "SYNTHETIC_CALL": "`synthetic_call`",
    "DEBUG_MODE": "`log_mode=`",
    "DEBUG_NUMBER": "`callback_id=` or `op_id=`",
    "DEBUG_FLAG": "`partitioned=`",
    "DOMAIN_KIND": "`kind=`",
    "DOMAIN_SIDE": "`entry=` or `exit=`",
    "SPARSITY_SIDE": "`lhs=` or `rhs=`",
    "SPARSITY_FIELD": "`sparsity=`, `dimension=` or `stride=`",
    "$END": "the end of the text",
}
"""Every terminal by itself."""


_RARE = frozenset({"COMPACT_INDEX"})
"""Terminals that are not worth a word beside others."""


@weighted_cache(1 << 10)
def expected_words(terminals: frozenset[str]) -> str:
    """A few words for a set of terminals: "an instruction or `}`"."""
    names = {
        name for name in terminals if name not in ("COMMENT", "WHITESPACE") and not name.startswith("__")
    }
    words: dict[str, None] = {}
    if len(names) > 1:
        names -= _RARE
    for group, word, covered in _GROUPS:
        if group <= names:
            words[word] = None
            names -= group | covered
    if any(name.endswith("_ATTRIBUTE") for name in names):
        words["an attribute"] = None
    rest = {_WORDS.get(name, f"`{name.lower()}`") for name in names if not name.endswith("_ATTRIBUTE")}
    # Named tokens first, then punctuation.
    words |= dict.fromkeys(sorted(rest, key=lambda word: (word.startswith("`"), word)))
    found = list(words)
    if not found:
        return "nothing more"
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} or {found[-1]}"

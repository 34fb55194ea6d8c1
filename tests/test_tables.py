"""Tables: what they hold is what the commands show, and what other libraries read is what they hold."""

from __future__ import annotations

import hlotext as hlo
from hlotext import tables

TEXT = """HloModule tiny, is_scheduled=true

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[8,128]{1,0} parameter(0), metadata={op_name="x"}
  y = f32[8,128]{1,0} negate(x), metadata={op_name="jit(f)/layer/neg" source_file="f.py" source_line=3}
  z = f32[] constant(0)
  ROOT r = f32[8]{0} reduce(y, z), dimensions={1}, to_apply=add
}
"""


def test_rows_without_arrow() -> None:
    """A small module by hand: every column of an instruction."""
    found = tables.tables_of(hlo.parse(TEXT))
    assert set(found) == set(tables.BASIC)
    rows = found["instructions"].to_rows()
    assert [row["name"] for row in rows] == ["a", "b", "c", "x", "y", "z", "r"]
    assert rows[6] == {
        "module": "tiny",
        "id": 6,
        "computation": "main",
        "ordinal": 3,
        "name": "r",
        "opcode": "reduce",
        "label": "reduce",
        "shape": "f32[8]{0}",
        "dtype": "f32",
        "dims": [8],
        "layout": "{0}",
        "memory_space": 0,
        "bytes": 32,
        "padded_bytes": 32,
        "written_bytes": 32,
        "runs": 1,
        "operands": [4, 5],
        "calls": ["add"],
        "is_root": True,
        "op_name": "",
        "scope": "(results)",
        "direction": None,
        "file": None,
        "line": None,
        "function": None,
        "line_source": None,
        "text_line": 13,
    }
    assert found["operands"].to_rows()[-2:] == [
        {"module": "tiny", "id": 6, "number": 0, "operand": 4},
        {"module": "tiny", "id": 6, "number": 1, "operand": 5},
    ]
    assert [(row["key"], row["value"]) for row in found["attributes"] if row["id"] == 6] == [
        ("dimensions", "{1}"),
        ("to_apply", "%add"),
    ]
    (module,) = found["modules"].to_rows()
    assert (module["name"], module["instructions"], module["computations"]) == ("tiny", 7, 2)

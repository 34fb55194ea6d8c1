"""Modules that are all of one kind each, for `python -m tests.bench.linearity --stages`: of size n, whatever n is.

Most are well-formed; those that are not are such as XLA's readers take and its verifier does not.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt

HEAD = "HloModule m\n\n"
F = "f32[4]"
SUM = (
    "%sum (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n"
    "  ROOT %s = f32[] add(%a, %b)\n}\n\n"
)


def each(n: int, line: str, first: int = 0) -> str:
    """A line for each number: `#` is the number, `#-` the one before it, `#+` the next."""
    return "".join(
        line.replace("#-", str(i - 1)).replace("#+", str(i + 1)).replace("#", str(i)) for i in range(first, n)
    )


def joined(n: int, word: str) -> str:
    return each(n, f"{word}, ").removesuffix(", ")


def negating(name: str, opcode: str = "negate", shape: str = F) -> str:
    """A computation of one operation; `name` may hold `#`."""
    return (
        f"%{name} (p.{name}: {shape}) -> {shape} {{\n  %p.{name} = {shape} parameter(0)\n"
        f"  ROOT %n.{name} = {shape} {opcode}(%p.{name})\n}}\n\n"
    )


def entry(lines: str, root: str, result: str = F, before: str = "", head: str = HEAD, p: str = F) -> str:
    """A module whose entry takes one array, and ends in a line."""
    return (
        f"{head}{before}ENTRY %e (p: {p}) -> {result} {{\n  %p = {p} parameter(0)\n{lines}"
        f"  ROOT %r = {result} {root}\n}}\n"
    )


def chained(n: int, line: str, before: str = "", head: str = HEAD, shape: str = F) -> str:
    """An entry in which each line takes the one before."""
    first = f"  %x0 = {shape} negate(%p)\n"
    lines = first + each(n, line + "\n", 1)
    return entry(lines, f"negate(%x{n - 1})", shape, before, head, shape)


def tupled(n: int, lines: str, word: str = "%x#", shape: str = F, before: str = "", head: str = HEAD) -> str:
    """An entry whose root takes something of each number."""
    return entry(lines, f"tuple({joined(n, word)})", f"({joined(n, shape)})", before, head)


def listed(n: int, line: str, shape: str = F, before: str = "", head: str = HEAD) -> str:
    """An entry with a line for each number, all taken by the root."""
    return tupled(n, each(n, line + "\n"), "%x#", shape, before, head)


# ---- calls


def chain_of_calls(n: int, times: int = 1) -> str:
    """Computations each of which calls the one before, so many times."""
    level = "%f# (p.#: f32[4]) -> f32[4] {\n  %p.# = f32[4] parameter(0)\n"
    for number in range(times):
        of = "%p.#" if not number else f"%c{number - 1}.#"
        root = "ROOT " if number == times - 1 else ""
        level += f"  {root}%c{number}.# = f32[4] call({of}), to_apply=%f#-\n"
    return entry("", f"call(%p), to_apply=%f{n - 1}", before=negating("f0") + each(n, level + "}\n\n", 1))


def _state(n: int, shape: str = F) -> str:
    return f"(s32[], {joined(n, shape)})" if n else "(s32[])"


def _condition(name: str, state: str, limit: int = 3) -> str:
    return (
        f"%cond{name} (s.c{name}: {state}) -> pred[] {{\n  %s.c{name} = {state} parameter(0)\n"
        f"  %i.c{name} = s32[] get-tuple-element(%s.c{name}), index=0\n  %k.c{name} = s32[] constant({limit})\n"
        f"  ROOT %l.c{name} = pred[] compare(%i.c{name}, %k.c{name}), direction=LT\n}}\n\n"
    )


def _body(name: str, state: str, width: int, inner: str, result: str = "%g#") -> str:
    """The body of a loop over `width` arrays; `inner` are lines."""
    shown = each(width, f"  %g#.b{name} = {F} get-tuple-element(%s.b{name}), index=#+\n")
    taken = joined(width, f"{result}.b{name}")
    return (
        f"%body{name} (s.b{name}: {state}) -> {state} {{\n  %s.b{name} = {state} parameter(0)\n"
        f"  %i.b{name} = s32[] get-tuple-element(%s.b{name}), index=0\n  %o.b{name} = s32[] constant(1)\n"
        f"  %j.b{name} = s32[] add(%i.b{name}, %o.b{name})\n{shown}{inner}"
        f"  ROOT %t.b{name} = {state} tuple(%j.b{name}, {taken})\n}}\n\n"
    )


def nested_loops(n: int) -> str:
    """A loop in the body of a loop, and so on."""
    state = _state(1)
    parts = [_condition("0", state), _body("0", state, 1, f"  %h0.b0 = {F} sine(%g0.b0)\n", "%h#")]
    for number in range(1, n):
        inner = (
            f"  %z.b{number} = s32[] constant(0)\n"
            f"  %q.b{number} = {state} tuple(%z.b{number}, %g0.b{number})\n"
            f"  %w.b{number} = {state} while(%q.b{number}), condition=%cond{number - 1}, body=%body{number - 1}\n"
            f"  %h0.b{number} = {F} get-tuple-element(%w.b{number}), index=1\n"
        )
        parts += [_condition(str(number), state), _body(str(number), state, 1, inner, "%h#")]
    lines = (
        f"  %z = s32[] constant(0)\n  %q = {state} tuple(%z, %p)\n"
        f"  %w = {state} while(%q), condition=%cond{n - 1}, body=%body{n - 1}\n"
    )
    return entry(lines, "get-tuple-element(%w), index=1", before="".join(parts))


def loops(n: int) -> str:
    """Loops one after the other."""
    state = _state(1)
    parts = []
    for number in range(n):
        inner = f"  %h0.b{number} = {F} sine(%g0.b{number})\n"
        parts += [_condition(str(number), state), _body(str(number), state, 1, inner, "%h#")]
    lines = "  %z = s32[] constant(0)\n  %x0 = f32[4] negate(%p)\n" + each(
        n,
        f"  %q# = {state} tuple(%z, %x#)\n  %w# = {state} while(%q#), condition=%cond#, body=%body#\n"
        f"  %x#+ = {F} get-tuple-element(%w#), index=1\n",
    )
    return entry(lines, f"negate(%x{n})", before="".join(parts))


def wide_loop(n: int) -> str:
    """A loop that carries n arrays, of which each second stays as it is."""
    state = _state(n)
    inner = "".join(
        f"  %h{i}.b = {F} {'add(%g' + str(i) + '.b, %g' + str(i - 1) + '.b)' if i % 2 else 'copy(%g' + str(i) + '.b)'}\n"
        for i in range(n)
    )
    lines = (
        "  %z = s32[] constant(0)\n"
        + each(n, f'  %x# = {F} custom-call(%p), custom_call_target="t#"\n')
        + f"  %q = {state} tuple(%z, {joined(n, '%x#')})\n  %w = {state} while(%q), condition=%cond, body=%body\n"
        + each(n, f"  %y# = {F} get-tuple-element(%w), index=#+\n")
    )
    return tupled(n, lines, "%y#", before=_condition("", state) + _body("", state, n, inner, "%h#"))


def branches(n: int) -> str:
    """One conditional of n branches."""
    lines = "  %i = s32[] constant(1)\n"
    taken, called = joined(n, "%p"), joined(n, "%f#")
    before = "".join(negating(f"f{i}", "sine" if i % 2 else "cosine") for i in range(n))
    return entry(lines, f"conditional(%i, {taken}), branch_computations={{{called}}}", before=before)


def nested_conditionals(n: int) -> str:
    """A conditional in a branch of a conditional, and so on."""
    level = (
        "%f# (p.#: f32[4]) -> f32[4] {\n  %p.# = f32[4] parameter(0)\n  %i.# = pred[] custom-call(), "
        'custom_call_target="t"\n  ROOT %c.# = f32[4] conditional(%i.#, %p.#, %p.#), true_computation=%f#-, '
        "false_computation=%g#\n}\n\n"
    )
    before = negating("f0") + "".join(
        negating(f"g{i}") + level.replace("#-", str(i - 1)).replace("#", str(i)) for i in range(1, n)
    )
    return entry("", f"call(%p), to_apply=%f{n - 1}", before=before)


# ---- fusions


def fusion(n: int, used: bool, line: str = '%x# = f32[4] custom-call(%p), custom_call_target="t#"') -> str:
    """A fusion of n operands, which are added up, or of which all but the first are not used."""
    body = f"%fused ({joined(n, f'q#: {F}')}) -> {F} {{\n" + each(n, f"  %q# = {F} parameter(#)\n")
    if used:
        body += f"  %s.0 = {F} negate(%q0)\n" + each(n, f"  %s.# = {F} add(%s.#-, %q#)\n", 1)
        body += f"  ROOT %z = {F} negate(%s.{n - 1})\n}}\n\n"
    else:
        body += f"  ROOT %z = {F} negate(%q0)\n}}\n\n"
    lines = each(n, f"  {line}\n")
    return entry(lines, f"fusion({joined(n, '%x#')}), kind=kLoop, calls=%fused", before=body)


def fusion_of_results(n: int) -> str:
    """A fusion of n results."""
    shape = f"({joined(n, F)})"
    body = f"%fused (q: {F}) -> {shape} {{\n  %q = {F} parameter(0)\n" + each(
        n, f"  %s.# = {F} add(%q, %q)\n" if n % 2 else f"  %s.# = {F} sine(%q)\n"
    )
    body += f"  ROOT %z = {shape} tuple({joined(n, '%s.#')})\n}}\n\n"
    lines = f"  %u = {shape} fusion(%p), kind=kLoop, calls=%fused\n" + each(
        n, f"  %x# = {F} get-tuple-element(%u), index=#\n"
    )
    return tupled(n, lines, before=body)


# ---- tuples


DEEP = 40
"""Levels of tuples; a text may have 50."""


def _levels() -> list[str]:
    shapes = [F]
    for _ in range(DEEP):
        shapes.append(f"({shapes[-1]}, {F})")
    return shapes


def deep_tuples(n: int) -> str:
    """Parameters that are tuples in tuples, taken apart."""
    shapes = _levels()
    lines = each(n, f"  %t# = {shapes[-1]} parameter(#)\n")
    for i in range(n):
        before = f"t{i}"
        for level in reversed(range(DEEP)):
            lines += f"  %g{i}.{level} = {shapes[level]} get-tuple-element(%{before}), index=0\n"
            before = f"g{i}.{level}"
    given, result = joined(n, f"t#: {shapes[-1]}"), f"({joined(n, F)})"
    return f"{HEAD}ENTRY %e ({given}) -> {result} {{\n{lines}  ROOT %r = {result} tuple({joined(n, '%g#.0')})\n}}\n"


def built_tuples(n: int) -> str:
    """Tuples in tuples, made and taken apart again."""
    shapes, lines = _levels(), "  %g0.0 = f32[4] negate(%p)\n"
    for i in range(1, n):
        before = f"g{i - 1}.0"
        for level in range(DEEP):
            lines += f"  %t{i}.{level} = {shapes[level + 1]} tuple(%{before}, %p)\n"
            before = f"t{i}.{level}"
        lines += f"  %g{i}.{DEEP} = {shapes[-1]} opt-barrier(%{before})\n"
        for level in reversed(range(DEEP)):
            lines += f"  %g{i}.{level} = {shapes[level]} get-tuple-element(%g{i}.{level + 1}), index=0\n"
    return entry(lines, f"negate(%g{n - 1}.0)")


def tuple_of_tuples(n: int) -> str:
    """A tuple of n tuples, passed through a barrier and taken apart."""
    pair = f"({F}, s32[])"
    shape = f"({joined(n, pair)})"
    lines = (
        "  %k = s32[] constant(7)\n"
        + each(n, f'  %x# = {F} custom-call(%p), custom_call_target="t#"\n  %t# = {pair} tuple(%x#, %k)\n')
        + f"  %b = {shape} tuple({joined(n, '%t#')})\n  %c = {shape} opt-barrier(%b)\n"
        + each(
            n, f"  %g# = {pair} get-tuple-element(%c), index=#\n  %y# = {F} get-tuple-element(%g#), index=0\n"
        )
    )
    return tupled(n, lines, "%y#")


def passed_tuple(n: int) -> str:
    """A tuple of n elements, taken apart and put together again."""
    shape = f"({joined(n, F)})"
    lines = each(n, f"  %x# = {F} get-tuple-element(%t), index=#\n")
    head = f"{HEAD}ENTRY %e (t: {shape}) -> {shape} {{\n  %t = {shape} parameter(0)\n"
    return f"{head}{lines}  ROOT %r = {shape} tuple({joined(n, '%x#')})\n}}\n"


# ---- the header


def aliases(n: int, donors: bool = False) -> str:
    """n parameters, each of which may be written over by a result."""
    shape = f"({joined(n, F)})"
    if donors:
        given = f"buffer_donor={{ {joined(n, '(#, {})')} }}"
    else:
        given = f"input_output_alias={{ {joined(n, '{#}: (#, {}, may-alias)')} }}"
    taken = joined(n, f"q#: {F}")
    lines = each(n, f"  %q# = {F} parameter(#)\n") + each(n, f"  %x# = {F} negate(%q#)\n")
    return (
        f"HloModule m, {given}\n\nENTRY %e ({taken}) -> {shape} {{\n{lines}"
        f"  ROOT %r = {shape} tuple({joined(n, '%x#')})\n}}\n"
    )


def frames(n: int) -> str:
    """A chain of n stack frames, and an instruction in each of them."""
    location = "# {file_name_id=# function_name_id=# line=# end_line=# column=1 end_column=2}\n"
    tables = (
        ("FileNames\n", '# "f#.py"\n', 1),
        ("\nFunctionNames\n", '# "g#"\n', 1),
        ("\nFileLocations\n", location, 1),
        (
            "\nStackFrames\n1 {file_location_id=1 parent_frame_id=1}\n",
            "# {file_location_id=# parent_frame_id=#}\n",
            2,
        ),
    )
    text = "".join(title + each(n + 1, row, first) for title, row, first in tables)
    line = '  %x# = f32[4] sine(%x#-), metadata={op_name="jit(f)/a#/b" stack_frame_id=NUMBER}\n'
    lines = "  %x0 = f32[4] negate(%p)\n" + "".join(
        each(i + 1, line.replace("NUMBER", str(i + 1)), i) for i in range(1, n)
    )
    return entry(lines, f"negate(%x{n - 1})", head=f"HloModule m\n\n{text}\n")


def deep_names(n: int) -> str:
    """Scopes in scopes: one name as deep as n, and n names that share all of their root of n scopes but the last."""
    deep = "/".join(["s"] * n)
    common = "/".join(f"s{i}" for i in range(isqrt(n)))
    lines = f'  %x0 = f32[4] sine(%p), metadata={{op_name="jit(f)/{deep}/sin"}}\n' + "".join(
        f'  %x{i} = f32[4] sine(%x{i - 1}), metadata={{op_name="jit(f)/{common}/u{i}/sin" source_file="a{i}.py" '
        f"source_line={i}}}\n"
        for i in range(1, isqrt(n))
    )
    return entry(lines, f"negate(%x{max(isqrt(n) - 1, 0)})")


# ---- what waits


def pairs(n: int, start: str, done: str) -> str:
    """n asynchronous operations, begun and ended one after the other."""
    return chained(n, f"  %s.# = {start}\n  %x# = {F} {done}(%s.#)", SUM)


_COPY = "(f32[4], f32[4], u32[]) copy-start(%x#-)"
_REDUCE = "f32[4] all-reduce-start(%x#-), channel_id=#, replica_groups={{0,1}}, to_apply=%sum"


def overlapping(n: int) -> str:
    """n asynchronous copies that are all begun before the first is ended."""
    lines = each(n, "  %s.# = (f32[4], f32[4], u32[]) copy-start(%p)\n") + each(
        n, "  %x# = f32[4] copy-done(%s.#)\n"
    )
    return tupled(n, lines, head="HloModule m, is_scheduled=true\n\n")


def wrapped(n: int) -> str:
    """n operations that are begun and ended as computations of their own."""
    before = "".join(negating(f"f{i}", "sine") for i in range(1, n))
    line = f"  %s.# = (({F}), {F}, s32[]) async-start(%x#-), calls=%f#\n  %x# = {F} async-done(%s.#)"
    return chained(n, line, before)


def sends(n: int) -> str:
    """n messages to a host and back."""
    lines = "  %t0 = token[] after-all()\n  %x0 = f32[4] negate(%p)\n" + each(
        n,
        "  %s.# = (f32[4], u32[], token[]) send(%x#, %t#), channel_id=#+, is_host_transfer=true\n"
        "  %u.# = token[] send-done(%s.#), channel_id=#+, is_host_transfer=true\n"
        "  %v# = (f32[4], u32[], token[]) recv(%u.#), channel_id=#+, is_host_transfer=true\n"
        "  %w# = (f32[4], token[]) recv-done(%v#), channel_id=#+, is_host_transfer=true\n"
        "  %x#+ = f32[4] get-tuple-element(%w#), index=0\n  %t#+ = token[] get-tuple-element(%w#), index=1\n",
    )
    return entry(lines, f"negate(%x{n})")


# ---- memory


def held(n: int) -> str:
    """A schedule in which n arrays of different sizes live at once, and end in the order in which they came."""
    lines = "".join(f"  %x{i} = f32[{4 + i % 97}] iota(), iota_dimension=0\n" for i in range(n))
    lines += "".join(
        f"  %y{i} = f32[4] slice(%x{i}), slice={{[0:4]}}\n"
        f"  %z{i} = f32[4] add(%y{i}, {'%p' if not i else f'%z{i - 1}'})\n"
        for i in range(n)
    )
    return entry(lines, f"negate(%z{n - 1})", head="HloModule m, is_scheduled=true\n\n")


def updates(n: int) -> str:
    """An array that is written in place n times."""
    shape = "f32[64,4]"
    line = (
        f"  %i# = s32[] constant(#)\n  %y# = f32[1,4] slice(%x#-), slice={{[0:1], [0:4]}}\n"
        f"  %x# = {shape} dynamic-update-slice(%x#-, %y#, %i#, %zero)"
    )
    zero = "  %zero = s32[] constant(0)\n"
    return chained(n, line, shape=shape).replace("  %x0 =", zero + "  %x0 =")


def slices(n: int) -> str:
    lines = "".join(f"  %x{i} = f32[4] slice(%q), slice={{[{i}:{i + 4}]}}\n" for i in range(n))
    return tupled(
        n, f"  %q = f32[{n + 4}] broadcast(%p0), dimensions={{}}\n".replace("%p0", "%k") + lines
    ).replace("  %q =", "  %k = f32[] constant(2)\n  %q =")


def sharded(n: int) -> str:
    devices = f"devices=[{n}]<=[{n}]"
    lines = "".join(
        f"  %x{i} = f32[{n}] {'sine' if i % 2 else 'cosine'}(%{'q' if not i else f'x{i - 1}'}), "
        f"sharding={{{devices if i % 3 else 'replicated'}}}\n"
        for i in range(n)
    )
    first = f"  %k = f32[] constant(2)\n  %q = f32[{n}] broadcast(%k), dimensions={{}}\n"
    return entry(
        first + lines, f"negate(%x{n - 1})", f"f32[{n}]", head=f"HloModule m, num_partitions={n}\n\n"
    )


def equal_computations(n: int) -> str:
    """n computations that are all the same, each called once."""
    before = "".join(negating(f"f{i}") for i in range(1, n))
    return chained(n, "  %x# = f32[4] call(%x#-), to_apply=%f#", before)


def controlled(n: int) -> str:
    """One instruction that waits for n others, and a chain of those that wait for the one before."""
    names = joined(n, "%x#")
    lines = each(n, f'  %x# = {F} custom-call(%p), custom_call_target="t#"\n')
    lines += f"  %y0 = {F} sine(%p), control-predecessors={{{names}}}\n"
    lines += each(n, f"  %y# = {F} sine(%y#-), control-predecessors={{%y#-, %x#}}\n", 1)
    return entry(lines, f"negate(%y{n - 1})")


def sorted_arrays(n: int) -> str:
    shape = f"({joined(n, F)})"
    given = "".join(f"a{i}: f32[], b{i}: f32[], " for i in range(n)).removesuffix(", ")
    lines = "".join(
        f"  %a{i} = f32[] parameter({2 * i})\n  %b{i} = f32[] parameter({2 * i + 1})\n" for i in range(n)
    )
    before = (
        f"%less ({given}) -> pred[] {{\n{lines}  ROOT %l = pred[] compare(%a0, %b0), direction=LT\n}}\n\n"
    )
    lines = each(n, f'  %x# = {F} custom-call(%p), custom_call_target="t#"\n')
    lines += f"  %q = {shape} sort({joined(n, '%x#')}), dimensions={{0}}, to_apply=%less\n"
    return tupled(n, lines + each(n, f"  %y# = {F} get-tuple-element(%q), index=#\n"), "%y#", before=before)


def reduced_arrays(n: int) -> str:
    """A reduction of n arrays at once."""
    scalars = f"({joined(n, 'f32[]')})"
    given = f"{joined(n, 'a#: f32[]')}, {joined(n, 'b#: f32[]')}"
    lines = each(n, "  %a# = f32[] parameter(#)\n") + "".join(
        f"  %b{i} = f32[] parameter({n + i})\n" for i in range(n)
    )
    lines += each(n, "  %c.# = f32[] add(%a#, %b#)\n")
    before = (
        f"%adds ({given}) -> {scalars} {{\n{lines}  ROOT %l = {scalars} tuple({joined(n, '%c.#')})\n}}\n\n"
    )
    lines = "  %k = f32[] constant(0)\n" + each(n, f'  %x# = {F} custom-call(%p), custom_call_target="t#"\n')
    lines += (
        f"  %q = {scalars} reduce({joined(n, '%x#')}, {joined(n, '%k')}), dimensions={{0}}, to_apply=%adds\n"
    )
    return tupled(
        n, lines + each(n, "  %y# = f32[] get-tuple-element(%q), index=#\n"), "%y#", "f32[]", before
    )


_TILES = ("{1,0}", "{0,1}", "{1,0:T(8,128)}", "{0,1:T(8,128)}", "{1,0:T(4,128)S(1)}", "{1,0:T(2,128)}")


def tiled(n: int) -> str:
    """Arrays of n layouts, copied from one to the next."""

    def shape(i: int) -> str:
        return f"f32[{8 + i % 50},128]{_TILES[i % len(_TILES)]}"

    lines = "  %k = f32[] constant(2)\n" + "".join(
        f"  %x{i} = {shape(i)} broadcast(%k), dimensions={{}}\n  %y{i} = {shape(i + 50)} copy(%x{i})\n"
        for i in range(n)
    )
    shapes = ", ".join(shape(i + 50) for i in range(n))
    return entry(lines, f"tuple({joined(n, '%y#')})", f"({shapes})")


def reshaped(n: int) -> str:
    """Reshapes and transposes, there and back."""
    lines = "  %x0 = f32[4] negate(%p)\n" + each(
        n,
        "  %a# = f32[2,2] reshape(%x#-)\n  %b# = f32[2,2] transpose(%a#), dimensions={1,0}\n"
        "  %c.# = f32[2,2] add(%a#, %b#)\n  %x# = f32[4] reshape(%c.#)\n",
        1,
    )
    return entry(lines, f"negate(%x{n - 1})")


def numbers(n: int) -> str:
    """A constant of 10 n numbers."""
    values = ", ".join(f"{i}.5" for i in range(10 * n))
    lines = f"  %k = f32[{10 * n}] constant({{{values}}})\n  %q = f32[{10 * n}] negate(%k)\n"
    return entry(lines, "slice(%q), slice={[0:4]}")


def folded(n: int) -> str:
    """n sums of constants."""
    return chained(
        n, f"  %k# = {F} constant({{1, 2, 3, #}})\n  %l# = {F} add(%k#, %k#)\n  %x# = {F} add(%x#-, %l#)"
    )


MODULES: dict[str, tuple[int, Callable[[int], str]]] = {
    # ---- uses
    "a chain": (1000, lambda n: chained(n, '  %x# = f32[4] add(%x#-, %p), metadata={op_name="a/b#"}')),
    "one user of equals": (1000, lambda n: listed(n, "  %x# = f32[4] sine(%p)")),
    "one user": (1000, lambda n: listed(n, '  %x# = f32[4] custom-call(%p), custom_call_target="t#"')),
    "many users": (1000, slices),
    "many users of many": (1000, lambda n: tupled(
        n, each(n, "  %x# = f32[4] sine(%p)\n") + f"  %t = ({joined(n, F)}) tuple({joined(n, '%x#')})\n"
        + each(n, "  %y# = f32[4] get-tuple-element(%t), index=#\n"), "%y#")),
    "doubling sums": (1000, lambda n: chained(n, "  %x# = f32[4] add(%x#-, %x#-)")),
    "a ladder": (1000, lambda n: entry(
        "  %x0 = f32[4] sine(%p)\n  %y0 = f32[4] cosine(%p)\n"
        + each(n, "  %x# = f32[4] add(%x#-, %y#-)\n  %y# = f32[4] multiply(%x#-, %y#-)\n", 1),
        f"add(%x{n - 1}, %y{n - 1})")),
    "unused lines": (1000, lambda n: chained(n, "  %u.# = f32[4] sine(%x#-)\n  %x# = f32[4] negate(%x#-)")),
    "an unused chain": (1000, lambda n: entry(
        "  %x0 = f32[4] sine(%p)\n" + each(n, "  %x# = f32[4] sine(%x#-)\n", 1), "negate(%p)")),
    "control": (500, controlled),
    # ---- calls
    "calls of one": (500, lambda n: chained(n, "  %x# = f32[4] call(%x#-), to_apply=%f", negating("f"))),
    "calls of one, wide": (500, lambda n: listed(n, "  %x# = f32[4] call(%p), to_apply=%f", before=negating("f"))),
    "calls of equals": (500, equal_computations),
    "calls of others": (500, lambda n: chained(
        n, "  %x# = f32[4] call(%x#-), to_apply=%f#",
        "".join(negating(f"f{i}", ("sine", "cosine", "tan")[i % 3], F) for i in range(1, n)))),
    "a chain of calls": (300, chain_of_calls),
    "a doubling chain of calls": (300, lambda n: chain_of_calls(n, 2)),
    "fusions of one": (500, lambda n: chained(
        n, "  %x# = f32[4] fusion(%x#-), kind=kLoop, calls=%f", negating("f"))),
    "fusions": (500, lambda n: chained(
        n, "  %x# = f32[4] fusion(%x#-), kind=kLoop, calls=%f#", "".join(negating(f"f{i}") for i in range(1, n)))),
    "loops": (200, loops),
    "nested loops": (200, nested_loops),
    "a wide loop": (500, wide_loop),
    "branches": (500, branches),
    "nested conditionals": (300, nested_conditionals),
    "operands of a fusion": (500, lambda n: fusion(n, True)),
    "equal operands of a fusion": (500, lambda n: fusion(n, True, "%x# = f32[4] sine(%p)")),
    "unused operands of a fusion": (500, lambda n: fusion(n, False)),
    "results of a fusion": (500, fusion_of_results),
    # ---- tuples
    "a tuple": (1000, passed_tuple),
    "a tuple of tuples": (500, tuple_of_tuples),
    "deep tuples": (20, deep_tuples),
    "deep tuples, built": (12, built_tuples),
    # ---- operations
    "collectives": (500, lambda n: chained(
        n, "  %x# = f32[4] all-reduce(%x#-), channel_id=#, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, "
        "to_apply=%sum", SUM)),
    "collectives, wide": (500, lambda n: listed(
        n, "  %x# = f32[4] all-reduce(%p), channel_id=#+, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, "
        "to_apply=%sum", before=SUM)),
    "a group of many": (2000, lambda n: entry(
        f"  %x = f32[4] all-reduce(%p), channel_id=1, replica_groups={{{{{joined(n, '#')}}}}}, to_apply=%sum\n",
        "negate(%x)", before=SUM)),
    "equal constants": (1000, lambda n: listed(n, "  %x# = f32[] constant(7)", "f32[]")),
    "constants": (1000, lambda n: listed(n, "  %x# = s32[] constant(#)", "s32[]")),
    "sums of constants": (500, folded),
    "a long constant": (2000, numbers),
    "asynchronous copies": (500, lambda n: pairs(n, _COPY, "copy-done")),
    "asynchronous copies at once": (500, overlapping),
    "asynchronous sums": (500, lambda n: pairs(n, _REDUCE, "all-reduce-done")),
    "asynchronous computations": (300, wrapped),
    "messages": (200, sends),
    "an array sorted with others": (300, sorted_arrays),
    "arrays reduced at once": (300, reduced_arrays),
    "a concatenation": (1000, lambda n: entry(
        each(n, "  %x# = f32[4] sine(%p)\n") + f"  %c = f32[{4 * n}] concatenate({joined(n, '%x#')}), dimensions={{0}}\n",
        "slice(%c), slice={[0:4]}")),
    "copies": (1000, lambda n: chained(n, "  %x# = f32[4] copy(%x#-)")),
    "reshapes": (300, reshaped),
    "converts": (500, lambda n: chained(n, "  %h# = bf16[4] convert(%x#-)\n  %x# = f32[4] convert(%h#)")),
    "pads": (500, lambda n: chained(n, "  %k# = f32[] constant(0)\n  %h# = f32[6] pad(%x#-, %k#), padding=1_1\n"
                                    "  %x# = f32[4] slice(%h#), slice={[1:5]}")),
    "dots": (500, lambda n: chained(n, "  %x# = f32[4,4] dot(%x#-, %p), lhs_contracting_dims={1}, "
                                    "rhs_contracting_dims={0}", shape="f32[4,4]")),
    "barriers": (500, lambda n: chained(n, "  %x# = f32[4] opt-barrier(%x#-)")),
    "custom calls": (500, lambda n: chained(
        n, '  %x# = f32[4] custom-call(%x#-), custom_call_target="t", backend_config="{\\"a\\":#}"')),
    # ---- notes and types
    "frames": (500, frames),
    "deep names": (2000, deep_names),
    "aliases": (500, aliases),
    "donors": (500, lambda n: aliases(n, True)),
    "layouts": (300, tiled),
    "shardings": (500, sharded),
    "values held": (500, held),
    "updates in place": (300, updates),
}  # fmt: skip
"""Name -> n, and the module of size n."""

"""Errors that JAX raises while it traces a program: shapes, types, carries of loops, values that are not there yet."""

from __future__ import annotations

_STATIC = "Python needs a concrete value, which a traced array does not have: "
_ARRAYS = "arguments must be arrays: mark this one static (static_argnums, static_argnames), or remove it from the call"

ROWS: tuple[tuple[str, str, str], ...] = (
    (
        "carry",
        r"(?:The input )?carry (?:component )?(?P<carry>\S+) has type (?P<required>\S+) but the corresponding output"
        r" carry component has type (?P<passed>\S+?), so the manual axis types do not match",
        "apply jax.lax.pcast(init, axes, to='varying') to the initial value",
    ),
    (
        "carry",
        r"(?:The input )?carry (?:component )?(?P<carry>\S+) has type (?P<required>\S+) but the corresponding output"
        r" carry component has type (?P<passed>\S+?), so the (?P<reason>[^.\n]+?) do not match",
        "convert the initial value to the type that the body returns, or convert inside the body",
    ),
    (
        "carry",
        r"The output of (?P<one>\S+) has type (?P<required>\S+) but the corresponding output of (?P<other>\S+) has type"
        r" (?P<passed>\S+?), so the (?P<reason>[^.\n]+?) do not match",
        "make all branches return the same shapes and types: convert inside the branch that differs",
    ),
    (
        "tracer",
        r"Abstract tracer value encountered where concrete value is expected: traced array with shape"
        r" (?P<shape>\w+\[[\d,]*\])(?:[^\n]*\n?The problem arose with the `(?P<function>\w+)` function)?",
        _STATIC
        + "keep it an array (astype, jnp functions), mark the argument static (static_argnums), or compute it outside of jit",
    ),
    (
        "tracer",
        r"Attempted boolean conversion of traced array with shape (?P<shape>\w+\[[\d,]*\])",
        _STATIC + "use jnp.where, jax.lax.cond or jax.lax.while_loop, or mark the argument static",
    ),
    (
        "tracer",
        r"conversion method __array__\(\) was called on traced array with shape (?P<shape>\w+\[[\d,]*\])",
        _STATIC + "use jax.numpy instead of numpy, or jax.pure_callback",
    ),
    (
        "tracer",
        r"Array slice indices must have static start/stop/step",
        _STATIC + "use jax.lax.dynamic_slice with a static size, or mark the argument static",
    ),
    (
        "tracer",
        r"Array boolean indices must be concrete; got (?P<shape>\w+\[[\d,]*\])",
        "the number of results depends on values: use jnp.where(mask, x, 0), or jnp.nonzero(mask, size=N) with a known size",
    ),
    (
        "tracer",
        r"JAX arrays are immutable and do not support in-place item assignment",
        "use x = x.at[index].set(value), which jit performs in place where possible",
    ),
    (
        "shapes",
        r"vmap got inconsistent sizes for array axes to be mapped:\s+\* [^\n]{0,80}?ax[ei]s had size (?P<size>\d+):"
        r" (?P<one>[^\n;]+);?\s+\* [^\n]{0,80}?ax[ei]s had size (?P<other_size>\d+): (?P<other>[^\n;]+)",
        "make mapped axes equal in size (slice or pad), or set in_axes=None for arguments that are not mapped",
    ),
    (
        "tracer",
        r"Cannot interpret value of type (?P<type><class '[^'\n]+'>) as an abstract array",
        _ARRAYS,
    ),
    (
        "types",
        r"cond_fun must return a boolean scalar, but got output types?\(?s?\)? (?P<passed>[^\n]{1,200}?)\.(?=\s|$)",
        "make the condition a single truth value: reduce it (jnp.any, jnp.all), or index it",
    ),
    (
        "types",
        r"Custom VJP bwd rule must produce [^\n]{1,300}?, but got bwd output structure (?P<passed>PyTreeDef\([^\n]*?\)) for"
        r" primal input structure (?P<required>PyTreeDef\([^\n]*?\))(?=[.\s]|$)",
        "return a tuple with one gradient per argument of the function (None for none)",
    ),
    (
        "tracer",
        r"Non-hashable static arguments are not supported",
        "pass a tuple instead of a list, or trace the argument",
    ),
    (
        "shapes",
        r"(?P<operation>\w+) got incompatible shapes for broadcasting: (?P<one>\([^\n]*?\)), (?P<other>\([^\n]*?\))\.",
        "make dimensions equal or 1: reshape, transpose or index one operand (x[:, None])",
    ),
    (
        "shapes",
        r"(?P<operation>\w+) requires contracting dimensions to have the same shape, got (?P<one>\([^\n]*?\)) and"
        r" (?P<other>\([^\n]*?\))\.",
        "contract dimensions of equal size: transpose an operand, or choose others in dimension_numbers",
    ),
    (
        "shapes",
        r"scan got values with different leading axis sizes: (?P<passed>\d+(?:, \d+)*)",
        "make the sequences equal in length: slice or pad them",
    ),
    (
        "shapes",
        r"cannot reshape array of shape (?P<passed>\([\d, ]*\)) \(size (?P<size>\d+)\) into shape (?P<required>\([\d, -]*\))",
        "use a shape with the same number of elements",
    ),
    (
        "shapes",
        r"Cannot concatenate arrays with shapes that differ in dimensions other than the one being concatenated:"
        r" concatenating along dimension (?P<dimension>\d+) for shapes (?P<passed>\([\d, ]*\)(?:, \([\d, ]*\))*)",
        "make all other dimensions equal, or concatenate along another axis",
    ),
    (
        "shapes",
        r"Gradient only defined for scalar-output functions\. Output had shape: (?P<passed>\([\d, ]*\))",
        "reduce the output to a scalar (sum, mean), or use jax.jacobian",
    ),
    (
        "types",
        r"(?P<operation>grad|jacrev|jacfwd|value_and_grad) requires [^\n]{1,200}?, but got (?P<passed>\w+)",
        "differentiate with respect to floats: convert the argument, or choose others with argnums",
    ),
    (
        "tracer",
        r"Error interpreting argument to (?P<function>[^\n]{1,160}?) as an abstract array\. The problematic value is of type"
        r" (?P<type><class '[^'\n]+'>)(?: and was passed to the function at path (?P<argument>[^\s]+?)\.)?",
        _ARRAYS,
    ),
    (
        "types",
        r"(?P<operation>\w+) requires arguments to have the same dtypes, got (?P<types>[\w, ]+)",
        "convert one operand (astype)",
    ),
    (
        "tracer",
        r"Encountered an unexpected tracer\.",
        "return the value from the traced function instead of storing it outside",
    ),
    (
        "nan",
        r"invalid value \((?P<value>nan|inf)\) encountered in (?P<operation>[\w ]+)",
        "inspect the operands of that operation; jax_debug_nans reruns it without jit to locate it",
    ),
)
"""Kind, sentence and remedy."""

"""Errors of JAX and of XLA's runtime, besides messages of compilers: a sentence each, and what helps.

Named groups are fields of the message or facts: `required` is what a program was compiled for, `passed` what it was given.
"""

from __future__ import annotations

from hlotext.messages import tracing_rows

ARRAY = r"\w+\[[\d,<=?]*\][^\s()]*?"
_SPEC = r"P\w*\([^\n]*?\)"
_AGAIN = "call it with arguments like those it was compiled for, or compile it for these (jax.jit does so automatically)"
_WAITING = (
    "some participants never arrived, or exited: look for an earlier error in another process, then compare the programs "
    "of all processes (hlotext dump hosts DIR finds different programs and collective orders)"
)
_ENDED = (
    "a process exited or was killed: its own log or the scheduler shows the cause (an exception, out of memory, "
    "preemption); the others failed only because they lost it"
)
_TASK = r"(?:/job:\S+|\d+)"
_BLOCK = "use blocks whose last two dimensions are multiples of 8 and 128, or equal to the array's"
_TAKEN = (
    "it was donated to an earlier call (donate_argnums) or deleted with delete(): use the result of that call, or do not "
    "donate it"
)

ROWS: tuple[tuple[str, str, str], ...] = (
    (
        "deleted",
        r"Array has been deleted with shape=(?P<shape>\w+\[[\d,]*\])",
        _TAKEN,
    ),
    (
        "deleted",
        r"(?:Buffer has been deleted or donated|Array deleted or donated|called on deleted or donated buffer)",
        _TAKEN,
    ),
    (
        "donation",
        r"Attempt to donate the same buffer twice in Execute\(\) \(flattened argument (?P<argument>\d+), replica \d+,"
        r" partition \d+, first use: (?P<first_use>\d+)\)",
        "both arguments are the same array: copy it, or donate it once",
    ),
    (
        "devices",
        r"Received incompatible devices for jitted computation\. Got (?P<one>[^\n]{1,200}?) with shape (?P<shape>\S+)"
        r" and with device ids (?P<devices>\[[^\]]*\]) on platform \w+ and (?P<other>[^\n]{1,200}?) with shape"
        r" (?P<other_shape>\S+) and with device ids (?P<other_devices>\[[^\]]*\])",
        "put both on the same devices in the same order (jax.device_put), or pass in_shardings to jax.jit",
    ),
    (
        "sharding",
        r"shape=\[[\d, ]*\] is incompatible with mesh_shape=[^\n]{1,200}?: dim_size=(?P<size>\d+) is not divisible by"
        r" axis_size=(?P<parts>\d+)",
        "",
    ),
    (
        "sharding",
        r"Sharding spec [^\n]{1,200}? implies that array axis (?P<axis>\d+) is partitioned (?P<parts>\d+) times, but does"
        r" not evenly divide the dimension size (?P<size>\d+)",
        "",
    ),
    (
        "sharding",
        r"maps array axis (?P<axis>\d+) \(of size (?P<size>\d+)\) to mesh ax[ei]s (?P<mesh_axis>'\w+'|\([^\n]*?\))"
        r" \(of (?:total )?size (?P<parts>\d+)\)",
        "",
    ),
    (
        "sharding",
        r"is only valid for values of rank at least (?P<required>\d+), but was applied to a value of rank (?P<passed>\d+)",
        "use a PartitionSpec with at most as many entries as the array has dimensions",
    ),
    (
        "sharding",
        rf"Resource axis: (?P<mesh_axis>\S+) of (?P<spec>{_SPEC}) is not found in mesh: (?P<mesh>\([^\n]*?\))",
        "use an axis of the mesh, or add this axis to it",
    ),
    (
        "sharding",
        rf"map every mesh axis to at most one positional dimension, but (?P<spec>{_SPEC}) has duplicate entries for"
        r" `(?P<mesh_axis>\w+)`",
        "use each mesh axis for at most one dimension of an array",
    ),
    (
        "sharding",
        r"(?P<operation>\w+) got incompatible shardings for broadcasting: (?P<one>\([^\n]*?\)), (?P<other>\([^\n]*?\))\.",
        "reshard one operand to the sharding of the other first (jax.sharding.reshard)",
    ),
    (
        "sharding",
        r"Contracting dimensions are sharded and it is ambiguous how the output should be sharded\.[^\n]{0,200}?"
        r"lhs_contracting_spec=(?P<one>\([^\n]*?\)) and rhs_contracting_spec=(?P<other>\([^\n]*?\))",
        "specify the sharding of the result with out_sharding=",
    ),
    (
        "sharding",
        rf"with_sharding_constraint can only refer to Auto axes of the mesh\. Got spec=(?P<spec>{_SPEC})",
        "use jax.sharding.reshard for explicit axes, or a mesh with axis_types=AxisType.Auto",
    ),
    (
        "sharding",
        rf"in_specs passed to shard_map: (?P<required>{_SPEC}) does not match the specs of the input: (?P<passed>{_SPEC})"
        r" for arg: (?P<shape>\S+)\.",
        "reshard the argument to in_specs first, or omit in_specs for explicit axes",
    ),
    (
        "sharding",
        r"compiled for input shardings that disagree with the shardings of arguments passed to it\.[^\n]{0,60}"
        r" Argument (?P<argument>\S+) with shape (?P<shape>\S+?): Passed sharding: (?P<passed>[^\n]+)"
        r" Required sharding: (?P<required>[^\n]+)",
        "jax.device_put the argument with compiled.input_shardings, or compile for its actual sharding",
    ),
    (
        "layout",
        r"compiled for input layouts that disagree with the layouts of arguments passed to it\.[^\n]{0,60}"
        r" Argument (?P<argument>\S+) with shape (?P<shape>\S+?): Passed layout: (?P<passed>[^\n]+)"
        r" Required layout: (?P<required>[^\n]+)",
        "jax.device_put the argument with compiled.input_formats, or leave the layout to jax.jit",
    ),
    (
        "layout",
        r"is incompatible with its layout annotation (?P<layout>Layout\([^\n]*?\)): (?P<reason>[^\n]+)",
        "use a layout with the rank of the value",
    ),
    (
        "arguments",
        r"Argument types differ from the types for which this computation was compiled\.[^\n]{0,300} Argument"
        r" '?(?P<argument>[^\s']+)'? compiled with (?P<required>\S+) and called with (?P<passed>\S+)",
        _AGAIN,
    ),
    (
        "arguments",
        r"Executable(?:\((?P<module>[^)]*)\))? expected parameter (?P<argument>\d+) of size (?P<required_bytes>\d+)"
        rf" \((?P<required>{ARRAY}(?:\([^\n()]*\)[^\s()]*)*)\) but got buffer with incompatible size (?P<passed_bytes>\d+)"
        rf" \((?P<passed>{ARRAY}(?:\([^\n()]*\)[^\s()]*)*)\)",
        _AGAIN,
    ),
    (
        "arguments",
        r"Executable(?:\((?P<module>[^)]*)\))? expected parameter (?P<argument>\d+) (?:dimension (?P<dimension>\d+)"
        r" (?:static|runtime) size(?: <=)?|to have (?:element type|layout|rank)) (?P<required>\S+?),? but got buffer with"
        r" (?:size|element type|layout|rank) (?P<passed>\S+)",
        _AGAIN,
    ),
    (
        "arguments",
        r"Execution supplied (?P<passed>\d+) (?:arguments|buffers) but compiled program expected (?P<required>\d+)",
        _AGAIN,
    ),
    (
        "shard-map",
        rf"out_specs(?:\S*)? is (?P<spec>{_SPEC}) which implies that the corresponding output value is replicated across"
        r" mesh ax[ei]s (?P<mesh_axis>'\w+'|\([^\n]*?\))",
        "reduce over that axis (jax.lax.psum, pmean, all_gather), or name it in out_specs; use check_vma=False only if all "
        "devices hold the same value anyway",
    ),
    (
        "shard-map",
        rf"(?P<spec>{_SPEC}) which has length (?P<length>\d+), but (?P<value>\S+) has shape (?P<shape>\S+), which has rank"
        r" (?P<rank>\d+)",
        "use a spec with at most as many entries as the value has dimensions",
    ),
    (
        "kernel",
        r"Unimplemented primitive in Pallas (?P<platform>[\w ]+?) lowering(?: for [\w.]+)?: (?P<primitive>[\w\-]+)",
        "move this operation out of the kernel, or rewrite it with others: Pallas does not lower it on this platform",
    ),
    (
        "lowering",
        r"MLIR translation rule for primitive '(?P<primitive>[\w\-]+)' not found for platform (?P<platform>\w+)",
        "JAX supports this operation on other platforms only: run it there or in jax.pure_callback, or use another operation",
    ),
    (
        "kernel",
        r"requires that the last two dimensions of your block shape are divisible by 8 and 128[^\n]{0,300}? Block spec for"
        r" (?P<argument>\S+) in pallas_call (?P<kernel>\S+) at (?P<file>\S+?):(?P<line>\d+) has block shape"
        r" (?P<block>[^\n]{1,300}?), array shape (?P<array>\([^()\n]*\))",
        _BLOCK,
    ),
    (
        "kernel",
        r"requires that the last two dimensions of your block shape are divisible by 8 and 128",
        _BLOCK,
    ),
    (
        "kernel",
        r"kernel function in the pallas_call (?P<kernel>\S+) at (?P<file>\S+?):(?P<line>\d+) captures constants"
        r" (?P<constants>\[[^\n]*?\])\.",
        "pass these arrays to pallas_call as inputs with a BlockSpec each",
    ),
    (
        "kernel",
        r"Out of bound slice: start=(?P<start>-?\d+), size=(?P<length>\d+), stride=(?P<stride>\d+), dim=(?P<size>\d+)",
        "keep the slice inside the array: start + (size - 1) * stride must be less than the dimension",
    ),
    (
        "kernel",
        r"Index map function (?P<function>\S+) at (?P<file>\S+?):(?P<line>\d+) for (?P<argument>\S+) must return"
        r" (?P<required>\d+) values to match block_shape=[^\n]{1,300}? Currently returning (?P<passed>\d+) values",
        "return one index per dimension of the block",
    ),
    (
        "kernel",
        r"Invalid (?:shape|dtype) for `(?P<operation>\w+)`\. Ref (?:shape|dtype): (?P<ref>\([^)\n]*\)|\w+)\.[^\n]{0,80}?"
        r" Value (?:shape|dtype): (?P<value>\([^)\n]*\)|\w+)",
        "store a value of the block's shape and type: reshape, broadcast or convert it first",
    ),
    (
        "kernel",
        r"Only interpret mode is supported on (?P<platform>\w+) backend",
        "use pallas_call(..., interpret=True) there, or run on a TPU or a GPU",
    ),
    (
        "custom-call",
        r"Custom emitter for (?P<target>\S+) not found",
        "this compiler does not know the target, and host FFI targets do not run there: write the operation in JAX or "
        "Pallas, or run it on the host (jax.pure_callback)",
    ),
    (
        "option",
        r"No such compile option: '(?P<option>[^']+)'",
        "this release does not have the option, at least not for this platform: check its spelling, or remove it",
    ),
    (
        "option",
        r"While setting option (?P<option>\w+), '(?P<value>[^']*)' is not a valid (?P<type>\w+) value",
        "use a value of that type",
    ),
    (
        "option",
        r"Unknown flags? in XLA_FLAGS: (?P<option>[^\n]+)",
        "this release does not have the flag, at least not for this platform: check its spelling, or remove it",
    ),
    (
        "collective",
        r"(?P<operation>\w+) sources and destinations must be unique, got (?P<pairs>[^\n]+?)\.?(?=\n|$)",
        "let each device send at most once and receive at most once",
    ),
    (
        "collective",
        r"The size of (?P<operation>\w+) split_axis \((?P<size>\d+)\) has to be divisible by the size of the named axis"
        r" (?P<mesh_axis>\w+) \((?P<parts>\d+)\)",
        "pad the dimension to a multiple, or split another dimension",
    ),
    (
        "collective",
        r"(?P<operation>\w+) operand scatter dimension size (?P<size>\d+) must (?:be divisible by|match) shard_count"
        r" (?P<parts>\d+)",
        "pad the dimension to a multiple, or scatter another dimension",
    ),
    (
        "collective",
        r"unbound axis name: (?P<mesh_axis>\w+)",
        "use an axis of the enclosing mesh or map (jax.shard_map, jax.vmap)",
    ),
    (
        "arguments",
        r"pytree structure error: (?P<reason>[^\n]+)",
        "make both trees have the same keys and containers; compare their jax.tree.structure",
    ),
    (
        "platform",
        r"Unable to initialize backend '(?P<platform>\w+)': (?P<reason>[^\n]+)",
        "install the platform's plugin, make sure that no other process uses the device, or set JAX_PLATFORMS",
    ),
    (
        "platform",
        r"Unable to load (?P<library>\w+)\. Is it installed\?",
        "install it where the loader finds it: pip install 'jax[cuda12]' includes NVIDIA's libraries; LD_LIBRARY_PATH must "
        "not point to others",
    ),
    (
        "process",
        r"distributed\.initialize should only be called once",
        "call it only once, before any other use of JAX",
    ),
    (
        "process",
        r"jax\.distributed\.initialize\(\) must be called before any JAX calls",
        "call it first, before any array, device list or jit",
    ),
    (
        "platform",
        r"Unknown backend:? '?(?P<platform>\w+)'?(?: requested[^\n]*|\. Available backends are (?P<available>\[[^\n]*?\]))",
        "install the platform's plugin, or set JAX_PLATFORMS",
    ),
    (
        "platform",
        r"was exported for platforms '(?P<required>\([^\n]*?\))' but it is used on '(?P<passed>\([^\n]*?\))'",
        "list all platforms that it will run on: jax.export.export(..., platforms=[...])",
    ),
    (
        "cache",
        r"Error (?:reading|writing) persistent compilation cache entry (?:for|to) '(?P<module>[^']+)': (?P<reason>[^\n]+)",
        "harmless: the program was compiled without the cache, which only costs time; jax_compilation_cache_dir must be a "
        "writable folder; delete damaged entries",
    ),
    (
        "deadlock",
        r"This thread has been waiting for `(?P<waiting_for>[^`]+)` for (?P<seconds>\d+) seconds and may be stuck"
        r"(?:\. Expected (?P<required>\d+) threads to join)?",
        _WAITING,
    ),
    (
        "deadlock",
        r"Termination timeout for `(?P<waiting_for>[^`]+)` of (?P<seconds>\d+) seconds exceeded(?:\. Exiting to ensure a"
        r" consistent program state\. Expected (?P<required>\d+) threads to join the rendezvous, but only"
        r" (?P<arrived>\d+) of them arrived)?",
        _WAITING,
    ),
    ("deadlock", r"Barrier timed out\. Id: (?P<barrier>[^\s.]+)", _WAITING),
    (
        "process",
        r"Gloo (?P<operation>[\w\- ]{2,40}?) failed: (?P<reason>[^\n]*?Connection (?:reset|closed) by peer[^\n]*)",
        _ENDED,
    ),
    (
        "process",
        rf"(?:Barrier failed because: task is set to ERROR: \w+: )?Task (?P<task>{_TASK}) heartbeat timeout",
        _ENDED,
    ),
    (
        "process",
        r"tasks are unhealthy \(stopped sending heartbeats\)"
        rf"(?::\s*(?P<task>{_TASK}(?:[\s,]+{_TASK})*))?",
        _ENDED,
    ),
    ("deadlock", r"Gloo (?P<operation>[\w\- ]{2,40}?) (?:failed|timed out): (?P<reason>[^\n]+)", _WAITING),
    (
        "collective",
        r"op\.preamble\.length <= op\.nbytes\. (?P<passed_bytes>\d+) vs (?P<required_bytes>\d+)\. Received data size doesn't"
        r" match expected size",
        "processes run collectives of different sizes; hlotext dump hosts DIR finds the process whose program differs",
    ),
    (
        "process",
        r"DEADLINE_EXCEEDED: [^\n]{0,300}(?:\s+Additional[^\n]*)?\s+RPC: /\S*CoordinationService/RegisterTask",
        "not all processes registered in time: either one never started (check num_processes, and which process has no "
        "log), or this one cannot reach process 0 at coordinator_address, which must be the same everywhere; all must "
        "start within initialization_timeout",
    ),
    (
        "process",
        r"Failed to send RPC to coordination service",
        "the coordinator, usually process 0, exited or is unreachable: look for its error",
    ),
    ("deadlock", r"NCCL operation (?P<operation>\S+) failed: (?P<reason>[^\n]+)", _WAITING),
    ("deadlock", r"(?:GetKeyValue|BlockingKeyValueGet)\(\) timed out with key: (?P<key>\S+)", _WAITING),
    (
        "verifier",
        r"Expected instruction to have shape equal to (?P<required>\S+), actual shape is (?P<shape>\S+): (?:ROOT )?"
        r"%?(?P<instruction>[\w.\-]+) = ",
        "the shape violates a rule of the opcode; hlotext verify FILE names it",
    ),
    *tracing_rows.ROWS,
)
"""Kind, sentence and remedy; no remedy of its own: that of the kind."""

"""Errors of JAX and of XLA's runtime, besides messages of compilers: a sentence each, and what helps.

Named groups are fields of the message or facts: `required` is what a program was compiled for, `passed` what it was given.
"""

from __future__ import annotations

from hlotext.messages import tracing_rows

ARRAY = r"\w+\[[\d,<=?]*\][^\s()]*?"
_SPEC = r"P\w*\([^\n]*?\)"
_AGAIN = "call it with arguments as it was compiled for, or compile it for these: jax.jit does so by itself"
_WAITING = (
    "some participants never came, or ended: look for an earlier error of another process, then compare the programs of all:"
    " hlotext dump hosts DIR finds other programs and other orders of collectives"
)
_ENDED = (
    "a process ended or was killed: its own log or the scheduler has the cause (an exception, out of memory, preemption);"
    " the others failed only because they lost it"
)
_TASK = r"(?:/job:\S+|\d+)"
_BLOCK = "blocks whose last two dimensions are multiples of 8 and 128, or the array's own"
_TAKEN = "an earlier call took it (donate_argnums), or delete() did: use the result of that call, or do not donate it"

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
        "both arguments are one array: copy it, or donate it once",
    ),
    (
        "devices",
        r"Received incompatible devices for jitted computation\. Got (?P<one>[^\n]{1,200}?) with shape (?P<shape>\S+)"
        r" and with device ids (?P<devices>\[[^\]]*\]) on platform \w+ and (?P<other>[^\n]{1,200}?) with shape"
        r" (?P<other_shape>\S+) and with device ids (?P<other_devices>\[[^\]]*\])",
        "put both on the same devices in the same order (jax.device_put), or give jax.jit in_shardings",
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
        "a PartitionSpec with at most as many entries as the array has dimensions",
    ),
    (
        "sharding",
        rf"Resource axis: (?P<mesh_axis>\S+) of (?P<spec>{_SPEC}) is not found in mesh: (?P<mesh>\([^\n]*?\))",
        "name an axis of the mesh, or add this one to it",
    ),
    (
        "sharding",
        rf"map every mesh axis to at most one positional dimension, but (?P<spec>{_SPEC}) has duplicate entries for"
        r" `(?P<mesh_axis>\w+)`",
        "each mesh axis may shard one dimension of an array",
    ),
    (
        "sharding",
        r"(?P<operation>\w+) got incompatible shardings for broadcasting: (?P<one>\([^\n]*?\)), (?P<other>\([^\n]*?\))\.",
        "give one operand the sharding of the other first (jax.sharding.reshard)",
    ),
    (
        "sharding",
        r"Contracting dimensions are sharded and it is ambiguous how the output should be sharded\.[^\n]{0,200}?"
        r"lhs_contracting_spec=(?P<one>\([^\n]*?\)) and rhs_contracting_spec=(?P<other>\([^\n]*?\))",
        "say how the result is sharded: out_sharding=",
    ),
    (
        "sharding",
        rf"with_sharding_constraint can only refer to Auto axes of the mesh\. Got spec=(?P<spec>{_SPEC})",
        "jax.sharding.reshard for explicit axes, or a mesh with axis_types=AxisType.Auto",
    ),
    (
        "sharding",
        rf"in_specs passed to shard_map: (?P<required>{_SPEC}) does not match the specs of the input: (?P<passed>{_SPEC})"
        r" for arg: (?P<shape>\S+)\.",
        "reshard the argument to in_specs first, or leave in_specs out for explicit axes",
    ),
    (
        "sharding",
        r"compiled for input shardings that disagree with the shardings of arguments passed to it\.[^\n]{0,60}"
        r" Argument (?P<argument>\S+) with shape (?P<shape>\S+?): Passed sharding: (?P<passed>[^\n]+)"
        r" Required sharding: (?P<required>[^\n]+)",
        "jax.device_put the argument with compiled.input_shardings, or compile for the sharding that it has",
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
        "a layout of the value's rank",
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
        "reduce over that axis (jax.lax.psum, pmean, all_gather), or name it in out_specs; check_vma=False only where all"
        " devices hold the same value anyway",
    ),
    (
        "shard-map",
        rf"(?P<spec>{_SPEC}) which has length (?P<length>\d+), but (?P<value>\S+) has shape (?P<shape>\S+), which has rank"
        r" (?P<rank>\d+)",
        "a spec with at most as many entries as the value has dimensions",
    ),
    (
        "kernel",
        r"Unimplemented primitive in Pallas (?P<platform>[\w ]+?) lowering(?: for [\w.]+)?: (?P<primitive>[\w\-]+)",
        "do this operation outside of the kernel, or write it with others: Pallas does not lower it on this platform",
    ),
    (
        "lowering",
        r"MLIR translation rule for primitive '(?P<primitive>[\w\-]+)' not found for platform (?P<platform>\w+)",
        "JAX has this operation on other platforms only: run it there, or in jax.pure_callback, or use another one",
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
        "a slice inside of the array: start + (size - 1) * stride below the dimension",
    ),
    (
        "kernel",
        r"Index map function (?P<function>\S+) at (?P<file>\S+?):(?P<line>\d+) for (?P<argument>\S+) must return"
        r" (?P<required>\d+) values to match block_shape=[^\n]{1,300}? Currently returning (?P<passed>\d+) values",
        "an index for each dimension of the block",
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
        "pallas_call(..., interpret=True) there, or run on a TPU or a GPU",
    ),
    (
        "custom-call",
        r"Custom emitter for (?P<target>\S+) not found",
        "this compiler knows no such target, and FFI targets of the host do not run there: write the operation in JAX or"
        " Pallas, or run it on the host (jax.pure_callback)",
    ),
    (
        "option",
        r"No such compile option: '(?P<option>[^']+)'",
        "this release has no such option, or not for this platform: check its spelling, or leave it out",
    ),
    (
        "option",
        r"While setting option (?P<option>\w+), '(?P<value>[^']*)' is not a valid (?P<type>\w+) value",
        "a value of that type",
    ),
    (
        "option",
        r"Unknown flags? in XLA_FLAGS: (?P<option>[^\n]+)",
        "this release has no such flag, or not for this platform: check its spelling, or leave it out",
    ),
    (
        "collective",
        r"(?P<operation>\w+) sources and destinations must be unique, got (?P<pairs>[^\n]+?)\.?(?=\n|$)",
        "each device sends at most once and receives at most once",
    ),
    (
        "collective",
        r"The size of (?P<operation>\w+) split_axis \((?P<size>\d+)\) has to be divisible by the size of the named axis"
        r" (?P<mesh_axis>\w+) \((?P<parts>\d+)\)",
        "pad the dimension to a multiple, or split another one",
    ),
    (
        "collective",
        r"(?P<operation>\w+) operand scatter dimension size (?P<size>\d+) must (?:be divisible by|match) shard_count"
        r" (?P<parts>\d+)",
        "pad the dimension to a multiple, or scatter another one",
    ),
    (
        "collective",
        r"unbound axis name: (?P<mesh_axis>\w+)",
        "name an axis of the mesh that encloses the call (jax.shard_map, jax.vmap)",
    ),
    (
        "arguments",
        r"pytree structure error: (?P<reason>[^\n]+)",
        "both trees need the same keys and containers: compare jax.tree.structure of both",
    ),
    (
        "platform",
        r"Unable to initialize backend '(?P<platform>\w+)': (?P<reason>[^\n]+)",
        "install the plugin of that platform, see that no other process uses the device, or set JAX_PLATFORMS",
    ),
    (
        "platform",
        r"Unable to load (?P<library>\w+)\. Is it installed\?",
        "install it where the loader finds it: pip install 'jax[cuda12]' brings NVIDIA's libraries, and LD_LIBRARY_PATH must"
        " name no other ones",
    ),
    (
        "process",
        r"distributed\.initialize should only be called once",
        "call it once, before any other use of JAX",
    ),
    (
        "process",
        r"jax\.distributed\.initialize\(\) must be called before any JAX calls",
        "call it first: no array, device list or jit before it",
    ),
    (
        "platform",
        r"Unknown backend:? '?(?P<platform>\w+)'?(?: requested[^\n]*|\. Available backends are (?P<available>\[[^\n]*?\]))",
        "install the plugin of that platform, or set JAX_PLATFORMS",
    ),
    (
        "platform",
        r"was exported for platforms '(?P<required>\([^\n]*?\))' but it is used on '(?P<passed>\([^\n]*?\))'",
        "jax.export.export(..., platforms=[...]) with all platforms on which it will run",
    ),
    (
        "cache",
        r"Error (?:reading|writing) persistent compilation cache entry (?:for|to) '(?P<module>[^']+)': (?P<reason>[^\n]+)",
        "the program was compiled without the cache, so time is lost and nothing else: jax_compilation_cache_dir must be a"
        " folder that can be written; delete an entry that is damaged",
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
        "processes run collectives of different sizes: hlotext dump hosts DIR finds whose program differs",
    ),
    (
        "process",
        r"DEADLINE_EXCEEDED: [^\n]{0,300}(?:\s+Additional[^\n]*)?\s+RPC: /\S*CoordinationService/RegisterTask",
        "not all processes registered in time: either one never started (num_processes, and the process that has no log), or"
        " this one cannot reach process 0 at coordinator_address, which must be the same for all; all must start within"
        " initialization_timeout",
    ),
    (
        "process",
        r"Failed to send RPC to coordination service",
        "the coordinator, usually process 0, ended or cannot be reached: look for its error",
    ),
    ("deadlock", r"NCCL operation (?P<operation>\S+) failed: (?P<reason>[^\n]+)", _WAITING),
    ("deadlock", r"(?:GetKeyValue|BlockingKeyValueGet)\(\) timed out with key: (?P<key>\S+)", _WAITING),
    (
        "verifier",
        r"Expected instruction to have shape equal to (?P<required>\S+), actual shape is (?P<shape>\S+): (?:ROOT )?"
        r"%?(?P<instruction>[\w.\-]+) = ",
        "the shape breaks a rule of the opcode; hlotext verify FILE names the rule",
    ),
    *tracing_rows.ROWS,
)
"""Kind, sentence and remedy; no remedy of its own: that of the kind."""

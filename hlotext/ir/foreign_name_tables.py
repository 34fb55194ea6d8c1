"""Names that other libraries have for what classes have here, what classes do not support, and what they do not set."""

from __future__ import annotations

from collections.abc import Mapping


def turned(table: Mapping[str, str]) -> Mapping[str, str]:
    """Inverts a table from a name used here to space-separated foreign names: maps each foreign name to the name used
    here.
    """
    return {name: use for use, names in table.items() for name in names.split()}


RESULTS = frozenset(
    {
        *(
            "Analysis",
            "ArrayExplanation",
            "Assignment",
            "AssignmentDifference",
            "Baseline",
            "Census",
            "ChipChoice",
        ),
        *(
            "Compilation",
            "CompilerEstimate",
            "Config",
            "DeviceMesh",
            "Diff",
            "DumpFolder",
            "Estimate",
            "Executable",
        ),
        *(
            "Explanation",
            "FindingList",
            "Findings",
            "FolderDiff",
            "Hlo",
            "LowerBound",
            "MemoryStatistics",
            "ParseResult",
        ),
        *(
            "PassResult",
            "Peak",
            "Pipeline",
            "PrintOptions",
            "Reduction",
            "Report",
            "RewriteRule",
            "RunCost",
            "Scopes",
        ),
        *("Summary", "Table", "Thunks", "Trace", "Triage", "TupleExplanation", "XlaAge"),
    }
)
"""Classes of results and settings, of which a program has few: they may be slower, and say what they have."""

FEW = frozenset({"Module", "Computation"})
"""Classes of nodes whose attributes are asked for too seldom for `__getattr__` to cost anything that can be measured."""

SETTINGS = frozenset({"Builder", "Config", "DeviceMesh", "Editor", "Pipeline", "PrintOptions", "RewriteRule"})
"""Classes that people make themselves."""

FOREIGN: Mapping[str, Mapping[str, str]] = {
    "Module": turned(
        {
            "entry": "entry_computation main main_computation",
            'attributes["entry_computation_layout"]': "entry_computation_layout",
            'attributes["input_output_alias"]': "input_output_alias input_output_alias_config aliases donation",
            'attributes["num_partitions"]': "num_partitions partition_count",
            'attributes["replica_count"]': "replica_count num_replicas",
            "computation(name)": "get_computation find_computation computation_by_name get_computation_with_name",
            "instruction(name)": "get_instruction find_instruction instruction_by_name get_instruction_by_name "
            "get_op find_op node",
            "find(name)": "get lookup has find_by_name",
            "communications()": "collectives comms traffic collective_ops",
            "instructions()": "get_instructions ops nodes operations instrs insts all_instructions iter_instructions",
            "len(list(module.instructions()))": "instruction_count num_instructions size",
            "computations": "functions get_computations subcomputations",
            "entry.parameters": "parameters params arguments inputs num_parameters",
            "entry.root": "root root_instruction output outputs result",
            "to_text()": "as_text to_string dump dumps as_string text string to_hlo print_to_string",
            "str(module)": "to_str original_text",
            "str(module), which pathlib.Path(path).write_text takes": "save write write_text to_file export save_to",
            "to_proto()": "as_proto to_bytes serialize as_serialized_hlo_module_proto proto SerializeToString",
            "hlotext.proto.to_json(module)": "to_json",
            "hlotext.tables.tables_of(module)": "to_pandas to_dataframe to_arrow tables table to_dict df to_polars",
            "print(module)": "print show display pprint",
            "clone()": "copy deepcopy duplicate",
            "hlotext.rewrite.Pipeline(hlotext.rewrite.parse_passes(text)).run(module)": "optimize optimise run_passes "
            "simplify run_pass dce cse",
            "hlotext.interop.jax.run(module, *arrays), after import hlotext.interop.jax": "run execute evaluate",
            "hlotext.rewrite.apply_rules(module, rules)": "rewrite apply_rules apply apply_rule replace substitute",
            "compare(other)": "diff difference compare_to compare_with",
            "inspect().count(opcode)": "count count_ops opcode_count opcodes",
            "cost().flops": "flops total_flops",
            "cost().bytes_accessed": "bytes bytes_accessed",
            "memory().peak()": "peak_memory peak memory_usage",
            "estimate(chip).seconds": "time seconds latency runtime",
            "verify()": "check validate is_valid",
            "attributes": "attrs attribute header config",
            "hlotext.parse(text)": "parse from_text from_string from_str loads",
            "hlotext.load(path)": "load from_file read open",
            "add(computation)": "add_computation append insert",
            "remove(computation)": "remove_computation delete",
            "set_entry(computation)": "replace_entry_computation",
            "transaction()": "edit begin atomic",
            "instructions(), with operands and users of each": "graph edges in_edges out_edges predecessors successors "
            "neighbors to_networkx code print_readable",
            "hlotext.verify(module)": "recompile",
            "entry.instructions": "body operation block blocks regions",
            'attributes["is_scheduled"]': "schedule scheduled",
            'hlotext.tables.tables_of(module)["instructions"]': "head iloc loc query filter groupby columns",
        }
    ),
    "Computation": turned(
        {
            "callers": "caller_instructions users",
            "instructions": "get_instructions ops nodes operations instrs insts body",
            "module.instruction(name)": "instruction",
            'computation["name"]': "find find_instruction get get_instruction instruction_by_name "
            "get_instruction_with_name lookup",
            "module.computation(name)": "computation",
            "len(computation)": "instruction_count num_instructions size",
            "parameters": "params arguments args inputs parameter parameter_instructions get_parameters",
            "len(computation.parameters)": "num_parameters parameter_count",
            "parameters[number]": "parameter_instruction get_parameter",
            "module": "parent parent_module",
            "root": "root_instruction output result return_value get_root",
            "root.shape": "result_shape output_shape type",
            "str(computation)": "to_text as_text to_string text dump",
            "remove(instruction)": "remove_instruction delete erase",
            "add(instruction)": "add_instruction append insert",
            "hlotext.rewrite.clone_computation(computation)": "clone copy",
            "module.attributes": "attributes attrs",
            "hlotext.rewrite.Builder.before(instruction)": "builder build",
        }
    ),
    "Instruction": turned(
        {
            "operands": "args inputs input operand arguments sources parents predecessors producers get_operands "
            "all_input_nodes in_edges",
            "operands[0]": "lhs left first_operand",
            "operands[1]": "rhs right second_operand",
            "shape.tuple_shapes": "results outputs",
            "len(instruction.operands)": "operand_count num_operands",
            "users": "consumers children successors uses get_users users_of neighbors out_edges result output",
            "len(instruction.users)": "user_count num_users use_count",
            "called_computations": "called_computation callee called get_called_computations subcomputation body_of",
            'attributes["to_apply"]': "to_apply reducer",
            'attributes["calls"]': "fused_computation fused_instructions_computation",
            'attributes["body"]': "body while_body",
            'attributes["condition"]': "condition while_condition",
            'attributes["channel_id"]': "channel_id",
            'attributes["custom_call_target"]': "custom_call_target call_target target",
            'attributes["dimensions"]': "dimensions axes axis",
            'attributes["replica_groups"]': "replica_groups",
            'attributes["kind"]': "kind fusion_kind",
            'attributes["index"]': "tuple_index index",
            'attributes["direction"]': "direction comparison_direction",
            'attributes["feature_group_count"]': "feature_group_count",
            'attributes["window"]': "window",
            'attributes["dim_labels"]': "dim_labels convolution_dimension_numbers",
            "attributes": "attrs attr attribute params kwargs get_attr get_attribute getattr has_attr get_attrs",
            "opcode": "op op_code op_type optype opcode_name opname kind_name operation code",
            "name": "id unique_id title label instruction_name",
            "shape": "type result_type result_shape output_shape shapes",
            "shape.element_type": "dtype element_type",
            "shape.dimensions": "dims sizes",
            "shape.rank": "rank ndim",
            "shape.layout": "layout",
            "computation": "parent block parent_computation owner",
            "computation.module": "module",
            "metadata.op_name": "op_name",
            "metadata.source_line": "source_line",
            "metadata.source_file": "source_file",
            "frames": "location loc source stack_trace traceback stack_frames",
            "span.line": "line lineno line_number",
            "backend_config.text": "raw_backend_config_string raw_backend_config",
            "backend_config.json()": "config",
            "literal": "value constant data constant_value",
            "str(instruction)": "to_string to_text as_text text dump",
            "erase()": "remove delete drop detach_from_parent remove_from_parent",
            "replace_with(new)": "replace substitute replace_uses replace_uses_with replace_all_uses",
            "replace_all_uses_with(new)": "replace_all_usages rauw",
            "replace_operand(number, new)": "replace_operand_with set_operand replace_operands",
            "hlotext.rewrite.clone_instruction(instruction)": "clone copy",
            "hlotext.rewrite.move_after(instruction, other)": "move_after",
            "control_predecessors": "control_dependencies dependencies",
            "computation.module.cost().of(instruction).flops": "flops cost",
            'instruction.opcode == "..."': "is_constant is_parameter is_fusion is_dot is_collective isa is_a",
        }
    ),
    "Shape": turned(
        {
            "dimensions": "dims sizes shape dimension",
            "element_type": "dtype type primitive_type xla_element_type np_dtype",
            "layout.minor_to_major": "minor_to_major",
            "layout.memory_space": "memory_space",
            "layout.tiles": "tile tiles tiling",
            "rank": "ndim ndims",
            "element_count": "size numel count num_elements elements",
            "tuple_shapes": "tuple_elements parts types",
            "len(shape.tuple_shapes)": "tuple_element_count",
            "hlotext.layout.allocated_bytes(shape)": "bytes nbytes byte_size size_in_bytes num_bytes byte_count itemsize",
            "hlotext.parse_shape(text)": "parse from_string from_text from_str of",
            "str(shape)": "to_string to_text text",
            "attrs.evolve(shape, dimensions=..., ...)": "with_dimensions replace copy with_element_type with_dtype "
            "reshape astype evolve",
            "dimensions == ()": "is_scalar",
            "numpy.zeros(shape.dimensions, shape.element_type.dtype)": "numpy zeros to_numpy empty",
        }
    ),
    "Metadata": turned(
        {
            "op_name": "name scope op path",
            "source_line": "line lineno line_number",
            "source_file": "file filename source location loc",
        }
    ),
    "ElementType": turned(
        {
            "byte_width": "itemsize nbytes size bytes size_in_bytes",
            "bits": "bit_width width",
            "dtype": "numpy np type np_dtype numpy_dtype to_numpy jnp_dtype as_numpy_dtype",
            "name": "value str",
        }
    ),
    "Layout": turned(
        {
            "minor_to_major": "order dimensions dims permutation",
            "tiles": "tile tiling",
            "hlotext.layout.major_to_minor(layout)": "major_to_minor",
            "hlotext.parse_layout(text)": "parse from_string from_text",
            "memory_space": "space",
        }
    ),
    "Literal": turned(
        {
            "known_array": "value values data numpy to_numpy as_array to_array",
            "known_array.item()": "item",
            "known_array.tolist()": "tolist to_list",
            "shape.element_type": "dtype element_type",
            "shape.dimensions": "dimensions dims",
            "hlotext.parse_literal(text, shape)": "parse from_text from_string",
        }
    ),
    "Analysis": turned(
        {
            "flops": "total total_flops flop flop_count",
            "bytes_accessed": "bytes total_bytes bytes_moved memory_traffic",
            "module.estimate(chip).seconds": "time seconds latency runtime total_time roofline chip",
            "by(...)": "by_opcode group groupby",
            "of(instruction)": "cost get instruction",
        }
    ),
    "Cost": turned(
        {
            "flops": "total flop count total_flops",
            "bytes_accessed": "bytes total_bytes",
            "module.estimate(chip).seconds": "time seconds",
        }
    ),
    "Estimate": turned(
        {
            "seconds": "time total total_time latency runtime duration us ms microseconds milliseconds total_seconds",
            "by_bound": "bound bottleneck bound_by limited_by",
            "instructions": "ops slowest top",
            "module.cost().by('opcode')": "by by_opcode by_scope groupby",
            "module.cost().flops": "flops",
            "module.cost().bytes_accessed": "bytes bytes_accessed",
        }
    ),
    "Assignment": turned(
        {
            "peak().bytes": "peak_bytes peak_memory max_bytes high_water_mark",
            "total_bytes": "total size bytes total_size total_memory",
            "allocations": "allocation blocks",
            "timeline": "live usage history",
        }
    ),
    "Finding": turned(
        {
            "code": "id rule_id check rule_code",
            "message": "text msg description title",
            "line": "lineno line_number row",
            "fix": "suggestion fixes",
            "severity.value": "level",
            "instruction": "op instruction_name",
            "seconds": "time saving savings",
        }
    ),
    "Pipeline": turned(
        {
            "run(module)": "apply execute run_on",
            "passes": "list stages steps",
            "hlotext.rewrite.Pipeline([*pipeline.passes, new])": "add append add_pass",
        }
    ),
    "Builder": turned(
        {
            "hlotext.rewrite.Builder(computation)": "at_end end append",
            "hlotext.rewrite.Builder.before(instruction)": "at insert_before insertion_point",
        }
    ),
    "PassResult": turned(
        {"changed": "is_changed modified has_changed success", "statistics": "stats counts"}
    ),
    "Rewrite": turned(
        {
            "b": "builder build",
            "instruction": "root op node matched target matched_op instr",
            "instruction.computation.module": "module",
            "instruction.computation": "computation",
            'r["name"]': "captures bindings get capture operands",
        }
    ),
    "Pattern": turned(
        {
            "pattern.match(instruction) for each of module.instructions()": "find find_all findall search finditer match_all",
            "with_shape(shape)": "shape",
            "named(name)": "capture_as bind as_ name",
            "with_predicate(function)": "where filter when if_",
        }
    ),
    "Hlo": turned(
        {
            "count(opcode)": "num count_of opcount has contains",
            "peak_memory": "peak memory_peak peak_bytes",
            'instructions("fusion")': "fusions fused",
            'instructions("dot")': "dots matmuls",
            "collectives(kind)": "all_reduces all_gathers collective comms communications reduce_scatters",
            "[one.opcode for one in hlo(...).module.instructions()]": "opcodes ops",
            "assert hlo(...).count(opcode) == number": "assert_count assert_has assert_contains assert_has_opcode "
            "assert_num expect_count assert_opcode",
            "assert not hlo(...).collectives()": "assert_no_collectives",
            "assert not hlo(...).count(opcode)": "assert_not assert_no assert_absent assert_not_contains",
            "assert_same(other)": "assert_equal assert_equals assert_eq equals is_same",
            "assert_matches_snapshot()": "snapshot assert_snapshot match_snapshot golden assert_golden",
            "check(checks)": "filecheck file_check assert_check assert_filecheck",
            "module.entry": "entry",
            "module.instruction(name)": "instruction find",
            "module": "hlo text ir",
            "cost.flops": "total_flops",
        }
    ),
    "Table": turned(
        {
            "to_rows()": "rows to_list to_dicts to_pylist iterrows to_records tolist",
            "column_names": "names keys",
            "pandas.DataFrame.from_arrow(table)": "to_pandas to_dataframe to_df df pandas head",
            "polars.DataFrame(table)": "to_polars polars",
            "num_rows": "shape size count",
        }
    ),
    "FindingList": turned(
        {
            "[finding.code for finding in findings]": "codes",
            '[finding for finding in findings if finding.severity.value == "error"]': "errors",
            '[finding for finding in findings if finding.severity.value == "warning"]': "warnings",
            "len(findings)": "num_findings size",
            "[attrs.asdict(finding) for finding in findings]": "to_json json to_dict to_dicts as_dict dict",
            "print(*findings, sep='\\n')": "print show to_text text summary",
            "[finding for finding in findings if finding.code == code]": "filter by_code by_rule get of",
            "assert not findings": "raise_for_errors ok passed is_valid valid raise_for_status success",
            "hlotext.tables.tables_of(module)": "to_pandas to_dataframe df",
            "[finding.message for finding in findings]": "messages",
        }
    ),
    "ParseResult": turned(
        {
            "diagnostics": "errors error warnings problems findings messages",
            "module.entry": "entry",
            "module.instructions()": "instructions",
            "module.computations": "computations",
        }
    ),
    "Diff": turned(
        {
            "changes": "added removed changed differences modifications renamed diff",
            "is_equal": "equal same is_same empty identical",
            "totals": "flops bytes summary metrics",
        }
    ),
    "DumpFolder": turned(
        {
            "compilations": "modules dumps programs compilation",
            "compilations[0].steps": "steps passes stages",
        }
    ),
}
"""The attribute or expression to use instead, by class and foreign name."""

UNSUPPORTED: Mapping[str, Mapping[str, str]] = {
    "Module": {
        "__enter__": "is no context manager: m = hlotext.load(path), and `with m.transaction():` around edits",
        "__iter__": "is not iterable; use module.instructions(), or module.computations",
        "__len__": "has no len(); use len(module.computations), or len(list(module.instructions()))",
        "__contains__": "has no `in`; use module.find(name) is not None",
        "__setitem__": "has no items to set; set a property of module.instruction(name)",
        "__delitem__": "has no items to delete; use module.instruction(name).erase(), or module.remove(computation)",
    },
    "Computation": {
        "__setitem__": "has no items to set; use computation[name].replace_with(new)",
        "__delitem__": "has no items to delete; use computation[name].erase()",
    },
    "Instruction": {
        "__contains__": "has no `in`; use it with instruction.operands, or instruction.attributes",
        "__getitem__": "has no items; use instruction.operands[number], or instruction.attributes[name]",
        "__iter__": "is not iterable; use instruction.operands, or instruction.users",
        "__float__": "is not a number; use instruction.literal.known_array.item() of a constant",
        "__int__": "is not a number; use instruction.literal.known_array.item() of a constant",
        "__lt__": "has no order; sort with key=lambda i: i.name, or min and max with a key",
        "__add__": "does no arithmetic; hlotext.rewrite.Builder.before(user).add(x, y) makes an instruction",
        "__radd__": "does no arithmetic; hlotext.rewrite.Builder.before(user).add(x, y) makes an instruction",
        "__mul__": "does no arithmetic; hlotext.rewrite.Builder.before(user).multiply(x, y) makes an instruction",
        "__sub__": "does no arithmetic; hlotext.rewrite.Builder.before(user).subtract(x, y) makes an instruction",
    },
    "Shape": {
        "__getitem__": "has no items; use shape.dimensions[number], or shape.tuple_shapes[number] of a tuple",
        "__iter__": "is not iterable; use shape.dimensions, or shape.tuple_shapes of a tuple",
        "__len__": "has no len(); use shape.rank, or len(shape.tuple_shapes) of a tuple",
        "__int__": "is not a number; use shape.element_count",
    },
    "Layout": {
        "__getitem__": "has no items; use layout.minor_to_major[number]",
        "__iter__": "is not iterable; use layout.minor_to_major",
    },
    "Metadata": {
        "__getitem__": "has no items; use metadata.op_name, .source_file and .source_line",
    },
    "Analysis": {"__getitem__": "has no items; use of(instruction), or by(key)"},
    "Assignment": {"__getitem__": "has no items; use allocations, values or peak()"},
    "Hlo": {
        "__getitem__": "has no items; use instructions(opcode)[number], or module.instruction(name)",
        "__enter__": "is no context manager; use it as it is: found = hlo(compiled)",
        "__iter__": "is not iterable; use instructions(opcode), or module.instructions()",
        "__contains__": "has no `in`; use count(opcode) > 0, or module.find(name) is not None",
        "__len__": "has no len(); use count(opcode), or len(list(hlo(...).module.instructions()))",
    },
    "Literal": {
        "__getitem__": "has no items; use literal.known_array[...]",
        "__iter__": "is not iterable; use literal.known_array",
        "__float__": "is not a number; use literal.known_array.item()",
        "__int__": "is not a number; use literal.known_array.item()",
    },
}
"""Protocols that a class does not support, and what to use instead."""

READ_ONLY: Mapping[str, Mapping[str, str]] = {
    "Module": {
        "entry": "use module.set_entry(computation)",
        "computations": "use module.add(computation) and module.remove(computation)",
        "is_scheduled": 'use module.attributes["is_scheduled"] = True',
        "attributes": "set them one by one: module.attributes[name] = value",
    },
    "Computation": {
        "instructions": "use computation.add(instruction) and computation.remove(instruction)",
        "parameters": "use hlotext.rewrite.add_parameter and remove_parameter",
        "shape": "set computation.root.shape",
        "module": "use module.add(computation), or hlotext.rewrite.import_computation",
    },
    "Instruction": {
        "metadata": 'use instruction.attributes["metadata"] = {"op_name": ...}',
        "sharding": 'use instruction.attributes["sharding"] = "{...}"',
        "backend_config": 'use instruction.attributes["backend_config"] = {...}',
        "frontend_attributes": 'use instruction.attributes["frontend_attributes"] = {...}',
        "attributes": "set them one by one: instruction.attributes[name] = value",
        "users": "set the operands of the users, or use instruction.replace_all_uses_with(new)",
        "is_root": "use computation.root = instruction",
        "computation": "use computation.add(instruction), or hlotext.rewrite.clone_instruction",
        "called_computations": 'set the attribute, as in instruction.attributes["to_apply"] = computation',
    },
}
"""Properties that cannot be set, and what to do instead."""

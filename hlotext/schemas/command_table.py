"""The table of commands: names, groups, one line of help each, and former spellings.

`hlotext --help`, completion, the documentation and the schemas read it.
"""

from __future__ import annotations

from collections.abc import Sequence

GROUPS: dict[str, dict[str, str]] = {
    "Look": {
        "show": "Summarize a module, or show one instruction of it.",
        "grep": "Find instructions by a pattern.",
        "report": "Self-contained HTML report: memory, cost, collectives.",
        "graph": "Interactive HTML graph of a module.",
        "triage": "Rank many modules and list the repairs that save most.",
        "message": "Explain compiler messages in a log.",
    },
    "Check": {
        "check": "Parse files and report every syntax error.",
        "verify": "Verify that modules are well-formed HLO.",
        "lint": "Find what wastes time or memory.",
        "diff": "Compare two modules or two dump folders.",
        "bisect": "Find the pass, flag or release that makes a command fail.",
    },
    "Explain": {
        "memory": "Buffer assignment: allocations, lifetimes and the peak.",
        "cost": "FLOPs and bytes per run; lower bound on run time.",
        "comm": "Collective traffic by mesh axis.",
        "thunks": "Thunks that the GPU or CPU runtime executes.",
        "dump": "Explore an XLA dump folder: modules, passes, provenance.",
    },
    "Change": {
        "fmt": "Print modules in another style.",
        "rewrite": "Run passes over modules.",
        "extract": "Extract the neighborhood of an instruction as a module.",
        "reduce": "Reduce a module while a command keeps failing.",
        "run": "Execute a module on the CPU.",
        "convert": "Convert to text, .hlo.pb, .hlo.json, or a Perfetto trace.",
        "bugreport": "Write a self-contained, anonymized reproducer script.",
    },
    "Shapes": {"shape": "Layout, padding, byte offsets, and the shard of each device."},
    "Tables": {
        "table": "Export modules as tables in Parquet files.",
        "sql": "Query these tables with SQL.",
    },
    "Serve": {
        "lsp": "Language server for editors.",
        "mcp": "Model Context Protocol server for agents.",
        "skill": "Instructions for agents: which command answers what.",
    },
    "Help": {"help": "Explain a command, rule, opcode, pass, attribute, chip."},
}
"""Commands by group, in the order of `--help`; `hlotext/cli/NAME.py` holds each as `command`."""

COMMANDS: dict[str, str] = {name: text for group in GROUPS.values() for name, text in group.items()}
"""All commands and their line of help."""

FORMER: dict[str, tuple[str, ...]] = {
    "time": ("cost", "--time"),
    "explain": ("dump", "pass"),
    "layout": ("shape",),
    "shard": ("shape",),
    "rule": ("help", "rule"),
    "opcodes": ("help", "opcode"),
    "passes": ("help", "pass"),
    "schema": ("help", "schema"),
}
"""Former spellings and what they stand for. They keep working and are not listed."""

OTHER_NAMES: dict[str, str] = {
    other: name
    for name, others in {
        "show": "view info cat stats summary summarize inspect describe print open",
        "grep": "search find query-ops filter",
        "check": "parse syntax",
        "verify": "validate verifier",
        "diff": "compare cmp hlo_diff hlo-diff",
        "memory": "mem ram buffers peak hbm",
        "cost": "perf profile flops roofline estimate latency speed",
        "comm": "collective network communication",
        "fmt": "format pretty prettify",
        "rewrite": "hlo-opt hlo_opt opt optimize transform passes-run",
        "extract": "slice-out subgraph isolate",
        "reduce": "hlo_bisect hlo-bisect minimize shrink bisect-module",
        "run": "run_hlo_module run-hlo-module hlo_evaluator exec execute interpret eval evaluate",
        "convert": "hlo-translate hlo_translate xla-translate export-proto to-proto translate",
        "report": "html dashboard",
        "graph": "interactive_graphviz interactive-graphviz draw plot dot-graph visualize viz",
        "message": "log error explain-error",
        "sql": "query",
        "table": "export parquet csv",
        "triage": "rank top",
        "dump list": "ls list dumps",
        "dump why": "why blame",
        "bugreport": "repro reproduce",
        "lint": "warnings analyze analyse",
        "help": "man doc docs",
    }.items()
    for other in others.split()
}
"""Names that other tools have for a command; an unknown command is answered with it."""

QUESTIONS: tuple[tuple[str, str], ...] = (
    ("What is in this module?", "show FILE"),
    ("Which module is slow, and what to fix first?", "triage DIR"),
    ("What uses the memory?", "memory FILE"),
    ("What takes the time?", "cost FILE --chip v5e"),
    ("Why is this collective here?", "dump collectives DIR"),
    ("Which pass inserted this instruction?", "dump why DIR -i NAME"),
    ("What changed between two builds?", "diff OLD NEW"),
    ("What is wasteful?", "lint FILE"),
)
"""Frequent questions and the command that answers each; `hlotext` without arguments lists them."""


def current(words: Sequence[str]) -> list[str]:
    """Returns a command line (without `hlotext`) with the former spelling of its command replaced by the current one."""
    if not words or words[0] not in FORMER:
        return list(words)
    return [*FORMER[words[0]], *words[1:]]

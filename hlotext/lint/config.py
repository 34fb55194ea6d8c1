"""Settings of a project: `[tool.hlotext.lint]` in pyproject.toml, or `[lint]` in hlotext.toml."""

from __future__ import annotations

import fnmatch
import os
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from hlotext.analysis import Backend
from hlotext.analysis.chips import chip
from hlotext.ir import toml
from hlotext.ir.arguments import caller_level
from hlotext.ir.spelling import codes_meant, did_you_mean, nearest, suggestion
from hlotext.lint.codes import code_names
from hlotext.lint.registry import GONE, all_rules, current_code, note_of
from hlotext.lint.rule import Context, Rule
from hlotext.syntax.source.inputs import missing

SHARES = ("warn", "note", "warn_peak", "note_peak", "scarce_memory", "floor_seconds", "floor_bytes")
"""The settings that say what is worth saying."""


class ConfigError(ValueError):
    """Raised for an invalid configuration. The message is one line that names the problem."""


def _codes_now(codes: str | tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Codes of earlier releases as those of today, each with a note."""
    codes = (codes,) if isinstance(codes, str) else codes
    if not codes:
        return codes
    for code in codes:
        _note(code)
    return tuple(dict.fromkeys(current_code(code) for code in codes if code not in GONE))


def _note(code: str) -> None:
    if note := note_of(code):
        warnings.warn(note, DeprecationWarning, stacklevel=caller_level())


def _patterns_now(table: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
    return {pattern: _codes_now(codes) or () for pattern, codes in table.items()}


def _rules_now(table: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    """Thresholds without those of rules that became parts of others or went."""
    for code in table:
        _note(code)
    return {code: options for code, options in table.items() if not note_of(code)} if table else table


def _by_name(word: str, named: Mapping[str, str]) -> str:
    """A suggestion of the code of the rule that is named nearly like a word; empty if there is none."""
    plain = word.lower().replace("_", "-")
    return suggestion(named[name] for name in nearest(plain, named)) if len(plain) > _CODE_LENGTH else ""


_CODE_LENGTH = 5
"""Letters of a word that may be meant for a code."""


@attrs.frozen
class Config:
    """Lint configuration: selected rules, ignored paths and thresholds. A code prefix such as `C` selects a family."""

    select: tuple[str, ...] | None = attrs.field(default=None, converter=_codes_now)
    """Selected codes. None selects the rules that are on by default."""
    extend_select: tuple[str, ...] = attrs.field(default=(), converter=_codes_now)
    """Additional codes."""
    ignore: tuple[str, ...] = attrs.field(default=(), converter=_codes_now)
    """Ignored codes. The more specific code wins: selecting L101 and ignoring L keeps L101."""
    profile: Backend | None = None
    """The platform. None detects it for each module."""
    per_file_ignores: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict, converter=_patterns_now)
    """Ignored codes by path pattern (`*`, `?`, `[...]`), which may match the end of a path."""
    per_op_name_ignores: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict, converter=_patterns_now)
    """Ignored codes by pattern of an instruction's op_name."""
    rules: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict, converter=_rules_now)
    """Thresholds by code and field name."""
    source_root: Path | None = None
    """Root folder of the program's source, used to locate findings in it, or None if not given."""
    chip: str = ""
    """Chip for time estimates. If empty, it depends on the platform of the module: h100, v5e or a CPU."""
    warn: float = 0.02
    """Minimum fraction of the step time that makes a proved finding a warning."""
    note: float = 0.02
    """Minimum fraction of the step time for a finding to be reported."""
    warn_peak: float = 0.05
    """Minimum fraction of peak memory that makes a proved finding a warning."""
    note_peak: float = 0.05
    """Minimum fraction of peak memory for a finding to be reported."""
    scarce_memory: float = 0.5
    """Minimum fraction of the chip's memory that a module needs before findings propose to take time to save memory."""
    floor_seconds: float = 5e-6
    """Minimum saving in seconds for a warning, even if its fraction exceeds `warn`; smaller savings are notes."""
    floor_bytes: int = 1 << 20
    """Minimum bytes of peak memory saved for a warning, even if the fraction exceeds `warn_peak`; less is a note."""
    trips: Mapping[str, int] = attrs.field(factory=dict)
    """Trip counts by the name of a `while` or of its body, for loops of unknown trip count."""
    what_if: bool = False
    """Apply known repairs to a copy of the module, to fill in `Finding.what_if`."""
    rule_files: tuple[Path, ...] = ()
    """Python files with project-specific rules, which are executed. Their codes begin with Z."""

    def __attrs_post_init__(self) -> None:
        for code, options in self.rules.items():
            _check_options(code, options, self.rule_files)
        for name in SHARES:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
                raise ConfigError(f"{name} must be a non-negative number, not {value!r}")
            if not name.startswith("floor") and value > 1:
                raise ConfigError(
                    f"{name} must be a share from 0 to 1, not {value!r}; did you mean {value / 100:g} ({value:g}%)?"
                )
        trips: Mapping[str, Any] = self.trips
        for body, count in trips.items():
            if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                raise ConfigError(f"trips.{body} must be a non-negative number, not {count!r}")
        if self.chip:
            try:
                chip(self.chip)
            except ValueError as error:
                raise ConfigError(str(error)) from None
        lists = [self.select or (), self.extend_select, self.ignore]
        for prefix in [
            p
            for codes in (*lists, *self.per_file_ignores.values(), *self.per_op_name_ignores.values())
            for p in codes
        ]:
            if not _is_prefix(prefix, self.rule_files):
                known = _known_codes(self.rule_files)
                named = {rule.name: code for code, rule in all_rules(self.rule_files).items()}
                about = [code for name, code in named.items() if prefix.lower() in name.split("-")]
                stem = prefix.rstrip("*xX?")
                if prefix.upper() == "ALL":
                    stem = ""
                if stem != prefix and (not stem or _is_prefix(stem, self.rule_files)):
                    raise ConfigError(
                        f"{prefix} is not a prefix of any code; did you mean `{stem or 'ALL'}`?"
                    )
                meant = (
                    suggestion(_family(prefix))
                    or suggestion([named[prefix]] if prefix in named else about[:_MOST_ABOUT])
                    or suggestion(codes_meant(prefix, known))
                    or _by_name(prefix, named)
                    or "`hlotext help rule` lists all"
                )
                raise ConfigError(f"{prefix} is neither a rule code nor a prefix of one; {meant}")

    def is_selected(self, code: str, is_default: bool) -> bool:
        """Returns True if a code is selected and not ignored; `is_default` says whether it is on by default."""
        chosen = _longest(code, self.extend_select)
        if self.select is not None:
            chosen = max(chosen, _longest(code, self.select))
        elif is_default:
            chosen = max(chosen, 0)
        return chosen > _longest(code, self.ignore)

    def active_rules(self, context: Context | None = None) -> list[Rule]:
        """Returns the selected rules with their thresholds; given a context, only those that apply to its module.

        Raises RuleError if a plugin rule or a rule file cannot be used.
        """
        every = all_rules(self.rule_files)
        codes = [code for code in every if self.is_selected(code, every.is_default(code))]
        if context is not None:
            codes = [code for code in codes if every.may_apply(code, context)]
        rules = [every[code](**settable(every[code], self.rules.get(code, {}))) for code in codes]
        return rules if context is None else [rule for rule in rules if rule.applies_to(context)]

    def is_ignored_in(self, code: str, file: str) -> bool:
        """Returns True if `per_file_ignores` ignores a code in a file, given by its path."""
        return any(
            _longest(code, codes) >= 0
            for pattern, codes in self.per_file_ignores.items()
            if fnmatch.fnmatchcase(file, pattern) or fnmatch.fnmatchcase(file, f"*/{pattern}")
        )

    def is_ignored_for(self, code: str, op_name: str) -> bool:
        """Returns True if `per_op_name_ignores` ignores a code for instructions with this op_name."""
        return any(
            _longest(code, codes) >= 0
            for pattern, codes in self.per_op_name_ignores.items()
            if fnmatch.fnmatchcase(op_name, pattern)
        )


def _family(word: str) -> list[str]:
    """The letter of the family of rules that a word stands for, in a list."""
    plain = word.lower().rstrip("s")
    return [letter for letter, words in _FAMILIES.items() if plain in words.split()]


_FAMILIES = {
    "C": "collective communication comm comms sharding",
    "D": "dtype type precision",
    "G": "general graph",
    "L": "layout padding tiling",
    "M": "memory mem peak",
}
"""Words for the families of rules, in the singular."""


def _longest(code: str, prefixes: tuple[str, ...]) -> int:
    """Length of the longest prefix that fits a code (`ALL` fits with 0), -1 for none."""
    return max(
        (0 if p == "ALL" else len(p) for p in prefixes if p == "ALL" or code.startswith(p)), default=-1
    )


_MOST_ABOUT = 3
"""Rules that are suggested for a word of their names."""


def known_codes(config: Config) -> tuple[str, ...]:
    """Returns the codes of all rules, including those of a configuration's rule files."""
    return _known_codes(config.rule_files)


def _known_codes(files: tuple[Path, ...]) -> tuple[str, ...]:
    """The codes of the rules, those of the files too, of the readers and of the verifier."""
    return tuple(dict.fromkeys((*all_rules(files), *code_names())))


def _is_prefix(prefix: str, files: tuple[Path, ...]) -> bool:
    return prefix == "ALL" or (bool(prefix) and any(code.startswith(prefix) for code in _known_codes(files)))


def _check_options(code: str, options: Mapping[str, Any], files: tuple[Path, ...]) -> None:
    rule = all_rules(files).get(code)
    if rule is None:
        meant = suggestion(codes_meant(code, all_rules(files))) or "`hlotext help rule` lists all"
        raise ConfigError(f"rules.{code}: no rule has this code; {meant}")
    fields = {field.name: field for field in attrs.fields(rule)}
    for name, value in options.items():
        field = fields.get(name)
        if field is None and name in _retired(rule):
            warnings.warn(
                f"rules.{code}.{name} is no longer a setting: use the shares of time and memory ({', '.join(SHARES)})",
                DeprecationWarning,
                stacklevel=caller_level(),
            )
        elif field is None:
            known = did_you_mean(name, [*fields]) or f"the rule has {', '.join(fields) or 'none'}"
            raise ConfigError(f"rules.{code}.{name}: no such threshold; {known}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(f"rules.{code}.{name} must be a number, not {value!r}")


def settable(rule: type[Rule], options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns those thresholds that the rule has."""
    fields = {field.name for field in attrs.fields(rule)}
    return {name: value for name, value in options.items() if name in fields}


def _retired(rule: type[Rule]) -> set[str]:
    """The thresholds that were a user's to set and are constants now."""
    return {
        name
        for name, kind in getattr(rule, "__annotations__", {}).items()
        if str(kind) in ("ClassVar[int]", "ClassVar[float]") and name.islower()
    }


# ---- from files


_KEYS = {field.name.replace("_", "-"): field.name for field in attrs.fields(Config)}


_OPTIONS = frozenset(
    {
        "--fail-on", "--baseline", "--write-baseline", "--diff-against", "--format", "--statistics",
        "--exit-zero", "--output-file", "--jobs", "--limit", "--quiet", "--fix", "--isolated",
        "--config",
    }
)  # fmt: skip
"""Options of `hlotext lint` that are no settings."""
_RETIRED = {"min-bytes": "note and floor-bytes", "warn-bytes": "warn and warn-peak", "warn-flops": "warn"}
"""Settings of releases before shares, and what says such things now."""


def config_from_table(table: Mapping[str, Any]) -> Config:
    """Creates a configuration from the settings in the table `[tool.hlotext.lint]`, with keys as in TOML.

    Raises ConfigError for an unknown setting and for an invalid value. A retired setting is ignored with a
    DeprecationWarning.
    """
    values: dict[str, Any] = {}
    for key, value in table.items():
        name = _KEYS.get(key)
        if name is None and key in _RETIRED:
            warnings.warn(
                f"{key} is no longer a setting: use {_RETIRED[key]}",
                DeprecationWarning,
                stacklevel=caller_level(),
            )
            continue
        if name is None:
            option = f"--{key.replace('_', '-')}"
            known = (
                did_you_mean(key, list(_KEYS))
                or (f"{option} is given on the command line only" if option in _OPTIONS else "")
                or "`hlotext lint --show-settings` lists all"
            )
            raise ConfigError(f"no setting {key!r}; {known}")
        values[name] = _VALUES[name](key, value)
    return Config(**values)


def _codes(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(code, str) for code in value):
        raise ConfigError(f"{key} must be a list of codes, not {value!r}")
    return tuple(value)


def _by_pattern(key: str, value: Any) -> dict[str, tuple[str, ...]]:
    return {pattern: _codes(f"{key}.{pattern}", codes) for pattern, codes in _table(key, value).items()}


def _thresholds(key: str, value: Any) -> dict[str, Mapping[str, Any]]:
    return {code: _table(f"{key}.{code}", options) for code, options in _table(key, value).items()}


def _table(key: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{key} must be a table, not {value!r}")
    return value


def _profile(key: str, value: Any) -> Backend:
    try:
        return Backend(value)
    except ValueError:
        raise ConfigError(
            f"{key} must be one of {', '.join(b.value for b in Backend)}, not {value!r}"
        ) from None


def _number(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"{key} must be a non-negative number, not {value!r}")
    return value


def _truth(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{key} must be true or false, not {value!r}")
    return value


def _word(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{key} must be a string, not {value!r}")
    return value


def _paths(key: str, value: Any) -> tuple[Path, ...]:
    if not isinstance(value, list) or not all(isinstance(path, str) for path in value):
        raise ConfigError(f"{key} must be a list of paths, not {value!r}")
    return tuple(map(Path, value))


def _path(key: str, value: Any) -> Path:
    if not isinstance(value, str):
        raise ConfigError(f"{key} must be a path, not {value!r}")
    return Path(value)


_VALUES: Mapping[str, Callable[[str, Any], Any]] = {
    "select": _codes,
    "extend_select": _codes,
    "ignore": _codes,
    "profile": _profile,
    "per_file_ignores": _by_pattern,
    "per_op_name_ignores": _by_pattern,
    "rules": _thresholds,
    "source_root": _path,
    "chip": _word,
    **dict.fromkeys(SHARES, _number),
    "trips": _table,
    "what_if": _truth,
    "rule_files": _paths,
}


def load_config(path: str | os.PathLike[str]) -> Config:
    """Loads a configuration file. Raises ConfigError if it cannot be read or is invalid.

    A pyproject.toml without a `[tool.hlotext.lint]` table yields the default configuration.
    """
    path = Path(path)
    try:
        data = toml.loads(path.read_text("utf-8"))
    except toml.TomlError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None
    except FileNotFoundError:
        raise ConfigError(str(missing(str(path)))) from None
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        tables: Any = data
        if path.name == "pyproject.toml" or "tool" in data:
            if "hlotext" in data:
                raise ConfigError("no tool reads the table `hlotext`; did you mean `tool.hlotext`?")
            tools = _table("tool", data.get("tool", {}))
            for name in tools:
                if name != "hlotext" and did_you_mean(name, ["hlotext"]):
                    raise ConfigError(f"no tool is named {name!r}; did you mean `tool.hlotext`?")
            tables = _table("tool.hlotext", tools.get("hlotext", {}))
        if stray := sorted(set(tables) - {"lint"}):
            where = "tool.hlotext.lint" if tables is not data else "lint"
            raise ConfigError(
                f"no table or setting {stray[0]!r}; settings of the linter are in the table `{where}`"
            )
        table = dict(_table("lint", tables.get("lint", {})))
        if isinstance(
            files := table.get("rule-files"), list
        ):  # beside the settings, wherever the linter is started
            table["rule-files"] = [str(path.parent / one) if isinstance(one, str) else one for one in files]
        return config_from_table(table)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


_TOOL_TABLE = re.compile(
    r"^[ \t]*\[[ \t]*(?:tool[ \t]*\.[ \t\"']*([\w-]+)|(hlotext)[ \t]*[].])", re.MULTILINE
)
_OWN_FILES = ("hlotext.toml", ".hlotext.toml")


def find_config(folder: Path) -> Path | None:
    """Returns the nearest configuration file in a folder or its parents, or None if there is none.

    This is an hlotext.toml or .hlotext.toml, or a pyproject.toml with a table `[tool.hlotext...]`, also a misspelled one.
    """
    for place in (folder, *folder.parents):
        for own in _OWN_FILES:
            if (place / own).is_file():
                return place / own
        shared = place / "pyproject.toml"
        if shared.is_file():
            tools = [tool or own for tool, own in _TOOL_TABLE.findall(shared.read_text("utf-8", "replace"))]
            if any(did_you_mean(name, ["hlotext"]) for name in dict.fromkeys(tools)):
                return shared
    return None

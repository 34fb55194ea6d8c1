"""Styles of SVG pictures: bound to the picture, since a page into which one is pasted applies its rules to everything."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hlotext.findings import escape
from hlotext.ir.caches import lazy_regex


def opening(name: str, attributes: str, title: str) -> str:
    """Returns the start tag and title of an SVG that uses the rules of `style(name, ...)`."""
    return f'<svg xmlns="http://www.w3.org/2000/svg" class="{_class(name)}" {attributes}><title>{escape.html(title)}</title>'


def style(name: str, light: Mapping[str, str], dark: Mapping[str, str], media: str = "") -> str:
    """Returns a `<style>` element: CSS declarations by selector, with overrides for dark mode, scoped to SVGs of that
    name.

    `media` is prepended to the media query of dark mode, such as `screen`.
    """
    query = f"{media} and (prefers-color-scheme:dark)" if media else "(prefers-color-scheme:dark)"
    return f"<style>{_rules(name, light)}@media {query}{{{_rules(name, dark)}}}</style>"


def in_notebook(pictures: str) -> str:
    """Returns the markup with dark-mode rules that follow the notebook's theme in place of the system's."""
    return _DARK().sub(_themed, pictures)


_DARK = lazy_regex(r"@media [^{]*prefers-color-scheme:dark\)\{((?:[^{}]*\{[^{}]*\})*)\}")
_THEMES = ('[data-jp-theme-light="false"]', ".vscode-dark")
"""Marks of a dark notebook: Jupyter's, and Visual Studio Code's."""


def _themed(match: re.Match[str]) -> str:
    rules = (rule.partition("{") for rule in match[1].split("}") if rule)
    return "".join(
        f"{','.join(f'{theme} {part}' for theme in _THEMES for part in selectors.split(','))}{{{declared}}}"
        for selectors, _, declared in rules
    )


def _rules(name: str, declarations: Mapping[str, str]) -> str:
    return "".join(
        f"{','.join(f'.{_class(name)} {part}' for part in selector.split(','))}{{{declared}}}"
        for selector, declared in declarations.items()
    )


def _class(name: str) -> str:
    return f"hlotext-{name}"

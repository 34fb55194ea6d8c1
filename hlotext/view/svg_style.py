"""Styles of SVG pictures: bound to the picture, since a page into which one is pasted applies its rules to everything."""

from __future__ import annotations

from collections.abc import Mapping

from hlotext.findings import escape


def opening(name: str, attributes: str, title: str) -> str:
    """The start tag of a picture whose rules are those of `style(name, ...)`, and its title."""
    return f'<svg xmlns="http://www.w3.org/2000/svg" class="{_class(name)}" {attributes}><title>{escape.html(title)}</title>'


def style(name: str, light: Mapping[str, str], dark: Mapping[str, str], media: str = "") -> str:
    """A style element: declarations by selector, and others where the reader's screen is dark. All hold inside of pictures
    of that name alone. `media` further bounds the dark ones, as `screen`.
    """
    query = f"{media} and (prefers-color-scheme:dark)" if media else "(prefers-color-scheme:dark)"
    return f"<style>{_rules(name, light)}@media {query}{{{_rules(name, dark)}}}</style>"


def _rules(name: str, declarations: Mapping[str, str]) -> str:
    return "".join(
        f"{','.join(f'.{_class(name)} {part}' for part in selector.split(','))}{{{declared}}}"
        for selector, declared in declarations.items()
    )


def _class(name: str) -> str:
    return f"hlotext-{name}"

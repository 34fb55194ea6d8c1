"""Sphinx's configuration: `sphinx-build -W docs docs/_build`. Pages about opcodes, attributes, rules, passes and commands are
made from hlotext's own tables when a build begins (`_ext/tables.py`)."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "hlotext"
author = "The hlotext developers"
copyright = f"2026, {author}"
version = release = installed("hlotext")
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_llms_txt",
    "tables",
    "live",
]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "README.md"]
html_theme = "furo"
html_title = "hlotext"
html_static_path = ["_static"]
html_css_files = ["hlotext.css"]
html_theme_options = {"sidebar_hide_name": False}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
autodoc_member_order = "bysource"
autoclass_content = "class"
nitpicky = False
pygments_style = "friendly"
pygments_dark_style = "monokai"
# `bytes` in a signature is the builtin type, and the attribute of several classes: the builtin is no target here.
suppress_warnings = ["myst.xref_missing", "ref.python"]

llms_txt_full_filename = "hlotext.md"
llms_txt_summary = "Find what a compiled JAX program does with memory, time and the network"

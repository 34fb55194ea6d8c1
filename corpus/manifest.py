#!/usr/bin/env python3
"""Writes corpus/manifest.json, the list of what lies in the corpus and where it comes from.

usage: manifest.py [--check] [--version NAME=VERSION ...]

A file keeps the versions it was first listed with; a new or changed one gets those of the packages that are
installed here, or those named by --version. With --check nothing is written, and the exit status is 1 if
something would be.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import sys
from importlib import metadata
from pathlib import Path
from typing import Any, Final

CORPUS: Final = Path(__file__).resolve().parent
MANIFEST: Final = CORPUS / "manifest.json"

COMPILED: Final = {
    "cpu": ("jax", "jaxlib"),
    "gpu": ("jax", "jaxlib", "jax-cuda12-plugin"),
    "tpu": ("jax", "jaxlib", "libtpu"),
}
"""The folders of modules that XLA wrote, with the packages whose versions decide what is in them."""
WRITTEN: Final = ("handmade", "invalid")
"""The folders of files written by hand."""

Entry = dict[str, Any]


def corpus_paths() -> list[Path]:
    """Every file the manifest lists, folder by folder."""
    return [path for folder in (*COMPILED, *WRITTEN) for path in sorted((CORPUS / folder).iterdir())]


def describe(path: Path) -> Entry:
    """What can be read off a file: its name `PROGRAM.KIND_PLACE.STAGE.txt`, its size and its digest."""
    data = path.read_bytes()
    platform = path.parent.name
    entry: Entry = {"path": path.relative_to(CORPUS).as_posix()}
    if platform in COMPILED:
        program, topology, stage = path.name.removesuffix(".xz").removesuffix(".txt").split(".", 2)
        entry |= {
            "origin": program,
            "platform": platform,
            "topology": topology.replace("_", ":", 1),
            "stage": stage,
            "unpacked_bytes": len(lzma.decompress(data)) if path.suffix == ".xz" else len(data),
        }
    else:
        entry |= {"origin": "written by hand"}
    entry["bytes"] = len(data)
    entry["sha256"] = hashlib.sha256(data).hexdigest()
    return entry


def installed(package: str) -> str:
    """The version of a package, or "unknown" where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"


def build(previous: list[Entry], named: dict[str, str]) -> list[Entry]:
    """The entries of all files.

    A file that stands unchanged in `previous` keeps its versions; for others `named` goes before what is
    installed.
    """
    known = {(entry["path"], entry["sha256"]): entry.get("versions") for entry in previous}
    entries = []
    for path in corpus_paths():
        entry = describe(path)
        if "platform" in entry:
            packages = COMPILED[entry["platform"]]
            versions = known.get((entry["path"], entry["sha256"]))
            entry["versions"] = versions or {name: named.get(name) or installed(name) for name in packages}
        entries.append(entry)
    return entries


def read() -> list[Entry]:
    """The entries as they stand in manifest.json, none if there is no such file yet."""
    if not MANIFEST.exists():
        return []
    entries: list[Entry] = json.loads(MANIFEST.read_text(encoding="utf-8"))["files"]
    return entries


def text_of(entries: list[Entry]) -> str:
    """The text of manifest.json, one entry on each line: a change of one file is a change of one line."""
    lines = ",\n".join("    " + json.dumps(entry) for entry in entries)
    return '{\n  "files": [\n' + lines + "\n  ]\n}\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing, say whether the manifest is right"
    )
    parser.add_argument("--version", action="append", default=[], metavar="NAME=VERSION", dest="versions")
    arguments = parser.parse_args()
    named = dict(pair.split("=", 1) for pair in arguments.versions)
    text = text_of(build(read(), named))
    if arguments.check:
        right = MANIFEST.exists() and MANIFEST.read_text(encoding="utf-8") == text
        print("manifest.json is right" if right else "manifest.json is out of date: run corpus/manifest.py")
        return 0 if right else 1
    MANIFEST.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

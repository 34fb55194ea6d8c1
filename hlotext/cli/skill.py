"""`hlotext skill`: pages for agents, as a folder."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import click

from hlotext.cli.common import Unreadable, say
from hlotext.cli.output import echo
from hlotext.ir.files import write_text


@click.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path, file_okay=False), metavar="[DIR]")
@click.option("--force", is_flag=True, help="Replace pages that are there already.")
def command(folder: Path | None, force: bool) -> None:
    """Copy the pages for agents to DIR: which command answers which question, and how to bound its output.

    Without DIR their place in the installed package is printed. Pages that are there already are kept unless --force says so.

    \b
    Examples:
      hlotext skill
      hlotext skill skills/hlotext

    Exit status: 0 fine, 2 a page is there already, or cannot be written.
    """
    pages = pages_of_skill()
    if folder is None:
        echo(str(resources.files("hlotext") / "skill"))
        return
    there = [name for name in pages if (folder / name).exists()]
    if there and not force:
        raise Unreadable(f"{folder} has {', '.join(there)} already: --force replaces them")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            write_text(folder / name, text)
    except OSError as error:
        raise Unreadable(f"{folder} cannot be written: {error.strerror}") from None
    say(f"{len(pages)} pages are in {folder}")


def pages_of_skill() -> dict[str, str]:
    """The pages by file name."""
    folder = resources.files("hlotext") / "skill"
    return {
        page.name: page.read_text("utf-8")
        for page in sorted(folder.iterdir(), key=lambda page: page.name)
        if page.name.endswith(".md")
    }

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
@click.option("--force", is_flag=True, help="Overwrite existing pages.")
def command(folder: Path | None, force: bool) -> None:
    """Copy instructions for agents to DIR: which command answers which question, and how to limit its output.

    Without DIR, print their folder in the installed package. Existing pages are kept unless --force is given.

    \b
    Examples:
      hlotext skill
      hlotext skill skills/hlotext

    Exit status: 0 success, 2 a page exists or cannot be written.
    """
    pages = pages_of_skill()
    if folder is None:
        echo(str(resources.files("hlotext") / "skill"))
        return
    there = [name for name in pages if (folder / name).exists()]
    if there and not force:
        raise Unreadable(f"{folder} has {', '.join(there)} already (overwrite with --force)")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            write_text(folder / name, text)
    except OSError as error:
        raise Unreadable(f"{folder}: cannot write: {error.strerror}") from None
    say(f"{len(pages)} pages are in {folder}")


def pages_of_skill() -> dict[str, str]:
    """Returns the pages of the skill by file name."""
    folder = resources.files("hlotext") / "skill"
    return {
        page.name: page.read_text("utf-8")
        for page in sorted(folder.iterdir(), key=lambda page: page.name)
        if page.name.endswith(".md")
    }

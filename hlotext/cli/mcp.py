"""`hlotext mcp`: the server for agents."""

from __future__ import annotations

from pathlib import Path

import click

from hlotext import mcp
from hlotext.cli.common import Unreadable


@click.command()
@click.option(
    "--root",
    "roots",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    multiple=True,
    metavar="DIR",
    help="Folder that may be read.  [default: current folder]",
)
def command(roots: tuple[Path, ...]) -> None:
    """Model Context Protocol server over standard input and output.

    Twelve read-only tools for modules, dump folders and traces below the given folders. Paths outside of these,
    links and .. are refused; nothing is written or executed. Needs pip install 'hlotext[mcp]'.

    \b
    Example:
      hlotext mcp --root dumps/
    """
    try:
        serve = mcp.serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("mcp", "pydantic"):
            raise
        raise Unreadable("the MCP server needs an extra: pip install 'hlotext[mcp]'") from None
    serve(roots or (Path(),))

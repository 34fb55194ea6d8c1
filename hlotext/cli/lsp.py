"""`hlotext lsp`: the language server."""

from __future__ import annotations

import click

from hlotext import lsp
from hlotext.cli.common import Unreadable


@click.command()
@click.option(
    "--stdio", is_flag=True, help="Use standard input and output (the only transport; editors pass it)."
)
def command(stdio: bool) -> None:
    """Language server over standard input and output.

    \b
    Needs pip install 'hlotext[lsp]'. Settings for editors: docs/editors.md.
    Example:
      hlotext lsp
    """
    try:
        serve = lsp.serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise Unreadable("the language server needs an extra: pip install 'hlotext[lsp]'") from None
    # Reading and checking answer a client from here on; what goes wrong is said on standard error, which editors log.
    serve()

"""One file of a dump folder."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import attrs

import hlotext as hlo
from hlotext.dumps.names import PROTO, FileName
from hlotext.dumps.storage import Storage
from hlotext.findings.errors import HloSyntaxError
from hlotext.syntax.source.inputs import InputError, decode

if TYPE_CHECKING:
    from hlotext.dumps.compilation import Compilation

_HEAD = re.compile(r"\s*(?:/\*.*?\*/\s*|//[^\n]*\n\s*)*HloModule\s+(?P<name>[^\s,]+)", re.DOTALL)


@attrs.define(eq=False, repr=False)
class DumpFile:
    """One file. Its content is read on access and not cached."""

    _storage: Storage
    name: FileName
    """Parsed name."""
    compilation: Compilation | None = None
    """Its compilation; None for files not written by XLA."""

    @property
    def path(self) -> str:
        """A path that can be opened, or the path inside an archive."""
        return self._storage.path(self.name.path)

    @property
    def archive(self) -> str | None:
        """The archive that contains it; None for a file of the file system."""
        return self._storage.archive(self.name.path)

    @property
    def kind(self) -> str:
        """The kind's name, one of `hlotext.dumps.kinds`; `other` for what is not known."""
        return self.name.kind.name

    @property
    def is_hlo(self) -> bool:
        """True if it is the text of an HLO module, as its name says."""
        return self.name.kind.is_hlo

    @property
    def size(self) -> int:
        """Size in bytes, compressed as stored."""
        return self._storage.size(self.name.path)

    def read(self) -> bytes:
        """Its bytes, unpacked. Raises InputError."""
        return self._storage.read(self.name.path)

    def text(self) -> str:
        """Its text; bytes that are not UTF-8 become surrogates. For a proto the text that XLA prints for it.

        Raises InputError.
        """
        if self.kind != PROTO:
            return decode(self.read())
        try:
            return str(self.load())
        except (HloSyntaxError, ImportError) as error:
            raise InputError(f"{self.path}: {error}") from None

    def load(self) -> hlo.Module:
        """The module in it. A large uncompressed file in a folder is read lazily.

        Raises InputError, also if there are several modules, and HloSyntaxError.
        """
        path = self._storage.real_path(self.name.path)
        if path is not None:
            return hlo.load(path, only=True)
        return hlo.parse(self.read(), name=self.path, only=True)

    def __repr__(self) -> str:
        return f"<DumpFile {self.path}: {self.kind}>"


def module_name(text: str) -> str | None:
    """The name in the header of a module's text; None where it has none."""
    match = _HEAD.match(text)
    return None if match is None else match["name"]

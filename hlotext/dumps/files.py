"""One file of a dump folder."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import attrs

import hlotext as hlo
from hlotext.dumps.names import PROTO, FileName
from hlotext.dumps.storage import Storage
from hlotext.findings.errors import HloSyntaxError
from hlotext.syntax.source.inputs import InputError, decode, is_binary, is_json

if TYPE_CHECKING:
    from hlotext.dumps.compilation import Compilation

_HEAD = re.compile(r"\s*(?:/\*.*?\*/\s*|//[^\n]*\n\s*)*HloModule\s+(?P<name>[^\s,]+)", re.DOTALL)


@attrs.define(eq=False, repr=False)
class DumpFile:
    """A file of a dump. Its content is read on access and not cached."""

    _storage: Storage
    name: FileName
    """The parsed file name."""
    compilation: Compilation | None = None
    """The compilation that the file belongs to, or None for files not written by XLA."""

    @property
    def path(self) -> str:
        """Path of the file, or its path inside an archive."""
        return self._storage.path(self.name.path)

    @property
    def archive(self) -> str | None:
        """Path of the archive that contains the file, or None for a regular file."""
        return self._storage.archive(self.name.path)

    @property
    def kind(self) -> str:
        """Kind of the file, one of `kinds`; `other` if unknown."""
        return self.name.kind.name

    @property
    def is_hlo(self) -> bool:
        """True if the file name is that of a module's HLO text."""
        return self.name.kind.is_hlo

    @property
    def size(self) -> int:
        """Size in bytes as stored, before decompression."""
        return self._storage.size(self.name.path)

    def read(self) -> bytes:
        """Returns the decompressed bytes. Raises InputError if the file cannot be read."""
        return self._storage.read(self.name.path)

    def text(self) -> str:
        """Returns the content as text. A module proto is printed as HLO text.

        Bytes that are not UTF-8 become surrogates. Raises InputError if the file cannot be read.
        """
        if self.kind != PROTO:
            data = self.read()
            if self.compilation is not None or not (is_binary(data) or is_json(data)):
                return decode(data)
        try:
            return str(self.load())
        except (HloSyntaxError, ImportError) as error:
            raise InputError(f"{self.path}: {error}") from None

    def load(self) -> hlo.Module:
        """Loads the module in the file. Large uncompressed files outside archives are loaded lazily.

        Raises InputError if the file cannot be read or holds several modules, and HloSyntaxError if it is not valid
        HLO.
        """
        path = self._storage.real_path(self.name.path)
        if path is not None:
            return hlo.load(path, only=True)
        return hlo.parse(self.read(), name=self.path, only=True)

    def __repr__(self) -> str:
        return f"<DumpFile {self.path}: {self.kind}>"


def module_name(text: str) -> str | None:
    """Returns the name in the header of a module's text, or None if there is none."""
    match = _HEAD.match(text)
    return None if match is None else match["name"]

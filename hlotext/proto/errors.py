"""What can be wrong with a proto."""

from __future__ import annotations


class ProtoError(ValueError):
    """A proto that cannot be read, or a module that none can hold; `str()` is one line.

    Public as `hlotext.ProtoError`.
    """

    def __init__(self, message: str, path: str = "", offset: int | None = None, name: str = "") -> None:
        where = f"{name}: " if name else ""
        place = f" at {path}" if path else ""
        place += f" (byte {offset:,})" if offset is not None else ""
        super().__init__(f"{where}{message}{place}")
        self.message = message
        """What is wrong."""
        self.path = path
        """The message and field at fault: `computations[2].instructions[7].shape`; empty where it is the whole."""
        self.offset = offset
        """Bytes from the start of the file to what is wrong; None where only the path tells the place."""
        self.file_name = name
        """The file; empty where there is none."""


class MissingProtobuf(ImportError):  # noqa: N818 - says what is missing
    """The package `protobuf` is not installed."""

    def __init__(self) -> None:
        super().__init__("protos need the extra: pip install 'hlotext[proto]'")

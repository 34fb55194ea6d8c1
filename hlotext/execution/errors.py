"""The one error of this room, raised in every file of it."""


class NotExecutable(ValueError):  # noqa: N818 - says what the module is
    """A module, or a part of one, that jaxlib's CPU client cannot be given; the message says what of it."""

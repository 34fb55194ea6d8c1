"""The one error of this package, raised in every file of it."""


class NotExecutable(ValueError):  # noqa: N818 - says what the module is
    """A module that jaxlib's CPU client cannot execute; the message names the part."""

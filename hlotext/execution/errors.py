"""The one error of this package, raised in every file of it."""


class NotExecutable(ValueError):  # noqa: N818 - says what the module is
    """A module cannot be executed by jaxlib's CPU client. The message gives the reason."""

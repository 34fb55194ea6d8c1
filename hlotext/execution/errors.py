"""The one error of this package, raised in every file of it."""


class NotExecutable(ValueError):  # noqa: N818 - says what the module is
    """Raised for a module that jaxlib's CPU client cannot execute. The message gives the reason."""

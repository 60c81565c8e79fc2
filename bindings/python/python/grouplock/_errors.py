"""The errors. Each has the text that the program `grouplock` shows."""


class Error(Exception):
    """A room could not be opened, entered, left or read."""


class Timeout(Error, TimeoutError):
    """The request was not admitted in time."""


class Occupied(Timeout):
    """The request was not admitted at once, and `timeout` was 0."""


class Lost(Error):
    """The holding ended before its holder left: other sessions may have been inside."""


class Forked(Error):
    """The room was opened before a fork. The child must open it itself."""


class NoSuchRoom(Error, LookupError):
    """The room does not exist, and the call does not create it."""


class Unreachable(Error, ConnectionError):
    """Not enough servers can be reached."""


class Invalid(Error, ValueError):
    """An argument is invalid, or the place does not support the call."""

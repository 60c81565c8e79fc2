"""What can go wrong. Each carries the text that the program `grouplock` shows."""


class Error(Exception):
    """A room could not be opened, entered, left or looked at."""


class Timeout(Error, TimeoutError):
    """Not admitted in time."""


class Occupied(Timeout):
    """Not admitted at once, and `timeout=0` was asked for."""


class Lost(Error):
    """The holding ended before it was given back: others may have been inside."""


class Forked(Error):
    """The room was opened before a fork. The child has to open it itself."""


class NoSuchRoom(Error, LookupError):
    """The room does not exist, and was not to be created."""


class Unreachable(Error, ConnectionError):
    """The servers, or enough of them, cannot be reached."""


class Invalid(Error, ValueError):
    """What was asked for makes no sense, or this kind of rooms cannot do it."""

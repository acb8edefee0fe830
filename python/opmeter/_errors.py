"""Exceptions, with the exit status of the program."""

from __future__ import annotations

from typing import Any, Optional


class OpmeterError(Exception):
    """A command of opmeter failed.

    status is the exit status of the program. result is what the command made before it failed,
    such as the profile of a measurement that is not fit for its purpose, or None.
    """

    def __init__(self, message: str, status: int, result: Optional[Any] = None) -> None:
        super().__init__(message)
        self.status = status
        self.result = result


class VerdictError(OpmeterError):
    """A check failed (status 1): ``strict``, ``check`` or ``fail_on``."""


class UsageError(OpmeterError, ValueError):
    """An argument is wrong (status 2)."""


class InputError(OpmeterError):
    """A file cannot be read (status 3)."""


class SourceError(OpmeterError):
    """An engine, a device or the computer failed (status 4)."""


class UndecidedError(VerdictError):
    """A verdict was asked for, and the figures give none (status 5)."""


class MissingProgramError(OpmeterError):
    """The program is not installed beside the package (status 127)."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a command. result is what was measured until then, or None."""

    def __init__(self, message: str, result: Optional[Any] = None) -> None:
        super().__init__(message)
        self.result = result


class OpmeterWarning(UserWarning):
    """A remark of the program about a result."""


_BY_STATUS = {1: VerdictError, 2: UsageError, 3: InputError, 4: SourceError, 5: UndecidedError}


def failure(message: str, status: int, result: Optional[Any] = None) -> OpmeterError:
    """Return the exception for an exit status."""
    return _BY_STATUS.get(status, OpmeterError)(message, status, result)

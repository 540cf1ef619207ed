"""The base of errors that users can mend; the command line prints their text without a traceback."""

from __future__ import annotations

__all__ = ["UserError"]


class UserError(ValueError):
    """What was given, what is possible, and what to do."""

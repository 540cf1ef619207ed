"""The base of errors that users can mend; the command line prints their text without a traceback."""

from __future__ import annotations

__all__ = ["UserError", "missing_extra"]

_EXTRAS = {"triton": "compile", "pebble": "check", "ml_dtypes": "check", "optuna": "tune"}
"""Modules that come with an extra of the package."""


class UserError(ValueError):
    """What was given, what is possible, and what to do."""


def missing_extra(error: BaseException) -> str | None:
    """The remedy if an import failed for a module that an extra of precast brings, else None."""
    name = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return f"pip install 'precast[{_EXTRAS[name]}]' brings {name}" if name in _EXTRAS else None

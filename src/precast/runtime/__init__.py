"""Calling libraries from Python. Needs neither Triton nor a compiler."""

from precast.runtime.errors import PrecastError
from precast.runtime.library import Library, load
from precast.runtime.operator import Operator

__all__ = ["Library", "Operator", "PrecastError", "load"]

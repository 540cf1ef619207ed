"""precast turns Triton kernels into tuned, shippable libraries, ahead of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = ["__version__", "load"]

if TYPE_CHECKING:
    from precast.runtime import load


def __getattr__(name: str) -> Any:
    if name == "load":
        from precast.runtime import load

        return load
    raise AttributeError(f"module 'precast' has no attribute {name!r}")

"""How worker processes start: from nothing, without running the caller's script again."""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

__all__ = ["WorkerContext"]

_LOCK = threading.Lock()


@contextmanager
def _without_main() -> Iterator[None]:
    """Hides the caller's main module.

    A spawned process runs its parent's script again, to have what is defined there. Workers need nothing of it, and
    a script without a main guard, from standard input or in a notebook would fail in every worker.
    """
    with _LOCK:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = types.ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main


class _Worker(SpawnProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        with _without_main():
            return SpawnProcess._Popen(process_obj)


class WorkerContext(SpawnContext):
    """A multiprocessing context for pools of workers."""

    Process = _Worker

"""Worker processes for a bench: one a GPU, replaced when they die, each task with a time limit.

Anything with the `submit` of `concurrent.futures.Executor` does instead, such as a Dask client's executor; then time
limits and replaced workers are its own affair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from types import TracebackType
from typing import Any

from precast.compile.workers import WorkerContext
from precast.tune.worker import POISONED, start_worker

__all__ = ["Died", "ExecutorPool", "LocalPool", "TimedOut", "WorkerPool", "outcome"]


class Died(Exception):  # noqa: N818
    """The worker's process ended during a task; `poisoned` if the task before had spoilt it."""

    def __init__(self, reason: str, poisoned: bool = False) -> None:
        super().__init__(reason)
        self.poisoned = poisoned


class TimedOut(Exception):  # noqa: N818
    """A task was not done in its time; its worker was killed."""


class LocalPool:
    """One process for each GPU of this machine."""

    def __init__(self, devices: Sequence[str] | None = None) -> None:
        from pebble import ProcessPool

        names: Sequence[str | None] = devices or [None]
        self.pools = [
            ProcessPool(max_workers=1, initializer=start_worker, initargs=(n,), context=WorkerContext()) for n in names
        ]
        self._load = [0] * len(names)

    @property
    def width(self) -> int:
        """Tasks that run at a time."""
        return len(self.pools)

    def submit(self, function: Callable[..., Any], *args: Any, timeout: float | None = None) -> Future[Any]:
        """Gives a task to the process with the fewest."""
        place = min(range(len(self.pools)), key=lambda i: self._load[i])
        self._load[place] += 1
        future: Future[Any] = self.pools[place].schedule(function, args=args, timeout=timeout)

        def done(_: Future[Any]) -> None:
            self._load[place] -= 1

        future.add_done_callback(done)
        return future

    def __enter__(self) -> LocalPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pool in self.pools:
            if kind is None:
                pool.close()
            else:
                pool.stop()
            pool.join()


class ExecutorPool:
    """Any executor as a pool; `width` says how many tasks it runs at a time, about."""

    def __init__(self, executor: Executor, width: int = 4) -> None:
        self.executor, self.width = executor, width

    def submit(self, function: Callable[..., Any], *args: Any, timeout: float | None = None) -> Future[Any]:
        """Gives a task to the executor."""
        return self.executor.submit(function, *args)

    def __enter__(self) -> ExecutorPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


WorkerPool = LocalPool | ExecutorPool


def outcome(future: Future[Any]) -> Any:
    """A task's result.

    Raises:
        Died, TimedOut: what happened to its worker, whatever pool it was of.
    """
    try:
        return future.result()
    except TimeoutError as error:
        raise TimedOut(str(error)) from error
    except Exception as error:
        name = type(error).__name__
        if name == "ProcessExpired":
            code = getattr(error, "exitcode", None)
            raise Died(f"the worker's process died with exit code {code}", code == POISONED) from error
        if name in ("BrokenProcessPool", "KilledWorker", "BrokenExecutor"):
            raise Died(f"the worker died: {error}") from error
        raise

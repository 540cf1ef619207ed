"""Compiling many jobs in worker processes that live through them all."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, as_completed
from dataclasses import dataclass

from precast.compile.cache import CompileCache
from precast.compile.job import CompileJob, CompileResult, JobStatus, cache_key
from precast.compile.triton_compile import compile_job, scrub_environment
from precast.compile.workers import WorkerContext

__all__ = ["CompileTally", "compile_all", "default_workers"]

DEFAULT_TIMEOUT = 600.0
"""Seconds that one compile may take."""

TASKS_PER_WORKER = 500
"""A worker is replaced after so many compiles, so that leaks in the compiler stay small."""


@dataclass
class CompileTally:
    """Progress of a batch: how many are done, and how."""

    total: int = 0
    cached: int = 0
    compiled: int = 0
    failed: int = 0
    compile_seconds: float = 0.0

    @property
    def done(self) -> int:
        """Jobs that have a result."""
        return self.cached + self.compiled + self.failed


def default_workers() -> int:
    """As many as there are processors for this process."""
    return len(os.sched_getaffinity(0))


def _start_worker() -> None:
    scrub_environment()
    os.environ["OMP_NUM_THREADS"] = "1"
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops its workers


def compile_all(
    jobs: Sequence[CompileJob],
    cache: CompileCache,
    *,
    workers: int = 0,
    timeout: float = DEFAULT_TIMEOUT,
    executor: Executor | None = None,
    progress: Callable[[CompileTally, CompileJob, CompileResult], None] | None = None,
) -> list[CompileResult]:
    """Results of all jobs, in their order; what the cache has is not compiled again.

    A job that fails, hangs past `timeout` seconds or kills its worker gives a result with the reason. Each
    result is in the cache as soon as it is there, so an interrupted batch goes on where it was.

    Args:
        jobs: what to compile; equal jobs are compiled once.
        cache: where results are kept.
        workers: processes; 0 for one a processor.
        timeout: seconds that one compile may take.
        executor: any executor instead of the local processes (then `timeout` is its own affair).
        progress: called after each job, in this process.
    """
    tally = CompileTally(total=len(jobs))
    keys = [cache_key(job) for job in jobs]
    results: dict[str, CompileResult] = {}
    missing: dict[str, CompileJob] = {}
    for key, job in zip(keys, jobs, strict=True):
        if key in results or key in missing:
            tally.total -= 1
            continue
        found = cache.get(key)
        if found is None:
            missing[key] = job
            continue
        results[key] = found
        tally.cached += 1
        if progress:
            progress(tally, job, found)
    if missing:
        _compile_missing(missing, results, cache, tally, workers or default_workers(), timeout, executor, progress)
    return [results[key] for key in keys]


def _compile_missing(
    missing: dict[str, CompileJob],
    results: dict[str, CompileResult],
    cache: CompileCache,
    tally: CompileTally,
    workers: int,
    timeout: float,
    executor: Executor | None,
    progress: Callable[[CompileTally, CompileJob, CompileResult], None] | None,
) -> None:
    def finish(key: str, result: CompileResult) -> None:
        results[key] = result
        cache.put(key, result)
        tally.compile_seconds += result.seconds
        if result.ok:
            tally.compiled += 1
        else:
            tally.failed += 1
        if progress:
            progress(tally, missing[key], result)

    if executor is not None:
        pending: dict[Future[CompileResult], str] = {executor.submit(compile_job, j): k for k, j in missing.items()}
        for future in as_completed(pending):
            finish(pending[future], _outcome(future, timeout))
        return
    from pebble import ProcessPool

    pool = ProcessPool(
        max_workers=min(workers, len(missing)),
        max_tasks=TASKS_PER_WORKER,
        initializer=_start_worker,
        context=WorkerContext(),
    )
    try:
        futures = {pool.schedule(compile_job, args=(job,), timeout=timeout): key for key, job in missing.items()}
        for future in as_completed(futures):
            finish(futures[future], _outcome(future, timeout))
        pool.close()
    except BaseException:
        pool.stop()
        raise
    finally:
        pool.join()


def _outcome(future: Future[CompileResult], timeout: float) -> CompileResult:
    from pebble import ProcessExpired

    try:
        return future.result()
    except ProcessExpired as error:
        return CompileResult(JobStatus.CRASH, f"the compiler's process died with exit code {error.exitcode}")
    except TimeoutError:
        return CompileResult(JobStatus.TIMEOUT, f"not done after {timeout:g} s", seconds=timeout)
    except Exception as error:
        return CompileResult(JobStatus.CRASH, f"{type(error).__name__}: {error}")

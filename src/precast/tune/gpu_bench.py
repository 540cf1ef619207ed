"""The bench on a real GPU: through the runtime and pack that ship. Needs torch, no Triton."""

from __future__ import annotations

import functools
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from precast.check.problems import load_references
from precast.errors import UserError
from precast.reference import Reference, ShapesOnly
from precast.runtime import Operator, load
from precast.runtime.errors import DeviceMemoryError, InvalidArgumentError, PrecastError, UnsupportedError
from precast.tune.bench import BenchPoisoned, GateResult, Prepared, TimeResult, TimingSettings
from precast.tune.gate import Gate
from precast.tune.timing import interleaved

__all__ = ["FLUSH_BYTES", "EventClock", "GpuBench"]

FLUSH_BYTES = 256 << 20
"""Written before each launch: more than any GPU's last-level cache."""

BUSY_PERCENT = 5


class GpuBench:
    """Runs candidates of a pack on this process's first GPU."""

    def __init__(self, pack: str, family: str) -> None:
        try:
            import torch
        except ImportError as error:
            raise UserError("measuring needs torch: pip install torch") from error
        if not torch.cuda.is_available():
            raise UserError("torch sees no GPU here: measure where there is one, or use --replay")
        self.torch = torch
        self._busy = _busy_with_other_work()  # before this process does anything there
        self.library = load(pack)
        self.references, _ = load_references(family)
        self._candidates: dict[tuple[str, int], Operator] = {}
        self._gates: dict[str, Gate] = {}
        self._problem: tuple[str, Mapping[str, Any] | None, dict[str, Any]] = ("", None, {})
        self._flush = torch.empty(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
        self._clock = EventClock(torch, self._flush)

    def facts(self) -> Mapping[str, str]:
        """Name of the GPU, version of its driver."""
        device = self.torch.cuda.get_device_name()
        return {"device": device, "driver": _query("driver_version").get("driver_version", "")}

    def _reference(self, operator: str) -> Reference:
        if operator not in self.references:
            raise UserError(f"{operator} has no reference, which says what its problems are")
        return self.references[operator]

    def _candidate(self, operator: str, number: int) -> Operator:
        if (operator, number) not in self._candidates:
            self._candidates[operator, number] = self.library.operators[operator].candidate(number)
        return self._candidates[operator, number]

    def _tensors(self, operator: str, problem: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments on the GPU: arrays of `random_array` are drawn there, others are copied."""
        if self._problem[:2] == (operator, problem):
            return self._problem[2]
        self._problem = ("", None, {})  # frees the last problem's tensors first
        drawn = self._reference(operator).inputs(problem, ShapesOnly())
        needed = sum(a.size * a.itemsize for a in drawn.values() if isinstance(a, np.ndarray))
        free, _ = self.torch.cuda.mem_get_info()
        free += self.torch.cuda.memory_reserved() - self.torch.cuda.memory_allocated()
        if needed > free:
            raise DeviceMemoryError(f"the problem needs {needed:,} bytes for its inputs; {free:,} are free")
        made = {n: self._tensor(a) if isinstance(a, np.ndarray) else a for n, a in drawn.items()}
        self._problem = (operator, problem, made)
        return made

    def _tensor(self, array: Any) -> Any:
        from precast.check.placed import to_torch, torch_dtype

        torch = self.torch
        if array.size and any(array.strides):
            return to_torch(array, torch).to("cuda")
        dtype = torch_dtype(array.dtype, torch)
        if not dtype.is_floating_point:
            return torch.zeros(array.shape, dtype=dtype, device="cuda")
        drawn = torch.randn(array.shape, dtype=torch.float32 if dtype.itemsize != 2 else dtype, device="cuda")
        return drawn.to(dtype)

    def prepare(self, operator: str, problem: Mapping[str, Any]) -> Prepared:
        """Asks the library which specialization and key a problem has."""
        try:
            facts = self.library.operators[operator].explain(**self._tensors(operator, problem))
        except (UnsupportedError, InvalidArgumentError, DeviceMemoryError) as error:
            return Prepared("", refused=str(error))
        except self.torch.OutOfMemoryError as error:
            return Prepared("", refused=str(error).splitlines()[0])
        labels = facts["specialization"]
        return Prepared(" ".join(f"{k}={v}" for k, v in labels.items()), labels, facts["key"])

    def gate(self, operator: str, specialization: str, candidate: int) -> GateResult:
        """See `Bench.gate`."""
        if operator not in self._gates:
            self._gates[operator] = Gate(self.library.operators[operator], self._reference(operator), self.torch)
        run = self._candidate(operator, candidate)
        result: GateResult = self._guarded(functools.partial(self._gates[operator].prove, run, specialization))
        return result

    def _guarded(self, function: Callable[[], Any]) -> Any:
        """What a function gives; errors that spoil the context become `BenchPoisoned`."""
        try:
            result = function()
            self.torch.cuda.synchronize()
            return result
        except (UnsupportedError, InvalidArgumentError, UserError):
            raise
        except Exception as error:
            raise BenchPoisoned(f"{type(error).__name__}: {str(error).splitlines()[0]}") from error

    def time(
        self, operator: str, problem: Mapping[str, Any], candidates: Sequence[int], settings: TimingSettings
    ) -> list[TimeResult]:
        """See `Bench.time`."""
        try:
            tensors = self._tensors(operator, problem)
            outputs = self._outputs(operator, tensors, candidates)
        except (DeviceMemoryError, self.torch.OutOfMemoryError) as error:
            reason = str(error).splitlines()[0]
            return [TimeResult("out_of_memory", reason=reason) for _ in candidates]
        results: dict[int, TimeResult] = {}
        launches: dict[int, Callable[[], None]] = {}
        for number in candidates:
            outcome = self._guarded(functools.partial(self._first_run, operator, number, {**tensors, **outputs}))
            if isinstance(outcome, TimeResult):
                results[number] = outcome
            else:
                launches[number] = outcome
        if launches:
            taken = self._guarded(lambda: interleaved(self._clock, list(launches.values()), settings))
            after = _query("clocks.sm", "clocks_event_reasons.active")
            clock = int(after.get("clocks.sm") or 0)
            notes = _notes(self._busy, after)
            for number, times in zip(launches, taken, strict=True):
                results[number] = TimeResult("ok", tuple(times), clock_mhz=clock, notes=notes)
        return [results[n] for n in candidates]

    def _outputs(self, operator: str, tensors: dict[str, Any], candidates: Sequence[int]) -> dict[str, Any]:
        """Outputs as the library allocates them, written over by every candidate."""
        names = [a["name"] for a in self.library.operators[operator].facts["arguments"] if a.get("output")]
        missing = [n for n in names if n not in tensors]
        for number in candidates:
            try:
                made = self._guarded(functools.partial(self._candidate(operator, number), **tensors))
            except (UnsupportedError, InvalidArgumentError):
                continue
            values = [made] if len(missing) == 1 else list(made) if missing else []
            return dict(zip(missing, values, strict=True))
        return {}

    def _first_run(self, operator: str, number: int, arguments: dict[str, Any]) -> TimeResult | Callable[[], None]:
        """A launch that is loaded and has run once; or why there is none."""
        run = self._candidate(operator, number)
        try:
            values = run.bind(**arguments)
            function = run.function
            function(*values)
        except (UnsupportedError, InvalidArgumentError) as error:
            return TimeResult("launch_error", reason=str(error))
        except PrecastError as error:
            if "out of memory" in str(error) or isinstance(error, DeviceMemoryError):
                return TimeResult("out_of_memory", reason=str(error))
            if "resources" in str(error) or "invalid value" in str(error).lower():
                return TimeResult("launch_error", reason=str(error))
            raise
        return lambda: function(*values)


class EventClock:
    """Device events around each launch, after a write that pushes everything else out of the cache."""

    def __init__(self, torch: Any, flush: Any) -> None:
        self.torch, self.flush = torch, flush
        self.pairs: list[tuple[Any, Any]] = []

    def round(self, launches: Sequence[Callable[[], None]]) -> list[float]:
        """Microseconds of each."""
        while len(self.pairs) < len(launches):
            event = functools.partial(self.torch.cuda.Event, enable_timing=True)
            self.pairs.append((event(), event()))
        pairs = self.pairs[: len(launches)]
        for launch, (start, end) in zip(launches, pairs, strict=True):
            self.flush.zero_()
            start.record()
            launch()
            end.record()
        self.torch.cuda.synchronize()
        return [start.elapsed_time(end) * 1e3 for start, end in pairs]


def _query(*names: str) -> dict[str, str]:
    """Facts of the GPU by nvidia-smi's names; empty where that can't be had."""
    command = ["nvidia-smi", "-i", "0", f"--query-gpu={','.join(names)}", "--format=csv,noheader,nounits"]
    try:
        text = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    values = [v.strip() for v in text.splitlines()[0].split(",")] if text.strip() else []
    return dict(zip(names, values, strict=False)) if len(values) == len(names) else {}


POWER, THERMAL, HARDWARE = 0x4, 0x20 | 0x40, 0x8 | 0x80
"""Bits of nvidia-smi's clocks_event_reasons."""


def _busy_with_other_work() -> str:
    """A note if someone else uses the GPU. What a process before this one did there shows for about a second."""
    for wait in (0.0, 1.5):
        time.sleep(wait)
        used = _query("utilization.gpu").get("utilization.gpu", "")
        if not used.isdigit() or int(used) <= BUSY_PERCENT:
            return ""
    return f"GPU busy with other work when measuring began ({used} %)"


def _notes(busy: str, after: Mapping[str, str]) -> str:
    notes = [busy] if busy else []
    text = after.get("clocks_event_reasons.active", "")
    try:
        reasons = int(text, 16) if text else 0
    except ValueError:
        reasons = 0
    known = (("power cap", POWER), ("thermal slowdown", THERMAL), ("hardware slowdown", HARDWARE))
    notes += [name for name, bit in known if reasons & bit]
    return ", ".join(notes)

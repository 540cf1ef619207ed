"""Made-up records."""

from __future__ import annotations

from precast.database.records import Evidence, Measurement, Origin, Subject

ORIGIN = Origin("ab12", "3.9.0", "570.1", "2026-01-31T12:00:00Z", "run-1")


def measurement(
    config: str = "BLOCK_M=64 num_warps=4", time: float | None = 10.0, *, size: int = 67, device: str = "NVIDIA H200",
    mask: str = "none", operator: str = "attention_forward", origin: Origin = ORIGIN, status: str = "ok", **more: object,
) -> Measurement:  # fmt: skip
    """A measurement of a made-up operator."""
    features = {"MASK": mask, "HEAD_DIM": 128}
    subject = Subject("flash", operator, "sm_90", device, {"T": "bf16"}, features, "tma", config)
    times = () if time is None else (time, time + 1, time + 2, time + 3, time + 4)
    problem = {"B": 1, "Sq": size, "layout": "bhsd"}
    return Measurement(subject, origin, {"Sq": size, "heads": 4}, problem, status, times=times, repeats=5, **more)


def evidence(of: Measurement, status: str = "ok", **more: object) -> Evidence:
    """What the gate found for a measurement's subject."""
    return Evidence(of.subject, of.origin, of.problem, "contiguous", status, 1e-3, 2e-3, 3, **more)

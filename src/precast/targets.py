"""GPU targets: what code is compiled for, and which target can run whose code.

Limits are those of the vendors' programming guides: CUDA C++ programming guide, table "technical
specifications per compute capability" (shared memory per block, opted in); AMD's ISA documents
(LDS per workgroup).
"""

from __future__ import annotations

import difflib
import os.path
from dataclasses import dataclass

from precast.errors import UserError

__all__ = ["TARGETS", "Target", "UnknownTargetError", "find_target", "parse_targets"]


class UnknownTargetError(UserError):
    """A target name that precast doesn't know; the message names the nearest one."""


@dataclass(frozen=True)
class Target:
    """One GPU architecture.

    Attributes:
        name: as users write it, ``sm_90`` or ``gfx942``.
        vendor: ``nvidia`` or ``amd``.
        warp_size: threads of a warp (wavefront).
        shared_bytes: most shared memory (LDS) that one block can have, in bytes.
        fp8: fp8 types that Triton compiles natively for it, by Triton's names.
        example: a product that has it.
    """

    name: str
    vendor: str
    warp_size: int
    shared_bytes: int
    fp8: tuple[str, ...]
    example: str

    @property
    def arch(self) -> int | str:
        """Triton's name of the architecture: 90 for sm_90, "gfx942" for gfx942."""
        return int(self.name[3:]) if self.vendor == "nvidia" else self.name

    @property
    def backend(self) -> str:
        """Triton's name of the back end."""
        return "cuda" if self.vendor == "nvidia" else "hip"

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability of an NVIDIA target, for example (9, 0)."""
        number = int(self.name[3:])
        return number // 10, number % 10

    @property
    def arch_specific(self) -> bool:
        """Whether Triton compiles with the architecture's own features ("sm_90a"), which no other runs."""
        return self.vendor == "amd" or self.capability[0] >= 9

    def runs_code_of(self, other: Target) -> bool:
        """Whether a GPU of this target can run a cubin or hsaco that was compiled for `other`.

        A cubin runs on later minors of its major, unless it uses architecture-specific features.
        """
        if self.name == other.name:
            return True
        if self.vendor != "nvidia" or other.vendor != "nvidia" or other.arch_specific:
            return False
        return self.capability[0] == other.capability[0] and self.capability[1] >= other.capability[1]

    def __str__(self) -> str:
        return self.name


_FNUZ = ("fp8e4b8", "fp8e5b16")
_OCP = ("fp8e4nv", "fp8e5")

TARGETS: dict[str, Target] = {
    t.name: t
    for t in (
        Target("sm_80", "nvidia", 32, 163 * 1024, ("fp8e5",), "A100"),
        Target("sm_86", "nvidia", 32, 99 * 1024, ("fp8e5",), "RTX 3090, A10"),
        Target("sm_89", "nvidia", 32, 99 * 1024, _OCP, "RTX 4090, L40S"),
        Target("sm_90", "nvidia", 32, 227 * 1024, _OCP, "H100, H200"),
        Target("sm_100", "nvidia", 32, 227 * 1024, _OCP, "B200"),
        Target("sm_120", "nvidia", 32, 99 * 1024, _OCP, "RTX 5090"),
        Target("gfx90a", "amd", 64, 64 * 1024, (), "Instinct MI210, MI250"),
        Target("gfx942", "amd", 64, 64 * 1024, _FNUZ, "Instinct MI300X"),
        Target("gfx950", "amd", 64, 160 * 1024, _OCP, "Instinct MI355X"),
        Target("gfx1100", "amd", 32, 64 * 1024, (), "Radeon RX 7900 XTX"),
        Target("gfx1101", "amd", 32, 64 * 1024, (), "Radeon RX 7800 XT"),
        Target("gfx1150", "amd", 32, 64 * 1024, (), "Radeon 890M"),
        Target("gfx1151", "amd", 32, 64 * 1024, (), "Radeon 8060S"),
        Target("gfx1200", "amd", 32, 64 * 1024, _OCP, "Radeon RX 9060 XT"),
        Target("gfx1201", "amd", 32, 64 * 1024, _OCP, "Radeon RX 9070 XT"),
    )
}
"""Every target, by name."""


def find_target(name: str) -> Target:
    """The target of that name.

    Raises:
        UnknownTargetError: if there is none; the message has the nearest spelling and all names.
    """
    if name in TARGETS:
        return TARGETS[name]
    key = name.strip().lower().replace("-", "_")
    spelled = key if not key.startswith("sm") else "sm_" + key.removeprefix("sm").strip("_").rstrip("af")

    def likeness(known: str) -> tuple[int, float]:
        return len(os.path.commonprefix([known, spelled])), difflib.SequenceMatcher(None, known, spelled).ratio()

    near = max(TARGETS, key=likeness)
    raise UnknownTargetError(f"unknown target {name!r}: did you mean {near!r}? Known targets: {', '.join(TARGETS)}")


def parse_targets(text: str) -> tuple[Target, ...]:
    """Targets from a comma-separated list, each once, in the order given.

    Raises:
        UnknownTargetError: if one is unknown, or the list is empty.
    """
    names = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not names:
        raise UnknownTargetError(f"no target given: name one or more of {', '.join(TARGETS)}")
    return tuple(find_target(name) for name in names)

"""Exceptions that carry a library's own message, one for each of its status codes."""

from __future__ import annotations

__all__ = [
    "BadPackError",
    "DeviceMemoryError",
    "DriverError",
    "ExpressionArithmeticError",
    "InvalidArgumentError",
    "NoDriverError",
    "NoPackError",
    "NoTargetError",
    "NotWarmError",
    "PrecastError",
    "UnsupportedError",
    "UntunedError",
    "VersionMismatchError",
    "error_of_status",
]


class PrecastError(RuntimeError):
    """A call of a library failed; nothing was launched."""


class InvalidArgumentError(PrecastError, ValueError):
    """Wrong count, kind, dtype, rank, shape, stride, device or overlap."""


class UnsupportedError(PrecastError, NotImplementedError):
    """A combination that is excluded, was not built or failed to build."""


class NoTargetError(PrecastError):
    """The library has no code that this GPU can run."""


class NoDriverError(PrecastError):
    """No CUDA or HIP driver could be opened."""


class DriverError(PrecastError):
    """The driver refused."""


class BadPackError(PrecastError):
    """The pack is damaged."""


class VersionMismatchError(PrecastError):
    """Pack and library, or pack and runtime, are of different builds."""


class NoPackError(PrecastError, FileNotFoundError):
    """The pack that the library needs is not there."""


class DeviceMemoryError(PrecastError, MemoryError):
    """No memory."""


class UntunedError(PrecastError):
    """PRECAST_FROZEN is set and nothing was measured for this problem."""


class ExpressionArithmeticError(PrecastError, ArithmeticError):
    """A grid or size expression overflowed or divided by zero."""


class NotWarmError(PrecastError):
    """A kernel must be loaded, but the stream is capturing: call warmup first."""


_BY_STATUS: dict[int, type[PrecastError]] = {
    1: InvalidArgumentError,
    2: UnsupportedError,
    3: NoTargetError,
    4: NoDriverError,
    5: DriverError,
    6: BadPackError,
    7: VersionMismatchError,
    8: NoPackError,
    9: DeviceMemoryError,
    10: UntunedError,
    11: ExpressionArithmeticError,
    12: NotWarmError,
}


def error_of_status(status: int) -> type[PrecastError]:
    """The exception of a `precast_status`."""
    return _BY_STATUS.get(status, PrecastError)


def register() -> None:
    """Tells apache-tvm-ffi the classes, so that the glue's errors arrive as them."""
    from tvm_ffi import register_error

    for cls in (PrecastError, *_BY_STATUS.values()):
        register_error(cls)

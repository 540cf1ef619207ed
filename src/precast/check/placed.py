"""Arrays on a GPU between guard zones, in several memory layouts. Needs torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from precast.reference import Array

__all__ = ["GUARD_BYTE", "LAYOUTS", "Layout", "PlacedArray", "to_numpy", "to_torch", "torch_dtype"]

GUARD = 4096
"""Bytes before and after each tensor."""

GUARD_BYTE = 0xA5


@dataclass(frozen=True)
class Layout:
    """How a tensor lies in memory."""

    name: str
    pad: int  # elements added to each row
    offset: int  # elements between an aligned address and the first element


LAYOUTS = (Layout("compact", 0, 0), Layout("padded rows", 16, 0), Layout("odd rows, unaligned", 3, 1))


class PlacedArray:
    """An array on the GPU between guard zones."""

    def __init__(self, array: Array, layout: Layout, torch: Any) -> None:
        self.torch = torch
        shape, itemsize = array.shape, array.dtype.itemsize
        order = (
            sorted(range(array.ndim), key=lambda i: (-array.strides[i], i)) if array.size else list(range(array.ndim))
        )
        strides = [0] * array.ndim
        step = 1
        for position, axis in enumerate(reversed(order)):
            strides[axis] = step
            step *= max(1, shape[axis])
            if position == 0 and array.ndim > 1:
                step += layout.pad
        count = 0 if array.size == 0 else 1 + sum((s - 1) * st for s, st in zip(shape, strides, strict=True))
        start = GUARD + layout.offset * itemsize
        self.raw = torch.full((start + count * itemsize + GUARD,), GUARD_BYTE, dtype=torch.uint8, device="cuda")
        dtype = torch_dtype(array.dtype, torch)
        flat = (
            self.raw[start : start + count * itemsize].view(dtype)
            if count
            else torch.empty(0, dtype=dtype, device="cuda")
        )
        self.view = torch.as_strided(flat, shape, strides)
        self.inside = (start, start + count * itemsize)
        if array.size:
            self.view.copy_(to_torch(array, torch).to("cuda"))
        self.host_mask = self._outside_mask(shape, strides, itemsize, start)

    def _outside_mask(self, shape: tuple[int, ...], strides: list[int], itemsize: int, start: int) -> Any:
        """Bytes that belong to no element."""
        mask = self.torch.ones(self.raw.numel(), dtype=self.torch.bool, device="cuda")
        if 0 in shape:
            return mask
        inside = mask[start : start + (self.inside[1] - start)]
        bytes_view = self.torch.as_strided(inside, (*shape, itemsize), [*(s * itemsize for s in strides), 1])
        bytes_view.fill_(False)
        return mask

    def fill(self, byte: int) -> None:
        """Sets every byte of the elements; what lies between and around them stays."""
        if self.view.numel():
            self.raw[~self.host_mask] = byte

    def untouched(self) -> bool:
        """Whether every byte outside the elements still is as it was."""
        return bool((self.raw[self.host_mask] == GUARD_BYTE).all())


def torch_dtype(dtype: np.dtype[Any], torch: Any) -> Any:
    """torch's dtype of a NumPy dtype."""
    return getattr(
        torch, {"float8_e4m3fn": "float8_e4m3fn", "float8_e4m3fnuz": "float8_e4m3fnuz"}.get(dtype.name, dtype.name)
    )


def to_torch(array: Array, torch: Any) -> Any:
    """A copy on the CPU as a tensor."""
    integer = np.dtype(np.uint8 if array.dtype.itemsize == 1 else np.int16)
    if array.dtype.name.startswith(("bfloat", "float8")):
        compact = np.array(array, copy=True, order="C")
        return torch.from_numpy(compact.view(integer)).view(torch_dtype(array.dtype, torch))
    return torch.from_numpy(np.array(array, copy=True, order="C"))


def to_numpy(tensor: Any, dtype: np.dtype[Any], torch: Any) -> Array:
    """A copy on the CPU as an array."""
    host = tensor.detach().contiguous().cpu()
    if dtype.name.startswith(("bfloat", "float8")):
        return np.asarray(host.view(torch.int16 if dtype.itemsize == 2 else torch.uint8).numpy().view(dtype))
    return np.asarray(host.numpy())

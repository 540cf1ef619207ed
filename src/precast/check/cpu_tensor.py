"""NumPy arrays in the shape that Triton's interpreter expects of tensors, so that no torch is needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from precast.describe.dtypes import DTYPES as DESCRIBED
from precast.reference import DTYPES, Array

__all__ = ["CpuTensor", "allocate"]


class _Dtype:
    """A dtype that prints as torch's do, which is what Triton reads."""

    def __init__(self, array_dtype: np.dtype[Any]) -> None:
        name = next(n for n, d in DTYPES.items() if d == array_dtype)
        self.name = DESCRIBED[name].long_name
        self.itemsize = array_dtype.itemsize
        self.is_floating_point = array_dtype.kind not in "iu"

    def __str__(self) -> str:
        return f"torch.{self.name}"

    def __repr__(self) -> str:
        return str(self)

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Dtype) and other.name == self.name


class _Storage:
    """An array's memory; the interpreter copies it to the host and back, which here is the same place."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def cpu(self) -> _Storage:
        return self

    def copy_(self, other: _Storage) -> None:
        assert other is self or other.data_ptr() == self.data_ptr()


class CpuTensor:
    """A view of an array."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.dtype = _Dtype(array.dtype)
        self.shape = array.shape

    def data_ptr(self) -> int:
        """Address of the first element."""
        return int(self.array.ctypes.data)

    def untyped_storage(self) -> _Storage:
        """Its memory."""
        return _Storage(self.array)

    def storage_offset(self) -> int:
        """Where in its memory it starts."""
        return 0

    def size(self) -> tuple[int, ...]:
        """Its dims."""
        return tuple(self.array.shape)

    def stride(self) -> tuple[int, ...]:
        """Its strides, in elements."""
        return tuple(s // self.array.itemsize for s in self.array.strides)

    def new_empty(self, size: object, device: object = None) -> CpuTensor:
        """A tensor to be given memory by `set_`."""
        return CpuTensor(self.array)

    def set_(self, storage: _Storage, offset: int, size: object, stride: object) -> None:
        """Takes the memory of another tensor."""
        self.array = storage.array


def allocate(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array of NaN (or of the largest integer) at a 64-byte aligned address."""
    count = int(np.prod(shape, dtype=np.int64))
    raw = np.empty(count * dtype.itemsize + 64, np.uint8)
    start = -raw.ctypes.data % 64
    array: Array = raw[start : start + count * dtype.itemsize].view(dtype).reshape(shape)
    array[...] = np.iinfo(dtype).max if dtype.kind in "iu" else np.nan
    return array

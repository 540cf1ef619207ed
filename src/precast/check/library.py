"""Checking a built library on the GPU that is here, against the references; needs torch, and no Triton.

Outputs are poisoned with NaN before each call and lie between guard zones that must stay untouched. Each problem
runs with compact tensors, with padded rows and with addresses that are not 16-byte aligned, so that every
alignment class is called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from precast.check.problems import Outcome, load_references, problem_text
from precast.errors import UserError
from precast.reference import Array, Reference, compare
from precast.runtime import Library, Operator, load
from precast.runtime.errors import InvalidArgumentError, UnsupportedError

__all__ = ["check_library"]

SEED = 21
GUARD = 4096
"""Bytes before and after each tensor."""

GUARD_BYTE = 0xA5


@dataclass(frozen=True)
class _Layout:
    name: str
    pad: int  # elements added to each row
    offset: int  # elements between an aligned address and the first element


LAYOUTS = (_Layout("compact", 0, 0), _Layout("padded rows", 16, 0), _Layout("odd rows, unaligned", 3, 1))


class _Placed:
    """An array on the GPU between guard zones."""

    def __init__(self, array: Array, layout: _Layout, torch: Any) -> None:
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
        dtype = _torch_dtype(array.dtype, torch)
        flat = (
            self.raw[start : start + count * itemsize].view(dtype)
            if count
            else torch.empty(0, dtype=dtype, device="cuda")
        )
        self.view = torch.as_strided(flat, shape, strides)
        self.inside = (start, start + count * itemsize)
        if array.size:
            self.view.copy_(_to_torch(array, torch).to("cuda"))
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

    def untouched(self) -> bool:
        """Whether every byte outside the elements still is as it was."""
        return bool((self.raw[self.host_mask] == GUARD_BYTE).all())


def _torch_dtype(dtype: np.dtype[Any], torch: Any) -> Any:
    return getattr(
        torch, {"float8_e4m3fn": "float8_e4m3fn", "float8_e4m3fnuz": "float8_e4m3fnuz"}.get(dtype.name, dtype.name)
    )


def _to_torch(array: Array, torch: Any) -> Any:
    integer = np.dtype(np.uint8 if array.dtype.itemsize == 1 else np.int16)
    if array.dtype.name.startswith(("bfloat", "float8")):
        compact = np.array(array, copy=True, order="C")
        return torch.from_numpy(compact.view(integer)).view(_torch_dtype(array.dtype, torch))
    return torch.from_numpy(np.array(array, copy=True, order="C"))


def _to_numpy(tensor: Any, dtype: np.dtype[Any], torch: Any) -> Array:
    host = tensor.detach().contiguous().cpu()
    if dtype.name.startswith(("bfloat", "float8")):
        return np.asarray(host.view(torch.int16 if dtype.itemsize == 2 else torch.uint8).numpy().view(dtype))
    return np.asarray(host.numpy())


def check_library(path: str | Path, family: str | Path | None = None) -> Iterator[Outcome]:
    """Calls every operator on every problem on this machine's GPU and compares with the references.

    Args:
        path: the library, or a pack.
        family: where its references are; by default the family that precast ships under the library's name.

    Raises:
        UserError: if there is no torch or no GPU.
    """
    try:
        import torch
    except ImportError as error:
        raise UserError("checking a library on a GPU needs torch") from error
    if not torch.cuda.is_available():
        raise UserError("torch sees no GPU here; `precast check FAMILY` checks kernels on the CPU")
    library = load(path)
    references, _ = load_references(family or library.family)
    for name, operator in library.operators.items():
        if name not in references:
            yield Outcome(name, "", "", "error", "it has no reference")
            continue
        for problem in references[name].problems:
            yield from _check_problem(library, operator, references[name], problem, torch)


def _check_problem(
    library: Library, operator: Operator, reference: Reference, problem: Mapping[str, Any], torch: Any
) -> Iterator[Outcome]:
    inputs = reference.inputs(problem, np.random.default_rng(SEED))
    wanted, plain = reference.reference(inputs), reference.naive(inputs)
    magnitudes = reference.magnitudes(inputs)
    text = problem_text(problem)
    for layout in LAYOUTS[: 1 if problem.get("big") and problem.get("dtype") == "fp32" else None]:
        placed = {n: _Placed(a, layout, torch) for n, a in inputs.items() if isinstance(a, np.ndarray)}
        outputs = {n: _Placed(np.full(wanted[n].shape, np.nan, plain[n].dtype), layout, torch) for n in wanted}
        scalars = {n: v for n, v in inputs.items() if n not in placed}
        arguments = {n: p.view for n, p in {**placed, **outputs}.items()} | scalars
        try:
            operator(**arguments)
            torch.cuda.synchronize()
        except (UnsupportedError, InvalidArgumentError) as error:
            compact = layout is LAYOUTS[0]
            expected = not compact or problem.get("needs")
            yield Outcome(operator.name, text, layout.name, "refused" if expected else "error", str(error))
            continue
        for name, place in outputs.items():
            got = _to_numpy(place.view, plain[name].dtype, torch)
            c = compare(got, wanted[name], plain[name], magnitudes.get(name, 0.0))
            detail = f"{name}: error {c.error:.3g}, allowed {c.allowed:.3g}"
            yield Outcome(operator.name, text, layout.name, "ok" if c.ok else "wrong", detail)
        for name, place in {**placed, **outputs}.items():
            if not place.untouched():
                yield Outcome(operator.name, text, layout.name, "guard", f"bytes around {name} were written")

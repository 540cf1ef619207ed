"""The vocabulary of a description: what a kernel's signature can't say.

Everything here is a plain, frozen value. Nothing is checked when it is written down, except the
types of what is given; `precast.describe.bind` finds all faults at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "Alignment",
    "Config",
    "Dim",
    "Exclusion",
    "Family",
    "Feature",
    "Kernel",
    "Operator",
    "Plan",
    "Scalar",
    "Stride",
    "Tensor",
    "WorkspaceTensor",
    "dim",
    "feature",
    "scalar",
    "stride",
    "tensor",
    "workspace",
]

Lambda = Callable[[Any], Any]
"""A function of one namespace. See `precast.describe.namespace`."""

COMPILE_OPTIONS = (
    "num_warps",
    "num_stages",
    "num_ctas",
    "maxnreg",
    "waves_per_eu",
    "matrix_instr_nonkdim",
    "kpack",
    "launch_cooperative_grid",
    "launch_pdl",
    "enable_fp_fusion",
    "schedule_hint",
    "ptx_options",
    "wgp_cu_mode",
)
"""Compile options that a `Config` may set, by Triton's names."""


@dataclass(frozen=True)
class Tensor:
    """A tensor argument; see `tensor`."""

    dtype: str
    shape: tuple[str | int | Lambda | None, ...] = ()
    output: bool = False
    in_place_with: str | None = None
    when: Lambda | None = None
    name: str | None = None
    block: Lambda | None = None
    padding: str = "zero"

    @property
    def rank(self) -> int:
        """Number of dims."""
        return len(self.shape)


@dataclass(frozen=True)
class Scalar:
    """A number argument; see `scalar`."""

    type: str | None = None
    default: int | float | None = None
    value: Lambda | None = None
    name: str | None = None


@dataclass(frozen=True)
class Stride:
    """The stride of a tensor along an axis, in elements; see `stride`."""

    tensor: str
    axis: int


@dataclass(frozen=True)
class Dim:
    """The size of a tensor along an axis; see `dim`."""

    tensor: str
    axis: int


@dataclass(frozen=True)
class WorkspaceTensor:
    """Memory that the library lends to a plan for one call; see `workspace`."""

    dtype: str
    shape: Lambda
    zero: bool = False
    name: str | None = None


@dataclass(frozen=True)
class Feature:
    """A constexpr that changes what is computed; see `feature`."""

    values: tuple[Any, ...]
    value: Lambda | None = None
    name: str | None = None


@dataclass(frozen=True)
class Exclusion:
    """A combination that makes no sense, and why."""

    predicate: Lambda
    reason: str


@dataclass(frozen=True)
class Alignment:
    """A set of facts about a call that one variant of the compiled kernel relies on.

    Attributes:
        name: shown by `inspect` and `explain`.
        pointers: every tensor's address is divisible by 16.
        equal_to_1: kernel arguments (strides, mostly) that are 1 and compiled in.
        divisible_by_16: kernel arguments that are divisible by 16.
        wide: integer arguments have 64 bits, and tensors may span 2**31 elements or more.
    """

    name: str
    pointers: bool = False
    equal_to_1: tuple[str, ...] = ()
    divisible_by_16: tuple[str, ...] = ()
    wide: bool = False


class Config:
    """Tuning parameters and compile options, as in `triton.Config`.

    Args:
        parameters: values of the kernel's tuning constexprs.
        when: holds for the problems that this config can do; all if not given.
        prefer: holds for the problems that it is meant for when nothing was measured; the first config whose
            `when` and `prefer` hold (or that has none) is the static default.
        targets: targets that it is meant for; all if not given.
        options: compile options: num_warps, num_stages, num_ctas, maxnreg, launch_cooperative_grid,
            launch_pdl, AMD's waves_per_eu, matrix_instr_nonkdim, kpack, and others of Triton's.
    """

    def __init__(
        self,
        parameters: Mapping[str, Any] | None = None,
        *,
        when: Lambda | None = None,
        prefer: Lambda | None = None,
        targets: Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        self.parameters = dict(parameters or {})
        self.options = {k: v for k, v in options.items() if v is not None}
        self.when = when
        self.prefer = prefer
        self.targets = None if targets is None else tuple(targets)

    @property
    def text(self) -> str:
        """The canonical form: parameters in order of their names, then options in order of theirs."""
        pairs = [*sorted(self.parameters.items()), *sorted(self.options.items())]
        return " ".join(f"{k}={v}" for k, v in pairs)

    def applies_to(self, target: str) -> bool:
        """Whether it is meant for that target."""
        return self.targets is None or target in self.targets

    def __repr__(self) -> str:
        return f"Config({self.text})"


@dataclass(frozen=True)
class Kernel:
    """A `@triton.jit` or `@gluon.jit` function and what its signature can't say.

    Args:
        function: the decorated function itself. `@triton.autotune` configs and key, and
            `@triton.heuristics`, are taken over if it has them.
        types: type variables: name to the dtypes it may be, by Triton's names.
        args: kernel parameter to what it is: `tensor`, `scalar`, `stride`, `dim` or `workspace`. Integer
            parameters that are named like a dim, or `stride_<tensor>_<axis or dim>`,
            `<tensor>_stride_<axis or dim>`, `stride_<tensor><axis>`, are bound by name.
        features: constexpr to the values that must be callable.
        constants: constexpr to a fixed value, or a function of the features and types.
        exclude: pairs of a predicate over features and types, and the reason.
        key: what configs are chosen by: names of dims, scalars, or ``name: function``.
        configs: candidates, in order of preference when nothing was measured.
        grid: function of the arguments to one, two or three sizes.
        alignments: variants to compile, best first; by default four (see `precast.describe.alignment`).
        large: what to do with tensors that span 2**31 elements or more: "refuse", or "wide" to compile a
            variant whose integer arguments have 64 bits.
        targets: the targets that the kernel is for; all if not given.
        name: by default the function's name.
    """

    function: Any
    types: Mapping[str, Sequence[str]] = field(default_factory=dict)
    args: Mapping[str, Tensor | Scalar | Stride | Dim | WorkspaceTensor] = field(default_factory=dict)
    features: Mapping[str, Sequence[Any] | Feature] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    exclude: Sequence[Exclusion | tuple[Lambda, str]] = ()
    key: Sequence[str] | Mapping[str, Lambda] = ()
    configs: Sequence[Config] = ()
    grid: Lambda | None = None
    alignments: Sequence[Alignment] | None = None
    large: str = "refuse"
    targets: Sequence[str] | None = None
    name: str | None = None

    @property
    def label(self) -> str:
        """The kernel's name."""
        if self.name:
            return self.name
        inner = self.function
        while hasattr(inner, "fn"):
            inner = inner.fn
        return str(getattr(inner, "__name__", inner))


@dataclass(frozen=True)
class Plan:
    """One way to carry out an operator: kernels, launched in order.

    Args:
        name: shown by `inspect` and `explain`.
        kernels: the launches.
        when: holds for the problems that the plan can do; all if not given.
        prefer: holds for the problems that the plan is meant for when nothing was measured; all if not given.
        targets: targets that it is for; all if not given.
    """

    name: str
    kernels: Sequence[Kernel]
    when: Lambda | None = None
    prefer: Lambda | None = None
    targets: Sequence[str] | None = None


@dataclass(frozen=True)
class Operator:
    """What a caller calls.

    Args:
        name: a C identifier.
        plans: in order of preference when nothing was measured; the first that applies is used.
        arguments: public arguments in the order that callers give them; by default that of the kernels'
            signatures, features last.
        checks: pairs of a function that must not give 0 and the message if it does.
        doc: one line for generated headers.
    """

    name: str
    plans: Sequence[Plan]
    arguments: Sequence[str] | None = None
    checks: Sequence[tuple[Lambda, str]] = ()
    doc: str = ""


@dataclass(frozen=True)
class Family:
    """A folder of kernels that become one library.

    Args:
        name: a C identifier; the library is ``lib<name>.so``.
        operators: operators; a bare `Kernel` is an operator of that name with one plan.
    """

    name: str
    operators: Sequence[Operator | Kernel]

    def all_operators(self) -> list[Operator]:
        """Operators, with bare kernels wrapped."""
        return [
            op if isinstance(op, Operator) else Operator(op.label, (Plan("default", (op,)),)) for op in self.operators
        ]


def tensor(
    dtype: str,
    *,
    shape: Sequence[str | int | Lambda | None] | None = None,
    rank: int | None = None,
    output: bool = False,
    in_place_with: str | None = None,
    when: Lambda | None = None,
    name: str | None = None,
    block: Lambda | None = None,
    padding: str = "zero",
) -> Tensor:
    """A tensor argument.

    Args:
        dtype: a type variable, or a fixed dtype by Triton's name.
        shape: one entry a dim: a name (equal names must have equal sizes; integer kernel parameters of that
            name get the size), a number, a function of the arguments, or None for any size.
        rank: number of dims, instead of `shape`, when they have no names.
        output: the kernel writes it; callers may leave it out and get a new one.
        in_place_with: an input that this output may share memory with.
        when: function of the features and types: the argument exists only where it holds; elsewhere its
            pointer is compiled away as None, its strides with it.
        name: public name, if it isn't the parameter's.
        block: makes it a host-side TMA descriptor; function of the config to the block's shape.
        padding: what a TMA read outside the tensor gives: "zero" or "nan".
    """
    if (shape is None) == (rank is None):
        raise TypeError("tensor(): give shape=(…) or rank=…, one of the two")
    dims: tuple[Any, ...] = tuple(shape) if shape is not None else (None,) * int(rank or 0)
    return Tensor(dtype, dims, output, in_place_with, when, name, block, padding)


def scalar(
    type: str | None = None,
    *,
    default: int | float | None = None,
    value: Lambda | None = None,
    name: str | None = None,
) -> Scalar:
    """A number argument.

    Args:
        type: Triton's name of its type. Integers without one have 32 bits if the value fits, as in the JIT.
        default: its value if callers leave it out.
        value: a function of the other arguments; then callers don't give it.
        name: public name, if it isn't the parameter's.
    """
    return Scalar(type, default, value, name)


def stride(tensor: str, axis: int) -> Stride:
    """The stride of `tensor` (its public name) along `axis`, in elements."""
    return Stride(tensor, axis)


def dim(tensor: str, axis: int) -> Dim:
    """The size of `tensor` (its public name) along `axis`."""
    return Dim(tensor, axis)


def workspace(dtype: str, *, shape: Lambda, zero: bool = False, name: str | None = None) -> WorkspaceTensor:
    """Memory that the library lends to the plan for one call, shared by name between its kernels.

    Args:
        dtype: element type: a type variable or Triton's name.
        shape: function of the arguments to its size or sizes, in elements.
        zero: zeroed before the first launch.
        name: by default the parameter's.
    """
    return WorkspaceTensor(dtype, shape, zero, name)


def feature(values: Sequence[Any], *, value: Lambda | None = None, name: str | None = None) -> Feature:
    """A constexpr that changes what is computed.

    Args:
        values: those that must be callable: bools, integers or texts.
        value: a function of the arguments that gives it (an integer or a bool); without it, the feature is a
            public argument of the operator, named as the constexpr in lower case.
        name: public name, if it is another.
    """
    return Feature(tuple(values), value, name)

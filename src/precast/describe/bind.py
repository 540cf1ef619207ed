"""Binding: every kernel parameter to what gives its value. All faults of a description are found here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from precast.describe.declarations import (
    COMPILE_OPTIONS,
    Config,
    Dim,
    Exclusion,
    Family,
    Feature,
    Kernel,
    Lambda,
    Operator,
    Scalar,
    Stride,
    Tensor,
    WorkspaceTensor,
)
from precast.describe.dtypes import DTYPES, find_dtype
from precast.describe.faults import DescriptionError, Faults, nearest
from precast.describe.names import name_problem
from precast.describe.signature import KernelFunction, Parameter, read_kernel
from precast.targets import TARGETS

__all__ = ["Binding", "BoundFamily", "BoundKernel", "BoundOperator", "BoundPlan", "PublicArgument", "bind_family"]


@dataclass(frozen=True)
class Binding:
    """What gives a kernel parameter its value.

    `kind` is one of: pointer, tensor_map, workspace, slot (an integer read from the call: `source` is its
    symbol), int, float (a public scalar), expression (`function`), feature, constant, tuning, default,
    heuristic.
    """

    kind: str
    parameter: Parameter
    source: str = ""
    declaration: Any = None
    function: Lambda | None = None


@dataclass(frozen=True)
class BoundKernel:
    """A kernel with every parameter bound."""

    kernel: Kernel
    function: KernelFunction
    bindings: tuple[Binding, ...]
    configs: tuple[Config, ...]
    heuristics: Mapping[str, tuple[Lambda, tuple[Any, ...]]]
    tuning: tuple[str, ...]

    @property
    def label(self) -> str:
        """The kernel's name."""
        return self.kernel.label

    def applies_to(self, target: str) -> bool:
        """Whether it is meant for that target."""
        return self.kernel.targets is None or target in self.kernel.targets


@dataclass(frozen=True)
class BoundPlan:
    """A plan with its kernels bound."""

    name: str
    kernels: tuple[BoundKernel, ...]
    when: Lambda | None
    prefer: Lambda | None
    targets: tuple[str, ...] | None

    def applies_to(self, target: str) -> bool:
        """Whether it and all its kernels are meant for that target."""
        return (self.targets is None or target in self.targets) and all(k.applies_to(target) for k in self.kernels)


@dataclass(frozen=True)
class PublicArgument:
    """An argument that callers give."""

    name: str
    kind: str  # tensor, int, float, bool, choice
    tensor: Tensor | None = None
    scalar: Scalar | None = None
    feature: str | None = None
    labels: tuple[str, ...] = ()
    default: int | float | None = None

    @property
    def optional(self) -> bool:
        """Whether callers may leave it out (outputs aside)."""
        return self.default is not None or (self.tensor is not None and self.tensor.when is not None)


@dataclass
class BoundOperator:
    """An operator with its public arguments, type variables, features and plans."""

    name: str
    doc: str
    arguments: list[PublicArgument] = field(default_factory=list)
    types: dict[str, tuple[str, ...]] = field(default_factory=dict)
    features: dict[str, Feature] = field(default_factory=dict)
    exclusions: list[Exclusion] = field(default_factory=list)
    key: dict[str, Lambda | str] = field(default_factory=dict)
    dims: dict[str, tuple[str, int]] = field(default_factory=dict)
    plans: list[BoundPlan] = field(default_factory=list)
    checks: list[tuple[Lambda, str]] = field(default_factory=list)

    def argument(self, name: str) -> PublicArgument:
        """The public argument of that name."""
        return next(a for a in self.arguments if a.name == name)

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Tensor arguments by public name."""
        return {a.name: a.tensor for a in self.arguments if a.tensor is not None}


@dataclass(frozen=True)
class BoundFamily:
    """A family, ready to enumerate."""

    name: str
    operators: tuple[BoundOperator, ...]


def public_name(parameter: str, declaration: Any) -> str:
    """The name by which callers know a kernel parameter."""
    if getattr(declaration, "name", None):
        return str(declaration.name)
    for suffix in ("_ptr", "_desc"):
        if parameter.endswith(suffix) and len(parameter) > len(suffix):
            return parameter.removesuffix(suffix)
    return parameter


def _stride_names(parameter: str, public: str, shape: tuple[Any, ...]) -> dict[str, tuple[str, int]]:
    """Parameter names that mean a stride of this tensor by the naming rule."""
    found: dict[str, tuple[str, int]] = {}
    for axis, entry in enumerate(shape):
        ends = [str(axis)] + ([entry, entry.lower()] if isinstance(entry, str) else [])
        for t in dict.fromkeys((public, parameter, public.lower())):
            for end in ends:
                for name in (f"stride_{t}_{end}", f"{t}_stride_{end}", f"stride_{t}{end}"):
                    found.setdefault(name, (public, axis))
            if len(shape) == 2 and axis == 0:
                for name in (f"{t}_row_stride", f"stride_{t}_row", f"stride_{t}"):
                    found.setdefault(name, (public, axis))
    return found


class _OperatorBinder:
    def __init__(self, operator: Operator, faults: Faults) -> None:
        self.operator = operator
        self.faults = faults
        self.bound = BoundOperator(operator.name, operator.doc, checks=list(operator.checks))
        self.public: dict[str, PublicArgument] = {}

    def fault(self, where: str, problem: str, remedy: str) -> None:
        self.faults.add(f"{self.operator.name}{f'.{where}' if where else ''}", problem, remedy)

    def run(self) -> BoundOperator:
        if problem := name_problem(self.operator.name, operator=True):
            self.fault("", problem, "give the operator another name, of letters, digits and _")
        kernels = [(plan, kernel) for plan in self.operator.plans for kernel in plan.kernels]
        if not kernels:
            self.fault("", "it has no kernels", "give it a plan with at least one Kernel")
        functions: dict[int, KernelFunction] = {}
        for _, kernel in kernels:
            try:
                functions[id(kernel)] = read_kernel(kernel.function)
            except (TypeError, OSError) as error:
                self.fault(str(kernel.label), str(error), "give Kernel the function that @triton.jit decorates")
        for _, kernel in kernels:
            self._tensors(kernel)
        for _, kernel in kernels:
            self._types_and_features(kernel)
        for plan in self.operator.plans:
            bound = tuple(self._kernel(k, functions[id(k)]) for k in plan.kernels if id(k) in functions)
            for target in plan.targets or ():
                self._target(plan.name, target)
            targets = None if plan.targets is None else tuple(plan.targets)
            self.bound.plans.append(BoundPlan(plan.name, bound, plan.when, plan.prefer, targets))
        names = [p.name for p in self.operator.plans]
        if len(set(names)) != len(names):
            self.fault("", f"two plans have one name: {', '.join(names)}", "give each plan its own name")
        for _, kernel in kernels:
            self._exclusions_and_key(kernel)
        self._feature_arguments()
        self._order_arguments()
        return self.bound

    def _target(self, where: str, target: str) -> None:
        if target not in TARGETS:
            self.fault(where, f"unknown target {target!r}", nearest(target, TARGETS))

    def _tensors(self, kernel: Kernel) -> None:
        for parameter, declaration in kernel.args.items():
            if not isinstance(declaration, Tensor):
                continue
            name = public_name(parameter, declaration)
            where = f"{kernel.label}.{parameter}"
            known = self.public.get(name)
            if known is None:
                self.public[name] = PublicArgument(name, "tensor", tensor=declaration)
            elif known.tensor is None:
                self.fault(where, f"{name!r} is a tensor here and a scalar elsewhere", "give one of them another name=")
            else:
                a, b = known.tensor, declaration
                if (a.dtype, a.rank) != (b.dtype, b.rank):
                    self.fault(
                        where,
                        f"tensor {name!r} is {b.dtype}, rank {b.rank} here but {a.dtype}, rank {a.rank} elsewhere",
                        "describe it equally in every kernel of the operator",
                    )
                if b.output and not a.output:
                    self.public[name] = PublicArgument(name, "tensor", tensor=b)
            for axis, entry in enumerate(declaration.shape):
                if isinstance(entry, str):
                    known_dim = self.bound.dims.get(entry)
                    output = self._is_output(name)
                    if known_dim is None or (self._is_output(known_dim[0]) and not output):
                        self.bound.dims[entry] = (name, axis)

    def _is_output(self, name: str) -> bool:
        t = self.public[name].tensor
        return t is not None and t.output

    def _types_and_features(self, kernel: Kernel) -> None:
        for name, dtypes in kernel.types.items():
            values = (dtypes,) if isinstance(dtypes, str) else tuple(dtypes)
            for dtype in values:
                if dtype not in DTYPES:
                    self.fault(f"{kernel.label}.types[{name!r}]", f"unknown dtype {dtype!r}", nearest(dtype, DTYPES))
            known = self.bound.types.setdefault(name, values)
            if known != values:
                merged = tuple(dict.fromkeys((*known, *values)))
                self.bound.types[name] = merged
        for name, given in kernel.features.items():
            declared = given if isinstance(given, Feature) else Feature(tuple(given))
            where = f"{kernel.label}.features[{name!r}]"
            if not declared.values:
                self.fault(where, "it has no values", "list the values that must be callable")
                continue
            kinds = {type(v) for v in declared.values}
            if len(kinds) != 1 or kinds & {float, type(None)} or not kinds <= {bool, int, str}:
                self.fault(
                    where, f"its values {declared.values!r} are mixed or of an unknown kind", "use bools, ints or texts"
                )
            if kinds == {str} and declared.value is not None:
                self.fault(where, "a feature with text values can't be derived", "leave out value=, or use integers")
            known_feature = self.bound.features.setdefault(name, declared)
            if known_feature.values != declared.values:
                self.fault(where, f"its values differ from another kernel's: {known_feature.values!r}", "give one list")

    def _kernel(self, kernel: Kernel, function: KernelFunction) -> BoundKernel:
        label = kernel.label
        names = {p.name for p in function.parameters}
        configs = tuple(kernel.configs) or function.autotune_configs or (Config(),)
        for mapping, what in ((kernel.args, "args"), (kernel.features, "features"), (kernel.constants, "constants")):
            for name in mapping:
                if name not in names:
                    self.fault(f"{label}.{what}", f"the kernel has no argument {name!r}", nearest(name, names))
        constexprs = {p.name for p in function.parameters if p.constexpr}
        for config in configs:
            where = f"{label}.configs"
            for name in config.parameters:
                if name not in constexprs:
                    self.fault(where, f"{config}: the kernel has no constexpr {name!r}", nearest(name, constexprs))
                elif name in kernel.features:
                    self.fault(where, f"{config}: {name!r} is a feature", "a constexpr is either a feature or tuned")
            for name in config.options:
                if name not in COMPILE_OPTIONS:
                    self.fault(where, f"{config}: unknown compile option {name!r}", nearest(name, COMPILE_OPTIONS))
            for target in config.targets or ():
                self._target(where, target)
            warps = config.options.get("num_warps", 4)
            if not isinstance(warps, int) or warps < 1 or warps & (warps - 1):
                self.fault(where, f"{config}: num_warps={warps!r}", "num_warps is a power of two")
        tuning = tuple(dict.fromkeys(name for c in configs for name in c.parameters))
        for config in configs:
            missing = [t for t in tuning if t not in config.parameters and t in constexprs]
            defaults = {p.name for p in function.parameters if p.has_default}
            if lacking := [t for t in missing if t not in defaults]:
                self.fault(
                    f"{label}.configs", f"{config} lacks {', '.join(lacking)}", "give every config the same parameters"
                )
        for target in kernel.targets or ():
            self._target(f"{label}.targets", target)
        if kernel.grid is None:
            self.fault(label, "it has no grid", "give grid=lambda a: (…,)")
        if kernel.large not in ("refuse", "wide"):
            self.fault(label, f"large={kernel.large!r}", 'use "refuse" or "wide"')
        strides: dict[str, tuple[str, int]] = {}
        for parameter, declaration in kernel.args.items():
            if isinstance(declaration, Tensor):
                for name, target_axis in _stride_names(
                    parameter, public_name(parameter, declaration), declaration.shape
                ).items():
                    strides.setdefault(name, target_axis)
        heuristics = {
            name: (fn, kernel_values(kernel, name))
            for name, fn in function.heuristics.items()
            if name not in kernel.features and name not in kernel.constants
        }
        bindings = []
        for p in function.parameters:
            binding = (
                self._constexpr(kernel, p, tuning, heuristics) if p.constexpr else self._argument(kernel, p, strides)
            )
            if binding is not None:
                bindings.append(binding)
        return BoundKernel(kernel, function, tuple(bindings), configs, heuristics, tuning)

    def _constexpr(
        self, kernel: Kernel, p: Parameter, tuning: tuple[str, ...], heuristics: Mapping[str, Any]
    ) -> Binding | None:
        if p.name in kernel.args:
            self.fault(
                f"{kernel.label}.{p.name}",
                "it is a constexpr, but args describes it",
                "move it to features or constants",
            )
            return None
        if p.name in kernel.features:
            return Binding("feature", p, p.name)
        if p.name in kernel.constants:
            return Binding("constant", p, p.name, kernel.constants[p.name])
        if p.name in tuning:
            return Binding("tuning", p, p.name)
        if p.name in heuristics:
            return Binding("heuristic", p, p.name)
        if p.name in COMPILE_OPTIONS:
            return Binding("tuning", p, p.name)
        if p.has_default:
            return Binding("default", p, p.name, p.default)
        self.fault(
            f"{kernel.label}.{p.name}",
            "nothing says what this constexpr is",
            "name it in features (it changes what is computed), in configs (it is tuned) or in constants",
        )
        return None

    def _argument(self, kernel: Kernel, p: Parameter, strides: Mapping[str, tuple[str, int]]) -> Binding | None:
        where = f"{kernel.label}.{p.name}"
        declared = kernel.args.get(p.name)
        if isinstance(declared, Tensor):
            self._dtype(kernel, where, declared.dtype)
            if declared.in_place_with is not None and declared.in_place_with not in self.public:
                self.fault(
                    where,
                    f"in_place_with={declared.in_place_with!r} is no tensor",
                    nearest(declared.in_place_with, self.public),
                )
            if declared.padding not in ("zero", "nan"):
                self.fault(where, f"padding={declared.padding!r}", 'use "zero" or "nan"')
            return Binding("tensor_map" if declared.block else "pointer", p, public_name(p.name, declared), declared)
        if isinstance(declared, WorkspaceTensor):
            self._dtype(kernel, where, declared.dtype)
            return Binding("workspace", p, declared.name or p.name, declared)
        if isinstance(declared, (Stride, Dim)):
            t = self.public.get(declared.tensor)
            if t is None or t.tensor is None:
                tensors = [n for n, a in self.public.items() if a.tensor is not None]
                self.fault(where, f"there is no tensor {declared.tensor!r}", nearest(declared.tensor, tensors))
                return None
            if not 0 <= declared.axis < t.tensor.rank:
                self.fault(
                    where, f"{declared.tensor} has {t.tensor.rank} dims, no axis {declared.axis}", "count axes from 0"
                )
                return None
            what = "stride" if isinstance(declared, Stride) else "shape"
            return Binding("slot", p, f"{declared.tensor}.{what}[{declared.axis}]")
        if isinstance(declared, Scalar):
            if declared.value is not None:
                return Binding("expression", p, p.name, declared, declared.value)
            return self._scalar(p, declared, where)
        if p.name in self.bound.dims:
            tensor, axis = self.bound.dims[p.name]
            return Binding("slot", p, f"{tensor}.shape[{axis}]")
        if p.name in strides:
            tensor, axis = strides[p.name]
            return Binding("slot", p, f"{tensor}.stride[{axis}]")
        known = [*self.bound.dims, *strides]
        self.fault(
            where,
            "nothing says what this argument is",
            f"describe it in args with tensor(…), scalar(…), dim(…), stride(…) or workspace(…), or name it as a dim or "
            f"stride; {nearest(p.name, known)}",
        )
        return None

    def _scalar(self, p: Parameter, declared: Scalar, where: str) -> Binding | None:
        type_name = declared.type or p.annotation
        floating = type_name.startswith(("fp", "bf")) or isinstance(declared.default, float)
        if type_name and type_name not in DTYPES:
            self.fault(where, f"unknown type {type_name!r}", nearest(type_name, DTYPES))
            return None
        kind = "float" if floating else "bool" if type_name == "i1" else "int"
        name = public_name(p.name, declared)
        self.public.setdefault(name, PublicArgument(name, kind, scalar=declared, default=declared.default))
        return Binding("float" if floating else "int", p, name, declared)

    def _dtype(self, kernel: Kernel, where: str, dtype: str) -> None:
        if dtype in kernel.types:
            return
        try:
            find_dtype(dtype)
        except ValueError:
            known = [*kernel.types, *DTYPES]
            self.fault(where, f"{dtype!r} is neither a type variable nor a dtype", nearest(dtype, known))

    def _exclusions_and_key(self, kernel: Kernel) -> None:
        for entry in kernel.exclude:
            self.bound.exclusions.append(entry if isinstance(entry, Exclusion) else Exclusion(*entry))
        key = kernel.key
        if not key:
            try:
                key = read_kernel(kernel.function).autotune_key
            except (TypeError, OSError):
                key = ()
        known = {*self.bound.dims, *(n for n, a in self.public.items() if a.kind in ("int", "bool"))}
        items: Mapping[str, Lambda | None] = key if isinstance(key, Mapping) else dict.fromkeys(key)
        for name, function in items.items():
            if function is None and name not in known:
                self.fault(f"{kernel.label}.key", f"{name!r} is no dim and no integer argument", nearest(name, known))
            else:
                self.bound.key.setdefault(name, function or name)

    def _feature_arguments(self) -> None:
        for name, declared in self.bound.features.items():
            if declared.value is not None:
                continue
            public = declared.name or name.lower()
            first = declared.values[0]
            if public in self.public:
                self.fault(f"features[{name!r}]", f"{public!r} is already an argument", "give the feature a name=")
            elif isinstance(first, bool):
                self.public[public] = PublicArgument(public, "bool", feature=name, default=int(first))
            elif isinstance(first, str):
                labels = tuple(map(str, declared.values))
                self.public[public] = PublicArgument(public, "choice", feature=name, labels=labels, default=0)
            else:
                self.public[public] = PublicArgument(public, "int", feature=name, default=int(first))

    def _order_arguments(self) -> None:
        order = list(self.operator.arguments or ())
        for name in order:
            if name not in self.public:
                self.fault("arguments", f"there is no argument {name!r}", nearest(name, self.public))
        if order and (missing := [n for n in self.public if n not in order]):
            self.fault("arguments", f"{', '.join(missing)} is missing from the list", "name every argument, or none")
        names = order or list(self._signature_order())
        self.bound.arguments = [self.public[n] for n in names if n in self.public]

    def _signature_order(self) -> dict[str, None]:
        order: dict[str, None] = {}
        for plan in self.bound.plans:
            for kernel in plan.kernels:
                for b in kernel.bindings:
                    if b.kind in ("pointer", "tensor_map", "int", "float"):
                        order[b.source] = None
        return order | dict.fromkeys(self.public)


def kernel_values(kernel: Kernel, name: str) -> tuple[Any, ...]:
    """Values that a heuristic's constexpr may have, where the description lists them; else both bools."""
    given = kernel.features.get(name)
    if given is None:
        return (False, True)
    return given.values if isinstance(given, Feature) else tuple(given)


def bind_family(family: Family, file: str) -> BoundFamily:
    """Binds all operators of a family.

    Args:
        family: the description.
        file: where it was read, for messages.

    Raises:
        DescriptionError: with every fault found.
    """
    faults = Faults(file)
    if problem := name_problem(family.name):
        faults.add(family.name, problem, "give the family another name, of letters, digits and _")
    operators = family.all_operators()
    names = [o.name for o in operators]
    for name in {n for n in names if names.count(n) > 1}:
        faults.add(name, "two operators have this name", "give each its own")
    if not operators:
        faults.add(family.name, "the family has no operators", "give Family(operators=[…])")
    bound = tuple(_OperatorBinder(o, faults).run() for o in operators)
    if faults.found:
        raise DescriptionError(faults.found)
    return BoundFamily(family.name, bound)

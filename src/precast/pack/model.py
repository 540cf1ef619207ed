"""What a pack holds, as plain values. `writer` turns it into bytes; the C++ reader parses those.

The order of fields here is the order in the file (see docs/pack-format.md). Indices refer to
lists of the same operator or pack; nothing refers to anything by the order of declaration in
a description, since names are stored beside.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

__all__ = [
    "ALWAYS",
    "NO_INDEX",
    "Argument",
    "ArgumentKind",
    "Candidate",
    "Check",
    "CodeKind",
    "CodeObject",
    "Condition",
    "ConditionKind",
    "Feature",
    "KeyField",
    "Launch",
    "LaunchVariant",
    "Leaf",
    "Node",
    "Operator",
    "Pack",
    "Param",
    "ParamKind",
    "Rung",
    "ScalarType",
    "Slot",
    "SlotKind",
    "Specialization",
    "SpecializationStatus",
    "Table",
    "Target",
    "TensorMap",
    "TypeVariable",
    "Variant",
    "VariantFlag",
    "Workspace",
]

NO_INDEX = 0xFFFFFFFF
"""Where an index is optional: none."""

ALWAYS = NO_INDEX
"""A condition expression that always holds."""


class ArgumentKind(IntEnum):
    TENSOR = 0
    INT = 1
    FLOAT = 2
    BOOL = 3
    CHOICE = 4  # a named value, given as the index of its label


class SlotKind(IntEnum):
    """An int64 that the runtime reads from a call, before anything is evaluated."""

    DIM = 0  # argument, axis
    STRIDE = 1  # argument, axis; in elements
    INT = 2  # argument
    PRESENT = 3  # argument; 1 if a tensor was given
    DTYPE = 4  # argument; code << 8 | bits
    DEVICE = 5  # axis: 0 number of multiprocessors


class ConditionKind(IntEnum):
    """A fact about a call that compiled code may rely on. Bit i of a class mask is condition i.

    A condition lists several arguments or slots, and holds if the fact holds for all of them.
    """

    POINTERS_DIV16 = 0  # arguments (absent ones hold)
    SLOTS_DIV16 = 1  # slots; 0 is divisible
    SLOTS_EQ1 = 2  # slots
    SLOTS_INT32 = 3  # slots; the value fits a signed 32-bit integer
    OFFSETS_INT32 = 4  # arguments: every element's offset, in elements, dims and strides are below 2**31
    RANGE_INT32 = 5  # arguments: every byte's offset is below 2**31 (AMD's pointer range)
    TENSOR_MAPS = 6  # arguments: usable by TMA: 16-byte aligned base and strides, unit last stride,
    # no zero dims, dims below 2**32, strides below 2**40 bytes


class ParamKind(IntEnum):
    """Where a kernel parameter comes from."""

    POINTER = 0  # index: argument; data + byte_offset
    SLOT = 1  # index: slot
    EXPRESSION = 2  # index: expression
    FLOAT = 3  # index: argument
    WORKSPACE = 4  # index: workspace of the candidate
    TENSOR_MAP = 5  # index: tensor map of the variant
    GLOBAL_SCRATCH = 6
    PROFILE_SCRATCH = 7
    CONSTANT = 8  # index: expression, a constant (kept apart so that inspection can tell)


class ScalarType(IntEnum):
    I8 = 0
    I16 = 1
    I32 = 2
    I64 = 3
    U8 = 4
    U16 = 5
    U32 = 6
    U64 = 7
    FP16 = 8
    BF16 = 9
    FP32 = 10
    FP64 = 11
    POINTER = 12
    TENSOR_MAP = 13


class CodeKind(IntEnum):
    CUBIN = 0
    HSACO = 1
    PTX = 2


class SpecializationStatus(IntEnum):
    BUILT = 0
    EXCLUDED = 1  # by the description, with its reason
    FAILED = 2  # no config compiled, with the reason
    NOT_BUILT = 3  # left out of this build (a subset of features was asked for)


class Rung(IntEnum):
    """How the choice of a config came about, best first."""

    MEASURED = 0
    NEAREST_PROBLEM = 1
    OTHER_DEVICE = 2
    SIBLING_TARGET = 3
    STATIC_DEFAULT = 4


class VariantFlag(IntEnum):
    COOPERATIVE = 1
    DEPENDENT_LAUNCH = 2  # programmatic stream serialization


@dataclass(frozen=True)
class Argument:
    name: str
    kind: ArgumentKind
    optional: bool = False  # may be PRECAST_NONE
    output: bool = False
    in_place_with: int = NO_INDEX  # argument that this output may share memory with
    rank: int = 0
    type_variable: int = NO_INDEX  # tensors
    fixed_dtype: int = 0  # tensors without a type variable: code << 8 | bits
    labels: tuple[str, ...] = ()  # CHOICE
    default_int: int = 0  # INT, BOOL, CHOICE: if optional
    default_float: float = 0.0
    shape: tuple[int, ...] = ()  # outputs: expressions of the dims; empty if they can't be derived
    shape_text: str = ""  # for messages: "(n_rows, n_cols)"


@dataclass(frozen=True)
class Slot:
    kind: SlotKind
    argument: int = 0
    axis: int = 0
    name: str = ""


@dataclass(frozen=True)
class Check:
    """An expression that must not be 0, and what to say when it is."""

    expression: int
    status: int  # precast_status
    message: str


@dataclass(frozen=True)
class TypeVariable:
    name: str
    argument: int  # the first tensor that has it
    dtypes: tuple[int, ...]  # code << 8 | bits
    names: tuple[str, ...]


@dataclass(frozen=True)
class Feature:
    name: str
    expression: int  # its value for a call
    values: tuple[int, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class KeyField:
    name: str
    expression: int


@dataclass(frozen=True)
class Condition:
    kind: ConditionKind
    indices: tuple[int, ...]


@dataclass(frozen=True)
class Param:
    kind: ParamKind
    type: ScalarType
    index: int = 0


@dataclass(frozen=True)
class TensorMap:
    """A TMA descriptor to encode before the launch; fields as in cuTensorMapEncodeTiled."""

    argument: int
    data_type: int  # CUtensorMapDataType
    element_bytes: int
    swizzle: int  # CUtensorMapSwizzle
    fill_nan: bool
    fp4_padded: bool
    box: tuple[int, ...]  # in the tensor's order (row-major, outermost first)
    shape: tuple[int, ...] = ()  # expressions; empty: the tensor's own dims
    strides: tuple[int, ...] = ()  # expressions, in elements; empty: the tensor's own


@dataclass(frozen=True)
class CodeObject:
    sha256: bytes
    kind: CodeKind
    data: bytes  # raw; the writer compresses


@dataclass(frozen=True)
class Variant:
    """One compiled kernel: a code object for one alignment class, and how to launch it."""

    object: int
    function: str
    kernel: str
    threads: int
    shared_bytes: int
    cluster: int
    flags: int
    global_scratch_bytes: int  # per program, times cluster
    global_scratch_align: int
    profile_scratch_bytes: int
    profile_scratch_align: int
    registers: int
    spills: int  # bytes
    params: tuple[Param, ...]
    tensor_maps: tuple[TensorMap, ...]
    class_name: str


@dataclass(frozen=True)
class LaunchVariant:
    class_mask: int  # conditions that must hold, as a set of bits
    variant: int


@dataclass(frozen=True)
class Launch:
    """One kernel launch of a plan; the first variant whose class holds is used."""

    variants: tuple[LaunchVariant, ...]
    grid: tuple[int, int, int]  # expressions


@dataclass(frozen=True)
class Workspace:
    name: str
    bytes: int  # expression
    zero: bool


@dataclass(frozen=True)
class Candidate:
    """One config of one plan, ready to launch."""

    plan: str
    config: str  # canonical text, e.g. "BLOCK_M=128 num_warps=4 num_stages=3"
    condition: int  # expression that must hold, or ALWAYS
    source: str  # digest of the plan's kernel sources, which measurements are kept under
    workspaces: tuple[Workspace, ...]
    launches: tuple[Launch, ...]


@dataclass(frozen=True)
class Node:
    """Inner node: go left if the table's field is <= threshold. Leaf: field is NO_INDEX, left a leaf of the table."""

    field: int
    threshold: int
    left: int
    right: int


@dataclass(frozen=True)
class Leaf:
    """Where a decision ends."""

    choices: tuple[int, ...]  # candidates, in order of preference
    tuned: int = 0  # how many of the first were chosen by measurements; the others are the static default


@dataclass(frozen=True)
class Table:
    """A dispatch table: from a problem to candidates."""

    nodes: tuple[Node, ...]  # a decision tree; node 0 is its root
    leaves: tuple[Leaf, ...]
    fields: tuple[int, ...] = ()  # what nodes compare: expressions, of the tuning key or derived from it
    device: int = NO_INDEX  # the device of Pack.devices that it is for, or any
    rung: Rung = Rung.STATIC_DEFAULT  # of the tuned choices; MEASURED is "nearest problem" for keys not in `measured`
    mean_regret: float = -1.0  # on held-out problems; negative: not known
    worst_regret: float = -1.0
    measured: tuple[tuple[int, ...], ...] = ()  # keys that were measured, sorted


@dataclass(frozen=True)
class Specialization:
    """What to launch for one choice of every type variable and feature."""

    status: SpecializationStatus
    reason: str = ""
    candidates: tuple[int, ...] = ()  # all that may be launched
    tables: tuple[Table, ...] = ()  # the first that is for the device is used; the last is for any


@dataclass(frozen=True)
class Target:
    """An operator's kernels for one target."""

    target: int  # index into Pack.targets
    candidates: tuple[Candidate, ...]
    variants: tuple[Variant, ...]
    specializations: tuple[Specialization, ...]  # mixed radix over type variables, then features;
    # the last feature varies fastest


@dataclass(frozen=True)
class Operator:
    name: str
    doc: str
    arguments: tuple[Argument, ...]
    slots: tuple[Slot, ...]
    expressions: tuple[bytes, ...]  # postfix code, see describe/expression.py
    checks: tuple[Check, ...]
    type_variables: tuple[TypeVariable, ...]
    features: tuple[Feature, ...]
    key: tuple[KeyField, ...]
    conditions: tuple[Condition, ...]  # at most 64
    targets: tuple[Target, ...]


@dataclass(frozen=True)
class Pack:
    family: str
    precast_version: str
    triton_version: str
    targets: tuple[str, ...]
    devices: tuple[str, ...]  # names that drivers give, of devices that tables are for
    objects: tuple[CodeObject, ...]
    operators: tuple[Operator, ...]
    notes: tuple[str, ...] = field(default=())  # what the build wants remembered, e.g. configs that failed

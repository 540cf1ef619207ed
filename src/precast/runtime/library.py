"""Loading a library and calling its operators from Python, with tensors of any framework that speaks DLPack."""

from __future__ import annotations

import ctypes
import functools
import json
from pathlib import Path
from typing import Any

from precast.native import native_file, runtime_library
from precast.runtime import errors

__all__ = ["Library", "Operator", "load"]

ABI_VERSION = 1


class _Api(ctypes.Structure):
    """The head of precast.h's function table."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("abi_version", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("describe", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char_p))),
        ("find_operator", ctypes.c_void_p),
        ("run", ctypes.c_void_p),
        ("supports", ctypes.c_void_p),
        ("explain", ctypes.c_void_p),
        (
            "warmup",
            ctypes.CFUNCTYPE(
                ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32,
                ctypes.c_void_p,
            ),
        ),
        ("output_shape", ctypes.c_void_p),
        ("last_error", ctypes.CFUNCTYPE(ctypes.c_char_p)),
        ("status_name", ctypes.c_void_p),
        ("release", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)),
    )  # fmt: skip


@functools.cache
def _glue() -> Any:
    import tvm_ffi

    errors.register()
    return tvm_ffi.load_module(str(native_file("libprecast_python.so")))


class Operator:
    """One operator of a library.

    Call it with its arguments in order. Outputs may be left out: then they are allocated as the inputs'
    framework does, and returned. Positional arguments are the inputs, or outputs and inputs in the declared
    order, by their number; a call that could be either is refused. Work is enqueued on the framework's current stream.

    Good: ``y = lib.softmax(x)``, ``lib.softmax(y, x)``, ``lib.scale(x, factor=2.0)``.
    Bad: ``lib.scale(2.0, x)``: raises `InvalidArgumentError`.
    """

    def __init__(self, library: Library, index: int, facts: dict[str, Any]) -> None:
        self.name: str = facts["name"]
        self.facts = facts
        self.__doc__ = facts["doc"] or type(self).__doc__
        self._library = library
        self._names = [a["name"] for a in facts["arguments"]]
        self._count = len(self._names)
        self._outputs = [i for i, a in enumerate(facts["arguments"]) if a.get("output")]
        self._labels = {a["name"]: a["labels"] for a in facts["arguments"] if a["kind"] == "choice"}
        self._choices = [
            (i, {label: k for k, label in enumerate(a["labels"])})
            for i, a in enumerate(facts["arguments"])
            if a["kind"] == "choice"
        ]
        self._inputs = [i for i in range(self._count) if i not in self._outputs]
        mask = sum(1 << i for i in self._outputs)
        make, ask = _glue().run_function, _glue().ask_function
        handle = (library._api_address, library._handle)
        self._run = make(*handle, index, self._count, mask)
        self._supports = ask(*handle, index, self._count, 0)
        self._explain = ask(*handle, index, self._count, 1)
        self._warmup = ask(*handle, index, self._count, 2)

    def __call__(self, *args: Any, **named: Any) -> Any:
        if not named and len(args) == self._count:
            for i, indices in self._choices:
                if isinstance(args[i], str):
                    args = (*args[:i], indices.get(args[i], args[i]), *args[i + 1 :])
            return self._run(*args)
        return self._run(*self.bind(*args, **named))

    def bind(self, *args: Any, **named: Any) -> list[Any]:
        """All arguments in order, None for those left out, named choices as their index.

        Raises:
            InvalidArgumentError: if a name is unknown or given twice, or there are too many arguments.
        """
        values: list[Any] = [None] * self._count
        order = self._positional(len(args), named)
        if len(args) > len(order):
            raise errors.InvalidArgumentError(f"{self.name} takes {self.signature}; {len(args)} arguments were given")
        taken = set()
        for i, value in zip(order, args, strict=False):
            values[i] = value
            taken.add(self._names[i])
        for name, value in named.items():
            if name not in self._names:
                raise errors.InvalidArgumentError(f"{self.name} has no argument {name!r}; it takes {self.signature}")
            if name in taken:
                raise errors.InvalidArgumentError(f"{self.name}: argument {name!r} is given twice")
            values[self._names.index(name)] = value
        for name, labels in self._labels.items():
            i = self._names.index(name)
            if isinstance(values[i], str):
                if values[i] not in labels:
                    raise errors.InvalidArgumentError(
                        f"{self.name}: {name} is {values[i]!r}, it must be one of {', '.join(labels)}"
                    )
                values[i] = labels.index(values[i])
        return values

    def _positional(self, count: int, named: dict[str, Any]) -> list[int]:
        """Which arguments so many positional values are: all of them, or the inputs alone.

        Raises:
            InvalidArgumentError: if it could be either.
        """
        if any(self._names[i] in named for i in self._outputs):
            return [i for i in self._inputs if self._names[i] not in named]
        inputs = [i for i in self._inputs if self._names[i] not in named]
        needed = sum(not self.facts["arguments"][i]["optional"] for i in inputs)
        outputs = len(self._outputs)
        alone = needed <= count <= len(inputs)
        with_outputs = needed + outputs <= count <= len(inputs) + outputs
        if alone and with_outputs and outputs:
            raise errors.InvalidArgumentError(
                f"{self.name}{self.signature}: {count} positional arguments may or may not include the outputs "
                f"({', '.join(self._names[i] for i in self._outputs)}): name the outputs, or the optional arguments"
            )
        if count > len(inputs) or with_outputs:
            return [i for i in range(self._count) if self._names[i] not in named]
        return inputs

    @property
    def signature(self) -> str:
        """The arguments as a text."""
        return f"({', '.join(self._names)})"

    def supports(self, *args: Any, target: str = "", **named: Any) -> str | None:
        """None if a call would find a kernel, else the reason why not; launches nothing."""
        try:
            self._supports(target, *self.bind(*args, **named))
        except errors.PrecastError as error:
            return str(error)
        return None

    def explain(self, *args: Any, target: str = "", **named: Any) -> dict[str, Any]:
        """What a call would do: specialization, alignment class, plan, config, rung, registers, grid."""
        text: dict[str, Any] = json.loads(str(self._explain(target, *self.bind(*args, **named))))
        return text

    def warmup(self, *args: Any, **named: Any) -> None:
        """Loads what a call with such arguments needs, so that it can be captured into a CUDA graph."""
        self._warmup("", *self.bind(*args, **named))

    def __repr__(self) -> str:
        return f"<precast operator {self.name}{self.signature}>"


class Library:
    """A loaded library; its operators are attributes. See `load`."""

    def __init__(self, path: Path, api_address: int, handle: int, keep: object) -> None:
        self.path = path
        self._api_address = api_address
        self._handle = handle
        self._keep = keep
        self._api = _Api.from_address(api_address)
        text = ctypes.c_char_p()
        self._check(self._api.describe(handle, ctypes.byref(text)))
        assert text.value is not None
        self.facts: dict[str, Any] = json.loads(text.value)
        self.operators: dict[str, Operator] = {}
        for index, facts in enumerate(self.facts["operators"]):
            operator = Operator(self, index, facts)
            self.operators[operator.name] = operator
            setattr(self, operator.name, operator)

    def _check(self, status: int) -> None:
        if status != 0:
            message = self._api.last_error().decode(errors="replace")
            raise errors.error_of_status(status)(message)

    @property
    def family(self) -> str:
        """The family's name."""
        return str(self.facts["family"])

    @property
    def targets(self) -> list[str]:
        """Targets that the library has code for."""
        return list(self.facts["targets"])

    @property
    def build_id(self) -> str:
        """What tells this build from others."""
        return "+".join(self.facts["build_ids"])

    def warmup(self, device: int = 0) -> None:
        """Loads every kernel of the library on a device."""
        self._check(self._api.warmup(self._handle, -1, device, None, 0, None))

    def __getattr__(self, name: str) -> Operator:
        if name.startswith("_") or "operators" not in self.__dict__:
            raise AttributeError(name)
        raise AttributeError(f"{self.path} has no operator {name!r}; it has {', '.join(self.operators)}")

    def __repr__(self) -> str:
        return f"<precast library {self.family} at {self.path}: {', '.join(self.operators)}>"


def _entry(path: Path, library: ctypes.CDLL) -> Any:
    """The library's one exported function: named by its file, or found in its symbol table."""
    name = path.name.removeprefix("lib").partition(".")[0]
    try:
        return getattr(library, f"precast_library_{name}")
    except AttributeError:
        return getattr(library, _family_symbol(path))


def _family_symbol(path: Path) -> str:
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    prefix = "precast_library_"
    try:
        with path.open("rb") as file:
            table = ELFFile(file).get_section_by_name(".dynsym")
            names = [s.name for s in table.iter_symbols() if s.name.startswith(prefix)] if table else []
    except ELFError as error:
        raise errors.BadPackError(f"{path} is no library: {error}") from error
    if not names:
        raise errors.BadPackError(f"{path} is no precast library: it exports no {prefix}…")
    return str(names[0])


def load(path: str | Path) -> Library:
    """Loads a library, or a pack by itself.

    Raises:
        FileNotFoundError: if there is no such file.
        PrecastError: if it is no precast library, damaged, or of another build than its packs.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no library {path}")
    _glue()
    handle = ctypes.c_void_p()
    with path.open("rb") as file:
        is_elf = file.read(4) == b"\x7fELF"
    if not is_elf:
        runtime = runtime_library()
        api = runtime.precast_open_pack(str(path).encode(), ctypes.byref(handle))
        if not api:
            raise errors.BadPackError(runtime.precast_error().decode(errors="replace"))
        return Library(path, api, handle.value or 0, runtime)
    try:
        library = ctypes.CDLL(str(path.resolve()))
    except OSError as error:
        raise errors.BadPackError(f"{path} can't be loaded: {error}") from error
    entry = _entry(path, library)
    entry.restype = ctypes.c_void_p
    entry.argtypes = [ctypes.c_uint32, ctypes.POINTER(ctypes.c_void_p)]
    api = entry(ABI_VERSION, ctypes.byref(handle))
    if not api:
        raise errors.VersionMismatchError(
            f"{path} does not know ABI version {ABI_VERSION}; load it with its own precast"
        )
    return Library(path, api, handle.value or 0, library)

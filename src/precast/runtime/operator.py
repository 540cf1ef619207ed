"""One operator of a loaded library, as a Python function."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable
from typing import Any

from precast.native import native_file
from precast.runtime import errors
from precast.runtime.arguments import Arguments

__all__ = ["Operator", "glue"]


@functools.cache
def glue() -> Any:
    """The library between tvm-ffi and the C ABI."""
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

    Attributes:
        function: the same as a plain function, which Python calls faster than an object; it has the methods and
            facts of the operator as attributes. A library's attributes are these.
    """

    def __init__(self, api: int, handle: int, index: int, facts: dict[str, Any], candidate: int = 0) -> None:
        self.name: str = facts["name"]
        self.facts = facts
        self.__doc__ = facts["doc"] or type(self).__doc__
        self.arguments = Arguments(self.name, facts["arguments"])
        self.bind = self.arguments.bind
        count = len(self.arguments.names)
        mask = sum(1 << i for i in self.arguments.outputs)
        make, ask = glue().run_function, glue().ask_function
        self._address = (api, handle, index)
        self._run = make(api, handle, index, count, mask, candidate)
        self._supports, self._explain, self._warmup = (ask(api, handle, index, count, i, candidate) for i in range(3))
        self.function = self._make_function()

    def _make_function(self) -> Callable[..., Any]:
        run, bind, count = self._run, self.bind, len(self.arguments.names)
        choices = [i for i, _ in self.arguments.choices]
        if choices:

            def function(*args: Any, **named: Any) -> Any:
                if named or len(args) != count or any(args[i].__class__ is str for i in choices):
                    return run(*bind(*args, **named))
                return run(*args)

        else:

            def function(*args: Any, **named: Any) -> Any:
                if named or len(args) != count:
                    return run(*bind(*args, **named))
                return run(*args)

        function.__name__ = function.__qualname__ = self.name
        function.__doc__ = self.__doc__
        kinds = [
            inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD)
            for n in self.arguments.names
            if n.isidentifier()
        ]
        function.__dict__.update(
            operator=self,
            facts=self.facts,
            signature=self.arguments.signature,
            supports=self.supports,
            explain=self.explain,
            warmup=self.warmup,
            __signature__=inspect.Signature(kinds),
        )
        return function

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.function(*args, **named)

    def candidate(self, number: int) -> Operator:
        """The operator with one candidate of the call's specialization, from 1, instead of the one that dispatch picks.

        For tuning: the numbers are the positions that `precast inspect --json` lists.
        """
        return Operator(*self._address, self.facts, number)

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
        return f"<precast operator {self.name}{self.arguments.signature}>"

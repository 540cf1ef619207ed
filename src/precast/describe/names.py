"""Names of families and operators: they become names in C, C++ and Python."""

from __future__ import annotations

import keyword
import re

__all__ = ["name_problem"]

_C_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_C_KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const constexpr
    const_cast continue decltype default delete do double dynamic_cast else enum explicit export extern false float
    for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private
    protected public register reinterpret_cast requires restrict return short signed sizeof static static_assert
    static_cast struct switch template this throw true try typedef typeid typename union unsigned using virtual void
    volatile wchar_t while xor xor_eq
    """.split()  # noqa: SIM905
)
_OF_A_LIBRARY = frozenset(("build_id", "facts", "family", "operators", "path", "targets", "warmup"))
"""What a loaded library has beside its operators."""

_OF_A_HEADER = frozenset(("DataType", "LastError", "Status", "Tensor", "std"))
"""What a generated header defines beside its operators."""


def name_problem(name: str, *, operator: bool = False) -> str | None:
    """Why a name can't be that of a family or an operator, or None.

    >>> name_problem("softmax"), name_problem("2d"), name_problem("int")
    (None, "'2d' is no C identifier", "'int' is a keyword of C++")
    """
    if not _C_NAME.fullmatch(name):
        return f"{name!r} is no C identifier"
    if name in _C_KEYWORDS:
        return f"{name!r} is a keyword of C++"
    if keyword.iskeyword(name):
        return f"{name!r} is a keyword of Python"
    if operator and name in _OF_A_LIBRARY:
        return f"{name!r} is an attribute that every loaded library has"
    if operator and name in _OF_A_HEADER:
        return f"{name!r} is a name that every generated header defines"
    return None

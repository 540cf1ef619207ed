"""Typed headers of a library: C functions with named arguments, and C++ ones over them."""

from __future__ import annotations

from precast.pack.model import Argument, ArgumentKind, Operator, Pack

__all__ = ["c_header", "cpp_header"]

_KEYWORDS = frozenset(
    """alignas alignof and asm auto bool break case catch char class const constexpr continue default delete do double
    else enum explicit export extern false float for friend goto if inline int long mutable namespace new not operator
    or private protected public register return short signed sizeof static struct switch template this throw true try
    typedef typename union unsigned using virtual void volatile while xor""".split()  # noqa: SIM905
)


def _name(argument: Argument) -> str:
    return f"{argument.name}_" if argument.name in _KEYWORDS else argument.name


def _c_type(family: str, op: Operator, a: Argument) -> str:
    return {
        ArgumentKind.TENSOR: "const precast_tensor*",
        ArgumentKind.INT: "int64_t",
        ArgumentKind.FLOAT: "double",
        ArgumentKind.BOOL: "int32_t",
        ArgumentKind.CHOICE: f"{family}_{op.name}_{a.name}",
    }[a.kind]


def _says(a: Argument) -> str:
    if a.kind != ArgumentKind.TENSOR:
        return f"{a.name}: {a.kind.name.lower()}"
    notes = ["output"] if a.output else []
    notes += ["may be NULL"] if a.optional else []
    return f"{a.name}: tensor {a.shape_text}" + (f", {', '.join(notes)}" if notes else "")


def _value(a: Argument) -> str:
    name = _name(a)
    if a.kind == ArgumentKind.TENSOR:
        return f"precast_tensor_value({name})"
    if a.kind == ArgumentKind.FLOAT:
        return f"precast_float_value({name})"
    return f"precast_int_value((int64_t){name})"


def _operator(family: str, op: Operator, index: int) -> str:
    lines = []
    for a in op.arguments:
        if a.kind == ArgumentKind.CHOICE:
            labels = ", ".join(f"{family}_{op.name}_{a.name}_{label} = {i}" for i, label in enumerate(a.labels))
            lines.append(f"typedef enum {family}_{op.name}_{a.name} {{ {labels} }} {family}_{op.name}_{a.name};\n")
    says = "".join(f"\n *   {_says(a)}" for a in op.arguments)
    lines.append(f"/* {op.doc or op.name}{says}\n */")
    parameters = ", ".join(f"{_c_type(family, op, a)} {_name(a)}" for a in op.arguments)
    values = ", ".join(_value(a) for a in op.arguments)
    lines.append(
        f"static inline precast_status {family}_{op.name}({parameters}, void* stream) {{\n"
        f"  precast_library* library = NULL;\n"
        f"  const precast_api* api = precast_library_{family}(PRECAST_ABI_VERSION, &library);\n"
        f"  const precast_value args[] = {{{values}}};\n"
        f"  const precast_options options = {{sizeof options, stream, NULL}};\n"
        f"  return api == NULL ? PRECAST_VERSION_MISMATCH : api->run(library, {index}, args, {len(op.arguments)}, "
        f"&options);\n}}\n"
    )
    lines.append(f"enum {{ {family}_{op.name}_index = {index} }};\n")
    return "\n".join(lines)


def c_header(pack: Pack) -> str:
    """The header for C: one function an operator, and the library's table for everything else."""
    family = pack.family
    guard = f"PRECAST_FAMILY_{family.upper()}_H_"
    operators = "\n".join(_operator(family, op, i) for i, op in enumerate(pack.operators))
    return f"""/* The {family} library, built by precast {pack.precast_version}. Generated: do not edit. */
#ifndef {guard}
#define {guard}

#include "precast/precast.h"

#ifdef __cplusplus
extern "C" {{
#endif

/* The library's functions, and the library to call them with. NULL if it is older than this header. */
const precast_api* precast_library_{family}(uint32_t abi_version, precast_library** library);

#ifndef PRECAST_VALUES_
#define PRECAST_VALUES_
static inline precast_value precast_tensor_value(const precast_tensor* tensor) {{
  precast_value value = {{PRECAST_NONE, 0, {{NULL}}}};
  value.kind = tensor == NULL ? PRECAST_NONE : PRECAST_TENSOR;
  value.u.tensor = tensor;
  return value;
}}
static inline precast_value precast_int_value(int64_t number) {{
  precast_value value = {{PRECAST_NONE, 0, {{NULL}}}};
  value.kind = PRECAST_INT;
  value.u.i = number;
  return value;
}}
static inline precast_value precast_float_value(double number) {{
  precast_value value = {{PRECAST_NONE, 0, {{NULL}}}};
  value.kind = PRECAST_FLOAT;
  value.u.f = number;
  return value;
}}
#endif

{operators}
#ifdef __cplusplus
}}
#endif

#endif
"""


def _cpp_operator(family: str, op: Operator) -> str:
    def type_of(a: Argument) -> str:
        if a.kind == ArgumentKind.TENSOR:
            return "const Tensor*" if a.optional else "const Tensor&"
        if a.kind == ArgumentKind.BOOL:
            return "bool"
        return _c_type(family, op, a)

    def pass_on(a: Argument) -> str:
        name = _name(a)
        if a.kind == ArgumentKind.TENSOR:
            return f"{name} == nullptr ? nullptr : &{name}->raw()" if a.optional else f"&{name}.raw()"
        return f"{name} ? 1 : 0" if a.kind == ArgumentKind.BOOL else name

    parameters = ", ".join(f"{type_of(a)} {_name(a)}" for a in op.arguments)
    passed = ", ".join(pass_on(a) for a in op.arguments)
    return f"""// {op.doc or op.name}
inline Status {op.name}({parameters}, void* stream = nullptr) {{
  return detail::Checked(::{family}_{op.name}({passed}, stream));
}}
"""


def cpp_header(pack: Pack) -> str:
    """The header for C++17: tensors by value, statuses that throw only if PRECAST_EXCEPTIONS is defined."""
    family = pack.family
    guard = f"PRECAST_FAMILY_{family.upper()}_HPP_"
    operators = "\n".join(_cpp_operator(family, op) for op in pack.operators)
    return f"""// The {family} library, built by precast {pack.precast_version}. Generated: do not edit.
#ifndef {guard}
#define {guard}

#include <cstdint>
#include <initializer_list>
#include <string>
#ifdef PRECAST_EXCEPTIONS
#include <stdexcept>
#endif

#include "{family}.h"

namespace precast::{family} {{

using Status = precast_status;

// A view of GPU memory; strides in elements, compact row-major if not given. Owns shape and strides, not the data.
class Tensor {{
 public:
  Tensor(void* data, precast_dtype dtype, std::initializer_list<int64_t> shape,
         std::initializer_list<int64_t> strides = {{}}, int device = 0, int device_type = PRECAST_CUDA) {{
    int32_t n = 0;
    for (const int64_t size : shape) {{
      if (n < 8) shape_[n++] = size;
    }}
    raw_.data = data;
    raw_.device = precast_device{{device_type, device}};
    raw_.ndim = n;
    raw_.dtype = dtype;
    int32_t s = 0;
    for (const int64_t stride : strides) {{
      if (s < 8) strides_[s++] = stride;
    }}
    has_strides_ = s == n && n > 0;
    Bind();
  }}
  Tensor(const Tensor& other) {{ *this = other; }}
  Tensor& operator=(const Tensor& other) {{
    raw_ = other.raw_;
    has_strides_ = other.has_strides_;
    for (int i = 0; i < 8; ++i) {{
      shape_[i] = other.shape_[i];
      strides_[i] = other.strides_[i];
    }}
    Bind();
    return *this;
  }}
  const precast_tensor& raw() const {{ return raw_; }}

 private:
  void Bind() {{
    raw_.shape = shape_;
    raw_.strides = has_strides_ ? strides_ : nullptr;
  }}

  precast_tensor raw_{{}};
  int64_t shape_[8] = {{}};
  int64_t strides_[8] = {{}};
  bool has_strides_ = false;
}};

inline constexpr precast_dtype kFloat16{{2, 16, 1}};
inline constexpr precast_dtype kBfloat16{{4, 16, 1}};
inline constexpr precast_dtype kFloat32{{2, 32, 1}};
inline constexpr precast_dtype kFloat8E4M3{{10, 8, 1}};

namespace detail {{

inline const precast_api* Api(precast_library** library) {{
  return precast_library_{family}(PRECAST_ABI_VERSION, library);
}}

}}  // namespace detail

// The message of this thread's last failure.
inline std::string LastError() {{
  precast_library* library = nullptr;
  const precast_api* api = detail::Api(&library);
  return api == nullptr ? "the library is older than its header" : api->last_error();
}}

namespace detail {{

inline Status Checked(Status status) {{
#ifdef PRECAST_EXCEPTIONS
  if (status != PRECAST_OK) throw std::runtime_error(LastError());
#endif
  return status;
}}

}}  // namespace detail

// Loads every kernel on a device, so that calls can be captured into a CUDA graph.
inline Status Warmup(int device = 0) {{
  precast_library* library = nullptr;
  const precast_api* api = detail::Api(&library);
  return detail::Checked(api == nullptr ? PRECAST_VERSION_MISMATCH
                                        : api->warmup(library, -1, device, nullptr, 0, nullptr));
}}

{operators}
}}  // namespace precast::{family}

#endif
"""

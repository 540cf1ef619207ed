"""Host time of a warm call from Python with three torch tensors: precast beside Triton's JIT, torch and tvm-ffi.

python benchmarks/launch_python.py out/vector_add/libvector_add.so out/flash/libflash.so
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.nn.functional as F
import tvm_ffi

import precast
from precast.pack.inspect import code_object, inspect_bytes, packs_of

CALLS = 2000
ROUNDS = 7
N = 4096

HAND_WRITTEN = r"""
#include <dlfcn.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
using U = unsigned;
using Launch = int (*)(void*, U, U, U, U, U, U, U, void*, void**, void**);
static Launch launch;
static void* function;
void Setup(int64_t address) {
  launch = reinterpret_cast<Launch>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuLaunchKernel"));
  function = reinterpret_cast<void*>(address);
}
void Add(tvm::ffi::TensorView z, tvm::ffi::TensorView x, tvm::ffi::TensorView y) {
  void* zp = z.data_ptr(); void* xp = x.data_ptr(); void* yp = y.data_ptr();
  int n = static_cast<int>(x.size(0)); void* none = nullptr;
  void* params[] = {&zp, &xp, &yp, &n, &none, &none};
  void* stream = TVMFFIEnvGetStream(kDLCUDA, x.device().device_id);
  if (launch(function, (n + 1023) / 1024, 1, 1, 128, 1, 1, 0, stream, params, nullptr) != 0) throw 1;
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(setup, Setup)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(add, Add)
"""


def microseconds(call) -> float:
    """Best median of several rounds; the queue is drained between rounds, so that it never fills."""
    for _ in range(200):
        call()
    best = float("inf")
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        times = []
        for _ in range(CALLS // 200):
            start = time.perf_counter()
            for _ in range(200):
                call()
            times.append((time.perf_counter() - start) / 200)
            torch.cuda.synchronize()
        best = min(best, sorted(times)[len(times) // 2])
    return best * 1e6


def add_kernel_code(library: str) -> tuple[bytes, str]:
    """The cubin that precast launches for float32 on an H200, and its function's name."""
    name, data = packs_of(Path(library))[0]
    facts = inspect_bytes(data, name)
    target = next(t for t in facts["operators"][0]["targets"] if t["target"] == "sm_90")
    spec = next(s for s in target["specializations"] if s["name"] == "T=float32")
    launch = target["candidates"][spec["candidates"][0]]["launches"][0]
    variant = target["variants"][launch["variants"][0]["variant"]]
    return code_object(data, facts, variant["object"]), variant["function"]


def hand_written(library: str):
    """A tvm-ffi function, compiled here, that launches precast's own compiled kernel and nothing else."""
    import ctypes

    cubin, name = add_kernel_code(library)
    cuda = ctypes.CDLL("libcuda.so.1")
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    torch.zeros(1, device="cuda")
    assert cuda.cuModuleLoadData(ctypes.byref(module), cubin) == 0
    assert cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode()) == 0
    folder = Path(tempfile.mkdtemp())
    (folder / "add.cpp").write_text(HAND_WRITTEN)
    info = tvm_ffi.libinfo
    command = ["g++", "-O2", "-std=c++17", "-shared", "-fPIC", str(folder / "add.cpp"), "-o", str(folder / "add.so"),
               f"-I{info.find_include_path()}", f"-I{info.find_dlpack_include_path()}",
               info.find_libtvm_ffi(), "-ldl"]  # fmt: skip
    subprocess.run(command, check=True)
    loaded = tvm_ffi.load_module(str(folder / "add.so"))
    loaded.setup(function.value)
    return loaded.add


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("vector_add")
    parser.add_argument("flash")
    options = parser.parse_args()
    lib = precast.load(options.vector_add)
    x, y, z = (torch.randn(N, device="cuda") for _ in range(3))
    rows = [("precast", microseconds(lambda: lib.vector_add(z, x, y)))]
    add = hand_written(options.vector_add)
    rows.append(("hand-written tvm-ffi function", microseconds(lambda: add(z, x, y))))
    rows.append(("torch.add(out=)", microseconds(lambda: torch.add(x, y, out=z))))
    rows.append(("precast, output allocated", microseconds(lambda: lib.vector_add(x, y))))
    try:
        import triton

        from precast.families.vector_add.kernels import add_kernel

        grid = (triton.cdiv(N, 1024),)
        rows.append(
            (f"Triton {triton.__version__} JIT", microseconds(lambda: add_kernel[grid](z, x, y, N, BLOCK=1024)))
        )
        tuned = triton.autotune([triton.Config({"BLOCK": 1024})], key=["n"])(add_kernel)
        rows.append((f"Triton {triton.__version__} JIT, autotuned", microseconds(lambda: tuned[grid](z, x, y, N))))
    except ImportError:
        print("no Triton here", file=sys.stderr)
    flash = precast.load(options.flash)
    q, k, v = (torch.randn(1, 4, 128, 128, dtype=torch.bfloat16, device="cuda") for _ in range(3))
    out, lse = torch.empty_like(q), torch.empty(1, 4, 128, device="cuda")
    rows.append(("attention, precast", microseconds(lambda: flash.attention_forward(out, lse, q, k, v, 0.1, 0))))
    rows.append(
        (
            "attention, precast, by name",
            microseconds(lambda: flash.attention_forward(out, lse, q, k, v, 0.1, mask="none")),
        )
    )
    rows.append(("attention, precast, allocating", microseconds(lambda: flash.attention_forward(q, k, v, 0.1))))
    rows.append(("attention, torch SDPA", microseconds(lambda: F.scaled_dot_product_attention(q, k, v))))
    print(f"{torch.cuda.get_device_name()}: host time of a call, µs")
    for name, value in rows:
        print(f"  {name:34}{value:8.2f}")


if __name__ == "__main__":
    main()

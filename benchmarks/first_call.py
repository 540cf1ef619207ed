"""A fresh process: from loading the library to the first result, beyond creating the CUDA context; JIT beside it.

python benchmarks/first_call.py out/vector_add/libvector_add.so
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

PRECAST = """
import time, sys
import torch
x, y, z = (torch.ones(4096, device="cuda") for _ in range(3)); torch.cuda.synchronize()
start = time.perf_counter()
import precast
lib = precast.load(sys.argv[1])
loaded = time.perf_counter()
lib.vector_add(z, x, y); torch.cuda.synchronize()
print((time.perf_counter() - start) * 1e3, (time.perf_counter() - loaded) * 1e3)
assert z.eq(2).all()
"""
JIT = """
import time, sys
import torch
x, y, z = (torch.ones(4096, device="cuda") for _ in range(3)); torch.cuda.synchronize()
start = time.perf_counter()
from precast.families.vector_add.kernels import add_kernel
loaded = time.perf_counter()
add_kernel[(4,)](z, x, y, 4096, BLOCK=1024); torch.cuda.synchronize()
print((time.perf_counter() - start) * 1e3, (time.perf_counter() - loaded) * 1e3)
"""


def run(script: str, library: str) -> list[float]:
    """Milliseconds from the import on, and from the loaded library on."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "TRITON_CACHE_DIR": folder}
        done = subprocess.run(
            [sys.executable, "-c", script, library], env=env, capture_output=True, text=True, check=True
        )
    return [float(t) for t in done.stdout.split()]


def main() -> None:
    for name, script in (("precast", PRECAST), ("Triton JIT, cold", JIT)):
        times = [run(script, sys.argv[1]) for _ in range(3)]
        print(
            f"{name:20} import, load and first result {min(t[0] for t in times):8.1f} ms; first result alone "
            f"{min(t[1] for t in times):8.1f} ms"
        )


if __name__ == "__main__":
    main()

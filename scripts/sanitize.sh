#!/usr/bin/env bash
# Runs the runtime's C++ test under AddressSanitizer with UndefinedBehaviorSanitizer, and under ThreadSanitizer, and
# fuzzes the pack reader. Needs clang with its sanitizer runtimes (Debian: clang-14 libclang-rt-14-dev).
#
#   scripts/sanitize.sh [runs of the fuzzer, by default 10000000]
set -euo pipefail
cd "$(dirname "$0")/.."
runs="${1:-10000000}"
export CC="${CC:-clang-14}" CXX="${CXX:-clang++-14}"
zstd="${PRECAST_ZSTD_DIR:+-DPRECAST_ZSTD_DIR=$PRECAST_ZSTD_DIR}"
python="${PYTHON:-.venv/bin/python}"
mkdir -p build
PYTHONPATH="tests/runtime${PYTHONPATH:+:$PYTHONPATH}" "$python" - <<'PY'
from pathlib import Path
import zstandard
from precast.pack.writer import write
from standin import add_pack
seeds = Path("build/fuzz-seeds")
seeds.mkdir(exist_ok=True)
write(add_pack(), Path("build/standin.pack"))
packs = [Path("build/standin.pack"), *Path("build").glob("seeds/*.pack")]
for i, pack in enumerate(packs):
    data = pack.read_bytes()
    size = int.from_bytes(data[48:56], "little")
    raw = zstandard.ZstdDecompressor().decompress(data[72 : 72 + size])
    if len(raw) < 20000:
        (seeds / f"{i}").write_bytes(raw)
PY
build() { # name, flags
  cmake -G Ninja -S . -B "build/$1" -DPRECAST_TESTS=ON -DPRECAST_FUZZ="${3:-OFF}" -DCMAKE_BUILD_TYPE=RelWithDebInfo $zstd \
    -DCMAKE_C_FLAGS="$2" -DCMAKE_CXX_FLAGS="$2 -DPRECAST_SANITIZED" >/dev/null
  ninja -C "build/$1" call_test standin_cuda ${4:-} >/dev/null
  PRECAST_CUDA_DRIVER="build/$1/libstandin_cuda.so" "build/$1/call_test" build/standin.pack
}
echo "address and undefined behaviour:"
build asan "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
echo "threads:"
build tsan "-fsanitize=thread"
echo "fuzzing the pack reader, $runs inputs:"
build fuzz "-fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all" ON pack_fuzz
mkdir -p build/fuzz-corpus
build/fuzz/pack_fuzz -runs="$runs" -max_len=8192 -print_final_stats=1 build/fuzz-corpus build/fuzz-seeds 2>&1 | tail -12

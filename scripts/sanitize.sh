#!/usr/bin/env bash
# Runs the runtime's C++ test under AddressSanitizer with UndefinedBehaviorSanitizer, and under ThreadSanitizer, and
# fuzzes the pack reader and whole calls. Needs clang with its sanitizer runtimes (Debian: clang-14 libclang-rt-14-dev).
#
#   scripts/sanitize.sh [runs of the fuzzers together, by default 10000000]
set -euo pipefail
cd "$(dirname "$0")/.."
runs="${1:-10000000}"
export CC="${CC:-clang-14}" CXX="${CXX:-clang++-14}"
zstd="${PRECAST_ZSTD_DIR:+-DPRECAST_ZSTD_DIR=$PRECAST_ZSTD_DIR}"
python="${PYTHON:-.venv/bin/python}"
mkdir -p build
PYTHONPATH="tests/runtime${PYTHONPATH:+:$PYTHONPATH}" "$python" - <<'PY'
from pathlib import Path
from precast.pack.writer import write
from seeds import main
from standin import add_pack
write(add_pack(), Path("build/standin.pack"))
main(Path("build/fuzz-seeds"))
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
build fuzz "-fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all" ON "pack_fuzz call_fuzz"
for what in pack call; do
  echo "fuzzing, ${what}s, $((runs / 2)) inputs:"
  mkdir -p "build/fuzz-corpus/$what"
  "build/fuzz/${what}_fuzz" -runs="$((runs / 2))" -max_len=16384 -malloc_limit_mb=600 -print_final_stats=1 \
    "build/fuzz-corpus/$what" "build/fuzz-seeds/$what" 2>&1 | tail -12
done

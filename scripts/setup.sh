#!/usr/bin/env bash
# Installs precast into .venv, builds the example families for an NVIDIA and an AMD GPU, and checks them:
# on the GPU if there is one, else on the CPU by Triton's interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x .venv/bin/python ] || "${PYTHON:-python3}" -m venv .venv
.venv/bin/python -m pip install --quiet ".[test]"
for family in vector_add softmax layer_norm matmul flash; do
    .venv/bin/precast build "$family" --targets sm_90,gfx942 --output "out/$family"
    .venv/bin/precast inspect "out/$family/lib$family.so" --verify --summary
    .venv/bin/precast check "$family" --library "out/$family/lib$family.so"
done

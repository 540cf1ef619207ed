#!/usr/bin/env bash
# Runs the tests that need no GPU: linters, type checker, C++ and Python tests. `scripts/setup.sh` comes first.
set -euo pipefail
cd "$(dirname "$0")/.."
.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/mypy
.venv/bin/python -m pytest -q -n 2 "$@"

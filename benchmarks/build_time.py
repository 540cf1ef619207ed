"""Build time over the compiler's own, and the time of a rebuild with nothing changed.

python benchmarks/build_time.py layer_norm sm_90,gfx942
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time


def main() -> None:
    family, targets = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "precast.cli.main", "build", family, "--targets", targets, "--json",
                   "--cache", f"{folder}/cache", "-o", f"{folder}/out"]  # fmt: skip
        times = []
        for _ in range(2):
            start = time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            times.append(time.perf_counter() - start)
            facts = json.loads(done.stdout)
            if len(times) == 1:
                workers = len(os.sched_getaffinity(0))
                bare = facts["compile_seconds"] / workers
        print(f"{family} for {targets}: {facts['from_cache']} compiles on {workers} processes")
        print(f"  build {times[0]:.1f} s, bare compiles / workers {bare:.1f} s, ratio {times[0] / bare:.2f}")
        print(f"  rebuild with nothing changed {times[1]:.2f} s")


if __name__ == "__main__":
    main()

"""Making the pack of candidates that a GPU machine measures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from precast.build.build import BuildOptions, BuiltPack, Progress, bound_family, make_pack
from precast.pack.writer import write

__all__ = ["CompiledCandidates", "compile_candidates"]


@dataclass(frozen=True)
class CompiledCandidates:
    """A candidate pack and what came of its compiles."""

    path: Path
    built: BuiltPack


def compile_candidates(
    family: str | Path, options: BuildOptions, output: Path, progress: Progress | None = None
) -> list[CompiledCandidates]:
    """Compiles every config of every plan, one pack a target: `<output>/<family>.<target>.pack`.

    Compressed lightly: such a pack travels once.

    Raises:
        BuildError: if an expression of the description is wrong, or nothing compiled.
    """
    bound, location = bound_family(family)
    output.mkdir(parents=True, exist_ok=True)
    result = []
    for target in options.targets:
        built = make_pack(bound, location, replace(options, targets=[target], all_configs=True), progress)
        path = output / f"{bound.name}.{target.name}.pack"
        write(built.pack, path, level=3)
        result.append(CompiledCandidates(path, built))
    return result

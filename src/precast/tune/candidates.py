"""The candidates of a pack, as it lists them itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from precast.describe.dtypes import DTYPES
from precast.errors import UserError
from precast.pack.inspect import inspect_bytes, packs_of

__all__ = ["Candidate", "CandidatePack", "read_candidates", "subject_values"]

_SHORT = {d.long_name: d.name for d in DTYPES.values()}


@dataclass(frozen=True)
class Candidate:
    """One config of one plan for one specialization.

    Attributes:
        number: by which the runtime knows it, from 1.
        registers, spills, shared: the most of its launches; spills in bytes a thread, shared in bytes a block.
        code_bytes: of all its variants, raw.
    """

    number: int
    plan: str
    config: str
    source: str
    registers: int
    spills: int
    shared: int
    code_bytes: int


@dataclass(frozen=True)
class CandidatePack:
    """A pack of candidates.

    Attributes:
        specializations: by operator and the specialization's text.
        types: names of type variables, by operator; the other names of a specialization are features.
    """

    path: Path
    family: str
    target: str
    triton: str
    specializations: Mapping[str, Mapping[str, tuple[Candidate, ...]]]
    types: Mapping[str, frozenset[str]]


def read_candidates(path: Path) -> CandidatePack:
    """Reads what a pack has to measure.

    Raises:
        UserError: if it is for several targets.
        PackError: if it is no pack, or damaged.
    """
    found = packs_of(path)
    facts = inspect_bytes(found[0][1], found[0][0])
    if len(found) != 1 or len(facts["targets"]) != 1:
        raise UserError(f"{path} is for several targets: measure a pack of one, such as `precast tune --compile-only`")
    specializations = {}
    types = {}
    for operator in facts["operators"]:
        target = operator["targets"][0]
        specializations[operator["name"]] = {
            spec["name"]: tuple(
                _candidate(target, number, target["candidates"][index])
                for number, index in enumerate(spec["candidates"], 1)
            )
            for spec in target["specializations"]
            if spec["status"] == "built"
        }
        features = {f["name"] for f in operator["features"]}
        names = {part.partition("=")[0] for spec in target["specializations"] for part in spec["name"].split()}
        types[operator["name"]] = frozenset(names - features)
    return CandidatePack(path, facts["family"], facts["targets"][0], facts["triton_version"], specializations, types)


def _candidate(target: Mapping[str, Any], number: int, facts: Mapping[str, Any]) -> Candidate:
    variants = [target["variants"][v["variant"]] for launch in facts["launches"] for v in launch["variants"]]
    return Candidate(
        number,
        facts["plan"],
        facts["config"],
        facts["source"],
        max(v["registers"] for v in variants),
        max(v["spills"] for v in variants),
        max(v["shared_bytes"] for v in variants),
        sum(v["code_bytes"] for v in variants),
    )


def subject_values(
    pack: CandidatePack, operator: str, specialization: str
) -> tuple[dict[str, str], dict[str, int | str | bool]]:
    """Types by Triton's names, and features with their values, of a specialization's text."""
    types: dict[str, str] = {}
    features: dict[str, int | str | bool] = {}
    for part in specialization.split():
        name, _, value = part.partition("=")
        if name in pack.types[operator]:
            types[name] = _SHORT.get(value, value)
        elif value in ("True", "False"):
            features[name] = value == "True"
        else:
            features[name] = int(value) if value.lstrip("-").isdigit() else value
    return types, features

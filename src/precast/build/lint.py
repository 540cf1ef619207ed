"""Finding the faults of a description, those of its lambdas included, without compiling anything."""

from __future__ import annotations

from pathlib import Path

from precast.build.assemble import BuildError, OperatorAssembly, Selection
from precast.build.enumerate import specializations
from precast.build.interface import make_arguments, make_checks, make_features, make_key, make_types
from precast.build.tables import OperatorTables
from precast.compile.triton_compile import scrub_environment, triton_version
from precast.describe.bind import BoundOperator, bind_family
from precast.describe.faults import DescriptionError, Fault
from precast.describe.load import FamilyLocation, load_family
from precast.describe.namespace import TRACE_ERRORS
from precast.targets import TARGETS

__all__ = ["find_faults"]


def find_faults(family: str | Path) -> list[Fault]:
    """Every fault: of names and bindings first; if there are none, of the lambdas, traced for every target.

    Raises:
        FamilyError: if the family can't be found or imported.
    """
    scrub_environment()
    described, location = load_family(family)
    file = str(location.folder / "family.py")
    try:
        bound = bind_family(described, file)
    except DescriptionError as error:
        return list(error.faults)
    faults: list[Fault] = []
    for operator in bound.operators:
        faults += _interface_faults(operator, file)
        faults += _lambda_faults(operator, location, file)
    return list(dict.fromkeys(faults))


def _interface_faults(operator: BoundOperator, file: str) -> list[Fault]:
    tables = OperatorTables(operator)
    faults = []
    for what, make in (
        ("shape", make_arguments), ("checks", make_checks), ("types", make_types), ("features", make_features),
        ("key", make_key),
    ):  # fmt: skip
        try:
            make(operator, tables)
        except TRACE_ERRORS as error:
            faults.append(Fault(file, f"{operator.name}.{what}", str(error), "mend the function or name given there"))
    return faults


def _lambda_faults(operator: BoundOperator, location: FamilyLocation, file: str) -> list[Fault]:
    assembly = OperatorAssembly(operator, location, triton_version(), Selection())
    faults: dict[str, Fault] = {}
    for target in TARGETS.values():
        for spec in specializations(operator):
            try:
                assembly.trace(spec, target)
            except BuildError as error:
                where, _, problem = str(error).partition(" (")
                fault = Fault(file, where, problem.rstrip(")") or str(error), "mend the function given there")
                faults.setdefault(where, fault)
    return list(faults.values())

"""The `precast` command."""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import cyclopts

import precast
from precast.cli.build import build
from precast.cli.check import check
from precast.cli.db import db
from precast.cli.inspect import inspect
from precast.cli.lint import lint
from precast.cli.measure import measure
from precast.cli.output import errors
from precast.cli.preview import preview
from precast.cli.targets import targets
from precast.cli.tune import tune
from precast.errors import UserError, missing_extra

__all__ = ["app", "main"]

EXIT_FOUND = 1
"""A check, lint or verification found something."""

EXIT_USAGE = 2
"""What was given can't be used; the message says what can."""

EXIT_INTERRUPTED = 130

app = cyclopts.App(
    name="precast",
    help="Triton kernels to tuned, shippable libraries, ahead of time.",
    version=f"precast {precast.__version__}",
    result_action="return_value",
)
for command in (build, check, db, inspect, lint, measure, preview, targets, tune):
    app.command(command)


@app.meta.default
def _launch(
    *tokens: Annotated[str, cyclopts.Parameter(show=False, allow_leading_hyphen=True)],
    debug: Annotated[bool, cyclopts.Parameter(help="Show a traceback with an error.", negative="")] = False,
) -> int:
    try:
        code = app(tokens, exit_on_error=False, print_error=True)
    except cyclopts.CycloptsError:
        return EXIT_USAGE
    except KeyboardInterrupt:
        errors.print("interrupted; what was done is kept, the same command goes on from there")
        return EXIT_INTERRUPTED
    except ModuleNotFoundError as error:
        remedy = missing_extra(error)
        if remedy is None:
            raise
        errors.print(f"error: {error}; {remedy}", markup=False)
        return EXIT_USAGE
    except (UserError, OSError) as error:
        if debug:
            traceback.print_exc()
        errors.print(f"error: {error}", markup=False)
        return EXIT_USAGE
    return code if isinstance(code, int) else 0


def main() -> None:
    """Runs the command line and exits with its code: 0 done, 1 something found, 2 bad input, 130 interrupted."""
    sys.exit(app.meta(exit_on_error=False))


if __name__ == "__main__":
    main()

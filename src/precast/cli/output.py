"""Where commands print: tables on terminals, JSON when asked for."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

__all__ = ["console", "errors", "print_json", "print_table"]

console = Console(soft_wrap=True, highlight=False)
if not console.is_terminal:
    console.width = 400  # a file or pipe has no width: one row a line
errors = Console(stderr=True, soft_wrap=True, highlight=False)


def print_json(value: Any) -> None:
    """Prints a value as JSON on standard output."""
    json.dump(value, sys.stdout, indent=2, sort_keys=False)
    sys.stdout.write("\n")


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Prints rows under named columns; numbers to the right."""
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for i, name in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[i], (int, float)) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*("" if cell is None else str(cell) for cell in row))
    console.print(table)

"""Run the command `praison-compressor` by `python -m praison_compressor`."""

from __future__ import annotations

from .cli import main

if __name__ == "__main__":
    main()

"""`python -m praison_compressor` is the command `praison-compressor`."""

from __future__ import annotations

from .cli import main

if __name__ == "__main__":
    main()

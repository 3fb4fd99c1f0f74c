"""`python -m praison_compressor.cli`."""

from __future__ import annotations

from .app import main

main()

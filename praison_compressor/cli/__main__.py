"""`python -m praison_compressor.cli`."""

from .app import main

main()

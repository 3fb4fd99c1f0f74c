"""The command `praison-compressor`: a skin over the library, one file a group of commands."""

from .app import build, main

__all__ = ["build", "main"]

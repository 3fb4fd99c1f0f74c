"""What must survive a segment, read by a machine for certain rather than remembered by a model."""

from .audit import Coverage, coverage, missing
from .domain import Domain
from .extracting import extract
from .model import (
    CommandFact,
    ErrorFact,
    Excerpt,
    Facts,
    FileFact,
    Identifier,
    Note,
    Said,
    Todo,
)
from .render import render

__all__ = [
    "CommandFact",
    "Coverage",
    "Domain",
    "ErrorFact",
    "Excerpt",
    "Facts",
    "FileFact",
    "Identifier",
    "Note",
    "Said",
    "Todo",
    "coverage",
    "extract",
    "missing",
    "render",
]

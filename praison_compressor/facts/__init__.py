"""What must survive a segment, read by a machine for certain rather than remembered by a model."""

from .coverage import Coverage, coverage, missing
from .domain import Domain
from .extraction import extract
from .model import CommandFact, ErrorFact, Excerpt, Facts, FileFact, Identifier, Note, Said, Todo
from .rendering import render

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

"""What must survive a segment, read by a machine for certain rather than remembered by a model.

In the order in which data passes them:

- `model`: the facts as records, and the `Domain` that a user's own tools and names make up
- `language`: the words of rules, decisions and open work, in seven languages; `wording`: those by
  which a summary tells what came of work, in English
- `outcomes`: what a tool's result says came of a call, and the line that says so
- `passages`: who said which text of a transcript, and which call a result answers
- `shell`, `files`: what command lines and calls do to files, told by the verbs in tools' names
- `commands`: commands, searches and fetches with what came of them; the table of outcomes; which
  still fail
- `values`, `corrections`: the user's words, and which of their values no longer hold
- `identifiers`: names that nobody could guess, the clauses that bind them, what each is worth
- `rules`: which sentences are rules, and of what kind
- `rulebook`: `rules_in`, `RuleReader`, what binds the agent, who said it, and what was lifted since
- `extraction`: `extract`, one pass over a segment; notes and todo lists
- `coverage`: `coverage` and `missing`, what a text holds of the facts and what it lacks; lines that
  bear it out
- `details`: the clauses that are worth most for their tokens
- `rendering`: `render`, the facts as a text within a budget
"""

from .coverage import Coverage, coverage, missing
from .extraction import extract
from .model import (
    GENERAL,
    Attempt,
    CommandFact,
    Domain,
    Excerpt,
    Facts,
    FileFact,
    Identifier,
    Note,
    Said,
    Todo,
)
from .rendering import render
from .rulebook import RuleReader, rules_in
from .rules import Rule

__all__ = [
    "GENERAL",
    "Attempt",
    "CommandFact",
    "Coverage",
    "Domain",
    "Excerpt",
    "Facts",
    "FileFact",
    "Identifier",
    "Note",
    "Rule",
    "RuleReader",
    "Said",
    "Todo",
    "coverage",
    "extract",
    "missing",
    "render",
    "rules_in",
]

"""What a user's own field adds to the words that facts are read by: its tools, names and hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import NamedTuple

from ..config import FILE_ACTIONS, CompressorConfig

__all__ = [
    "GENERAL",
    "Domain",
    "Rule",
]


class Rule(NamedTuple):
    """What a tool does, and the argument that says to what; empty: the usual one."""

    action: str
    argument: str = ""

    @property
    def touches_a_file(self) -> bool:
        return self.action in FILE_ACTIONS


@dataclass(frozen=True)
class Domain:
    """Tools, identifiers and host texts that no general vocabulary knows.

    >>> Domain(tools={"kb_*": "search:question"}).rule("kb_lookup")
    Rule(action='search', argument='question')
    """

    tools: Mapping[str, str] = field(default_factory=dict)
    """Tool name or pattern -> action, or action:argument; see `CompressorConfig.fact_tools`."""
    patterns: Mapping[str, str] = field(default_factory=dict)
    """Kind of identifier -> regular expression; see `CompressorConfig.fact_patterns`."""
    host_prefixes: tuple[str, ...] = ()
    """How texts begin that a host writes in the user's role."""

    @classmethod
    def of(cls, config: CompressorConfig) -> Domain:
        """The domain that a configuration describes."""
        return cls(config.fact_tools, config.fact_patterns, config.host_prefixes)

    def rule(self, tool: str) -> Rule | None:
        """The rule for a tool: by its name, else by the first pattern that fits."""
        found = self.tools.get(tool)
        if found is None:
            fitting = (rule for name, rule in self.tools.items() if fnmatchcase(tool, name))
            found = next(fitting, None)
        return None if found is None else Rule(*found.split(":", 1))


GENERAL = Domain()
"""Nothing but the usual vocabularies."""

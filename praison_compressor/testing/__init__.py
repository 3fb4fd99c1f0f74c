"""A strict local provider: real HTTP, real refusals, scripted replies, every request recorded.

```python
from praison_compressor.testing import LocalProvider, Summarizer, Worker

with LocalProvider(Worker(calls=3), window=8000) as provider:
    provider.route("summarizer", Summarizer(facts=r"FACT-\\d+"))
    agent = Agent(llm="gpt-4o-mini", base_url=provider.base_url, api_key="any", tools=[...])
    agent.chat("...")
assert not provider.refused
```
"""

from __future__ import annotations

from .chat_refusals import check_messages
from .models import Counter
from .replies import Answer, Answerer, Asked, Broken, Call, Failure, Recorded, Reply, Script
from .roles import Behaviour, Summarizer, Worker, echo
from .server import LocalProvider
from .strict import Refusal, Rules

__all__ = [
    "Answer",
    "Answerer",
    "Asked",
    "Behaviour",
    "Broken",
    "Call",
    "Counter",
    "Failure",
    "LocalProvider",
    "Recorded",
    "Refusal",
    "Reply",
    "Rules",
    "Script",
    "Summarizer",
    "Worker",
    "check_messages",
    "echo",
]

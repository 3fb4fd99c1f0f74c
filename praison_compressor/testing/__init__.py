"""Run a strict local provider over HTTP, for tests of agents.

```python
from praisonaiagents import Agent
from praison_compressor.praisonai import CompressorContext
from praison_compressor.testing import LocalProvider, Worker

def read_file(path: str) -> str:
    "Read a file."
    return f"{path}: " + "a line of it, " * 300

reads_eight = Worker(calls=8, tool="read_file", answer="All read.")
with LocalProvider(reads_eight, window=8_000) as provider:
    agent = Agent(
        instructions="You read files.",
        tools=[read_file],
        model="openai/local-model",  # no name of OpenAI's: the host would ask OpenAI itself
        base_url=provider.base_url,
        api_key="any",
        context=CompressorContext(context_window=8_000),
    )
    answer = agent.chat("Read eight files.")
assert answer == "All read."
assert len(provider.requests) >= 9  # eight calls and the answer; summaries are requests too
assert not provider.refused  # no request had more than 8,000 tokens
```

In the order in which data passes the modules:

- `server`: `LocalProvider`, which admits, counts and answers requests
- `checks`: OpenAI's chat completions, and what the API refuses
- `replies`: requests, replies and ready-made models
"""

from .checks import Refusal, Rules, check_messages
from .replies import (
    Answer,
    Answerer,
    Asked,
    Broken,
    Call,
    Failure,
    Recorded,
    Reply,
    SummaryModel,
    Worker,
)
from .server import LocalProvider

__all__ = [
    "Answer",
    "Answerer",
    "Asked",
    "Broken",
    "Call",
    "Failure",
    "LocalProvider",
    "Recorded",
    "Refusal",
    "Reply",
    "Rules",
    "SummaryModel",
    "Worker",
    "check_messages",
]

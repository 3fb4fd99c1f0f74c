"""A strict local provider for tests of agents: real HTTP, real refusals, scripted replies.

```python
from praisonaiagents import Agent
from praison_compressor.testing import LocalProvider, Worker

def read_file(path: str) -> str:
    "Read a file."
    return f"contents of {path}"

with LocalProvider(Worker(calls=3, answer="All read."), window=8_000) as provider:
    model = {"llm": "openai/local-model", "base_url": provider.base_url, "api_key": "any"}
    agent = Agent(instructions="You read files.", tools=[read_file], **model)
    answer = agent.chat("Read three files.")
assert answer == "All read."
assert len(provider.requests) == 4
assert not provider.refused
```

`server` listens, admits and answers; `chat` is OpenAI's chat completions and `checks` what they
refuse; `models` knows who answers and counts; `replies` are the values that go to and fro; `roles`
are ready-made models.
"""

from .checks import Refusal, Rules, check_messages
from .replies import Answer, Answerer, Asked, Broken, Call, Failure, Recorded, Reply
from .roles import Summarizer, Worker
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
    "Summarizer",
    "Worker",
    "check_messages",
]

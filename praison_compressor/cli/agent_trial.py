"""Let an agent outgrow its window, in a process that `doctor` starts."""

from __future__ import annotations

import json
import sys
from typing import Any

from praisonaiagents import Agent
from praisonaiagents.config import loader

from ..praisonai import CompressorContext, install
from ..testing import Asked, LocalProvider, SummaryModel
from ..tokens.counter import TokenCounter
from ..tokens.models import model_limits
from ..view.budget import Budget

INSTRUCTIONS = "You keep the books."

LOCAL_OPTIONS = {
    **dict.fromkeys(("auxiliary_model", "auxiliary_api_base", "auxiliary_api_key", "store_url")),
    "fallback_models": (),
}
"""Options that keep a trial off the network and out of stores."""


def main() -> None:
    """Print the result of a trial as JSON.

    The argument is [model, window] as JSON; null means the configured value.
    """
    model, window = json.loads(sys.argv[1])
    host = loader.get_config()
    model, host.defaults = model or host.defaults.model, loader.DefaultsConfig()
    settings = {"model": model, "instructions": INSTRUCTIONS, "output": "silent"}
    compressor = _compressor_of(settings)  # here the host loads its plugins
    compresses_all = compressor is not None
    if not compresses_all:
        settings["context"] = CompressorContext()
        compressor = _compressor_of(settings)
    config = compressor.config
    limits = model_limits(config.model, window or config.context_window)
    tokens, sent = run_agent(settings, limits.window)
    result = {"compresses_all": compresses_all, "model": config.model, "source": limits.source}
    result |= {"window": limits.window, "trigger": Budget.of(config, limits.window).trigger}
    print(json.dumps({**result, "tokens": tokens, "sent": sent}))


def _compressor_of(settings: dict[str, Any]) -> Any:
    return getattr(Agent(**settings), "context_compressor", None)


def run_agent(settings: dict[str, Any], window: int) -> tuple[int, int]:
    """Return the tokens of an agent's history and of its request."""

    def reply(asked: Asked) -> str:
        is_agent_request = INSTRUCTIONS in str(asked.messages[0].get("content"))
        return "Noted." if is_agent_request else SummaryModel(r"Ledger \d+").summary(asked)

    with LocalProvider(reply, window=sys.maxsize) as provider:
        install({**install().agents.defaults, **LOCAL_OPTIONS, "context_window": window})
        address = {"base_url": provider.base_url, "api_key": "local"}
        agent = Agent(**{**settings, **address, "model": "openai/local"})
        agent.chat_history = _longer_than(window)
        agent.chat("Which ledger is next?")
        tokens = TokenCounter("openai/local").messages(agent.chat_history)
        sent = [r.prompt_tokens for r in provider.requests if reply(r) == "Noted."]
    return tokens, sent[-1] if sent else tokens


def _longer_than(window: int) -> list[dict[str, str]]:
    talk = []
    for book in range(40):
        rows = " ".join(f"row {n} holds {n * 7} boxes," for n in range(window // 320 + 1))
        talk.append({"role": "user", "content": f"Ledger {book}: {rows}"})
        talk.append({"role": "assistant", "content": "Noted."})
    return talk


if __name__ == "__main__":
    main()

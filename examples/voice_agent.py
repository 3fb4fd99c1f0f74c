"""A voice conversation that remembers, on any server of OpenAI's Realtime protocol.

    pip install -e '.[realtime]'
    python examples/voice_agent.py --url ws://localhost:8080/v1/realtime

One line of standard input is one turn (a microphone would call `agent.asend_audio` instead). At
12 items the oldest are summarized into a memory item and deleted from the server. After a lost
connection the next one gets the memory and the newest items. Without `--url` the server is OpenAI's
and the key is that of OPENAI_API_KEY. `--auxiliary-model` names the model that writes summaries;
without one they are static.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any

from praison_compressor import CompressorConfig
from praison_compressor.praisonai.realtime import RealtimeAgent


class Conversation:
    """A caller who sends lines, waits for answers, and connects again when cut off."""

    def __init__(self, agent: RealtimeAgent) -> None:
        self.agent = agent
        self.answered = asyncio.Event()
        agent.on_event(self.hear)
        agent.on_error(lambda error: print("error:", error, file=sys.stderr))

    def hear(self, event: dict[str, Any]) -> None:
        if event["type"] == "response.done":
            for item in event["response"].get("output", []):
                print("agent:", self.agent.transcript(item["id"]))
            self.answered.set()

    async def say(self, text: str, listening: asyncio.Task[None]) -> bool:
        """Send a text; return whether an answer came before the connection ended."""
        self.answered.clear()
        if not await self.agent.asend_text(text):
            return False
        waiting = asyncio.create_task(self.answered.wait())
        await asyncio.wait({waiting, listening}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        return self.answered.is_set()

    async def hold(self, lines: list[str]) -> None:
        """Hold the conversation; connect again after each lost connection."""
        while lines and await self.agent.aconnect():
            listening = asyncio.create_task(self.agent.receive_loop())
            while lines and await self.say(lines[0], listening):
                lines.pop(0)
            await self.agent.settled()
            await self.agent.adisconnect()
            await listening


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url")
    parser.add_argument("--model", default="gpt-realtime")
    parser.add_argument("--auxiliary-model")
    arguments = parser.parse_args()
    agent = RealtimeAgent(
        model=arguments.model,
        instructions="You are a helpful voice on the telephone.",
        url=arguments.url,
        verbose=False,
        max_history_items=6,
        trigger_items=12,
        config=CompressorConfig(auxiliary_model=arguments.auxiliary_model),
    )
    lines = [line.strip() for line in sys.stdin if line.strip()]
    await Conversation(agent).hold(lines)
    print(f"\n{len(agent.items)} items verbatim, and the memory:\n{agent.memory}")


if __name__ == "__main__":
    asyncio.run(main())

"""A chat service on PostgreSQL with many workers; any worker may serve any turn.

    pip install -e '.[postgres]' fastapi uvicorn
    export OPENAI_API_KEY=... DATABASE_URL=postgresql://user:password@host/database
    uvicorn --app-dir examples fastapi_service:create_app --factory --workers 4

The service keeps its conversations in a table, one row a message. The compressor keeps its ledger
in the same database, so a worker finds the summaries of the others. A lease lets one worker at a
time compress a session, so no summary is paid for twice.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from openai import OpenAI
from pydantic import BaseModel
from sqlalchemy import Engine, create_engine, make_url, text

from praison_compressor import CompressorConfig, ContextCompressor

MODEL = os.environ.get("CHAT_MODEL", "gpt-4o-mini")
INSTRUCTIONS = {"role": "system", "content": "You look after the stock of a shop. Be brief."}


class Prompt(BaseModel):
    """A user's message."""

    text: str


class Answer(BaseModel):
    """The model's answer, and the size of what it was sent."""

    text: str
    context_status: str
    tokens: int
    tokens_of_all: int
    worker: int


class Conversations:
    """The table of messages, by session and in order."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        with engine.begin() as connection:
            # Several workers start at once: "if not exists" misses a table that is being made.
            connection.execute(text("SELECT pg_advisory_xact_lock(7101)"))
            connection.execute(
                text(
                    "CREATE TABLE IF NOT EXISTS chat (number bigserial PRIMARY KEY,"
                    " session text NOT NULL, role text NOT NULL, content text NOT NULL)"
                )
            )
            connection.execute(
                text("CREATE INDEX IF NOT EXISTS chat_session ON chat (session, number)")
            )

    def add(self, session: str, role: str, content: str) -> None:
        with self._engine.begin() as connection:
            connection.execute(
                text(
                    "INSERT INTO chat (session, role, content) VALUES (:session, :role, :content)"
                ),
                {"session": session, "role": role, "content": content},
            )

    def all(self, session: str) -> list[dict[str, Any]]:
        with self._engine.connect() as connection:
            rows = connection.execute(
                text("SELECT role, content FROM chat WHERE session = :session ORDER BY number"),
                {"session": session},
            )
            return [INSTRUCTIONS, *({"role": row.role, "content": row.content} for row in rows)]


def create_app() -> FastAPI:
    """Return one worker's application."""
    url = make_url(os.environ["DATABASE_URL"]).set(drivername="postgresql+psycopg")
    engine = create_engine(url, pool_pre_ping=True)
    conversations = Conversations(engine)
    model = OpenAI()  # OPENAI_API_KEY, and OPENAI_BASE_URL for another server
    compressor = ContextCompressor(
        CompressorConfig(
            model=MODEL,
            context_window=int(os.environ.get("CONTEXT_WINDOW", 0)) or None,
            protect_last_n_tokens=4_000,
            auxiliary_model=os.environ.get("SUMMARY_MODEL", MODEL),
            auxiliary_api_base=os.environ.get("OPENAI_BASE_URL"),
            auxiliary_api_key=os.environ.get("OPENAI_API_KEY"),
            store_url=url.render_as_string(hide_password=False),
        )
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        compressor.close()
        engine.dispose()

    app = FastAPI(lifespan=lifespan)

    @app.post("/sessions/{session}")
    def answer(session: str, prompt: Prompt) -> Answer:
        """Answer one prompt. FastAPI runs a plain `def` in a thread, so it may wait."""
        conversations.add(session, "user", prompt.text)
        view = compressor.compress_sync(conversations.all(session), session_id=session)
        reply = model.chat.completions.create(model=MODEL, messages=view.messages)  # type: ignore[arg-type]
        words = reply.choices[0].message.content or ""
        conversations.add(session, "assistant", words)
        return Answer(
            text=words,
            context_status=view.context_status,
            tokens=view.tokens_after,
            tokens_of_all=view.tokens_before,
            worker=os.getpid(),
        )

    return app

"""The default summarizer and store, where the caller hands in none.

Both rooms are imported only when asked: litellm and SQLAlchemy cost time to load.
"""

from __future__ import annotations

from ..config import CompressorConfig
from ..ledger.memory import MemoryStore
from ..ledger.segments import Store
from ..summaries.protocol import Summarizer

__all__ = [
    "default_store",
    "default_summarizer",
]


def default_summarizer(config: CompressorConfig) -> Summarizer:
    """litellm with the auxiliary model of the configuration, which names one."""
    from ..summaries.litellm_client import LiteLLMSummarizer

    assert config.auxiliary_model is not None
    return LiteLLMSummarizer(
        config.auxiliary_model,
        api_base=config.auxiliary_api_base,
        api_key=config.auxiliary_api_key,
    )


def default_store(config: CompressorConfig) -> Store:
    """The store at `store_url`; memory where there is none."""
    if config.store_url is None:
        return MemoryStore()
    from ..ledger.sql.store import open_store

    return open_store(config.store_url, key=config.store_key, mask_secrets=config.redact_archive)

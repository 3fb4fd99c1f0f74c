"""What a configuration means where the caller hands in no summarizer and no store of his own.

Both rooms are imported only when asked: litellm and SQLAlchemy cost time to load.
"""

from __future__ import annotations

from .config import CompressorConfig
from .ledger import Store
from .memory import MemoryStore
from .prompts import Summarizer

__all__ = ["default_store", "default_summarizer"]


def default_summarizer(config: CompressorConfig) -> Summarizer:
    """litellm with the auxiliary model of the configuration, which names one."""
    from .summarizer import LiteLLMSummarizer

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
    from .store import open_store

    return open_store(config.store_url, key=config.store_key, mask_secrets=config.redact_archive)

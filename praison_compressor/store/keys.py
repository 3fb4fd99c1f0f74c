"""The key of an encrypted store: what the host's `EncryptedSessionStore` takes, a Fernet key."""

from __future__ import annotations

from ..errors import ConfigError
from .pack import Codec

__all__ = ["codec_of"]


def codec_of(key: str) -> Codec:
    """The cipher of a key. The key itself is in no message.

    Raises:
        ConfigError: it is no key, or the package that encrypts is missing.
    """
    try:
        from cryptography.fernet import Fernet
    except ImportError as error:
        raise ConfigError(
            "an encrypted store needs the cryptography package: pip install cryptography"
        ) from error
    try:
        return Fernet(key.strip())
    except (ValueError, TypeError) as error:
        raise ConfigError(
            "the store's key (store_key, PRAISONAI_SESSION_KEY) is no Fernet key; expected what "
            "praisonaiagents.session.generate_session_key() makes"
        ) from error

"""Keys and tokens masked before a text leaves the agent's own provider, or is written to a disk.
The same secret has the same mask every time.

Detected by detect-secrets, where the `[redact]` extra is installed, through its plugins' published
patterns: its own scanner keeps global settings and is not thread-safe. What it lacks, and the
commonest of what it has, is in `secret_shapes` and needs no library.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .config import CompressorConfig
from .messages import Message
from .secret_shapes import NAMES, SHAPES

__all__ = ["Redacted", "Redactor", "masks_in", "masks_secrets", "wants_redaction"]

logger = logging.getLogger(__name__)

_LIBRARY = {
    "azure_storage_key": "AzureStorageKeyDetector",
    "discord": "DiscordBotTokenDetector",
    "gitlab_token": "GitLabTokenDetector",
    "mailchimp": "MailchimpDetector",
    "pypi_token": "PypiTokenDetector",
    "sendgrid": "SendGridDetector",
    "slack": "SlackDetector",
    "square_oauth": "SquareOAuthDetector",
    "stripe": "StripeDetector",
    "telegram_token": "TelegramBotTokenDetector",
    "twilio": "TwilioKeyDetector",
}
_TELLING = re.compile(f"[acepst]{NAMES}$", re.IGNORECASE)
_IMAGE = re.compile(r"data:[\w.+-]+/[\w.+;=-]{1,80};base64,")
_MASK = re.compile(r"(\[secret:[\w-]+:[0-9a-f]{8}\])")


class Redacted(NamedTuple):
    """Messages without their secrets, and how many there were."""

    messages: tuple[Message, ...]
    secrets: int


class Redactor:
    """Masks secrets as `[secret:KIND:HASH]`: equal ones alike, within a namespace.

    The hash is keyed by the namespace, so that a mask tells nothing to another tenant; it is too
    short to give a secret back.
    """

    def __init__(self, namespace: str = "default") -> None:
        self._key = hashlib.blake2b(namespace.encode("utf-8", "replace")).digest()[:32]

    def text(self, text: str) -> tuple[str, int]:
        """The text with every secret masked, and how many were found."""
        count = 0
        for kind, pattern, hint in _patterns():
            if hint not in text:
                continue
            # Masks of others, and of an earlier time, are text no more: they are passed over.
            parts = _MASK.split(text) if "[secret:" in text else [text]
            mask = functools.partial(self._mask, kind)
            done = [pattern.subn(mask, part) for part in parts[::2]]
            parts[::2] = [part for part, _ in done]
            count += sum(found for _, found in done)
            text = "".join(parts)
        return text, count

    def messages(self, messages: Sequence[Message]) -> Redacted:
        """The messages with secrets masked in what they say; those without any as they are."""
        done = [self._value(message) for message in messages]
        kept = [new if n else old for old, (new, n) in zip(messages, done, strict=True)]
        return Redacted(tuple(kept), sum(n for _, n in done))

    def _mask(self, kind: str, found: re.Match[str]) -> str:
        whole = found[0]
        secret = found["secret"] if "secret" in found.re.groupindex else whole
        data = secret.encode("utf-8", "surrogatepass")
        short = hashlib.blake2s(data, key=self._key, digest_size=4).hexdigest()
        return whole.replace(secret, f"[secret:{kind}:{short}]")

    def _named(self, key: str, text: str) -> tuple[str, int]:
        """A text under its key: `{"password": "..."}` says by its name what it holds."""
        if not _TELLING.search(key) or text.startswith("[secret:"):
            return self.text(text)
        masked, count = self.text(f"{key}={text}")
        return masked.partition("=")[2], count

    def _value(self, value: Any, key: str = "") -> tuple[Any, int]:
        if isinstance(value, str):
            # Names and ids pair calls with results; images are not read by these patterns.
            unread = key in _STRUCTURE or _IMAGE.match(value)
            return (value, 0) if unread else self._named(key, value)
        if isinstance(value, dict):
            pairs = {name: self._value(item, str(name)) for name, item in value.items()}
            return {name: new for name, (new, _) in pairs.items()}, sum(
                n for _, n in pairs.values()
            )
        if isinstance(value, (list, tuple)):
            items = [self._value(item, key) for item in value]
            return [new for new, _ in items], sum(n for _, n in items)
        return value, 0


_STRUCTURE = frozenset(
    {"role", "id", "tool_call_id", "tool_use_id", "type", "name", "signature", "data"}
)


def masks_secrets(store: object) -> bool:
    """Whether a store writes to a disk, and masks what it writes."""
    return bool(getattr(store, "mask_secrets", False))


def masks_in(messages: Sequence[Message]) -> int:
    """How many secrets are masked in these messages."""
    return sum(map(_masks_in, messages))


def _masks_in(value: Any) -> int:
    if isinstance(value, str):
        return len(_MASK.findall(value)) if "[secret:" in value else 0
    inner = value.values() if isinstance(value, dict) else value
    return sum(map(_masks_in, inner)) if isinstance(inner, Iterable) else 0


def wants_redaction(
    config: CompressorConfig, model: str | None = None, *, on_disk: bool = False
) -> bool:
    """Whether a summary is written from masked texts: by somebody else's model, or for a disk."""
    if config.redact_secrets is not None:
        return config.redact_secrets
    asked = model or config.auxiliary_model
    others = asked not in (None, config.model) or bool(config.fallback_models)
    return others or bool(config.auxiliary_api_base) or bool(config.store_url) or on_disk


@functools.lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[str, re.Pattern[str], str], ...]:
    own = ((kind, re.compile(pattern), hint) for kind, pattern, hint in SHAPES)
    return (*own, *_library_patterns())


def _library_patterns() -> Iterator[tuple[str, re.Pattern[str], str]]:
    if importlib.util.find_spec("detect_secrets") is None:
        logger.info("detect-secrets is not installed (extra [redact]): the commonest keys only")
        return
    for module, name in _LIBRARY.items():
        plugins: Any = importlib.import_module(f"detect_secrets.plugins.{module}")
        detector = getattr(plugins, name)
        for pattern in detector.denylist:
            yield detector.secret_type.lower().replace(" ", "-"), pattern, ""

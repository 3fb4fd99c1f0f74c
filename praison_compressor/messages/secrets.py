"""Redact keys, tokens and passwords in messages; equal secrets look equal."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from ..config import CompressorConfig
from .shapes import is_payload

T = TypeVar("T")

# -------------------------------------------------------------- secret shapes


class SecretShape(NamedTuple):
    """A kind of secret."""

    kind: str
    pattern: str
    """The group `secret` is redacted; without such a group the whole match is redacted."""
    hint: str = ""
    """A string in every match. Searching for the string takes a hundredth of the pattern's time."""


def _begins(kind: str, prefix: str, ending: str) -> SecretShape:
    begin = re.escape(prefix)
    # The prefix comes first: a search skips other text fast.
    pattern = rf"{begin}(?:(?<!\w{begin})|(?<=\\[bfnrt]{begin})){ending}"
    return SecretShape(kind, pattern, prefix)


_FORMATS = (
    # Each format has a least length: words are shorter.
    (
        r"[A-Za-z0-9]{27,}",
        "AGE-SECRET-KEY-1 NRAK- api_org_ csk- dapi doo_v1_ dop_v1_ dp.pt. e2b_ fc- gsk_ hf_ "
        "lin_api_ napi_ npm_ ntn_ pplx- r8_ rubygems_ sbp_ shpat_ shpca_ shppa_ shpss_ sntryu_ "
        "xai-",
    ),
    (r"(?:dev-|prod-)?[A-Za-z0-9]{32,}", "tvly-"),
    (r"(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}", "dp.st."),
    (r"[A-Za-z0-9]{22,24}", "fw_"),
    (r"[\w-]{27,}", "GOCSPX- dckr_pat_ jina_"),
    (r"[\w-]{30,}", "hvb. hvs. sb_secret_ ya29."),
    (r"[\w-]{36,}", "HRKU- figd_ nfp_ nvapi-"),
    (r"[\w-]{43}", "pa- tgp_v1_"),
    (r"[\w=-]{60,}", "ATATT3"),
    (r"[\w=.-]{32,64}", "pscale_oauth_ pscale_pw_ pscale_tkn_"),
    (r"[A-Za-z0-9+/=_-]{32,}", "glc_ sntrys_ whsec_"),
    (r"Ab8R[\w-]{40,60}", "AQ."),
    (r"[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}", "glsa_"),
    (r"[a-f0-9]{32}_[a-f0-9]{10}", "lsv2_pt_ lsv2_sk_"),
    (r"[a-f0-9]{24}-[a-f0-9]{34}", "PMAK-"),
    (r"[A-Za-z0-9]{5,6}_[A-Za-z0-9]{60,}", "pcsk_"),
    (r"\d-[A-Z0-9]+-\d+-[a-f0-9]{32,}", "xapp-"),
    (r"[a-f0-9]{64}-[A-Za-z0-9]{16}", "xkeysib-"),
)
"""(format of a key after its prefix, prefixes)."""

_LIKE_A_KEY = r"(?=[\w=-]{0,40}\d)[\w+/=-]{24,}"
"""Matches a key of unknown format. A digit is required, because words have none."""

_BY_ISSUER = (
    _begins("jwt", "eyJ", r"[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{5,}"),
    _begins("anthropic-key", "sk-ant-", r"[\w-]{20,}"),
    _begins("openai-key", "sk-", r"[\w-]{20,}"),
    _begins("google-key", "AIza", r"[\w-]{35}"),
    _begins("github-token", "gh", r"[pousr]_[A-Za-z0-9]{36,}"),
    _begins("github-token", "github_pat_", r"\w{40,}"),
    _begins("gitlab-token", "gl", r"(?:pat|dt|rt|ptt|ft|cbt|oas|soat|agent)-[\w.-]{20,}"),
    _begins("aws-key", "A", r"(?:3T[A-Z0-9]|BIA|CCA|KIA|SIA)[0-9A-Z]{16}\b"),
    _begins("slack-token", "xox", r"[abposr]-[A-Za-z0-9-]{10,}"),
    _begins("stripe-access-key", "sk_", r"(?:live|test)_[0-9a-zA-Z]{16,}"),
    _begins("stripe-access-key", "rk_", r"(?:live|test)_[0-9a-zA-Z]{16,}"),
    _begins("sendgrid-api-key", "SG.", r"[\w-]{22}\.[\w-]{43}"),
    _begins("pypi-token", "pypi-", r"AgE[\w-]{70,}"),
    _begins("square-oauth-secret", "sq0csp-", r"[\w-]{43}"),
    _begins("twilio-api-key", "AC", r"[a-z0-9]{32}\b"),
    _begins("twilio-api-key", "SK", r"[a-z0-9]{32}\b"),
    SecretShape("telegram-bot-token", r"(?<!\w)\d{8,10}:[\w-]{35}(?!\w)", ":"),
    SecretShape("mailchimp-access-key", r"(?<!\w)[0-9a-z]{32}-us\d{1,2}\b", "-us"),
    SecretShape("discord-bot-token", r"(?<!\w)[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27}", "."),
    SecretShape("slack-webhook", r"hooks\.slack\.com/(?P<secret>[\w/]{30,})", "hooks.slack.com"),
    *(
        _begins("api-key", prefix, rf"(?:{format}(?![\w-])|{_LIKE_A_KEY})")
        for format, prefixes in _FORMATS
        for prefix in prefixes.split()
    ),
)

_PRIVATE_KEY = SecretShape(
    "private-key",
    # Headers and the last line may be missing.
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:\s|\\{1,3}[nr]){0,4}[A-Z][\w-]{0,40}: [^\n\\]{0,200}){0,9}"
    r"(?:[A-Za-z0-9+/=]|\\{1,3}[nr]|\s){16,20000}(?:-----END [A-Z0-9 ]{0,40}-----)?",
    "PRIVATE KEY",
)

_KEY = r"[ _-]?key"

SECRET_NAMES = (
    rf"(?:(?<=a)pi{_KEY}|(?<=a)ccess{_KEY}|(?<=a)uth{_KEY}|(?<=a)ccount{_KEY}"
    rf"|(?<=s)ecret(?:[ _-]?access)?(?:{_KEY})?|(?<=s)igning{_KEY}|(?<=c)lient-key-data"
    r"|(?<=p)asswo?r?d|(?<=p)assphrase|(?<=t)oken|(?<=c)redentials?"
    rf"|(?<=e)ncryption{_KEY})"
)
"""The name of a secret after its first letter."""

_QUOTE = r"(?:\\{0,3}[\"']|&quot;|%22)?"

_HAS_DIGIT = r"(?=[^\s\"',;]{0,64}\d)"

_VALUE = r"[A-Za-z0-9_/+.!@#$%^&*=~-]"

_BY_NAME = (
    SecretShape("bearer-token", r"[Bb](?<!\w[Bb])(?i:earer )(?P<secret>[\w.~+/=-]{20,})"),
    SecretShape(
        "authorization",
        rf"(?i:authorization){_QUOTE}\s{{0,4}}[:=]\s{{0,4}}{_QUOTE}(?i:basic|token|digest|apikey)"
        r"\s{1,4}(?P<secret>[\w.~+/=-]{12,})",
        "uthorization",
    ),
    SecretShape("cookie", r"[Cc]ookie: {0,4}(?P<secret>[^\s=;]{1,64}=[^\n\"']{16,4000})", "ookie:"),
    SecretShape("url-password", r"://[^\s:/@\"']{0,64}:(?P<secret>[^\s:/@\"']{1,128})@", "://"),
    SecretShape(
        "url-signature",
        r"[?&](?:sig|key|[Ss]ignature|X-(?:Amz|Goog)-Signature)=(?P<secret>[\w%.~+/=-]{32,})",
        "=",
    ),
    SecretShape(
        "command-password",
        r"curl\b[^\n|;]{0,100}? (?:-u|--user)[ =]{0,2}[\"']?[^\s:\"']{1,64}:"
        r"(?P<secret>[^\s\"']{4,128})",
        "curl",
    ),
    # Passwords may be shorter than keys.
    SecretShape(
        "assigned-secret",
        rf"[pP](?i:(?<=p)(?:ass(?:wo?r?d|phrase)?|wd)){_QUOTE}\s{{0,4}}[:=]\s{{0,4}}{_QUOTE}"
        rf"(?P<secret>(?![/~]){_HAS_DIGIT}{_VALUE}{{6,200}})",
    ),
    # JSON inside JSON has escaped quotes.
    SecretShape(
        "assigned-secret",
        rf"[aAcCeEsSpPtT](?i:{SECRET_NAMES}{_QUOTE}\s{{0,4}}(?:[:=]|%3[dD])\s{{0,4}}{_QUOTE})"
        rf"(?P<secret>{_HAS_DIGIT}{_VALUE}{{12,4000}})",
    ),
)

SHAPES = (_PRIVATE_KEY, *_BY_ISSUER, *_BY_NAME)
"""The surest shapes come first: redactions are not searched again."""

# -------------------------------------------------------------- redact

_SECRET_NAME = re.compile(f"[acepst]{SECRET_NAMES}$", re.IGNORECASE)

_REDACTION = re.compile(r"(\[secret:[\w-]+:[0-9a-f]{8}\])")


class Redactor:
    """Replace secrets by `[secret:KIND:HASH]`.

    Equal secrets of one namespace get equal hashes.

    The namespace is the hash's key, so two tenants' redactions cannot be compared. The hash is too
    short to find the secret.
    """

    def __init__(self, namespace: str = "default") -> None:
        self._key = hashlib.blake2b(namespace.encode("utf-8", "replace")).digest()[:32]

    def redact(self, values: Sequence[T]) -> tuple[tuple[T, ...], int]:
        """Redact messages or texts; return them with the number of secrets.

        Values without secrets stay the same objects.
        """
        pairs = [(value, self._redact_value(value)) for value in values]
        result = tuple(old if new == old else new for old, new in pairs)
        changed = (pair for pair in pairs if pair[0] != pair[1])
        return result, sum(redactions_in(new) - redactions_in(old) for old, new in changed)

    def _redact_value(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: self._redact_value(item, str(name)) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._redact_value(item, key) for item in value]
        # Ids must stay equal; files are not searched.
        if not isinstance(value, str) or key in _STRUCTURE_KEYS or is_payload(value):
            return value
        if _SECRET_NAME.search(key) and not value.startswith("[secret:"):
            # In `{"password": "..."}` the key names the secret.
            return self._redact_text(f"{key}={value}").partition("=")[2]
        return self._redact_text(value)

    def _redact_text(self, text: str) -> str:
        for kind, pattern, hint in _patterns():
            if hint in text:
                # Skip earlier redactions.
                parts = _REDACTION.split(text) if "[secret:" in text else [text]
                replace = functools.partial(self._replace, kind)
                parts[::2] = [pattern.sub(replace, part) for part in parts[::2]]
                text = "".join(parts)
        return text

    def _replace(self, kind: str, match: re.Match[str]) -> str:
        whole = match[0]
        secret = match["secret"] if "secret" in match.re.groupindex else whole
        data = secret.encode("utf-8", "surrogatepass")
        short = hashlib.blake2s(data, key=self._key, digest_size=4).hexdigest()
        return whole.replace(secret, f"[secret:{kind}:{short}]")


_STRUCTURE_KEYS = frozenset("role id tool_call_id tool_use_id call_id type name signature".split())
"""Keys whose values are no secrets."""


def redactions_in(value: Any) -> int:
    """Return the number of redactions in a value."""
    if isinstance(value, str):
        return len(_REDACTION.findall(value)) if "[secret:" in value else 0
    inner = value.values() if isinstance(value, dict) else value
    return sum(map(redactions_in, inner)) if isinstance(inner, Iterable) else 0


def wants_redaction(
    config: CompressorConfig, model: str | None = None, *, on_disk: bool = False
) -> bool:
    """Return `redact_secrets`, else whether messages reach a disk or another model."""
    if config.redact_secrets is not None:
        return config.redact_secrets
    is_other = (model or config.auxiliary_model) not in (None, config.model)
    others = (config.fallback_models, config.auxiliary_api_base, config.store_url)
    return is_other or on_disk or any(others)


@functools.lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[str, re.Pattern[str], str], ...]:
    return tuple((kind, re.compile(pattern), hint) for kind, pattern, hint in SHAPES)

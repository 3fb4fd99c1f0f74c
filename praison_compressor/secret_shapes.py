"""What keys, tokens and passwords look like in texts: patterns that need no library.

Three ways to know one: by the letters its issuer puts in front, by the block it stands in, or by
the name that it is given. A value is masked for its name only with a digit in it: that tells a
secret from the name of one, as code is full of.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["NAMES", "SHAPES", "Shape"]


class Shape(NamedTuple):
    """One kind of secret. The group `secret` is what is masked, else all that is found."""

    kind: str
    pattern: str
    hint: str = ""
    """What stands in every text that has one: looking for it costs a hundredth of a search."""


def _begins(kind: str, prefix: str, rest: str) -> Shape:
    """A key of that beginning: not inside a word, but also after a line break escaped in JSON.

    The prefix comes first, so that a search passes over text without it at the speed of C.
    """
    pattern = rf"{prefix}(?:(?<!\w{prefix})|(?<=\\[bfnrt]{prefix})){rest}"
    return Shape(kind, pattern, prefix.replace("\\", ""))


_BY_ISSUER = (
    _begins("jwt", "eyJ", r"[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{5,}")._replace(hint=".eyJ"),
    _begins("anthropic-key", "sk-ant-", r"[\w-]{20,}"),
    _begins("openai-key", "sk-", r"(?:proj-|svcacct-|or-v1-)?[A-Za-z0-9_-]{20,}"),
    _begins("groq-key", "gsk_", r"\w{40,}"),
    _begins("xai-key", "xai-", r"\w{60,}"),
    _begins("perplexity-key", "pplx-", r"\w{40,}"),
    _begins("replicate-token", "r8_", r"\w{30,}"),
    _begins("tavily-key", "tvly-", r"[\w-]{20,}"),
    _begins("google-key", "AIza", r"[\w-]{35}"),
    _begins("google-client-secret", "GOCSPX-", r"[\w-]{20,}"),
    _begins("google-access-token", r"ya29\.", r"[\w.-]{30,}"),
    _begins("github-token", "gh", r"[pousr]_[A-Za-z0-9]{36,}"),
    _begins("github-token", "github_pat_", r"\w{40,}"),
    _begins("gitlab-token", "gl", r"(?:pat|dt|rt|ptt|ft|cbt|oas|soat|agent)-[\w.-]{20,}"),
    _begins("aws-key", "A", r"(?:3T[A-Z0-9]|BIA|CCA|KIA|SIA)[0-9A-Z]{16}\b"),
    _begins("slack-token", "xox", r"[abposr]-[A-Za-z0-9-]{10,}"),
    _begins("slack-token", "xapp-", r"[A-Za-z0-9-]{20,}"),
    # Not the library's pattern: its `.+` reads a long line once for every "//" in it.
    _begins("npm-token", "npm_", r"[A-Za-z0-9]{36,}"),
    _begins("hugging-face-token", "hf_", r"[A-Za-z0-9]{30,}"),
    _begins("stripe-webhook-secret", "whsec_", r"[A-Za-z0-9+/=]{24,}"),
    Shape("stripe-access-key", r"\b[sr]k_(?:live|test)_[0-9a-zA-Z]{16,}", "k_"),
    Shape("digitalocean-token", r"\bdo[opr]_v1_[0-9a-f]{64}", "_v1_"),
    _begins("databricks-token", "dapi", r"[0-9a-f]{32}"),
    _begins("vault-token", r"hvs\.", r"[\w-]{24,}"),
    _begins("shopify-token", "shp", r"(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _begins("linear-key", "lin_api_", r"\w{32,}"),
    _begins("notion-token", "ntn_", r"\w{40,}"),
    _begins("figma-token", "figd_", r"[\w-]{30,}"),
    _begins("atlassian-token", "ATATT3", r"[\w=-]{60,}"),
    _begins("doppler-token", r"dp\.", r"(?:pt|st|ct|sa|scim|audit)\.[\w.]{40,}"),
    _begins("age-key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{50,}"),
    _begins("new-relic-key", "NRAK-", r"[0-9A-Z]{20,}"),
    _begins("sentry-token", "sntry", r"[su]_[\w+/=]{40,}"),
    _begins("supabase-token", "sbp_", r"[0-9a-f]{40,}"),
    _begins("planetscale-token", "pscale_", r"(?:tkn|pw|oauth)_[\w.-]{30,}"),
    Shape("terraform-token", r"\b\w{14}\.atlasv1\.[\w=-]{60,}", ".atlasv1."),
    Shape("slack-webhook", r"hooks\.slack\.com/(?P<secret>[\w/]{30,})", "hooks.slack.com"),
)

_BEGINS = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_BASE64 = r"(?:[A-Za-z0-9+/=]|\\{0,3}[nr]|\s)"
_BLOCKS = (
    # First whole ones, whatever headers they have; then what is left of one whose end was cut off.
    Shape(
        "private-key",
        rf"{_BEGINS}(?:(?!-----)[\s\S]){{16,20000}}-----END [A-Z0-9 ]{{0,40}}-----",
        "PRIVATE KEY",
    ),
    Shape("private-key", rf"{_BEGINS}{_BASE64}{{40,20000}}", "PRIVATE KEY"),
    # The same in base64, as Kubernetes writes it.
    Shape(
        "private-key",
        r"LS0tLS1CRUdJTi(?:BSU0EgUFJJVkFURS|BQUklWQVRFIE|BFQyBQUklWQVRF|BPUEVOU1NIIFBSSVZB)"
        r"[\w+/=]{20,}",
        "LS0tLS1CRUdJTi",
    ),
)

_KEY = r"[ _-]?key"
NAMES = (
    rf"(?:(?<=a)pi{_KEY}|(?<=a)ccess{_KEY}|(?<=a)uth{_KEY}|(?<=a)ccount{_KEY}"
    rf"|(?<=s)ecret(?:[ _-]?access)?(?:{_KEY})?|(?<=s)igning{_KEY}"
    r"|(?<=p)asswo?r?d|(?<=p)assphrase|(?<=t)oken|(?<=c)redentials?"
    rf"|(?<=e)ncryption{_KEY})"
)
"""How the name of a secret ends, behind its first letter."""
_QUOTE = r"(?:\\{0,3}[\"']|&quot;|%22)?"
_HAS_DIGIT = r"(?=[^\s\"',;]{0,64}\d)"
_VALUE = r"[A-Za-z0-9_/+.!@#$%^&*=~-]"
_BY_NAME = (
    Shape("bearer-token", r"[Bb](?<!\w[Bb])(?i:earer )(?P<secret>[\w.~+/=-]{20,})"),
    Shape(
        "authorization",
        rf"(?i:authorization){_QUOTE}\s{{0,4}}[:=]\s{{0,4}}{_QUOTE}(?i:basic|token|digest|apikey)"
        r"\s{1,4}(?P<secret>[\w.~+/=-]{12,})",
        "uthorization",
    ),
    Shape("cookie", r"[Cc]ookie: {0,4}(?P<secret>[^\s=;]{1,64}=[^\n\"']{16,4000})", "ookie:"),
    Shape("url-password", r"://[^\s:/@\"']{0,64}:(?P<secret>[^\s:/@\"']{1,128})@", "://"),
    Shape(
        "url-signature",
        r"[?&](?:sig|key|[Ss]ignature|X-(?:Amz|Goog)-Signature)=(?P<secret>[\w%.~+/=-]{32,})",
        "=",
    ),
    Shape(
        "command-password",
        r"curl\b[^\n|;]{0,100}? (?:-u|--user)[ =]{0,2}[\"']?[^\s:\"']{1,64}:"
        r"(?P<secret>[^\s\"']{4,128})",
        "curl",
    ),
    Shape("command-password", r"sshpass {1,4}-p {0,4}[\"']?(?P<secret>[^\s\"']{4,128})", "sshpass"),
    Shape(
        "command-password",
        r"mysql\w{0,8}\b[^\n|;]{0,100}? -p(?=\w{0,64}\d)(?P<secret>[^\s\"']{4,128})",
        "mysql",
    ),
    Shape(
        "netrc",
        r"machine\s{1,4}\S{1,253}\s{1,4}login\s{1,4}\S{1,64}\s{1,4}password\s{1,4}(?P<secret>\S{4,128})",
        "machine",
    ),
    Shape("connection-string", r";\s?(?i:pwd)\s?=\s?(?P<secret>(?![/~])[^\s;\"']{6,128})", ";"),
    Shape("docker-auth", r"\"auth\\{0,3}\":\s?\\{0,3}\"(?P<secret>[A-Za-z0-9+/=]{12,})", "auth"),
    # A password is shorter than a key.
    Shape(
        "assigned-secret",
        rf"[pP](?i:(?<=p)ass(?:wo?r?d|phrase)?){_QUOTE}\s{{0,4}}[:=]\s{{0,4}}{_QUOTE}"
        rf"(?P<secret>{_HAS_DIGIT}{_VALUE}{{8,200}})",
    ),
    # JSON within JSON escapes its quotes.
    Shape(
        "assigned-secret",
        rf"[aAcCeEsSpPtT](?i:{NAMES}{_QUOTE}\s{{0,4}}(?:[:=]|%3[dD])\s{{0,4}}{_QUOTE})"
        rf"(?P<secret>{_HAS_DIGIT}{_VALUE}{{12,200}})",
    ),
)

SHAPES = (*_BLOCKS, *_BY_ISSUER, *_BY_NAME)
"""Every shape, the surest first: what one has masked the next ones pass over."""

"""Count tokens of images by the providers' published formulas.

Sizes are read from inline data.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

from .models import bare_names

Size = tuple[int, int]

UNKNOWN_SIZE: Size = (1024, 1024)
"""Assumed for a linked image (we download nothing) and for an unreadable format."""

_DECODED_CHARS = 400_000
"""Base64 characters decoded: in a camera's JPEG the preview precedes the size."""


@dataclass(frozen=True)
class ImageRule:
    """Price of an image: tiles of 512, patches of 32, or area."""

    base: int = 85
    tile: int = 170
    per_patch: float = 0.0
    pixels_per_token: int = 0

    def count(self, size: Size | None, detail: str | None) -> int:
        """Return the tokens of an image; None counts as 1024 x 1024."""
        width, height = size or UNKNOWN_SIZE
        if self.per_patch:
            return ceil(_patches(width, height) * self.per_patch)
        if self.pixels_per_token:
            width, height = _shrink(width, height, 1568, max(width, height))
            return min(1600, ceil(width * height / self.pixels_per_token))
        if detail == "low":
            return self.base
        return self.base + self.tile * _tiles(width, height)


_IMAGE_RULES = (
    (re.compile(r"gpt-4o-mini"), ImageRule(2833, 5667)),
    (re.compile(r"gpt-4\.1-mini|gpt-5-mini"), ImageRule(per_patch=1.62)),
    (re.compile(r"gpt-4\.1-nano|gpt-5-nano"), ImageRule(per_patch=2.46)),
    (re.compile(r"o4-mini"), ImageRule(per_patch=1.72)),
    (re.compile(r"gpt-5"), ImageRule(70, 140)),
    (re.compile(r"o[13](?![a-z0-9])"), ImageRule(75, 150)),
    (re.compile(r".*claude"), ImageRule(pixels_per_token=750)),
)


def image_rule(model: str | None) -> ImageRule:
    """Return the rule of the model's family, else that of gpt-4o."""
    names = bare_names(model)
    for pattern, rule in _IMAGE_RULES:
        if any(pattern.match(name) for name in names):
            return rule
    return ImageRule()


def _shrink(width: int, height: int, limit: int, side: int) -> Size:
    scale = min(1.0, limit / max(side, 1))
    return max(1, int(width * scale)), max(1, int(height * scale))


def _tiles(width: int, height: int) -> int:
    width, height = _shrink(width, height, 2048, max(width, height))
    width, height = _shrink(width, height, 768, min(width, height))
    return ceil(width / 512) * ceil(height / 512)


def _patches(width: int, height: int) -> int:
    patches = ceil(width / 32) * ceil(height / 32)
    if patches <= 1536:
        return patches
    # Shrink to 1536 patches, then until width or height is a whole number of patches.
    scale = sqrt(32 * 32 * 1536 / (width * height))
    wide, high = width * scale / 32, height * scale / 32
    scale *= min(int(wide) / wide, int(high) / high) if wide >= 1 and high >= 1 else 1
    return min(1536, ceil(width * scale / 32) * ceil(height * scale / 32))


# ---------------------------------------------------------------- size
def image_size(url: Any) -> Size | None:
    """Return width and height of an inline image (`data:`, base64), or None."""
    if not isinstance(url, str) or url.startswith(("http:", "https:", "file:")):
        return None
    data = url.partition("base64,")[2] if url.startswith("data:") else url
    start = data[:_DECODED_CHARS]
    try:
        image = base64.b64decode(start[: len(start) // 4 * 4])
        if image.startswith(b"\x89PNG"):
            width, height = struct.unpack_from(">II", image, 16)
            return width, height
        return _jpeg_size(image) if image.startswith(b"\xff\xd8") else None
    except (binascii.Error, ValueError, struct.error, IndexError):
        return None


def _jpeg_size(data: bytes) -> Size | None:
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None


def size_and_detail(part: Mapping[str, Any]) -> tuple[Size | None, str | None]:
    """Return size and detail of an image part, of any provider's shape."""
    image = part.get("image_url") or part.get("source") or part
    if not isinstance(image, Mapping):
        return image_size(image), part.get("detail")
    source = image.get("url") or image.get("data")
    return image_size(source), image.get("detail") or part.get("detail")

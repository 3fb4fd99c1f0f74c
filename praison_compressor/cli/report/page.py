"""A life rendered as one page: no network, no file beside it, nothing of a transcript as markup."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ...messages.display import clean, when
from .life import Life, Point, lines

__all__ = [
    "render",
]


def render(life: Life) -> str:
    """The page, as HTML."""
    environment = Environment(
        loader=PackageLoader("praison_compressor.cli.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(clean=clean, number=_number, when=when, share=_share, money=_money)
    template = environment.get_template("page.html")
    return template.render(
        life=life,
        last=life.points[-1] if life.points else Point(0, 0, 0),
        largest=max((point.view for point in life.points), default=0),
        columns=_columns(life),
        standing=[card for card in life.cards if card.standing],
        folded=[card for card in life.cards if not card.standing],
        family=list(lines(life.epochs)),
        style=_part("templates/page.css") + _part("vendor/uPlot.min.css"),
        library=_part("vendor/uPlot.iife.min.js"),
        script=_part("templates/page.js"),
    )


def _part(name: str) -> Markup:
    """A file of ours: the only thing on the page that is not escaped."""
    return Markup((files("praison_compressor.cli.report") / name).read_text(encoding="utf-8"))


def _columns(life: Life) -> dict[str, Any]:
    """The chart's data, column by column."""
    return {
        "messages": [point.messages for point in life.points],
        "whole": [point.whole for point in life.points],
        "view": [point.view for point in life.points],
        "step": "request" if life.requests else "step",
        "all": "whole transcript" if life.requests else "all that was archived",
        "now": "what was sent" if life.requests else "what stands for it",
        "compressed": [n for n, point in enumerate(life.points) if point.compressed],
    }


def _number(value: int) -> str:
    return f"{value:,}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def _money(value: float | None) -> str:
    if value is None:
        return "-"
    return f"${value:,.2f}" if value >= 1 else f"${value:.4f}"

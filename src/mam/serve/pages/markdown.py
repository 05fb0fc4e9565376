"""Markdown of prompts and agents as inert HTML. Pure.

The parser passes no HTML of the text through, makes no images, and links only to http, https and mailto. Every link
opens outside of the page and does not tell where it came from. Characters that hide or reverse text become visible.
"""

from __future__ import annotations

from functools import lru_cache

from markupsafe import Markup

from mam.util.safe_text import many_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from markdown_it import MarkdownIt
    from markdown_it.token import Token

TEXT_LIMIT = 100_000
"""Characters of one text that are rendered; a longer one is shown as plain text."""
NESTING_LIMIT = 20
_SCHEMES = ("http:", "https:", "mailto:")


def to_html(text: str) -> Markup:
    """The whole text. What is too long to be read as a document is shown as it is."""
    shown = many_lines(text.replace("\r\n", "\n"))
    if len(shown) > TEXT_LIMIT:
        return Markup('<pre class="plain">{}</pre>').format(shown)
    return Markup(_parser().render(shown))  # noqa: S704 - the parser escapes every text; tests/serve/pages has the corpus


@lru_cache(1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "maxNesting": NESTING_LIMIT})
    parser.enable(["table", "strikethrough"]).disable(["image", "html_block", "html_inline"])
    parser.validateLink = _is_harmless  # type: ignore[method-assign, assignment]
    parser.add_render_rule("link_open", _link_open)
    for level in ("heading_open", "heading_close"):
        parser.add_render_rule(level, _heading)
    return parser


def _is_harmless(address: str) -> bool:
    """Only absolute addresses: a relative one would be an act or a page of mam itself."""
    return address.strip().lower().startswith(_SCHEMES)


def _link_open(_renderer: Any, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    address = str(tokens[index].attrGet("href") or "")
    return str(Markup('<a href="{}" rel="noopener noreferrer nofollow" target="_blank">').format(address))


def _heading(_renderer: Any, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    """The headings of a page are mam's own; those of a text are bold paragraphs."""
    return '<p class="heading">' if tokens[index].nesting == 1 else "</p>"

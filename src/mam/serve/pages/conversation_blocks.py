"""A conversation as blocks of a page. Pure.

What a tool returned, what the agent thought and what it changed are folded; the heading of each says how it went. A
later item with the same id replaces the earlier one, as on a terminal.
"""

from __future__ import annotations

from markupsafe import Markup

from mam.conversation.items import (
    AGENT,
    DENIED,
    ERROR,
    FAILED,
    INFO,
    RUNNING,
    SUBAGENT,
    USER,
    Asked,
    Began,
    Changed,
    Cost,
    Ended,
    Line,
    Notice,
    Plan,
    Said,
    Thought,
    Used,
)
from mam.serve.pages import ansi, markdown
from mam.serve.pages.diffs import ADDED, HUNK, REMOVED, SAME, DiffLine
from mam.util.figures import cost_words, duration
from mam.util.frozen import Frozen
from mam.util.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mam.conversation.items import Item

BLOCKS_SHOWN, TEXT_LIMIT, TARGET_LIMIT, PATCH_LINES = 400, 20_000, 300, 400
_MARKS = {RUNNING: "running", DENIED: "denied", FAILED: "failed"}


class Block(Frozen):
    """One block. `kind` selects its template: text, tool, change, thought, plan, notice, asked, line or end."""

    kind: str
    who: str = AGENT
    verb: str = ""
    target: str = ""
    state: str = "done"
    facts: tuple[str, ...] = ()
    """Short words at the right: the exit code, how long it took, the last line of the output."""
    body: Markup = Markup()
    lines: tuple[DiffLine, ...] = ()
    added: int | None = None
    removed: int | None = None
    steps: tuple[tuple[str, str], ...] = ()
    """Of a plan: state and text."""


class ConversationBlocks(Frozen):
    blocks: tuple[Block, ...]
    left_out: int = 0
    """Blocks before the first one that is shown."""


def blocks_of(items: Iterable[Item], workdir: str | None = None) -> ConversationBlocks:
    """Paths in `workdir` are shown relative to it."""
    prefix = f"{workdir.rstrip('/')}/" if workdir else None
    found: dict[str, Item] = {}
    cost: Cost | None = None
    for at, item in enumerate(items):
        if isinstance(item, Cost):
            cost = item
            continue
        if isinstance(item, Ended) and cost is not None:
            item, cost = item.replace(text=_end_text(item, cost)), None
        key = _key(item, at)
        known = found.get(key)
        if isinstance(item, Changed) and isinstance(known, Changed) and known.path != item.path:
            key = f"{key} {item.path}"  # one use of a tool may change several files
        found[key] = item
    shown = [*found.values()][-BLOCKS_SHOWN:]
    blocks = [block for item in shown if (block := _block(item, prefix)) is not None]
    return ConversationBlocks(blocks=tuple(blocks), left_out=len(found) - len(shown))


def last_said(items: Iterable[Item]) -> str:
    """The agent's last sentence, as one line; empty if it said nothing."""
    text = ""
    for item in items:
        if isinstance(item, Said) and item.by == AGENT and item.text.strip():
            text = item.text
    paragraphs = [part.strip() for part in text.strip().split("\n\n") if part.strip()]
    last = " ".join(paragraphs[-1].split()) if paragraphs else ""
    return one_line(last if len(last) <= TARGET_LIMIT else f"{last[:TARGET_LIMIT]}…")


def _key(item: Item, at: int) -> str:
    if isinstance(item, Used | Changed):
        return f"tool {item.id}"
    return "plan" if isinstance(item, Plan) else f"{at}"


def _block(item: Item, prefix: str | None) -> Block | None:
    match item:
        case Said():
            return Block(kind="text", who=item.by, body=_text(item.text)) if item.text.strip() else None
        case Used():
            return _used(item, prefix)
        case Changed():
            return _changed(item, prefix)
        case Thought():
            first = _first_line(item.text.strip().lstrip("*# "))
            return Block(kind="thought", target=first or "…", body=_text(item.text)) if item.text.strip() else None
        case Plan():
            steps = tuple((step.state, one_line(step.text)) for step in item.steps[:100])
            done = sum(state == "done" for state, _ in steps)
            return Block(kind="plan", facts=(f"{done} of {len(steps)} done",), steps=steps)
        case Notice():
            state = {ERROR: "failed", INFO: "info"}.get(item.level, "warning")
            return Block(kind="notice", state=state, body=_text(item.text))
        case Asked():
            return Block(kind="asked", body=_text(item.question), facts=tuple(map(one_line, item.choices[:20])))
        case Line():
            left = (f"{item.left_out:,} more bytes",) if item.left_out else ()
            return Block(kind="line", body=ansi.to_html(item.text[:TEXT_LIMIT]), facts=left)
        case Ended():
            return Block(kind="end", state="done" if item.ok else "failed", target=one_line(item.text[:2_000]))
        case Began():
            facts = tuple(one_line(fact) for fact in (item.model, item.version) if fact)
            return Block(kind="began", facts=facts) if facts else None
    return None


def _used(item: Used, prefix: str | None) -> Block:
    state = _MARKS.get(item.state, "failed" if item.exit_code else "done")
    facts = [] if item.exit_code in (None, 0) else [f"exit {item.exit_code}"]
    lines = [line for line in item.output.split("\n") if line.strip()]
    if lines and state == "done":
        last = one_line(lines[-1].strip())
        is_telling = item.verb == "ran" and len(last) <= 48 and "\x1b" not in lines[-1]
        facts.append(last if is_telling else f"{len(lines):,} line{'s' * (len(lines) != 1)}")
    if item.seconds is not None and item.seconds >= 1:
        facts.append(duration(item.seconds))
    output = item.output.strip("\n")
    whole = item.target if "\n" in item.target.strip() or len(item.target) > TARGET_LIMIT else ""
    shown = "\n".join(part for part in (f"$ {whole.strip()}" if whole else "", _ends_of(output)) if part)
    verb = "running" if (item.verb, state) == ("ran", "running") else one_line(item.verb)[:40]
    return Block(
        kind="tool", verb=verb, target=_first_line(_short(item.target, prefix)), state=state,
        facts=tuple(facts), body=ansi.to_html(shown) if shown else Markup(),
    )  # fmt: skip


def _changed(item: Changed, prefix: str | None) -> Block:
    verb = {"create": "wrote", "delete": "deleted"}.get(item.action, "changed")
    return Block(
        kind="change", verb=verb, target=one_line(_short(item.path, prefix))[:TARGET_LIMIT], added=item.added,
        removed=item.removed, lines=patch_lines(item.patch),
    )  # fmt: skip


def patch_lines(patch: str) -> tuple[DiffLine, ...]:
    """The lines of a patch without file headers, which has no line numbers that can be trusted."""
    kinds = {"+": ADDED, "-": REMOVED, "@": HUNK}
    found = [
        DiffLine(
            kind=kinds.get(line[:1], SAME), text=one_line((line if line[:1] == "@" else line[1:]).expandtabs(4)[:1000])
        )
        for line in patch.split("\n")[: PATCH_LINES + 1]
        if line
    ]
    if len(found) > PATCH_LINES:
        found[-1] = DiffLine(kind=HUNK, text="… the rest is in the diff of the job")
    return tuple(found)


def _text(text: str) -> Markup:
    if len(text) <= TEXT_LIMIT:
        return markdown.to_html(text)
    return markdown.to_html(f"{text[:TEXT_LIMIT]}\n\n… {len(text) - TEXT_LIMIT:,} more characters")


def _ends_of(output: str) -> str:
    """The beginning and the end of a long output."""
    if len(output) <= TEXT_LIMIT:
        return output
    half = TEXT_LIMIT // 2
    return f"{output[:half]}\n\n… {len(output) - TEXT_LIMIT:,} characters are left out …\n\n{output[-half:]}"


def _end_text(item: Ended, cost: Cost) -> str:
    return " · ".join([part for part in (item.text, *cost_words(cost.as_dict())) if part])


def _short(target: str, prefix: str | None) -> str:
    return target.removeprefix(prefix) if prefix is not None else target


def _first_line(text: str) -> str:
    first, _, more = text.strip().partition("\n")
    cut = first if len(first) <= TARGET_LIMIT else f"{first[:TARGET_LIMIT]}…"
    return one_line(cut.rstrip()) + (" …" if more.strip() else "")


WHO = {AGENT: "", SUBAGENT: "sub-agent", USER: "you"}

"""The parts of `mam watch`, each by itself: keys, the layout, and what is read from a large store."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from mam.cli.watch.job_list import JobList
from mam.cli.watch.keys import DOWN, ENTER, ESCAPE, PASTE, PASTED, UP, flush_keys, parse_keys
from mam.cli.watch.layout import MORE, TITLE, Item, Section, fit_sections
from mam.cli.watch.model import KEPT_ENDED, Model
from mam.cli.watch.screen import HELP
from mam.jobs.draft import draft_job
from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.memory import MemoryStore
from mam.stores.port import Entry, Query

if TYPE_CHECKING:
    from collections.abc import Iterator

MANY = 10_000
KEYS = st.lists(st.sampled_from([b"j", b"\x1b[A", b"\x1bOB", b"\r", b"\x1b[5~", b"q", b"\xc3\xa9", b"\x1b[99;5u"]))


# -- keys ------------------------------------------------------------------------------------------------------------


def test_the_keys_of_a_terminal_are_parsed() -> None:
    assert parse_keys(b"\x1b[A\x1bOBj\r\n\x1b[1;5Z?") == ([UP, DOWN, "j", ENTER, ENTER, "?"], b"")
    assert parse_keys("ü日\U0001f642".encode() + b"\xe6\x97") == (["ü", "日", "\U0001f642"], b"\xe6\x97")
    assert parse_keys(b"\xff\xc3a\x80\xed\xa0\x80b") == (["a", "b"], b""), "no UTF-8"
    assert parse_keys(b"\x1b[200~a\x1b[201~") == ([PASTE, "a", PASTED], b"")


def test_escape_is_known_when_nothing_follows() -> None:
    keys, rest = parse_keys(b"q\x1b")

    assert (keys, rest, flush_keys(rest)) == (["q"], b"\x1b", [ESCAPE])
    assert flush_keys(b"\x1b[") == []


@given(KEYS, st.integers(0, 40))
def test_keys_may_come_in_pieces(typed: list[bytes], cut: int) -> None:
    whole = b"".join(typed)
    first, rest = parse_keys(whole[:cut])
    second, left = parse_keys(rest + whole[cut:])

    assert (first + second, left) == parse_keys(whole)


@given(st.binary())
def test_no_bytes_are_too_much(data: bytes) -> None:
    _, rest = parse_keys(data)

    assert data.endswith(rest)


# -- layout ----------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 300), min_size=1, max_size=6), st.integers(20, 80))
def test_every_section_has_its_part_of_the_screen(counts: list[int], height: int) -> None:
    found = [
        Section(
            name=f"{at}", count=count, lines=count,
            items=[Item(kind="row", section=f"{at}", key=f"{at}/{row}") for row in range(min(count, height))],
        )
        for at, count in enumerate(counts)
    ]  # fmt: skip
    lines = fit_sections(found, height, set())

    assert len(lines) <= height
    assert [line.section for line in lines if line.kind == TITLE] == [section.name for section in found]
    for section in found:
        shown = [line for line in lines if line.section == section.name]
        hidden = sum(line.count for line in shown if line.kind == MORE)
        assert sum(line.kind == "row" for line in shown) + hidden == section.count


# -- a large store ---------------------------------------------------------------------------------------------------


class Counting(MemoryStore):
    """A real store that counts what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()

    def select(self, query: Query) -> Iterator[Any]:
        self.asked["select"] += 1
        return super().select(query)

    def get(self, job_id: str) -> Any:
        self.asked["get"] += 1
        return super().get(job_id)

    def newest(self, job_id: str) -> Any:
        self.asked["newest"] += 1
        return super().newest(job_id)


def crowd(count: int) -> Iterator[Entry]:
    """Journal entries of registered jobs, half of them with a start time."""
    for at in range(count):
        status = Status.WAITING if at % 2 else Status.PENDING
        draft = draft_job(job_id=f"crowd{at}", prompt=f"number {at}", agent="shell", label=f"label {at % 7}")
        later = {"waiting_for": "time", "due_at": "2100-01-01T00:00:00.000Z"} if at % 2 else {}
        job = draft.replace(
            number=at + 1000,
            status=status,
            created_at="2026-01-01T00:00:00Z",
            updated_at="2026-01-01T00:00:00Z",
            **later,
        )
        yield Entry(offset="", number=at, job_id=job.job_id, fields=job.to_json(), lines=())


def test_ten_thousand_jobs_cost_no_more_reading_than_ten() -> None:
    store = Counting()
    registry = Registry(store)
    for at in range(50):
        registry.register(prompt=f"mine {at}", agent="shell", label="mine")
    model = Model(store, Query())
    model.load()
    for entry in crowd(MANY):
        model.apply(entry)
    assert len(model.queued) + len(model.open) == MANY + 50
    listing, now, cursor = JobList(registry), store.clock.now(), store.end_offset()
    listing.draw(model, [], now, 100, 30)

    store.asked.clear()
    for _ in range(50):
        job = registry.pick("mine", owner="anna")
        assert job is not None
        registry.complete(job.job_id, attempt=job.attempt)
        for entry in store.entries(cursor):
            cursor = entry.offset
            model.apply(entry)
            listing.forget({entry.job_id})
        lines = listing.draw(model, [], now, 100, 30)

    assert len(lines) <= 30
    assert len(model.done) == 50
    assert store.asked["select"] == 0
    assert store.asked["get"] + store.asked["newest"] <= 50 * 2


def test_the_model_equals_the_store() -> None:
    """Whatever happens, following the journal leads to what reading everything anew would."""
    store = MemoryStore()
    registry = Registry(store)
    followed = Model(store, Query())
    cursor = store.end_offset()
    ids = [registry.register(prompt=f"p{at}", agent="shell", priority=at % 3).job.job_id for at in range(12)]
    last = registry.register(prompt="last", agent="human", after=ids[:2]).job.job_id
    for at in range(8):
        job = registry.pick("shell", owner="o")
        assert job is not None
        match at % 4:
            case 0:
                registry.complete(job.job_id, attempt=job.attempt)
            case 1:
                registry.fail(job.job_id, attempt=job.attempt, reason="no")
                registry.retry(job.job_id)
            case 2:
                registry.publish(job.job_id, event="progress", detail="half", attempt=job.attempt)
            case 3:
                registry.fail(job.job_id, attempt=job.attempt, reason="later", retryable=True)
    registry.cancel(last)
    for entry in store.entries(cursor):
        followed.apply(entry)
    read = Model(store, Query())
    read.load()

    for kept in ("queued", "open", "failed", "done", "last_events"):
        assert getattr(followed, kept) == getattr(read, kept), kept
    assert followed.retried == read.retried


def test_the_latest_ended_jobs_are_kept() -> None:
    store = MemoryStore()
    registry = Registry(store)
    model, cursor = Model(store, Query()), store.end_offset()
    for at in range(KEPT_ENDED + 10):
        registry.cancel(registry.register(prompt=f"{at}", agent="shell").job.job_id)
    for entry in store.entries(cursor):
        model.apply(entry)

    assert [job.prompt for job in model.done.values()] == [str(at) for at in range(10, KEPT_ENDED + 10)]


def test_the_help_fits_the_narrowest_usual_terminal() -> None:
    assert max(map(len, HELP.splitlines())) <= 80

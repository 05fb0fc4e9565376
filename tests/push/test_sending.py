"""What is sent to which browser, and what becomes of it: on a real store, to a push service on loopback."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mam import questions
from mam.access.credentials import close_session, create_token, find_viewer, open_session, revoke_token
from mam.access.grant import check_grant
from mam.access.subscriptions import Subscription, subscribe, subscriptions, viewer_of_subscription
from mam.audit.sync import AuditLog
from mam.errors import BadInput, NotAllowed
from mam.jobs.credential import PUSH, SESSION
from mam.jobs.notices import WAITS
from mam.jobs.question import Draft
from mam.jobs.question_acts import Answer
from mam.push.delivery import deliver
from mam.push.keys import public_key
from mam.push.message import Message
from mam.push.outcomes import outcomes
from mam.push.sending import MOST_A_MINUTE, Sender
from mam.registry import Registry
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from mam.testing.clock import FakeClock

pytest.importorskip("http_ece", reason="the extra `push` is not installed")

from tests.push.service import PushedBrowser, PushService

if TYPE_CHECKING:
    from mam.jobs.record import Job


class World:
    """A store with a logged-in phone at a push service."""

    def __init__(self, folder: Path, service: PushService) -> None:
        self.clock = FakeClock()
        self.path = folder / "mam.sqlite"
        create_sqlite_store(str(self.path))
        self.store = SqliteStore(str(self.path), self.clock)
        self.registry = Registry(self.store, AuditLog(str(folder / "logs")))
        self.service = service
        self.sender = self.new_sender()
        self.key = public_key(self.store)
        self.phone = PushedBrowser(service)
        self.kept = self.subscribe(self.phone, "read,answer")

    def new_sender(self, *, allow_private: bool = True) -> Sender:
        return Sender(self.registry, contact="mailto:mam@localhost", allow_private=allow_private)

    def subscribe(self, browser: PushedBrowser, scopes: str, token: str = "phone") -> Subscription:
        grant = check_grant(scopes.split(","))
        create_token(self.store, token, grant)
        viewer = find_viewer(self.store, open_session(self.store, token).secret, SESSION)
        assert viewer is not None
        return subscribe(self.store, viewer, **browser.subscription(self.key))

    def job(self, prompt: str = "work with a secret") -> Job:
        self.registry.register(prompt=prompt, agent="codex", timeout_sec=0)
        found = self.registry.pick("codex", owner="me")
        assert found is not None
        return found

    def ask(self, job: Job) -> None:
        draft = Draft(kind="question", text="Which secret?", choices=("a", "b"))
        questions.ask(self.registry, job.job_id, draft, attempt=1)

    def outcomes(self) -> list[tuple[str, str]]:
        return [(one.notice, one.outcome) for one in outcomes(self.registry, lambda _job: True)]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with PushService() as service:
        made = World(tmp_path, service)
        yield made
        assert service.got.empty(), "nothing was sent that no test expects"
        made.store.close()


def test_a_question_and_a_failure_name_the_job_and_nothing_else(world: World) -> None:
    asking, failing = world.job(), world.job()
    world.ask(asking)
    world.registry.fail(failing.job_id, reason="a secret reason", attempt=1)
    assert world.sender.send_due() is None
    body, headers = world.phone.next(world.key)
    assert body == {"kind": "question", "job": asking.job_id}
    assert (headers["urgency"], headers["ttl"]) == ("high", "86400")
    assert world.phone.next(world.key)[0] == {"kind": "failure", "job": failing.job_id}
    assert sorted(world.outcomes()) == [("failure", "accepted"), ("question 1", "accepted")]


def test_a_message_is_sent_once_also_by_a_server_that_starts_again(world: World) -> None:
    world.ask(world.job())
    world.sender.send_due()
    world.phone.next(world.key)
    world.sender.send_due()
    world.new_sender().send_due()


def test_what_was_answered_or_seen_meanwhile_is_not_sent(world: World) -> None:
    asking, failing, retried = world.job(), world.job(), world.job()
    world.ask(asking)
    digest = questions.open_now(world.registry)[0].question.digest
    given = Answer(number=1, attempt=1, digest=digest, answer="a", by="anna", reason=None)
    questions.answer(world.registry, asking.job_id, given)
    for job in (failing, retried):
        world.registry.fail(job.job_id, reason="no", attempt=1)
    world.registry.mark_seen(failing.job_id, by="anna")
    world.registry.retry(retried.job_id)
    assert world.sender.send_due() is None
    assert world.outcomes() == []


def test_what_happened_before_the_browser_subscribed_is_not_sent(world: World) -> None:
    world.ask(world.job())
    world.sender.send_due()
    world.phone.next(world.key)
    world.clock.advance(5)
    world.subscribe(PushedBrowser(world.service, "late"), "read", "late")
    world.sender.send_due()


def test_a_push_service_that_is_away_is_tried_again_a_few_times(world: World) -> None:
    world.service.status = 503
    world.ask(world.job())
    for wait in WAITS:
        assert world.sender.send_due() == wait
        world.phone.next(world.key)
        assert world.new_sender().send_due() == pytest.approx(wait, abs=1), "a new server goes on where it was"
        world.clock.advance(wait)
    assert world.sender.send_due() is None
    world.phone.next(world.key)
    world.clock.advance(7200)
    assert world.sender.send_due() is None
    assert world.outcomes() == [("question 1", "failed")] * (len(WAITS) + 1)


@pytest.mark.parametrize("status", [404, 410])
def test_a_browser_that_its_service_no_longer_knows_is_forgotten(world: World, status: int) -> None:
    world.service.status = status
    world.ask(world.job())
    world.sender.send_due()
    world.phone.next(world.key)
    assert subscriptions(world.store) == []
    assert world.outcomes() == [("question 1", "gone")]


def test_a_message_that_is_refused_is_not_repeated(world: World) -> None:
    world.service.status = 413
    world.ask(world.job())
    assert world.sender.send_due() is None
    world.phone.next(world.key)
    world.clock.advance(7200)
    assert world.sender.send_due() is None
    assert world.outcomes() == [("question 1", "refused")]


def test_a_redirect_is_not_followed(world: World) -> None:
    world.service.status = 307
    world.ask(world.job())
    world.sender.send_due()
    world.phone.next(world.key)
    assert world.outcomes() == [("question 1", "refused")]


def test_a_browser_gets_a_bounded_number_in_a_minute_and_the_rest_later(world: World) -> None:
    for _ in range(MOST_A_MINUTE + 3):
        world.ask(world.job())
    wait = world.sender.send_due()
    assert wait is not None
    assert 0 < wait <= 60
    told = {world.phone.next(world.key)[0]["job"] for _ in range(MOST_A_MINUTE)}
    assert len(told) == MOST_A_MINUTE


def test_it_ends_with_the_log_in(world: World) -> None:
    close_session(world.store, world.kept.session)
    assert world.store.credentials(PUSH) == []
    world.ask(world.job())
    assert world.sender.send_due() is None


def test_it_ends_with_the_token(world: World) -> None:
    revoke_token(world.store, "phone")
    assert world.store.credentials(PUSH) == []
    assert viewer_of_subscription(world.store, world.kept) is None


def test_a_browser_hears_only_of_jobs_that_its_token_may_see(world: World) -> None:
    close_session(world.store, world.kept.session)
    own, answers = PushedBrowser(world.service, "own"), PushedBrowser(world.service, "answers")
    world.subscribe(own, "submit", "own")
    world.subscribe(answers, "answer", "answers")
    foreign = world.job()
    world.ask(foreign)
    world.registry.fail(world.job().job_id, reason="no", attempt=1)
    world.sender.send_due()
    assert answers.next(world.key)[0] == {"kind": "question", "job": foreign.job_id}


def test_a_token_that_sees_no_job_is_not_notified(world: World) -> None:
    with pytest.raises(NotAllowed):
        world.subscribe(PushedBrowser(world.service, "work"), "work", "worker")


def test_the_secrets_are_private_and_no_line_has_them(world: World) -> None:
    world.ask(world.job())
    world.sender.send_due()
    world.phone.next(world.key)
    assert stat.S_IMODE(os.stat(f"{world.path}-secrets").st_mode) == 0o600
    private = world.store.secrets(".push")[world.key]
    written = "".join(file.read_text() for file in world.path.parent.glob("logs/**/*") if file.is_file())
    assert "notified" in written
    for secret in (private.splitlines()[1], world.kept.endpoint, world.kept.auth):
        assert secret not in written


def test_a_private_address_is_refused_unless_it_is_allowed(world: World) -> None:
    world.sender = world.new_sender(allow_private=False)
    world.ask(world.job())
    assert world.sender.send_due() is None
    assert world.outcomes() == [("question 1", "refused")]
    for endpoint in ("https://10.0.0.1/x", "https://[::1]/x", "https://localhost/x", "https://169.254.169.254/latest"):
        done = deliver(Message(endpoint=endpoint, body=b"x", headers={}), allow_private=False)
        assert (done.outcome, "private address" in str(done.why)) == ("refused", True), endpoint
    done = deliver(Message(endpoint="https://push.invalid/x", body=b"x", headers={}), allow_private=False)
    assert done.outcome == "failed"


@pytest.mark.parametrize(
    "wrong",
    [{"endpoint": "file:///etc/passwd"}, {"endpoint": "https://u:p@h/"}, {"endpoint": "https://h/ x"}, {"endpoint": ""},
     {"endpoint": "https://h/" + "x" * 2000}, {"p256dh": "AAAA"}, {"auth": "é"}, {"key": ""}],
    ids=str,
)  # fmt: skip
def test_a_wrong_subscription_changes_nothing(world: World, wrong: dict[str, str]) -> None:
    viewer = viewer_of_subscription(world.store, world.kept)
    assert viewer is not None
    before = world.store.credentials(PUSH)
    with pytest.raises(BadInput):
        subscribe(world.store, viewer, **{**world.phone.subscription(world.key), **wrong})
    assert world.store.credentials(PUSH) == before


def test_a_point_that_is_not_on_the_curve_is_refused_when_it_is_used(world: World) -> None:
    viewer = viewer_of_subscription(world.store, world.kept)
    assert viewer is not None
    wrong = "BA" + "A" * 85
    subscribe(world.store, viewer, **{**world.phone.subscription(world.key), "p256dh": wrong})
    world.ask(world.job())
    assert world.sender.send_due() is None
    assert world.outcomes() == [("question 1", "refused")]

"""Viewers, their bounds, and what they present."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mam.access.credentials import (
    create_code,
    create_token,
    ensure_local_token,
    exchange_code,
    find_viewer,
    revoke_token,
)
from mam.access.grant import EVERYTHING, SCOPES, Grant, check_grant, parse_grant
from mam.access.registry import AuthorizedRegistry
from mam.access.viewer import LOCAL_TOKEN, Viewer, local_viewer
from mam.errors import BadInput, ClaimLost, KeyReused, NoSuchWorker, NotAllowed, NotLoggedIn, Refused, UnknownJob
from mam.jobs.credential import CODE, SESSION, TOKEN
from mam.jobs.edit import Edit
from mam.jobs.pause import Pause
from mam.jobs.question import Draft
from mam.jobs.status import CANCELLED, COMPLETED, PENDING
from mam.registry import Registry
from mam.registry.listing import JobFilter
from mam.stores.memory import MemoryStore
from mam.testing.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable

DAY = 24 * 3600


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> MemoryStore:
    return MemoryStore(clock)


@pytest.fixture
def registry(store: MemoryStore) -> Registry:
    return Registry(store)


def viewer(*scopes: str, name: str = "phone", **bounds: Any) -> Viewer:
    return Viewer(name=name, grant=check_grant(scopes, **bounds), token=name)


def rights(registry: Registry, *scopes: str, name: str = "phone", **bounds: Any) -> AuthorizedRegistry:
    return AuthorizedRegistry(registry, viewer(*scopes, name=name, **bounds))


# -- grants ----------------------------------------------------------------------------------------------------------


def test_a_grant_is_read_as_it_was_stored() -> None:
    grant = check_grant(["read,submit", "work"], labels=["a"], agents=["codex"], repos=["o/r"], max_permissions="ask")

    assert parse_grant(grant.to_json()) == grant
    assert grant.scopes == ("read", "submit", "work")


@pytest.mark.parametrize(
    "change",
    [{"scopes": "admin"}, {"scopes": [1]}, {"max_permissions": "root"}, {"newer": True}, {"labels": None}],
    ids=str,
)
def test_a_grant_of_another_version_allows_nothing(change: dict[str, Any]) -> None:
    grant = parse_grant({**EVERYTHING.to_json(), **change})

    assert not any(grant.has(scope) for scope in SCOPES)


@pytest.mark.parametrize("scopes", [[], [""], ["read,"], ["root"], ["read", "write"]], ids=str)
def test_only_scopes_that_exist_are_granted(scopes: list[str]) -> None:
    with pytest.raises(BadInput, match="scope"):
        check_grant(scopes)


def test_shell_is_allowed_only_if_it_is_named() -> None:
    assert not check_grant(["submit"]).allows_agent("shell")
    assert check_grant(["submit"]).allows_agent("codex")
    assert check_grant(["submit"], agents=["shell"]).allows_agent("shell")
    assert not check_grant(["submit"], agents=["shell"]).allows_agent("codex")
    assert EVERYTHING.allows_agent("shell")


# -- credentials -----------------------------------------------------------------------------------------------------


def test_a_token_names_its_viewer_until_it_is_revoked(store: MemoryStore) -> None:
    made = create_token(store, "phone", check_grant(["read"]))

    found = find_viewer(store, made.secret, TOKEN)
    assert found is not None
    assert (found.name, found.grant) == ("phone", check_grant(["read"]))
    assert made.secret not in repr(store.credentials(TOKEN))
    assert find_viewer(store, made.secret, SESSION) is None

    revoke_token(store, "phone")
    assert find_viewer(store, made.secret, TOKEN) is None
    with pytest.raises(Refused, match="no token"):
        revoke_token(store, "phone")


def test_a_second_token_of_a_name_is_refused(store: MemoryStore) -> None:
    made = create_token(store, "phone", check_grant(["read"]))
    with pytest.raises(Refused, match="exists already"):
        create_token(store, "phone", EVERYTHING)

    assert find_viewer(store, made.secret, TOKEN) is not None


def test_an_expired_token_and_its_sessions_are_not_accepted(store: MemoryStore, clock: FakeClock) -> None:
    made = create_token(store, "phone", check_grant(["read"]), expires_ms=clock.now().wall_ms + DAY * 1000)
    session = exchange_code(store, create_code(store, "phone").secret)
    assert find_viewer(store, session.secret, SESSION) is not None

    clock.advance(DAY)

    assert find_viewer(store, made.secret, TOKEN) is None
    assert find_viewer(store, session.secret, SESSION) is None


def test_a_code_opens_one_session(store: MemoryStore) -> None:
    ensure_local_token(store)
    ensure_local_token(store)
    code = create_code(store, LOCAL_TOKEN).secret

    session = exchange_code(store, code.lower().replace("-", " "))

    found = find_viewer(store, session.secret, SESSION)
    assert found is not None
    assert (found.name, found.grant, found.session) == (LOCAL_TOKEN, EVERYTHING, session.credential.name)
    with pytest.raises(NotLoggedIn, match="used before"):
        exchange_code(store, code)


def test_a_code_expires(store: MemoryStore, clock: FakeClock) -> None:
    ensure_local_token(store)
    code = create_code(store, LOCAL_TOKEN).secret
    clock.advance(3600)

    with pytest.raises(NotLoggedIn):
        exchange_code(store, code)


@pytest.mark.parametrize("typed", ["", "-", "x" * 10_000, "é" * 16, "\0" * 16, "0000-0000-0000-0000"])
def test_an_invalid_code_logs_no_one_in(store: MemoryStore, typed: str) -> None:
    ensure_local_token(store)
    with pytest.raises(NotLoggedIn):
        exchange_code(store, typed)


def test_a_token_typed_as_a_code_stays(store: MemoryStore) -> None:
    made = create_token(store, "phone", check_grant(["read"]))
    with pytest.raises(NotLoggedIn):
        exchange_code(store, made.secret)

    assert find_viewer(store, made.secret, TOKEN) is not None


def test_a_revoked_token_ends_its_sessions_and_codes(store: MemoryStore) -> None:
    ensure_local_token(store)
    session, code = exchange_code(store, create_code(store, LOCAL_TOKEN).secret), create_code(store, LOCAL_TOKEN)
    revoke_token(store, LOCAL_TOKEN)

    assert find_viewer(store, session.secret, SESSION) is None
    assert store.credentials(CODE) == []
    with pytest.raises(NotLoggedIn):
        exchange_code(store, code.secret)
    with pytest.raises(Refused, match="no token"):
        create_code(store, LOCAL_TOKEN)


# -- scopes ----------------------------------------------------------------------------------------------------------

Verb = tuple[str, "Callable[[AuthorizedRegistry, str], object]"]
VERBS: dict[str, Verb] = {
    "page": ("read submit", lambda one, _job: one.page(JobFilter(), 10)),
    "counts": ("read", lambda one, _job: one.counts()),
    "holders": ("read", lambda one, _job: one.holders()),
    "pauses": ("read", lambda one, _job: one.pauses()),
    "get": ("read", lambda one, job: one.get(job)),
    "register": ("submit", lambda one, _job: one.register(prompt="x", agent="codex")),
    "claim": ("work", lambda one, _job: one.claim(one.claim_request("codex"))),
    "heartbeat": ("work", lambda one, job: one.heartbeat(job, attempt=1, claim_id="c")),
    "complete": ("work", lambda one, job: one.complete(job, attempt=1, claim_id="c")),
    "fail": ("work", lambda one, job: one.fail(job, attempt=1, claim_id="c", reason="no")),
    "release": ("work", lambda one, job: one.release(job, attempt=1, claim_id="c")),
    "publish": ("work", lambda one, job: one.publish(job, attempt=1, claim_id="c", event="progress")),
    "ask": ("work", lambda one, job: one.ask(job, Draft(kind="question", text="?"), attempt=1, claim_id="c")),
    "questions": ("read submit answer", lambda one, _job: one.questions()),
    "answer": ("answer", lambda one, job: one.answer(f"{job}.1", "allow")),
    "cancel": ("", lambda one, job: one.cancel(job)),
    "retry": ("", lambda one, job: one.retry(job)),
    "continue": ("", lambda one, job: one.continue_job(job, prompt="more")),
    "edit": ("", lambda one, job: one.edit(job, Edit(priority=1))),
    "resume": ("", lambda one, _job: one.resume("codex", None)),
    "apply": ("", lambda one, job: one.apply(job)),
    "ask_worker": ("", lambda one, _job: one.ask_worker("w", "drain")),
}


@pytest.mark.parametrize("scope", SCOPES)
def test_each_verb_needs_its_scope(registry: Registry, scope: str) -> None:
    for verb, (scopes, call) in VERBS.items():
        is_allowed = scope == "admin" or scope in scopes.split()
        job = registry.register(prompt="x", agent="codex").job.job_id
        before = registry.store.end_offset()
        assert _is_refused(call, rights(registry, scope), job) is not is_allowed, verb
        if not is_allowed:
            assert registry.store.end_offset() == before, verb


def _is_refused(call: Callable[[AuthorizedRegistry, str], object], one: AuthorizedRegistry, job: str) -> bool:
    try:
        call(one, job)
    except (NotAllowed, UnknownJob):
        return True
    except (ClaimLost, Refused, NoSuchWorker):
        pass  # an error of the verb itself: the rights let it pass
    return False


def test_every_verb_of_the_registry_with_rights_is_in_the_table() -> None:
    public = {name for name in dir(AuthorizedRegistry) if not name.startswith("_")}
    others = {
        "history", "register_all", "is_own", "may_see", "may_see_id", "own", "select", "state", "claim_request",
        "mark_seen", "stop_session", "overview", "explain", "events", "question", "pause", "lists_jobs",
    }  # fmt: skip
    assert public - others == {*VERBS} - {"continue"} | {"continue_job"}


# -- own jobs and bounds ---------------------------------------------------------------------------------------------


def test_a_token_sees_and_changes_only_the_jobs_that_it_registered(registry: Registry) -> None:
    mine, yours = rights(registry, "submit"), rights(registry, "submit", name="laptop")
    other = registry.register(prompt="x", agent="codex").job
    job = mine.register(prompt="x", agent="codex").job

    assert job.registered_by == "phone"
    assert mine.get(job.job_id) == job
    assert [found.job_id for found in mine.page(JobFilter(), 10).jobs] == [job.job_id]
    assert yours.page(JobFilter(), 10).jobs == ()
    assert [found.job_id for found in rights(registry, "read").page(JobFilter(), 10).jobs] == [job.job_id, other.job_id]
    for hidden in (other.job_id, other.job_id[:8], job.job_id[:8], "../x", ""):
        with pytest.raises(UnknownJob):
            mine.get(hidden)
    with pytest.raises(UnknownJob):
        yours.cancel(job.job_id)
    with pytest.raises(NotAllowed, match="did not register"):
        rights(registry, "read,submit").cancel(other.job_id)
    assert mine.cancel(job.job_id).status is CANCELLED


def test_a_token_made_again_under_a_name_does_not_own_the_jobs_of_the_old_one(store: MemoryStore) -> None:
    registry = Registry(store)
    found = list[AuthorizedRegistry]()
    for _ in range(2):
        made = create_token(store, "ci", check_grant(["submit"]))
        viewer = find_viewer(store, made.secret, TOKEN)
        assert viewer is not None
        found.append(AuthorizedRegistry(registry, viewer))
        if len(found) == 1:
            job = found[0].register(prompt="x", agent="codex").job
            assert found[0].get(job.job_id) == job
            revoke_token(store, "ci")
    with pytest.raises(UnknownJob):
        found[1].get(job.job_id)


def test_an_explanation_names_no_job_that_the_token_may_not_see(registry: Registry) -> None:
    mine = rights(registry, "submit")
    other = registry.register(prompt="x", agent="codex", exclusive="deploy").job
    registry.pick("codex", owner="w")
    job = mine.register(prompt="x", agent="codex", exclusive="deploy").job
    registry.pause(Pause(agent="codex", label=None, until=None, reason="limit", probe=other.job_id))

    told = [*mine.explain(job.job_id)[1], *mine.overview(job.job_id).why]
    assert other.job_id not in " ".join(told)
    assert "Another job runs under the same exclusive key 'deploy'; only one may." in told
    assert any(other.job_id in sentence for sentence in rights(registry, "read").explain(job.job_id)[1])


def test_a_retry_and_a_continuation_belong_to_the_same_token(registry: Registry) -> None:
    mine = rights(registry, "submit")
    job = mine.register(prompt="x", agent="human").job
    mine.cancel(job.job_id)

    assert registry.retry(job.job_id).job.registered_by == "phone"


@pytest.mark.parametrize(
    ("bounds", "choices", "why"),
    [
        ({"labels": ["a"]}, {}, "label 'codex', only a"),
        ({"labels": ["a"]}, {"label": "b"}, "label 'b', only a"),
        ({"agents": ["claude-code"]}, {}, "agent 'codex', only claude-code"),
        ({"repos": ["o/r"]}, {}, "without a repository, only o/r"),
        ({"repos": ["o/r"]}, {"workdir": "/srv"}, "without a repository"),
        ({"repos": ["o/r"]}, {"repo": "o/x"}, "'o/x', only o/r"),
        ({"max_permissions": "ask"}, {}, "'edit', only ask"),
        ({}, {"permissions": "full"}, "'full', only edit"),
    ],
    ids=str,
)
def test_a_job_beyond_the_bounds_is_not_registered(
    registry: Registry, bounds: dict[str, Any], choices: dict[str, Any], why: str
) -> None:
    with pytest.raises(NotAllowed, match=why):
        rights(registry, "submit", **bounds).register(prompt="x", agent="codex", **choices)

    assert registry.store.end_offset() == "0"


def test_a_token_without_shell_can_neither_register_nor_retry_such_a_job(registry: Registry) -> None:
    mine = rights(registry, "submit")
    with pytest.raises(NotAllowed, match="shell"):
        mine.register(prompt="id", agent="shell")
    job = registry.register(prompt="id", agent="shell", registered_by="phone").job
    registry.cancel(job.job_id)

    with pytest.raises(NotAllowed, match="shell"):
        mine.retry(job.job_id)
    with pytest.raises(NotAllowed, match="shell"):
        mine.continue_job(job.job_id, prompt="rm -rf /")


def test_a_continuation_has_no_more_permissions_than_the_token_can_grant(registry: Registry) -> None:
    mine = rights(registry, "submit")
    job = mine.register(prompt="x", agent="human").job
    registry.continue_job(job.job_id, prompt="with more", permissions="full")

    new = mine.continue_job(job.job_id, prompt="and on").job

    assert new.permissions == "edit"
    with pytest.raises(NotAllowed, match="full"):
        mine.continue_job(job.job_id, prompt="more", permissions="full")


@pytest.mark.parametrize(
    ("choices", "place"),
    [
        ({}, ("fresh", None, None)),
        ({"workdir": "/srv/x"}, ("workdir", "/srv/x", None)),
        ({"workdir": "/srv/x", "workspace": "worktree"}, ("worktree", "/srv/x", None)),
        ({"repo": "o/r"}, ("worktree", None, "o/r")),
    ],
    ids=str,
)
def test_a_job_runs_where_it_says_and_never_in_the_directory_of_the_server(
    registry: Registry, choices: dict[str, Any], place: tuple[str, str | None, str | None]
) -> None:
    job = rights(registry, "submit").register(prompt="x", agent="codex", **choices).job

    assert (job.workspace, job.workdir, (job.repository or {}).get("name")) == place


@pytest.mark.parametrize(
    "choices",
    [
        {"workdir": "here"}, {"workdir": "/a", "repo": "o/r"}, {"repo": "../x"}, {"repo": "a/b/c"}, {"repo": ""},
        {"repo": "o/r", "branch": "-x"}, {"repo": "o/r", "branch": "a..b"}, {"repo": "o/r", "branch": "x^{/y}"},
        {"branch": "x"}, {"push": True}, {"workspace": "worktree"}, {"workspace": "workdir"}, {"validation": {}},
        {"broker": {}}, {"parent_id": "x"}, {"registered_by": "laptop"}, {"job_id": "x"}, {"origin_host": "x"},
    ],
    ids=str,
)  # fmt: skip
def test_options_that_the_network_may_not_set_are_rejected(registry: Registry, choices: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        AuthorizedRegistry(registry, Viewer(name="a", grant=EVERYTHING, token="a")).register(
            prompt="x", agent="codex", **choices
        )


def test_a_key_of_a_job_that_the_token_may_not_see_is_taken(registry: Registry) -> None:
    registry.register(prompt="secret", agent="codex", key="k")

    with pytest.raises(Refused, match="has this key") as refused:
        rights(registry, "submit").register(prompt="x", agent="codex", key="k")
    assert "secret" not in str(refused.value)
    reader = rights(registry, "read,submit")
    with pytest.raises(KeyReused, match="another prompt"):
        reader.register(prompt="x", agent="codex", key="k", workdir="/x")


def test_a_repeated_registration_returns_the_first_job(registry: Registry) -> None:
    mine = rights(registry, "submit")
    first = mine.register(prompt="x", agent="codex", key="k")

    again = mine.register(prompt="x", agent="codex", key="k")

    assert (again.job, again.created) == (first.job, False)
    with pytest.raises(KeyReused, match="another label"):
        mine.register(prompt="x", agent="codex", key="k", label="y")


def test_a_token_depends_only_on_jobs_that_it_may_see(registry: Registry) -> None:
    other = registry.register(prompt="x", agent="codex").job.job_id

    with pytest.raises(UnknownJob):
        rights(registry, "submit").register(prompt="x", agent="codex", after=[other])
    assert rights(registry, "read,submit").register(prompt="x", agent="codex", after=[other[:8]]).job.after == [other]


# -- work ------------------------------------------------------------------------------------------------------------


def test_a_worker_claims_its_labels_and_reports_under_its_claim(registry: Registry) -> None:
    worker = rights(registry, "work", labels=["codex"])
    job_id = registry.register(prompt="x", agent="codex").job.job_id
    with pytest.raises(NotAllowed, match="label"):
        worker.claim_request("claude")

    job = worker.claim(worker.claim_request("codex", host="laptop"))

    assert job is not None
    assert (job.job_id, job.owner) == (job_id, "phone")
    assert job.claim_id is not None
    with pytest.raises(ClaimLost):
        worker.complete(job_id, attempt=1, claim_id="another")
    assert worker.complete(job_id, attempt=1, claim_id=job.claim_id, result="done").status is COMPLETED


# -- lists -----------------------------------------------------------------------------------------------------------


def test_pages_hold_every_job_once_newest_first(registry: Registry) -> None:
    made = [registry.register(prompt=str(number), agent="codex").job.job_id for number in range(7)]
    reader, seen, below = rights(registry, "read"), list[str](), None
    wanted = JobFilter()
    while True:
        page = reader.page(wanted.replace(query=wanted.query.replace(below=below)), 3)
        seen += [job.job_id for job in page.jobs]
        below = page.below
        if below is None:
            break

    assert seen == made[::-1]


def test_the_user_of_this_host_may_do_everything(registry: Registry) -> None:
    mine = AuthorizedRegistry(registry, local_viewer("me@box"))
    job = registry.register(prompt="id", agent="shell", permissions="full").job

    assert mine.get(job.job_id[:8]).status is PENDING
    assert mine.register(prompt="id", agent="shell").job.registered_by is None
    assert mine.cancel(job.job_id).status is CANCELLED


def test_a_grant_has_no_field_that_is_not_checked() -> None:
    assert Grant.field_names == ("scopes", "labels", "agents", "repos", "max_permissions")

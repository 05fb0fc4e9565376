"""Each scope against each route, and each with a browser's cookie: a route that is not in the table fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.access.grant import SCOPES
from mam.serve.routes import ROUTES
from tests.serve.flows import STEPS, World

if TYPE_CHECKING:
    from tests.serve.serving import Serving

NOBODY = "nobody"

ALLOWED = {
    "read submit": "list_jobs get_job show_job explain_job job_events job_result wait_for_job job_output"
    " job_conversation job_diff job_artifacts job_artifact events",
    "submit": "register_job edit_job cancel_job retry_job continue_job",
    "submit answer": "see_job",
    "work": "pick_job heartbeat_job complete_job fail_job release_job publish_event ask_question",
    "read submit answer": "list_questions get_question",
    "answer": "answer_question",
    "read": "list_workers list_sessions list_pauses stats",
    "read submit work answer": "me",
    "nobody read submit work answer": "health ready openapi docs",
    "": "drain_worker stop_worker pause resume list_tokens create_token revoke_token",
}
"""Which scopes may use which routes; admin may use all. For its own jobs, `submit` counts."""

TABLE = {name: scopes.split() for scopes, names in ALLOWED.items() for name in names.split()}

SEES_OTHERS = {"see_job": "answer"}
"""Where a scope applies to the jobs of others too, but needs `read` to see them."""


def test_every_route_is_in_the_table() -> None:
    assert TABLE.keys() == {route.name for route in ROUTES}


@pytest.mark.parametrize("name", TABLE)
def test_a_route_serves_its_scopes_and_no_others(served: Serving, name: str) -> None:
    for scope in (NOBODY, *SCOPES):
        _check_route(served, name, scope)


def _check_route(served: Serving, name: str, scope: str) -> None:
    scopes = () if scope == NOBODY else ("read", "answer") if SEES_OTHERS.get(name) == scope else (scope,)
    caller = f"caller-{scope}"
    client = served.client(*scopes, name=caller) if scopes else served.client()
    world = World(served, client, owner=caller)
    is_allowed = scope in TABLE[name] or scope == "admin"

    before = served.registry.store.end_offset()
    answer = STEPS[name](world)

    if is_allowed:
        route = next(route for route in ROUTES if route.name == name)
        assert answer.status_code == route.status, f"{scope}: {answer.text}"
    else:
        assert answer.status_code == (401 if scope == NOBODY else 403), f"{scope}: {answer.text}"
        assert answer.headers["content-type"] == "application/problem+json"
        changes = [entry for entry in served.registry.store.entries(before) if _is_change_by_caller(entry.lines)]
        assert changes == [], scope


def _is_change_by_caller(lines: object) -> bool:
    """What the preparation of the call writes is no change by the caller."""
    return "caller" in str(lines) and "registered" not in str(lines)


OTHERS_JOBS = [
    "get_job", "show_job", "explain_job", "job_events", "job_result", "wait_for_job", "job_output", "job_conversation",
    "job_diff", "job_artifacts", "job_artifact", "edit_job", "cancel_job", "retry_job", "continue_job", "see_job",
    "get_question",
]  # fmt: skip


@pytest.mark.parametrize("name", OTHERS_JOBS)
def test_a_token_that_submits_does_not_find_the_jobs_of_others(served: Serving, name: str) -> None:
    world = World(served, served.client("submit", name="caller"), owner="somebody-else")

    answer = STEPS[name](world)

    assert answer.status_code == 404, answer.text


@pytest.mark.parametrize("name", ["edit_job", "cancel_job", "retry_job", "continue_job"])
def test_a_token_that_also_reads_does_not_change_the_jobs_of_others(served: Serving, name: str) -> None:
    world = World(served, served.client("read,submit", name="caller"), owner="somebody-else")

    answer = STEPS[name](world)

    assert answer.status_code == 403, answer.text


def test_lists_and_streams_hold_only_the_own_jobs_of_a_token_that_submits(served: Serving) -> None:
    mine = World(served, served.client("submit", name="caller"), owner="caller")
    other = World(served, mine.client, owner="somebody-else")
    own, foreign = mine.asking().job_id, other.asking().job_id

    for path in ("/jobs", "/questions", "/events?follow=false&after=start"):
        text = mine.client.get(path).text
        assert own in text
        assert foreign not in text

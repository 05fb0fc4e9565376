"""The description of the API agrees with the server and with the schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from mam.__main__ import FIRST_VERBS, MORE_VERBS
from mam.serve.openapi import describe
from mam.serve.routes import ROUTES
from tests.serve.flows import STEPS, World

if TYPE_CHECKING:
    from typing import Any

    from tests.serve.serving import Serving

ROOT = Path(__file__).parents[2]
SCHEMAS = {file.name: json.loads(file.read_text(encoding="utf-8")) for file in (ROOT / "schemas").glob("*.json")}

WITHOUT_ROUTE = {
    *("run", "worker", "watch", "demo", "relay", "serve", "mcp"),  # processes and screens
    *(
        "apply",
        "workspaces",
        "trust",
        "where",
        "init",
        "skill",
        "plugin",
        "inbox",
        "service",
        "admin",
        "hook",
        "rules",
        "push",
    ),  # this host
    *("prune", "migrate", "adopt", "rebuild", "doctor"),  # maintenance
    *("config", "broker", "completion", "push"),  # settings; a browser subscribes on the page
    "status",  # `get`, and the reports of a claim
}
"""Verbs that neither read nor write jobs, or that belong to one host."""


def description() -> dict[str, Any]:
    return describe(ROUTES, SCHEMAS)


def test_the_checked_in_description_is_that_of_the_routes() -> None:
    stored = json.loads((ROOT / "src/mam/serve/openapi.json").read_text(encoding="utf-8"))
    assert stored == json.loads(json.dumps(description())), "run `make docs`"


def test_every_reference_leads_somewhere_and_every_schema_is_one() -> None:
    text = json.dumps(description())
    known = description()["components"]["schemas"]
    for part in text.split('"#/components/schemas/')[1:]:
        assert part.partition('"')[0] in known
    for schema in known.values():
        Draft202012Validator.check_schema(schema)


def test_every_verb_that_reads_or_writes_jobs_has_a_route() -> None:
    named = {route.verb for route in ROUTES}
    missing = {*FIRST_VERBS, *MORE_VERBS} - named - WITHOUT_ROUTE
    assert missing == set()
    assert named - {None} <= {*FIRST_VERBS, *MORE_VERBS}


def test_names_and_paths_are_unique() -> None:
    assert len({route.name for route in ROUTES}) == len(ROUTES)
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)


def test_the_server_gives_its_description(served: Serving) -> None:
    found = served.client().get("/openapi.json").json()
    assert found["paths"].keys() == {route.path for route in ROUTES}
    page = served.client().get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert all(f'id="{route.name}"' in page.text for route in ROUTES)


@pytest.mark.parametrize("name", STEPS)
def test_each_answer_fits_its_schema(served: Serving, name: str) -> None:
    route = next(route for route in ROUTES if route.name == name)
    answer = STEPS[name](World(served))

    assert answer.status_code == route.status, answer.text
    if route.answer is not None and route.media_type == "application/json":
        schema = {**route.answer, "components": description()["components"]}
        Draft202012Validator(schema).validate(answer.json())


def test_each_route_has_a_step() -> None:
    assert STEPS.keys() == {route.name for route in ROUTES}

"""The description of the API (OpenAPI 3.1), made from the table of routes and from `schemas/`."""

from __future__ import annotations

from mam import __version__
from mam.serve.problems import MEDIA_TYPE, TITLES
from mam.serve.route import ANYBODY
from mam.serve.schemas import ATTEMPT, IF_MATCH, JOB, KEY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mam.jobs.record import Json
    from mam.serve.route import Param, Route

FILES = {
    "job.schema.json": "Job", "overview.schema.json": "Overview", "event.schema.json": "Event",
    "question.schema.json": "Question", "conversation_item.schema.json": "ConversationItem",
}  # fmt: skip
"""The schemas that are an answer, and their names in the description."""
ANSWERS = "api.schema.json"
"""The schema whose definitions are the other answers."""

_OMITTED = ("$schema", "$id")
_COMPONENTS = "#/components/schemas/"

_LINKS: dict[str, tuple[tuple[str, Mapping[str, str]], ...]] = {
    "register_job": tuple(
        (name, {"job": "$response.body#/job_id"})
        for name in ("get_job", "show_job", "explain_job", "cancel_job", "edit_job", "continue_job", "job_events")
    ),
    "pick_job": tuple(
        (name, {
            "job": "$response.body#/job_id", ATTEMPT.name: "$response.body#/attempt", "Mam-Claim":
            "$response.body#/claim_id",
        })
        for name in ("heartbeat_job", "complete_job", "fail_job", "release_job", "publish_event", "ask_question")
    ),
    "ask_question": (
        ("get_question", {"question": "$response.body#/id"}), ("answer_question", {"question": "$response.body#/id"}),
    ),
    "cancel_job": (("retry_job", {"job": "$response.body#/job_id"}), ("see_job", {"job": "$response.body#/job_id"})),
}  # fmt: skip
"""What can be called with an answer."""


def describe(routes: Iterable[Route], schemas: Mapping[str, Json]) -> Json:
    """`schemas` are the files of `schemas/`, by name."""
    paths: Json = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "mam", "version": __version__, "license": {"name": "MIT", "identifier": "MIT"},
            "description": "Jobs for coding agents. Each operation that has a command names it.",
        },
        "servers": [{"url": "/api/v1"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http", "scheme": "bearer",
                    "description": "A token of `mam token create`. Browsers send the cookie of their log-in instead.",
                }
            },
            "schemas": _schemas(schemas),
        },
    }  # fmt: skip


def _operation(route: Route) -> Json:
    made: Json = {"operationId": route.name, "summary": route.summary, "tags": [_tag(route)]}
    about = [route.details] if route.details else []
    if ANYBODY in route.scopes:
        made["security"] = []
    else:
        about.append(f"Needs the scope {' or '.join(route.scopes)}.")
    if route.verb is not None:
        about.append(f"The same as `mam {route.verb}`.")
    made["description"] = " ".join(about)
    if route.params:
        made["parameters"] = [_parameter(param) for param in route.params]
    if route.body is not None:
        made["requestBody"] = {
            "required": route.needs_body, "content": {"application/json": {"schema": route.body}}
        }  # fmt: skip
    made["responses"] = {str(status): answer for status, answer in sorted(_responses(route).items())}
    return made


def _tag(route: Route) -> str:
    return route.path.split("/")[1]


def _parameter(param: Param) -> Json:
    made: Json = {"name": param.name, "in": param.place, "schema": param.schema, "description": param.meaning}
    if param.is_required:
        made["required"] = True
    if param.schema.get("type") == "array":
        made |= {"style": "form", "explode": True}
    return made


def _responses(route: Route) -> dict[int, Json]:
    usual: Json = {"description": "Done."}
    if route.answer is not None:
        usual["content"] = {route.media_type: {"schema": route.answer}}
    links = {
        name: {"operationId": name, "parameters": dict(parameters)} for name, parameters in _LINKS.get(route.name, ())
    }
    if links:
        usual["links"] = links
    made = {status: _problem(status) for status in problem_statuses(route)}
    made[route.status] = usual
    for status, meaning in route.others.items():
        made[status] = {**(usual if status < 300 else _problem(status)), "description": meaning}
        if status == 204:
            made[status].pop("content", None)
        if route.name in ("ready",):
            made[status] = {**usual, "description": meaning}
    return made


def problem_statuses(route: Route) -> set[int]:
    """The problems that this route can answer with."""
    names = {param.name for param in route.params}
    found = {406, 421, 503}
    if ANYBODY not in route.scopes:
        found |= {401, 403, 409, 429}
    if route.method != "GET":
        found |= {403, 413, 422}
    found.add(422)
    if any(param.place == "path" for param in route.params):
        found |= {404, 409}
    if route.body is not None:
        found |= {400, 404, 409, 413, 415}
    if names & {IF_MATCH.name, ATTEMPT.name}:
        found |= {400, 412}
    if ATTEMPT.name in names:
        found.add(428)
    if KEY.name in names or JOB.name in names:
        found |= {404, 409}
    if route.name == "job_diff":
        found.add(413)
    return found


def _problem(status: int) -> Json:
    return {
        "description": f"{TITLES[status]}.", "content": {MEDIA_TYPE: {"schema": {"$ref": f"{_COMPONENTS}Problem"}}}
    }  # fmt: skip


# -- schemas ---------------------------------------------------------------------------------------------------------


def _schemas(files: Mapping[str, Json]) -> Json:
    """Each file, and each of their definitions, under a name of its own."""
    made: Json = {}
    for file, name in FILES.items():
        schema = dict(files[file])
        for part, inner in schema.pop("$defs", {}).items():
            made[f"{name}.{part}"] = _renamed(inner, file)
        made[name] = _renamed({key: value for key, value in schema.items() if key not in _OMITTED}, file)
    for name, inner in files[ANSWERS]["$defs"].items():
        made[name] = _renamed(inner, ANSWERS)
    return dict(sorted(made.items()))


def _renamed(value: object, file: str) -> object:
    """The same with references that are valid in the description."""
    if isinstance(value, list):
        return [_renamed(one, file) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _reference(inner, file) if key == "$ref" and isinstance(inner, str) else _renamed(inner, file)
        for key, inner in value.items()
    }


def _reference(text: str, file: str) -> str:
    target, _, part = text.partition("#/$defs/")
    target = target or file
    if target == ANSWERS:
        return f"{_COMPONENTS}{part}"
    return f"{_COMPONENTS}{FILES[target]}.{part}" if part else f"{_COMPONENTS}{FILES[target]}"

"""Tokens, for administrators."""

from __future__ import annotations

from mam.access.credentials import create_token, revoke_token, token_json, tokens
from mam.access.grant import ADMIN, PERMISSIONS, SCOPES, check_grant
from mam.errors import Refused
from mam.serve.call import Answer
from mam.serve.route import PATH, Param, Route
from mam.serve.schemas import name, record, ref, several, when
from mam.util.human_time import parse_when

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.serve.call import Call

_NAME = {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$"}
NEW_TOKEN = record(
    {
        "name": {**_NAME, "description": "The name, by which it is listed and revoked."},
        "scopes": {**several({"type": "string", "enum": list(SCOPES)}, "What it may do.", 10), "minItems": 1},
        "labels": several(name("A label."), "Only these labels."),
        "agents": several(name("An agent."), "Only these agents; without it all but shell."),
        "repos": several(name("A repository."), "Only these repositories."),
        "max_permissions": {"type": "string", "enum": list(PERMISSIONS), "description": "The most of its jobs."},
        "expires": when("When it ends: 90d, 2027-01-01T00:00:00Z; by default never."),
    },
    required=("name", "scopes"),
)
TOKEN = Param(name="token", place=PATH, schema=_NAME, is_required=True, meaning="The name of a token.")


def list_tokens(call: Call) -> Answer:
    call.viewer.need(ADMIN, "list tokens")
    return Answer(body={"tokens": [token_json(token) for token in tokens(call.server.registry.store)]})


def new_token(call: Call) -> Answer:
    call.viewer.need(ADMIN, "create tokens")
    body, store = call.body, call.server.registry.store
    now = store.clock.now().wall_ms
    expires_ms = None if body.get("expires") is None else parse_when(body["expires"], now, "expires")
    if expires_ms is not None and expires_ms <= now:
        raise Refused(why="The end of that token has passed already.")
    grant = check_grant(
        body["scopes"], labels=body.get("labels", ()), agents=body.get("agents", ()), repos=body.get("repos", ()),
        max_permissions=body.get("max_permissions"),
    )  # fmt: skip
    made = create_token(store, body["name"], grant, expires_ms)
    return Answer(body={**token_json(made.credential), "token": made.secret}, status=201)


def drop_token(call: Call) -> Answer:
    call.viewer.need(ADMIN, "revoke tokens")
    revoke_token(call.server.registry.store, call.given["token"])
    return Answer(status=204)


ROUTES = (
    Route(
        method="GET",
        path="/tokens",
        name="list_tokens",
        summary="The tokens, without their secrets.",
        scopes=(ADMIN,),
        handler=list_tokens,
        answer=ref("TokenList"),
        verb="token",
    ),
    Route(
        method="POST",
        path="/tokens",
        name="create_token",
        summary="Create a token, which is shown only now.",
        scopes=(ADMIN,),
        handler=new_token,
        body=NEW_TOKEN,
        status=201,
        answer=ref("NewToken"),
        verb="token",
    ),
    Route(
        method="DELETE",
        path="/tokens/{token}",
        name="revoke_token",
        scopes=(ADMIN,),
        handler=drop_token,
        summary="Revoke a token, with the log-ins that belong to it.",
        params=(TOKEN,),
        status=204,
        verb="token",
    ),
)

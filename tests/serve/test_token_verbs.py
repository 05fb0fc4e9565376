"""`mam token`."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.serve.process import server_process

if TYPE_CHECKING:
    from tests.cli.command import Mam


def test_a_token_is_created_used_listed_and_revoked(mam: Mam) -> None:
    token = mam("token", "create", "ci", "--scope", "read,submit", "--label", "a", "--expires", "90d").line
    with server_process(mam) as server, server.client(token) as client:
        assert client.get("/me").json()["grant"] == {
            "scopes": ["read", "submit"], "labels": ["a"], "agents": [], "repos": [], "max_permissions": "edit",
        }  # fmt: skip
        (listed,) = [one for one in mam("token", "list", "--json").json if one["name"] == "ci"]
        assert listed["scopes"] == ["read", "submit"]
        assert token not in mam("token", "list").out

        assert mam("token", "revoke", "ci").line == "ci"
        assert client.get("/me").status_code == 401
    mam("token", "revoke", "ci").failed(1, "no token")


def test_a_phone_is_paired_with_a_code(mam: Mam) -> None:
    with server_process(mam) as server, server.client(path="") as phone:
        paired = mam("token", "pair", "phone", "--scope", "read,answer", "--url", server.url, "--json").json
        assert paired["login"] == f"{server.url}/login#{paired['code']}"
        answer = phone.post("/login", data={"code": paired["code"]}, headers={"origin": server.url})
        assert answer.status_code == 303
        assert phone.get("/api/v1/me").json()["grant"]["scopes"] == ["read", "answer"]

        mam("token", "pair", "phone", "--scope", "admin").failed(2, "exists already")
        assert mam("token", "pair", "phone").code == 0
        mam("token", "revoke", "phone")
        assert phone.get("/api/v1/me").status_code == 401


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("create",), "give a name"), (("create", "x"), "--scope"), (("create", "x", "--scope", "root"), "not a scope"),
        (("create", "../x", "--scope", "read"), "not a name"),
        (("create", "x", "--scope", "read", "--expires", "x"), "--expires"),
        (("create", "x", "--scope", "read", "--max-permissions", "all"), "--max-permissions"),
        (("revoke",), "give the name"),
        (("pair",), "give a name"), (("pair", "x", "--scope", "read", "--url", "nowhere"), "--public-url"),
    ],
    ids=str,
)  # fmt: skip
def test_a_mistake_is_named_and_changes_nothing(mam: Mam, words: tuple[str, ...], why: str) -> None:
    mam("init")
    mam("token", *words).failed(2, why)
    assert mam("token", "list", "--json").json == []


def test_a_revocation_that_is_killed_has_ended_the_token_or_not(mam: Mam) -> None:
    for number in range(3):
        token = mam("token", "create", f"t{number}", "--scope", "read").line
        assert token
        process = mam.start("token", "revoke", f"t{number}")
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        names = {one["name"] for one in mam("token", "list", "--json").json}
        assert names <= {f"t{number}"}
        if names:
            mam("token", "revoke", f"t{number}")

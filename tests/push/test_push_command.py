"""`mam push`, beside a server that has the browsers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.access.credentials import create_token, find_viewer, open_session
from mam.access.grant import check_grant
from mam.access.subscriptions import subscribe
from mam.config.settings import Config
from mam.jobs.credential import SESSION
from mam.location.stores import open_store, parse_address

pytest.importorskip("http_ece", reason="the extra `push` is not installed")

from mam.push.keys import public_key
from tests.push.service import PushedBrowser, PushService

if TYPE_CHECKING:
    from tests.cli.command import Mam


def subscribed(mam: Mam, browser: PushedBrowser) -> tuple[str, str]:
    """The name of the browser, and the key of the server."""
    store = open_store(parse_address(mam("where").line, "the test"), Config())
    grant = check_grant(["read"])
    create_token(store, "phone", grant)
    viewer = find_viewer(store, open_session(store, "phone").secret, SESSION)
    assert viewer is not None
    key = public_key(store)
    name = subscribe(store, viewer, **browser.subscription(key)).name
    store.close()
    return name, key


def test_browsers_are_listed_tested_and_removed(mam: Mam) -> None:
    mam("init")
    assert mam("push", "--json").json == []
    mam("config", "set", "push.private", "true")
    with PushService() as service:
        browser = PushedBrowser(service)
        name, key = subscribed(mam, browser)
        (listed,) = mam("push", "--json").json
        assert (listed["name"], listed["token"], listed["service"]) == (name, "phone", "127.0.0.1")
        assert service.url not in mam("push").out, "who knows the whole address can send there"
        mam("push", "test", name)
        assert browser.next(key)[0] == {"kind": "test", "job": ""}
        service.status = 500
        mam("push", "test", name).failed(1, "answered 500")
        assert mam("push", "log", "--json").json == []
        mam("push", "remove", name)
        assert mam("push", "--json").json == []


@pytest.mark.parametrize("words", [("x",), ("test",), ("remove", "a", "b"), ("log", "x")], ids=str)
def test_a_mistake_is_named(mam: Mam, words: tuple[str, ...]) -> None:
    mam("init")
    mam("push", *words).failed(2, "mam push log")


def test_an_unknown_browser_is_named(mam: Mam) -> None:
    mam("init")
    mam("push", "remove", "nowhere").failed(1, "No browser")

"""Notifications: the page, the service worker in a real browser, and a push service on loopback."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mam import questions
from mam.access.subscriptions import subscriptions
from mam.jobs.question import Draft

pytest.importorskip("http_ece", reason="the extra `push` is not installed")

from tests.push.service import PushedBrowser, PushService

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession, Page

    from tests.page.visitor import Visitor

pytestmark = pytest.mark.external


def subscribe(page: Page, browser: PushedBrowser) -> str:
    """As the script does it, with the keys of another browser: this one reaches no push service of its maker. Returns
    the key of the server."""
    key: str = page.evaluate("""async () => {
        const body = new URLSearchParams({csrf: document.querySelector("#push [name=csrf]").value, verb: "key"});
        return (await fetch("/notifications", {method: "POST", body})).text();
    }""")
    fields = {"verb": "subscribe", **browser.subscription(key)}
    status = page.evaluate("""async (fields) => {
        const body = new URLSearchParams({csrf: document.querySelector("#push [name=csrf]").value, ...fields});
        return (await fetch("/notifications", {method: "POST", body})).status;
    }""", fields)  # fmt: skip
    assert status == 200
    page.reload()
    return key


def test_a_browser_is_notified_tested_and_removed(visitor: Visitor) -> None:
    visitor.allow_private_push()
    with PushService() as service:
        page = visitor.open("/notifications")
        assert page.get_by_text("No browser is notified yet.").is_visible()
        browser = PushedBrowser(service)
        key = subscribe(page, browser)
        page.get_by_role("button", name="Test").click()
        assert browser.next(key)[0] == {"kind": "test", "job": ""}
        page.wait_for_selector(".note.ok:has-text('accepted the test')")

        draft = Draft(kind="question", text="Which reader?", choices=("new", "old"))
        job = visitor.job("importer")
        questions.ask(visitor.registry, job.job_id, draft, attempt=job.attempt)
        assert browser.next(key)[0] == {"kind": "question", "job": job.job_id}
        page.goto(f"{visitor.server.url}/notifications")
        assert "accepted" in page.locator("tr", has_text="question 1").inner_text()

        page.get_by_role("button", name="Remove").click()
        page.wait_for_selector(".note:has-text('not notified any more')")
        assert subscriptions(visitor.registry.store) == []


def test_a_log_out_ends_it(visitor: Visitor) -> None:
    with PushService() as service:
        page = visitor.open("/notifications")
        subscribe(page, PushedBrowser(service))
        assert len(subscriptions(visitor.registry.store)) == 1
        page.get_by_role("button", name="Log out").click()
        page.wait_for_url("**/login")
        assert subscriptions(visitor.registry.store) == []


def test_without_https_a_sentence_says_what_to_do(visitor: Visitor) -> None:
    """The host of the request decides; a page of this host works without HTTPS."""
    page = visitor.open("/notifications")
    assert not page.get_by_text("only over HTTPS").is_visible()
    address = visitor.server.url
    host = f"mam.example.org:{address.rpartition(':')[2]}"
    visitor.server.stop()
    visitor.server.start("--public-url", f"http://{host}")
    answer = page.request.get(f"{address}/notifications", headers={"host": host})
    assert "only over HTTPS" in answer.text()


def test_the_page_can_be_installed(visitor: Visitor) -> None:
    page = visitor.open("/")
    tools = page.context.new_cdp_session(page)
    assert tools.send("Page.getAppManifest")["errors"] == []
    errors = [one["errorId"] for one in tools.send("Page.getInstallabilityErrors")["installabilityErrors"]]
    assert errors == ["in-incognito"], "the browser of a test keeps nothing, which is the only hindrance"


class Worker:
    """The service worker of a page, at the protocol of the browser's developer tools."""

    def __init__(self, page: Page, address: str) -> None:
        self._page = page
        page.context.grant_permissions(["notifications"])
        page.evaluate("navigator.serviceWorker.register('/sw.js').then(() => navigator.serviceWorker.ready)")
        page.wait_for_function("navigator.serviceWorker.controller !== null")
        self._tools: CDPSession = page.context.new_cdp_session(page)
        found: list[dict[str, Any]] = []
        self._tools.on("ServiceWorker.workerRegistrationUpdated", lambda event: found.extend(event["registrations"]))
        self._tools.send("ServiceWorker.enable")
        while not found:
            page.wait_for_timeout(10)
        self._registration = found[0]["registrationId"]
        self._origin = address

    def push(self, message: object) -> None:
        given = {"origin": self._origin, "registrationId": self._registration, "data": json.dumps(message)}
        self._tools.send("ServiceWorker.deliverPushMessage", given)

    def shown(self) -> dict[str, Any]:
        """The notification, once there is one."""
        found: dict[str, Any] = self._page.evaluate("""async () => {
            const worker = await navigator.serviceWorker.ready;
            for (;;) {
                const [one] = await worker.getNotifications();
                if (one) return {title: one.title, body: one.body, tag: one.tag};
                await new Promise(requestAnimationFrame);
            }
        }""")
        return found


def test_the_service_worker_shows_what_is_pushed_and_a_click_opens_the_question(visitor: Visitor) -> None:
    page = visitor.open("/jobs")
    job = visitor.ids["login"]
    worker = Worker(page, visitor.server.url)
    worker.push({"kind": "question", "job": job})
    assert worker.shown() == {"title": "A job asks", "body": f"Job {job[:8]}", "tag": f"question {job}"}
    (script,) = page.context.service_workers
    script.evaluate("""async () => {
        const [notification] = await self.registration.getNotifications();
        self.dispatchEvent(new NotificationEvent("notificationclick", {notification}));
    }""")
    page.wait_for_url(f"**/jobs/{job}")
    page.get_by_role("button", name="Allow once").wait_for()


def test_the_service_worker_shows_nothing_of_a_hostile_message(visitor: Visitor) -> None:
    page = visitor.open("/jobs")
    worker = Worker(page, visitor.server.url)
    worker.push({"kind": "<img src=x>", "job": "../../evil", "more": "x"})
    assert worker.shown() == {"title": "Something needs you", "body": "", "tag": "<img src=x> "}

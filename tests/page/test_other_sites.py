"""A page of another site, in the browser of someone who is logged in: it reads nothing and changes nothing.

Its address differs by the port only, so for a browser it is the same site, and the cookie goes with its requests.
"""

from __future__ import annotations

from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.page.visitor import Visitor

pytestmark = pytest.mark.external

ATTACKS = """
async (mam) => {
  const found = {};
  const tried = async (name, act) => {
    try { found[name] = await act(); } catch (error) { found[name] = `refused: ${error.name}`; }
  };
  const job = JSON.stringify({ prompt: "planted", agent: "shell" });
  const post = { method: "POST", credentials: "include", body: job };
  const read = async (path) => (await fetch(mam + path, { credentials: "include" })).text();
  await tried("read the list", () => read("/api/v1/jobs"));
  await tried("read the page", () => read("/jobs"));
  await tried("post json", async () => (await fetch(`${mam}/api/v1/jobs`,
    { ...post, headers: { "content-type": "application/json" } })).text());
  await tried("post as text", async () => (await fetch(`${mam}/api/v1/jobs`, { ...post, mode: "no-cors" })).text());
  await tried("post as text to mcp", async () => (await fetch(`${mam}/mcp`, { ...post, mode: "no-cors" })).text());
  await tried("follow the events", () => new Promise((done, fail) => {
    const source = new EventSource(`${mam}/api/v1/events?after=start`, { withCredentials: true });
    source.addEventListener("change", ({ data }) => done(data));
    source.onerror = () => { source.close(); fail(new TypeError("closed")); };
  }));
  await tried("as a script", () => new Promise((done, fail) => {
    const script = Object.assign(document.createElement("script"), { src: `${mam}/api/v1/jobs` });
    script.onload = () => done("loaded");
    script.onerror = () => fail(new TypeError("blocked"));
    document.head.append(script);
  }));
  await tried("in a frame", () => new Promise((done) => {
    const frame = Object.assign(document.createElement("iframe"), { src: `${mam}/jobs` });
    frame.onload = () => { try { done(frame.contentDocument.body.innerText); } catch { done(""); } };
    document.body.append(frame);
  }));
  await tried("send a form", () => new Promise((done) => {
    const target = Object.assign(document.createElement("iframe"), { name: "target" });
    const form = document.createElement("form");
    Object.assign(form, { method: "post", action: `${mam}/jobs`, target: "target" });
    for (const [name, value] of [["prompt", "planted"], ["agent", "codex"]])
      form.append(Object.assign(document.createElement("input"), { name, value }));
    target.onload = () => { try { done(target.contentDocument.body.innerText); } catch { done(""); } };
    document.body.append(target, form);
    form.submit();
  }));
  return found;
}
"""


@contextmanager
def other_site() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>other</title><body>a harmless page")

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


def test_a_page_of_another_site_reads_and_changes_nothing(visitor: Visitor) -> None:
    before = visitor.registry.store.end_offset()
    own = visitor.open("/jobs")
    prompt = visitor.job("book").prompt
    assert prompt[:20] in own.evaluate("async () => (await fetch('/api/v1/jobs')).text()"), "the own page reads"
    with other_site() as address:
        page = own.context.new_page()
        page.goto(address)
        found = page.evaluate(ATTACKS, visitor.server.url)

    assert len(found) == 9
    told = str(found)
    assert prompt[:20] not in told
    assert visitor.ids["book"][:8] not in told
    for name in ("read the list", "read the page", "post json", "follow the events", "as a script"):
        assert found[name].startswith("refused"), (name, found[name])
    assert visitor.registry.store.end_offset() == before


def test_a_window_that_another_site_opens_cannot_be_reached(visitor: Visitor) -> None:
    own = visitor.open("/jobs")
    with other_site() as address:
        page = own.context.new_page()
        page.goto(address)
        with page.expect_popup() as opened:
            page.evaluate("(mam) => { window.theirs = window.open(mam + '/jobs'); }", visitor.server.url)
        opened.value.wait_for_load_state()
        assert opened.value.evaluate("window.opener === null")
        assert page.evaluate("window.theirs.closed")

"""Acts that reach the host of the server: changes are applied to a checkout, and a live session is stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from tests.agents.sessions import Sessions
from tests.serve.process import server_process
from tests.work.scripted_claude import Project, project_fixture

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.cli.command import Mam

__all__ = ["project_fixture"]

pytestmark = pytest.mark.external


@contextmanager
def page_of(mam: Mam, browser: Browser) -> Iterator[Page]:
    """A page that is logged in, and fails the test for an error of a script."""
    problems: list[str] = []
    with server_process(mam) as server:
        context = browser.new_context(base_url=server.url)
        context.set_default_timeout(30_000)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(server.printed)
        page.wait_for_url(f"{server.url}/")
        yield page
        context.close()
    assert problems == []


def test_the_changes_of_a_job_are_applied_to_its_checkout(project: Project, browser: Browser) -> None:
    job, other = project.run("echo b > b.txt"), project.run("echo theirs > a.txt")
    project.repository.commit("a.txt", "ours\n")
    with page_of(project.mam, browser) as page:
        page.goto(f"/jobs/{job}")
        page.get_by_role("button", name="Apply").click()
        page.wait_for_selector(".note.ok:has-text('Applied')")
        assert (project.path / "b.txt").read_text() == "b\n"
        assert "Applied by local to main" in page.inner_text(".facts")
        assert not page.get_by_role("button", name="Apply").is_visible()

        page.goto(f"/jobs/{other}")
        page.get_by_role("button", name="Apply").click()
        page.get_by_text("conflicts with main in a.txt").wait_for()
        assert (project.path / "a.txt").read_text() == "ours\n"
        assert project.mam.record(other)["applied"] is None


def test_a_live_session_is_stopped_after_a_question(project: Project, browser: Browser) -> None:
    with TemporaryDirectory(prefix="mam-t-") as folder:
        sessions = Sessions(project.mam, Path(folder))
        try:
            sessions.start("gpu", "/bin/cat")
            with page_of(project.mam, browser) as page:
                page.goto("/workers")
                page.get_by_role("button", name="Stop").click()
                page.get_by_role("dialog").get_by_role("button", name="Leave it").click()
                assert sessions.names()
                page.get_by_role("button", name="Stop").click()
                page.get_by_role("dialog").get_by_role("button", name="Stop").click()
                page.wait_for_selector(".note.ok:has-text('Stopped')")
                assert sessions.state("gpu") == "stopped"
                assert not page.get_by_role("button", name="Stop").is_visible()
        finally:
            sessions.close()

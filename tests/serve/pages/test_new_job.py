"""What the form of a new job offers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mam.access.registry import AuthorizedRegistry
from mam.access.viewer import local_viewer
from mam.registry import Registry
from mam.serve.pages.new_jobs import command_of, new_job_form
from mam.stores.files.store import FilesStore, create_files_store

if TYPE_CHECKING:
    from pathlib import Path


def test_the_first_job_of_a_project_is_offered_its_directory(tmp_path: Path) -> None:
    place = tmp_path / "shop/.mam/jobs"
    place.parent.mkdir(parents=True)
    create_files_store(str(place))
    store = FilesStore(str(place))
    form = new_job_form(AuthorizedRegistry(Registry(store), local_viewer("anna")), {})
    store.close()
    project = str(tmp_path / "shop")
    assert (form.project, form.workdirs, form.values["workdir"], form.values["worktree"]) == (
        project, (project,), "", "on",
    )  # fmt: skip


def test_the_command_has_what_was_chosen() -> None:
    values = {"prompt": "Do it", "agent": "codex", "workdir": "/w", "worktree": "on", "after": "a1, b2", "ask": ""}
    assert command_of(values) == (
        "mam register 'Do it' --agent codex --workdir /w --after a1 --after b2 --worktree --no-ask"
    )

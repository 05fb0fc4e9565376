"""The second listener of a server, with the routes of prompt-valet, and a client of it."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx

from mam.config.settings import Config
from mam.work.state_dirs import output_path, work_directory
from tests.serve.serving import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.registry import Registry
    from tests.serve.serving import Serving

REPOS = {"acme/shop": "/srv/shop", "acme/docs": "/srv/docs", "other/docs": "/srv/other-docs"}


@contextmanager
def valet(registry: Registry, **inbox: object) -> Iterator[tuple[Serving, httpx.Client]]:
    """The second listener of a server, and a client of it that may do everything."""
    config = Config(repos=REPOS, default_agent="codex", inbox=inbox)
    with serving(registry, config=config, with_valet=True) as served:
        assert served.valet_url is not None
        auth = ("mam", served.token("admin", name="valet"))
        with httpx.Client(base_url=f"{served.valet_url}/api/v1", auth=auth, timeout=60, trust_env=False) as client:
            yield served, client


def send(client: httpx.Client, text: str = "tidy up", **more: str) -> httpx.Response:
    return client.post("/jobs", json={"repo": "shop", "branch": "main", "markdown_text": text, **more})


def log_of(served: Serving, job_id: str) -> str:
    """The path of the output of the job's first attempt, in a directory that is there."""
    path = output_path(work_directory(served.registry.store.address), job_id, 1)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path

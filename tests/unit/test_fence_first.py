"""A writer that has lost its claim gets ClaimLost and not ArtifactMissing, since its work no longer counts."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from mam.errors import ArtifactMissing, ClaimLost, Refused
from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.memory import MemoryStore


@pytest.fixture
def registry() -> Registry:
    return Registry(MemoryStore())


def taken_over(registry: Registry, folder: Path) -> str:
    """A job with a missing artifact whose first attempt has been handed back and claimed anew."""
    job_id = registry.register(prompt="p", agent="codex", artifacts=["made.md"], workdir=str(folder)).job.job_id
    registry.pick("codex", owner="first")
    registry.release(job_id, attempt=1)
    registry.pick("codex", owner="second")
    return job_id


def test_a_lost_claim_is_reported_before_a_missing_artifact(registry: Registry, tmp_path: Path) -> None:
    job_id = taken_over(registry, tmp_path)
    with pytest.raises(ClaimLost):
        registry.complete(job_id, attempt=1)
    with pytest.raises(ClaimLost):
        registry.publish(job_id, event="completed", attempt=1)
    with pytest.raises(ArtifactMissing, match=r"made\.md"):
        registry.complete(job_id, attempt=2)
    with pytest.raises(ArtifactMissing, match=r"made\.md"):
        registry.publish(job_id, event="completed", attempt=2)
    (tmp_path / "made.md").write_text("done")
    done = registry.complete(job_id, attempt=2)
    assert (done.status, done.checked) == (Status.COMPLETED, True)


def test_another_claim_of_the_same_attempt_is_refused_before_a_missing_artifact(
    registry: Registry, tmp_path: Path
) -> None:
    job_id = taken_over(registry, tmp_path)
    for end in (registry.complete, partial(registry.publish, event="completed")):
        with pytest.raises(ClaimLost, match="another claim holds attempt 2"):
            end(job_id, attempt=2, claim_id="another")
        with pytest.raises(ArtifactMissing, match=r"made\.md"):
            end(job_id, attempt=2, claim_id=registry.get(job_id).claim_id)


def test_a_repeated_completion_does_not_check_again(registry: Registry, tmp_path: Path) -> None:
    job_id = taken_over(registry, tmp_path)
    (tmp_path / "made.md").write_text("done")
    registry.complete(job_id, attempt=2)
    (tmp_path / "made.md").unlink()
    assert registry.complete(job_id, attempt=2).status is Status.COMPLETED


def test_an_illegal_write_checks_the_fence_first(registry: Registry, tmp_path: Path) -> None:
    job_id = taken_over(registry, tmp_path)
    with pytest.raises(ClaimLost):
        registry.set_status(job_id, Status.WAITING, attempt=1)
    with pytest.raises(Refused, match="is running"):
        registry.set_status(job_id, Status.WAITING, attempt=2)

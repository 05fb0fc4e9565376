"""Keys, dependencies and pauses where only files tell of them: a lost index, a foreign hand, a spoiled record."""

from __future__ import annotations

from mam.jobs.pause import Pause
from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.port import Query
from tests.files.conftest import Place
from tests.files.invariants import check


def picked(registry: Registry, label: str = "codex") -> str | None:
    job = registry.pick(label, owner="me")
    return None if job is None else job.job_id


def registered(registry: Registry, count: int = 1, **choices: object) -> list[str]:
    chosen = {"prompt": "p", "agent": "codex", **choices}
    return [registry.register(**chosen).job.job_id for _ in range(count)]  # type: ignore[arg-type]


def lose_index(place: Place) -> None:
    place.close()
    for path in (place.path / ".store").glob("index.sqlite*"):
        path.unlink()


def test_a_lost_index_knows_again_who_waits_for_whom(place: Place) -> None:
    registry = place.open()
    (first,) = registered(registry, label="before")
    many = registered(registry, 20, after=[first])
    registry.fail(first, reason="broken")
    again = registry.retry(first).job.job_id
    lose_index(place)

    registry = place.open()
    assert picked(registry) is None
    registry.complete(again)

    assert [picked(registry) for _ in many] == many
    check(place, registry)


def test_an_end_that_nobody_was_told_of_before_the_index_was_lost_is_told_after(place: Place) -> None:
    registry = place.open()
    (first,) = registered(registry, label="before")
    (last,) = registered(registry, after=[first])
    registry.complete(first)
    lose_index(place)

    assert picked(place.open()) == last


def test_a_lost_index_knows_again_which_keys_are_in_use(place: Place) -> None:
    registry = place.open()
    first, second = registered(registry, 2, exclusive="gpu")
    assert picked(registry) == first
    lose_index(place)

    registry = place.open()
    assert registry.store.holder("gpu") == first
    assert picked(registry) is None
    registry.complete(first)
    assert picked(registry) == second


def test_a_foreign_hand_cannot_make_a_second_one_run_under_a_key(place: Place) -> None:
    registry = place.open()
    first, second = registered(registry, 2, exclusive="gpu")
    assert picked(registry) == first

    place.edit(second, lambda fields: fields.update(status="running"))

    assert registry.get(second).status is Status.PENDING
    assert any("runs under its exclusive key" in found.problem for found in registry.store.problems())
    assert registry.store.holder("gpu") == first


def test_a_copied_record_that_says_it_runs_under_a_key_in_use_is_pending(place: Place) -> None:
    registry = place.open()
    (first,) = registered(registry, exclusive="gpu")
    assert picked(registry) == first
    copy = {**place.fields(first), "job_id": "copy", "number": 0}
    place.rename_in("copy", copy)

    assert registry.get("copy").status is Status.PENDING


def test_a_spoiled_record_at_the_head_of_a_key_is_not_in_the_way(place: Place) -> None:
    registry = place.open()
    first, second, third = registered(registry, 3, exclusive="gpu")
    whole = place.file(first).read_bytes()
    place.file(first).write_bytes(b"{")
    assert picked(registry) == second

    place.file(first).write_bytes(whole)
    registry.complete(second)
    list(registry.select(Query()))

    assert picked(registry) == first
    registry.complete(first)
    assert picked(registry) == third


def test_a_removed_job_frees_its_key_and_is_no_longer_waited_for(place: Place) -> None:
    registry = place.open()
    first, second = registered(registry, 2, exclusive="gpu")
    assert picked(registry) == first
    (held,) = registered(registry, label="h", after=[first])
    (free,) = registered(registry, label="f", after=[first], on_dependency_failure="run")

    place.file(first).unlink()

    assert picked(registry) == second
    assert picked(registry, "f") == free
    assert registry.get(held).status is Status.WAITING
    assert "which is gone" in " ".join(registry.explain(held)[1])


def test_pauses_survive_and_are_private(place: Place) -> None:
    place.open().pause(Pause(agent="codex", reason="limit"))
    file = place.path / ".store" / "pauses"

    assert file.stat().st_mode & 0o777 == 0o600
    assert [one.agent for one in place.open().store.pauses()] == ["codex"]
    file.write_bytes(b"nonsense")
    assert place.open().store.pauses() == []
    assert (place.path / ".store" / "pauses.damaged").exists()


def test_secrets_are_private(place: Place) -> None:
    store = place.open().store
    store.keep_secrets("one", {"auth_token": "canary"})

    assert (place.path / ".store" / "secrets").stat().st_mode & 0o777 == 0o600
    assert place.open().store.secrets("one") == {"auth_token": "canary"}

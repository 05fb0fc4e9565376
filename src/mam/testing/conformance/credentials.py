"""What a store keeps about the callers of a server."""

from __future__ import annotations

from threading import Barrier, Thread
from typing import TYPE_CHECKING

from mam.jobs.credential import CODE, SESSION, TOKEN, Credential
from mam.testing.conformance.base import StoreCase, register_jobs, snapshot

if TYPE_CHECKING:
    from typing import Any

    from mam.registry import Registry
    from mam.stores.port import Store
    from mam.testing.clock import FakeClock


def credential_of(store: Store, kind: str = TOKEN, name: str = "phone", **fields: Any) -> Credential:
    given = {
        "kind": kind, "name": name, "digest": f"digest of {kind} {name}", "parent": "phone",
        "made_ms": store.clock.now().wall_ms, "expires_ms": None, "grant": {"scopes": ["read"], "label": ["büro"]},
    }  # fmt: skip
    return Credential(**{**given, **fields})


class Credentials(StoreCase):
    def test_a_token_is_found_by_its_digest_as_it_was_kept(self, store: Store) -> None:
        token = credential_of(store)
        assert store.credential(token.digest) is None

        assert store.keep_credential(token)
        assert store.keep_credential(token), "a repeat after a lost answer"

        assert store.credential(token.digest) == token
        assert store.credentials(TOKEN) == [token]
        assert store.credentials(SESSION) == []

    def test_a_second_token_of_the_same_name_is_refused(self, store: Store) -> None:
        token = credential_of(store)
        store.keep_credential(token)

        assert not store.keep_credential(credential_of(store, digest="another"))

        assert store.credentials(TOKEN) == [token]

    def test_a_session_ends_with_its_token(self, store: Store) -> None:
        store.keep_credential(credential_of(store))
        store.keep_credential(credential_of(store, name="other", parent="other"))
        session = credential_of(store, SESSION, "one")
        kept = credential_of(store, SESSION, "two", parent="other")
        assert store.keep_credential(session)
        assert store.keep_credential(kept)
        assert store.keep_credential(credential_of(store, CODE, "three"))

        assert store.drop_credential(TOKEN, "phone")

        assert store.credential(session.digest) is None
        assert (store.credentials(SESSION), store.credentials(CODE)) == ([kept], [])
        assert not store.drop_credential(TOKEN, "phone")

    def test_nothing_is_kept_for_a_token_that_is_gone(self, store: Store) -> None:
        store.keep_credential(credential_of(store))
        store.drop_credential(TOKEN, "phone")

        assert not store.keep_credential(credential_of(store, SESSION, "late"))

        assert store.credentials(SESSION) == []

    def test_an_expired_one_goes_with_the_next_that_is_kept(self, store: Store, clock: FakeClock) -> None:
        soon = store.clock.now().wall_ms + 1000
        store.keep_credential(credential_of(store, expires_ms=soon))
        store.keep_credential(credential_of(store, SESSION, "one"))
        clock.advance(1.0)

        assert store.keep_credential(credential_of(store, name="new", parent="new"))

        assert [one.name for one in store.credentials(TOKEN)] == ["new"]
        assert store.credentials(SESSION) == []

    def test_one_of_many_callers_gets_a_code(self, store: Store) -> None:
        store.keep_credential(credential_of(store))
        code = credential_of(store, CODE, "once", expires_ms=store.clock.now().wall_ms + 60_000)
        store.keep_credential(code)
        start, taken = Barrier(8), list[Credential | None]()

        def take() -> None:
            start.wait(60)
            taken.append(store.take_credential(code.digest))

        callers = [Thread(target=take) for _ in range(8)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(60)

        assert len(taken) == 8
        assert [one for one in taken if one is not None] == [code]

    def test_credentials_leave_jobs_and_journal_alone(self, registry: Registry, store: Store) -> None:
        register_jobs(registry)
        before = snapshot(store)

        store.keep_credential(credential_of(store))
        store.take_credential("unknown")
        store.drop_credential(TOKEN, "phone")

        assert snapshot(store) == before


class DurableCredentials(StoreCase):
    def test_another_process_sees_a_token_and_can_revoke_it(
        self, store: Store, location: str, clock: FakeClock
    ) -> None:
        token = credential_of(store)
        store.keep_credential(token)
        other = self.open_store(location, clock)
        try:
            assert other.credential(token.digest) == token
            assert other.drop_credential(TOKEN, "phone")
        finally:
            other.close()

        assert store.credential(token.digest) is None

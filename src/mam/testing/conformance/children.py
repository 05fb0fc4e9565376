"""Jobs that were registered from inside others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mam.testing.conformance.base import StoreCase, register_jobs

if TYPE_CHECKING:
    from mam.registry import Registry


class Children(StoreCase):
    def test_the_children_of_a_job_are_its_own_oldest_first(self, registry: Registry) -> None:
        parent, other = register_jobs(registry, count=2)
        (first,) = register_jobs(registry, parent_id=parent, depth=1, priority=-5)
        register_jobs(registry, parent_id=other, depth=1)
        (second,) = register_jobs(registry, parent_id=parent, depth=1, priority=5)
        register_jobs(registry, parent_id=first, depth=2)

        assert registry.store.children(parent) == [first, second]

    def test_an_ended_child_is_still_a_child_and_a_retry_of_it_too(self, registry: Registry) -> None:
        (parent,) = register_jobs(registry)
        (child,) = register_jobs(registry, parent_id=parent, depth=1)
        registry.cancel(child)
        retried = registry.retry(child).job.job_id

        assert registry.store.children(parent) == [child, retried]

    def test_a_job_without_children_has_none(self, registry: Registry) -> None:
        (job_id,) = register_jobs(registry)

        assert registry.store.children(job_id) == registry.store.children("nobody") == []

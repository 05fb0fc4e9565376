"""The one suite that every store passes.

A store's author writes this in a pytest module and has all of it:

    class TestMyStore(StoreConformance):
        @staticmethod
        def open_store(location: str, clock: Clock | None = None) -> Store:
            return MyStore(location, clock)

The tests ask what a store does, never how. They drive it through `mam.registry`, as every door of mam does, and through
the port where a verb does not reach. Races run in processes of their own, which open the store by the same function.
"""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite(
    *(
        f"mam.testing.{name}"
        for name in (
            "tasks", "conformance.archives", "conformance.base", "conformance.claims", "conformance.consumers",
            "conformance.continuations", "conformance.credentials",
            "conformance.dependencies", "conformance.durability", "conformance.exclusive", "conformance.children",
            "conformance.fences", "conformance.generations", "conformance.outputs", "conformance.pauses",
            "conformance.questions", "conformance.edits",
            "conformance.foreign", "conformance.journal", "conformance.lifecycle", "conformance.races",
            "conformance.registration", "conformance.sequence", "conformance.summaries", "conformance.supervising",
            "conformance.time", "conformance.workers",
        )
    )
)  # fmt: skip

from mam.testing.conformance.archives import Archives  # noqa: E402 - after the assertions are made to speak
from mam.testing.conformance.children import Children  # noqa: E402
from mam.testing.conformance.claims import Claims  # noqa: E402
from mam.testing.conformance.consumers import Consumers, DurableConsumers  # noqa: E402
from mam.testing.conformance.continuations import Continuations  # noqa: E402
from mam.testing.conformance.credentials import Credentials, DurableCredentials  # noqa: E402
from mam.testing.conformance.dependencies import Dependencies  # noqa: E402
from mam.testing.conformance.durability import Durability  # noqa: E402
from mam.testing.conformance.edits import Edits  # noqa: E402
from mam.testing.conformance.exclusive import Exclusive  # noqa: E402
from mam.testing.conformance.fences import Fences  # noqa: E402
from mam.testing.conformance.foreign import ForeignWrites  # noqa: E402
from mam.testing.conformance.generations import DurableGenerations, Generations  # noqa: E402
from mam.testing.conformance.journal import Journals  # noqa: E402
from mam.testing.conformance.lifecycle import Lifecycle  # noqa: E402
from mam.testing.conformance.outputs import DurableOutputs, Outputs  # noqa: E402
from mam.testing.conformance.pauses import Pauses  # noqa: E402
from mam.testing.conformance.questions import Questions  # noqa: E402
from mam.testing.conformance.races import Races  # noqa: E402
from mam.testing.conformance.registration import Registrations  # noqa: E402
from mam.testing.conformance.sequence import Sequences  # noqa: E402
from mam.testing.conformance.summaries import Summaries  # noqa: E402
from mam.testing.conformance.supervising import Supervising  # noqa: E402
from mam.testing.conformance.time import Time  # noqa: E402
from mam.testing.conformance.workers import DurableWorkers, Workers  # noqa: E402

__all__ = ["ForeignWrites", "InProcessConformance", "StoreConformance"]


class InProcessConformance(
    Registrations, Claims, Fences, Supervising, Lifecycle, Sequences, Time, Journals, Dependencies, Exclusive, Pauses,
    Continuations, Generations, Archives, Children, Consumers, Outputs, Summaries, Questions, Edits, Workers,
    Credentials, Races,
):  # fmt: skip
    """For a store that lives and dies with its process: threads race for it, and nothing is opened anew."""

    shared_by_processes = False


class StoreConformance(
    Durability,
    DurableGenerations,
    DurableConsumers,
    DurableOutputs,
    DurableWorkers,
    DurableCredentials,
    InProcessConformance,
):
    """For every store that others can open too."""

    shared_by_processes = True

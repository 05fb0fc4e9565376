"""`human`: mam starts no process. The worker shows the brief and waits for `mam complete`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.work.adapters.port import Adapter
    from mam.work.workdir import WorkDir


class HumanAdapter:
    name = "human"

    def launch(self, _job: Job, _brief: str, _place: WorkDir, _private: str) -> None:
        return None


def adapter() -> Adapter:
    return HumanAdapter()

"""`shell`: the prompt is a script."""

from __future__ import annotations

from mam.errors import AgentNotFound
from mam.work.adapters.port import Launch
from mam.work.job_dir import write_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.work.adapters.port import Adapter
    from mam.work.workdir import WorkDir


class ShellAdapter:
    name = "shell"

    def launch(self, job: Job, _brief: str, _place: WorkDir, private: str) -> Launch:
        """Runs a file, so that a script of any length works and `ps` does not show it. Like any script it continues
        after a failed command unless it sets `-e`, and its first line may name another interpreter."""
        script = f"{private}.script"
        try:
            content = job.prompt.encode()
        except UnicodeEncodeError:
            raise AgentNotFound(agent=self.name, why="the prompt is not text that a file can hold") from None
        write_private(script, content, 0o700)
        return Launch(argv=(script,) if content.startswith(b"#!") else ("/bin/sh", script), env={})


def adapter() -> Adapter:
    return ShellAdapter()

"""A store with jobs in every status, and `mam doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mam.config.settings import Config
from mam.location.stores import open_registry
from tests.cli.command import Mam


class Doctor(Mam):
    def __init__(self, here: Path, home: Path) -> None:
        super().__init__(here, home)
        self.env["XDG_STATE_HOME"] = str(home / "state")

    @property
    def jobs(self) -> Path:
        return self.here / ".mam/jobs"

    @property
    def inside(self) -> Path:
        return self.jobs / ".store"

    def fill(self) -> list[str]:
        """Pending, running, completed and error; a retry, an event, an exclusive key."""
        named = self.env.get("MAM_STORE")
        registry = open_registry(named, None if named else str(self.jobs), Config(), create=True)
        ids = [registry.register(prompt=f"job {n}", agent="shell", label=f"label-{n}").job.job_id for n in range(4)]
        for label in ("label-1", "label-2", "label-3"):
            assert registry.pick(label, owner="me") is not None
        registry.publish(ids[1], event="progress", detail="half way")
        registry.complete(ids[2], attempt=1, result="done")
        registry.fail(ids[3], attempt=1, reason="broken")
        registry.retry(ids[3])
        registry.register(prompt="alone", agent="shell", exclusive="key")
        registry.store.close()
        later = open_registry(named, None if named else str(self.jobs), Config())
        later.sweep()  # confirms that the record files are complete
        later.store.close()
        return ids

    def run(self, *words: str, **env: str) -> Findings:
        self.env.update(env)
        ran = self("doctor", "--json", *words)
        assert all(line.startswith("mam: ") for line in ran.stderr.splitlines()), ran.stderr
        return Findings(ran.code, ran.json)

    def content(self) -> dict[str, bytes]:
        """Every file below the project that is not a cache or a lock."""
        files = (file for file in self.here.rglob("*") if file.is_file() and ".git/" not in str(file))
        return {str(file): file.read_bytes() for file in files if not file.name.endswith("-shm")}


class Findings:
    def __init__(self, code: int, answer: dict[str, Any]) -> None:
        self.code = code
        self.findings: list[dict[str, Any]] = answer["findings"]
        assert answer["sound"] == (code == 0)
        assert code == int(any(finding["state"] == "wrong" for finding in self.findings))

    def wrong(self) -> list[str]:
        return [f"{finding['check']}: {finding['what']}" for finding in self.findings if finding["state"] == "wrong"]

    def one(self, check: str, state: str) -> dict[str, Any]:
        """The one finding of that state."""
        found = [one for one in self.findings if (one["check"], one["state"]) == (check, state)]
        assert len(found) == 1, self.findings
        if state in ("wrong", "note"):
            assert found[0]["why"], "every line says why it matters"
        return found[0]

    def sound(self) -> None:
        assert self.wrong() == [], self.wrong()

"""The parts that all attempts of one worker share: registry, guardian, doors and messages."""

from __future__ import annotations

import os

from mam.agent_table import CODING_AGENTS
from mam.errors import AgentNotFound
from mam.jobs.draft import HUMAN
from mam.jobs.lease import LOCAL_SECONDS
from mam.jobs.rights import SHELL, Grants
from mam.machine.environment import agent_environment
from mam.util.state_dir import make_private
from mam.work.adapters import installed_agents, load_adapter
from mam.work.asking.in_worker import WorkerAsker
from mam.work.asking.policy import PERMISSION_SECONDS, policy_of
from mam.work.door.server import Door, DoorServer
from mam.work.host_checks import Backoff
from mam.work.masking import known_secrets
from mam.work.process.pidfiles import PidFile
from mam.work.process.runner import GuardianClient
from mam.work.state_dirs import store_mark
from mam.work.supervision import GRACE_SECONDS
from mam.work.upload import Uploader, output_settings
from mam.work.validator import trusted_validation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.config.settings import Config
    from mam.errors import MamError
    from mam.jobs.record import Job, Json
    from mam.registry import Registry
    from mam.work.adapters.port import Adapter
    from mam.work.attempt import Attempt
    from mam.work.live.session import LiveSession

UNNAMED_AGENT = "unknown"
"""The agent of an old record that names none."""


PARKED = 4
"""How many jobs of a worker may wait for an answer without occupying one of its places."""


class WorkerContext:
    def __init__(
        self,
        registry: Registry,
        config: Config,
        work_directory: str,
        *,
        logs_dir: str | None = None,
        default_agent: str | None = None,
        lease_seconds: float = LOCAL_SECONDS,
        grace_seconds: float = GRACE_SECONDS,
        session: LiveSession | None = None,
        say: Callable[[str], None] = lambda _words: None,
        show: Callable[[str], None] = lambda _text: None,
    ) -> None:
        grants = children_grants(config)
        self._complained = ""
        self._is_store_away = False
        self._say = say
        self._show = show
        self.registry = registry
        self.work_directory = make_private(work_directory)
        self.mark = store_mark(self.work_directory)
        self.workdirs = config.workdirs
        self.waits_for_limits = config.on_limit != "fail"
        self.asks_at_limits = config.on_limit == "ask"
        self.parked_limit: int = config.questions.get("parked", PARKED)
        self.repos = config.repos
        self.request_command = tuple(config.inbox.get("pull_request_command", ()))
        self.lease_seconds = lease_seconds
        self.grace_seconds = grace_seconds
        self.is_leaving = False
        """Whether the worker has to leave, so that running jobs are released."""
        self.backoff = Backoff()
        self.guardian = GuardianClient()
        self.pid_file = PidFile(self.work_directory)
        self._environ = dict(os.environ)
        """Copied once: Python decodes every name and value at each access."""
        secrets = known_secrets(self._environ)
        self._policy = policy_of(config, secrets, self.say_once, PERMISSION_SECONDS if session is None else None)
        self.door_server = DoorServer(
            registry, logs_dir=logs_dir, max_depth=config.max_depth, grants=grants, policy=self._policy
        )  # fmt: skip
        self.session = session
        """The live session that gets all jobs, one at a time; None for agents that the worker starts."""
        self._config = config
        self._default_agent = default_agent
        self.uploader = Uploader(registry.store, output_settings(config.output), secrets)

    def attempt(self, job: Job) -> Attempt:
        if self.session is None:
            from mam.work.headless_attempt import HeadlessAttempt

            return HeadlessAttempt(self, job)
        from mam.work.live.attempt import LiveAttempt

        return LiveAttempt(self, job, self.session)

    def adapter(self, job: Job) -> Adapter:
        agent = self._agent_of(job)
        if job.model is not None and (agent not in CODING_AGENTS or agent in self._config.commands):
            raise AgentNotFound(agent=agent, why=f"it takes no model, and the job names {job.model}")
        return load_adapter(agent, self._config)

    def agents(self) -> tuple[str, ...]:
        """The kinds of agents that this worker can run."""
        if self.session is not None:
            return (self.session.tool,)
        return tuple(sorted({*installed_agents(self._config), SHELL, HUMAN}))

    def prices(self, job: Job) -> Json | None:
        """The token prices of the job's agent, if the user has set them."""
        return self._config.prices.get(self._agent_of(job))

    def _agent_of(self, job: Job) -> str:
        return self._default_agent if self._default_agent and job.agent == UNNAMED_AGENT else job.agent

    def environment(self, job: Job) -> dict[str, str]:
        return agent_environment(self._environ, job, self.mark)

    def door(self, job: Job, workdir: str, on_activity: Callable[[], None], announce: Callable[[], None]) -> Door:
        return self.door_server.open(job.job_id, job.attempt, workdir, on_activity, announce, job.claim_id)

    def asker(self, job: Job) -> WorkerAsker:
        """For questions of the worker itself, when the door of the job is closed."""
        return WorkerAsker(self.registry, job.job_id, job.attempt, job.claim_id, self._policy)

    def say(self, job: Job, words: str) -> None:
        self._call_safely(self._say, f"{job.job_id[:8]} attempt {job.attempt}: {words}")

    def report_store(self, error: MamError | OSError | None) -> None:
        """The store did not answer, or answered (None)."""
        if error is not None:
            self.say_unreachable(error)
        elif self._is_store_away:
            self._is_store_away = False
            self.say_once("the store answers again")

    def say_unreachable(self, away: MamError | OSError) -> None:
        """Says that the worker retries, so that no person restarts it."""
        self._is_store_away = True
        words = str(away).removesuffix(".").removesuffix("; try again later")  # the worker does that
        self.say_once(f"{words}; trying until it works")

    def say_once(self, words: str) -> None:
        """Prints each message once: an outage of an hour is not worth a thousand lines."""
        if words != self._complained:
            self._complained = words
            self._call_safely(self._say, words)

    def show(self, text: str) -> None:
        """Prints the brief of a job for a person."""
        self._call_safely(self._show, text)

    def _call_safely(self, way: Callable[[str], None], words: str) -> None:
        """A closed terminal or a full disk behind a log must not stop a job."""
        try:
            way(words)
        except (OSError, ValueError):
            return

    def close(self) -> None:
        self.uploader.close()
        self.door_server.close()
        self.guardian.close()
        self.pid_file.close()
        if self.session is not None:
            self.session.close()


def children_grants(config: Config) -> Grants:
    """The rights that children may have. mam hashes their validation script now, before an agent can change it."""
    children = config.children
    script = children.get("validation")
    return Grants(
        agents=tuple(children.get("agents", ())),
        labels=tuple(children.get("labels", ())),
        worktrees=children.get("worktrees", False),
        validation=None if script is None else trusted_validation(os.path.expanduser(script)),
    )

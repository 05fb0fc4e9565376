"""One working call of each route: for the schemas of answers, for the table of scopes, and for hostile input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mam.access.credentials import create_token, owner_of, tokens
from mam.access.grant import EVERYTHING
from mam.stores.outputs import ARTIFACT, AttemptId, OutputLimits, Piece
from mam.stores.port import ClaimRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from mam.jobs.record import Job
    from tests.serve.serving import Serving

LABEL = "codex"


class World:
    """A server with what a call needs, and the client that makes it."""

    def __init__(self, served: Serving, client: httpx.Client | None = None, owner: str | None = None) -> None:
        self.served = served
        self.registry = served.registry
        self.client = served.client("admin", name="boss") if client is None else client
        named = {token.name: owner_of(token) for token in tokens(self.registry.store)}
        self.owner = named.get("boss" if client is None else owner or "", owner)
        """Who registered its jobs: a token of this name, if there is one."""

    def pending(self) -> Job:
        return self.registry.register(prompt="fix it", agent=LABEL, registered_by=self.owner).job

    def running(self) -> Job:
        job = self.registry.register(prompt="run it", agent=LABEL, label="runs", registered_by=self.owner).job
        claimed = self.registry.claim(ClaimRequest(label="runs", owner="w", job_id=job.job_id))
        assert claimed is not None
        return claimed

    def ended(self, reason: str = "broken") -> Job:
        job = self.running()
        return self.registry.fail(job.job_id, reason=reason, attempt=job.attempt, claim_id=job.claim_id)

    def completed(self) -> Job:
        job = self.running()
        attempt = AttemptId(job_id=job.job_id, attempt=job.attempt, claim_id=job.claim_id)
        outputs = self.registry.store.outputs
        outputs.append(attempt, Piece(start=0, data=b"hello\n"), OutputLimits())
        outputs.put(attempt, ARTIFACT, "report.md", b"# Report\n", OutputLimits())
        outputs.put(attempt, "diff", "", b"diff --git a/x b/x\n", OutputLimits())
        return self.registry.complete(job.job_id, attempt=job.attempt, claim_id=job.claim_id, result="done")

    def asking(self) -> Job:
        from mam import questions
        from mam.jobs.question import Draft

        job = self.running()
        draft = Draft(kind="permission", text="push?", tool="Bash", input={"command": "git push"})
        return questions.ask(self.registry, job.job_id, draft, attempt=job.attempt, claim_id=job.claim_id).job

    def get(self, path: str, /, **params: object) -> httpx.Response:
        return self.client.get(path, params={name: str(value) for name, value in params.items()})

    def post(self, path: str, body: object = None, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return (
            self.client.post(path, json=body, headers=named)
            if body is not None
            else self.client.post(path, headers=named)
        )

    def report(self, what: str, body: object = None) -> httpx.Response:
        job = self.running()
        return self.post(
            f"/claims/{job.job_id}/{what}", body, mam_attempt=str(job.attempt), mam_claim=str(job.claim_id)
        )


def _question(world: World) -> tuple[str, str]:
    job = world.asking()
    return f"{job.job_id}.1", job.questions[0]["digest"]


def _answered(world: World) -> httpx.Response:
    question, digest = _question(world)
    return world.post(f"/questions/{question}/answer", {"answer": "allow", "digest": digest})


def _picked(world: World) -> httpx.Response:
    world.pending()
    return world.post("/claims", {"label": LABEL})


def _paused(world: World) -> httpx.Response:
    return world.post("/pauses", {"agent": "nobody", "reason": "a test"})


def _resumed(world: World) -> httpx.Response:
    from mam.jobs.pause import Pause

    world.registry.pause(Pause(agent="nobody"))
    return world.client.delete("/pauses", params={"agent": "nobody"})


def _events(world: World) -> httpx.Response:
    return world.get("/events", follow="false", after="start")


def _worker(world: World, what: str) -> httpx.Response:
    from tests.serve.workers import live_worker

    live_worker(world.registry, "w@box:1")
    return world.post(f"/workers/w@box:1/{what}")


def _revoked(world: World) -> httpx.Response:
    old = f"old-{world.owner}".replace(".", "-")
    create_token(world.registry.store, old, EVERYTHING)
    return world.client.delete(f"/tokens/{old}")


STEPS: dict[str, Callable[[World], httpx.Response]] = {
    "list_jobs": lambda world: (world.pending(), world.get("/jobs"))[1],
    "get_job": lambda world: world.get(f"/jobs/{world.pending().job_id}"),
    "show_job": lambda world: world.get(f"/jobs/{world.completed().job_id}/show"),
    "explain_job": lambda world: world.get(f"/jobs/{world.pending().job_id}/explain"),
    "job_events": lambda world: world.get(f"/jobs/{world.completed().job_id}/events"),
    "job_result": lambda world: world.get(f"/jobs/{world.completed().job_id}/result"),
    "wait_for_job": lambda world: world.get(f"/jobs/{world.completed().job_id}/wait", timeout=1),
    "register_job": lambda world: world.post("/jobs", {"prompt": "fix it", "agent": LABEL}),
    "edit_job": lambda world: world.client.patch(f"/jobs/{world.pending().job_id}", json={"priority": 3}),
    "cancel_job": lambda world: world.post(f"/jobs/{world.pending().job_id}/cancel", {"reason": "no"}),
    "retry_job": lambda world: world.post(f"/jobs/{world.ended().job_id}/retry"),
    "continue_job": lambda world: world.post(f"/jobs/{world.pending().job_id}/continue", {"prompt": "more"}),
    "see_job": lambda world: world.post(f"/jobs/{world.ended().job_id}/seen"),
    "job_output": lambda world: world.get(f"/jobs/{world.completed().job_id}/output"),
    "job_conversation": lambda world: world.get(f"/jobs/{world.completed().job_id}/conversation"),
    "job_diff": lambda world: world.get(f"/jobs/{world.completed().job_id}/diff"),
    "job_artifacts": lambda world: world.get(f"/jobs/{world.completed().job_id}/artifacts"),
    "job_artifact": lambda world: world.get(f"/jobs/{world.completed().job_id}/artifact", path="report.md"),
    "pick_job": _picked,
    "heartbeat_job": lambda world: world.report("heartbeat"),
    "complete_job": lambda world: world.report("complete", {"result": "done"}),
    "fail_job": lambda world: world.report("fail", {"reason": "broken"}),
    "release_job": lambda world: world.report("release"),
    "publish_event": lambda world: world.report("events", {"event": "progress", "detail": "half"}),
    "ask_question": lambda world: world.report("questions", {"kind": "question", "text": "which?"}),
    "list_questions": lambda world: (world.asking(), world.get("/questions"))[1],
    "get_question": lambda world: world.get(f"/questions/{_question(world)[0]}"),
    "answer_question": _answered,
    "events": _events,
    "me": lambda world: world.get("/me"),
    "health": lambda world: world.get("/health"),
    "ready": lambda world: world.get("/ready"),
    "list_workers": lambda world: (world.running(), world.get("/workers"))[1],
    "drain_worker": lambda world: _worker(world, "drain"),
    "stop_worker": lambda world: _worker(world, "stop"),
    "list_sessions": lambda world: world.get("/sessions"),
    "list_pauses": lambda world: (_paused(world), world.get("/pauses"))[1],
    "pause": _paused,
    "resume": _resumed,
    "stats": lambda world: world.get("/stats"),
    "list_tokens": lambda world: world.get("/tokens"),
    "create_token": lambda world: world.post("/tokens", {"name": "new", "scopes": ["read"]}),
    "revoke_token": _revoked,
    "openapi": lambda world: world.get("/openapi.json"),
    "docs": lambda world: world.get("/docs"),
}
"""By the names of the routes."""

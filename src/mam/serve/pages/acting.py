"""The forms of the page. Each calls the registry with the rights of its viewer; the registry decides."""

from __future__ import annotations

from itertools import zip_longest

from starlette.responses import PlainTextResponse, Response

from mam.errors import AnswerTooLate, BadInput, MamError
from mam.jobs.notices import ACCEPTED
from mam.jobs.pause import draft_pause
from mam.jobs.question import DECISIONS
from mam.jobs.workers import DRAIN, STOP
from mam.serve.pages import markdown, new_jobs, showing
from mam.serve.pages import notifications as pushes
from mam.serve.pages.actions import APPLY, CANCEL, RETRY, SEEN
from mam.serve.pages.environment import THEME_COOKIE, THEMES
from mam.serve.pages.reviews import prompt_of_review
from mam.serve.pages.visit import Note, Visit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job

JOBS_MOST = 500
"""Jobs of one bulk act."""


def answer(visit: Visit) -> Response:
    """The form carries the digest of what was shown: an answer to anything else is refused. One that comes too late
    says who was first."""
    name, text = visit.path("question"), visit.field("answer") or visit.field("text").strip()
    if not text:
        raise BadInput(why="the answer is empty; the question stays open")
    reason = visit.field("reason").strip() or None
    try:
        visit.registry.answer(name, text, digest=visit.field("digest"), reason=reason)
    except AnswerTooLate as late:
        return showing.home(visit, Note(look="ask", text=str(late)), status=409)
    verb = text if text in DECISIONS else "answer"
    return visit.back(f"/{_next_question(visit)}", done=verb)


def _next_question(visit: Visit) -> str:
    """The fragment of the oldest question that is still open, so that answering goes on to the next."""
    left = visit.registry.questions()
    if not left:
        return ""
    first = left[0]
    return f"#q-{first.job.job_id}-{first.question.attempt}-{first.question.digest[:8]}"


def act_on_job(visit: Visit) -> Response:
    """Cancel, retry, seen or apply."""
    job, verb = visit.path("job"), visit.path("verb")
    if verb == APPLY:
        visit.registry.apply(job)
        return visit.back(f"/jobs/{job}", done=verb)
    done = _act(visit, job, verb)
    return visit.back(f"/jobs/{done.job_id}", done=verb)


def act_on_jobs(visit: Visit) -> Response:
    """The same for the selected jobs. Those that cannot be acted on are counted, and the others are done."""
    names, verb = visit.fields.get("job", []), visit.field("verb")
    if not names:
        raise BadInput(why="select a job first")
    if len(names) > JOBS_MOST:
        raise BadInput(why=f"at most {JOBS_MOST} jobs are acted on at once")
    done, failed = 0, 0
    for name in names:
        try:
            _act(visit, name, verb)
            done += 1
        except BadInput:
            raise
        except MamError:
            failed += 1
    return visit.back("/jobs", done=verb, count=str(done), **({"failed": str(failed)} if failed else {}))


def _act(visit: Visit, job: str, verb: str) -> Job:
    if verb == CANCEL:
        return visit.registry.cancel(job, reason=visit.field("reason").strip() or None)
    if verb == RETRY:
        return visit.registry.retry(job).job
    if verb == SEEN:
        return visit.registry.mark_seen(job)
    raise BadInput(why=f"{verb[:40]!r} is nothing that this page can do to a job")


def continue_job(visit: Visit) -> Response:
    prompt = visit.field("prompt").replace("\r\n", "\n").strip()
    if not prompt:
        raise BadInput(why="write what the agent is to do next")
    new = visit.registry.continue_job(visit.path("job"), prompt=prompt).job
    return visit.go(f"/jobs/{new.job_id}?done=continue")


def review(visit: Visit) -> Response:
    """All comments become one continuation."""
    found = visit.registry.get(visit.path("job"))
    names = ("path", "line", "code", "blob", "text")
    columns = [visit.fields.get(name, []) for name in names]
    comments = [dict(zip(names, one, strict=True)) for one in zip_longest(*columns, fillvalue="")]
    prompt = prompt_of_review(visit.registry, found, visit.field("remark"), comments)
    new = visit.registry.continue_job(found.job_id, prompt=prompt).job
    return visit.go(f"/jobs/{new.job_id}?done=review")


def edit(visit: Visit) -> Response:
    found = visit.registry.get(visit.path("job"))
    now_ms = visit.registry.registry.store.clock.now().wall_ms
    try:
        changes = new_jobs.edit_of(visit.values(), found, now_ms)
        seen = found if visit.field("attempt") == str(found.attempt) else found.replace(attempt=-1)
        visit.registry.edit(found.job_id, changes, seen=seen)
    except MamError as error:
        return showing.edit(visit, problem=str(error), status=409)
    return visit.go(f"/jobs/{found.job_id}?done=edit")


def preview(visit: Visit) -> Response:
    """The form again, with its prompt as Markdown."""
    return showing.new_job(visit, preview=markdown.to_html(visit.field("prompt")))


def register(visit: Visit) -> Response:
    now_ms = visit.registry.registry.store.clock.now().wall_ms
    try:
        prompt, agent, choices = new_jobs.choices_of(visit.values(), now_ms)
        new = visit.registry.register(prompt=prompt, agent=agent, **choices).job
    except MamError as error:
        return showing.new_job(visit, problem=str(error), status=422)
    return visit.go(f"/jobs/{new.job_id}?done=new")


def ask_worker(visit: Visit) -> Response:
    verb = visit.field("verb")
    if verb not in (DRAIN, STOP):
        raise BadInput(why="a worker can be asked to drain or to stop")
    visit.registry.ask_worker(visit.field("worker"), verb)
    return visit.back("/workers", done=verb)


def stop_session(visit: Visit) -> Response:
    sessions = visit.server.sessions
    if sessions is None:
        raise BadInput(why="this server has no directory of sessions")
    visit.registry.stop_session(sessions(), visit.field("session"), visit.field("generation"))
    return visit.back("/workers", done="stop_session")


def pause(visit: Visit) -> Response:
    agent, label = visit.field("agent") or None, visit.field("label") or None
    if visit.field("verb") == "resume":
        visit.registry.resume(agent, label)
        return visit.back("/workers", done="resume")
    now = visit.registry.registry.store.clock.now()
    reason = visit.field("reason").strip()[:200] or None
    visit.registry.pause(draft_pause(agent, label, None, reason, now))
    return visit.back("/workers", done="pause")


def notifications(visit: Visit) -> Response:
    """The key and the subscription are sent by a script, which a browser needs for notifications anyway."""
    verb, browser = visit.field("verb"), visit.field("browser")
    if verb == pushes.KEY:
        return PlainTextResponse(pushes.server_key(visit.registry))
    if verb == pushes.SUBSCRIBE:
        pushes.add(visit.registry, visit.values())
        return visit.back("/notifications", done=verb)
    if verb == pushes.REMOVE:
        pushes.remove(visit.registry, browser)
        return visit.back("/notifications", done=verb)
    if verb == pushes.TEST:
        done = pushes.test(visit.registry, visit.server, browser)
        words = f"The push service has {done.outcome} the test{f': {done.why}' if done.why else ''}."
        return showing.notifications(visit, Note(look="ok" if done.outcome == ACCEPTED else "bad", text=words))
    raise BadInput(why="a browser can be notified, tested or removed")


def theme(visit: Visit) -> Response:
    chosen = visit.field("theme")
    response = visit.back("/")
    if chosen in THEMES:
        path = visit.server.settings.path_prefix or "/"
        response.set_cookie(THEME_COOKIE, chosen, max_age=400 * 86_400, path=path, samesite="lax")
    return response

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
from mam.serve.pages.page_call import Note, PageCall
from mam.serve.pages.reviews import prompt_of_review

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job

JOBS_MOST = 500
"""Jobs of one bulk act."""


def answer(call: PageCall) -> Response:
    """The form carries the digest of what was shown: an answer to anything else is refused. One that comes too late
    says who was first."""
    name, text = call.path("question"), call.field("answer") or call.field("text").strip()
    if not text:
        raise BadInput(why="the answer is empty; the question stays open")
    reason = call.field("reason").strip() or None
    try:
        call.registry.answer(name, text, digest=call.field("digest"), reason=reason)
    except AnswerTooLate as late:
        return showing.home(call, Note(look="ask", text=str(late)), status=409)
    verb = text if text in DECISIONS else "answer"
    return call.back(f"/{_next_question(call)}", done=verb)


def _next_question(call: PageCall) -> str:
    """The fragment of the oldest question that is still open, so that answering goes on to the next."""
    left = call.registry.questions()
    if not left:
        return ""
    first = left[0]
    return f"#q-{first.job.job_id}-{first.question.attempt}-{first.question.digest[:8]}"


def act_on_job(call: PageCall) -> Response:
    """Cancel, retry, seen or apply."""
    job, verb = call.path("job"), call.path("verb")
    if verb == APPLY:
        call.registry.apply(job)
        return call.back(f"/jobs/{job}", done=verb)
    done = _act(call, job, verb)
    return call.back(f"/jobs/{done.job_id}", done=verb)


def act_on_jobs(call: PageCall) -> Response:
    """The same for the selected jobs. Those that cannot be acted on are counted, and the others are done."""
    names, verb = call.fields.get("job", []), call.field("verb")
    if not names:
        raise BadInput(why="select a job first")
    if len(names) > JOBS_MOST:
        raise BadInput(why=f"at most {JOBS_MOST} jobs are acted on at once")
    done, failed = 0, 0
    for name in names:
        try:
            _act(call, name, verb)
            done += 1
        except BadInput:
            raise
        except MamError:
            failed += 1
    return call.back("/jobs", done=verb, count=str(done), **({"failed": str(failed)} if failed else {}))


def _act(call: PageCall, job: str, verb: str) -> Job:
    if verb == CANCEL:
        return call.registry.cancel(job, reason=call.field("reason").strip() or None)
    if verb == RETRY:
        return call.registry.retry(job).job
    if verb == SEEN:
        return call.registry.mark_seen(job)
    raise BadInput(why=f"{verb[:40]!r} is not an action of this page")


def continue_job(call: PageCall) -> Response:
    prompt = call.field("prompt").replace("\r\n", "\n").strip()
    if not prompt:
        raise BadInput(why="write what the agent is to do next")
    new = call.registry.continue_job(call.path("job"), prompt=prompt).job
    return call.go(f"/jobs/{new.job_id}?done=continue")


def review(call: PageCall) -> Response:
    """All comments become one continuation."""
    found = call.registry.get(call.path("job"))
    names = ("path", "line", "code", "blob", "text")
    columns = [call.fields.get(name, []) for name in names]
    comments = [dict(zip(names, one, strict=True)) for one in zip_longest(*columns, fillvalue="")]
    prompt = prompt_of_review(call.registry, found, call.field("remark"), comments)
    new = call.registry.continue_job(found.job_id, prompt=prompt).job
    return call.go(f"/jobs/{new.job_id}?done=review")


def edit(call: PageCall) -> Response:
    found = call.registry.get(call.path("job"))
    now_ms = call.registry.registry.store.clock.now().wall_ms
    try:
        changes = new_jobs.edit_of(call.values(), found, now_ms)
        seen = found if call.field("attempt") == str(found.attempt) else found.replace(attempt=-1)
        call.registry.edit(found.job_id, changes, seen=seen)
    except MamError as error:
        return showing.edit(call, problem=str(error), status=409)
    return call.go(f"/jobs/{found.job_id}?done=edit")


def preview(call: PageCall) -> Response:
    """The form again, with its prompt as Markdown."""
    return showing.new_job(call, preview=markdown.to_html(call.field("prompt")))


def register(call: PageCall) -> Response:
    now_ms = call.registry.registry.store.clock.now().wall_ms
    try:
        prompt, agent, choices = new_jobs.choices_of(call.values(), now_ms)
        new = call.registry.register(prompt=prompt, agent=agent, **choices).job
    except MamError as error:
        return showing.new_job(call, problem=str(error), status=422)
    return call.go(f"/jobs/{new.job_id}?done=new")


def ask_worker(call: PageCall) -> Response:
    verb = call.field("verb")
    if verb not in (DRAIN, STOP):
        raise BadInput(why="a worker can be asked to drain or to stop")
    call.registry.ask_worker(call.field("worker"), verb)
    return call.back("/workers", done=verb)


def stop_session(call: PageCall) -> Response:
    sessions = call.server.sessions
    if sessions is None:
        raise BadInput(why="this server has no directory of sessions")
    call.registry.stop_session(sessions(), call.field("session"), call.field("generation"))
    return call.back("/workers", done="stop_session")


def pause(call: PageCall) -> Response:
    agent, label = call.field("agent") or None, call.field("label") or None
    if call.field("verb") == "resume":
        call.registry.resume(agent, label)
        return call.back("/workers", done="resume")
    now = call.registry.registry.store.clock.now()
    reason = call.field("reason").strip()[:200] or None
    call.registry.pause(draft_pause(agent, label, None, reason, now))
    return call.back("/workers", done="pause")


def notifications(call: PageCall) -> Response:
    """The key and the subscription are sent by a script, which a browser needs for notifications anyway."""
    verb, browser = call.field("verb"), call.field("browser")
    if verb == pushes.KEY:
        return PlainTextResponse(pushes.server_key(call.registry))
    if verb == pushes.SUBSCRIBE:
        pushes.add(call.registry, call.values())
        return call.back("/notifications", done=verb)
    if verb == pushes.REMOVE:
        pushes.remove(call.registry, browser)
        return call.back("/notifications", done=verb)
    if verb == pushes.TEST:
        done = pushes.test(call.registry, call.server, browser)
        words = f"The push service has {done.outcome} the test{f': {done.why}' if done.why else ''}."
        return showing.notifications(call, Note(look="ok" if done.outcome == ACCEPTED else "bad", text=words))
    raise BadInput(why="a browser can be notified, tested or removed")


def theme(call: PageCall) -> Response:
    chosen = call.field("theme")
    response = call.back("/")
    if chosen in THEMES:
        path = call.server.settings.path_prefix or "/"
        response.set_cookie(THEME_COOKIE, chosen, max_age=400 * 86_400, path=path, samesite="lax")
    return response

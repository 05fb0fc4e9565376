"""What a job left behind: output, conversation, diff, artifacts."""

from __future__ import annotations

import asyncio
import codecs
import os

from mam.agent_table import agent_kind, load
from mam.conversation.items import to_json as item_json
from mam.conversation.reader import PlainReader
from mam.errors import Refused
from mam.jobs.input_rules import PATH_LIMIT
from mam.registry.artifacts import read_artifact, stored_artifacts
from mam.serve.api.jobs import SEE
from mam.serve.auth import log_in_watch
from mam.serve.call import Answer
from mam.serve.problems import Problem
from mam.serve.route import HEADER, Param, Route
from mam.serve.schemas import JOB, flag, ref, text, whole
from mam.serve.sse import HEADERS, EventStream
from mam.util.encoding import to_bytes
from mam.work.output_source import output_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from starlette.responses import Response

    from mam.conversation.reader import ConversationReader
    from mam.jobs.record import Job
    from mam.serve.call import Call
    from mam.work.output_source import OutputSource

PART_LIMIT = 4 << 20
"""Bytes of one answer; the next begins where it ends."""
DIFF_LIMIT = 32 << 20
ITEMS_LIMIT = 5000
LOOK_SECONDS = 0.5

_ATTEMPT = Param(name="attempt", schema=whole("", 1, 2**31 - 1), meaning="The attempt; by default the latest.")


def output(call: Call) -> Answer:
    _job, source, attempt = _source(call)
    since = call.get("since")
    if since is None:
        since = source.tail_start(call.get("tail")) if call.get("tail") is not None else 0
    data, end = _read(source, since)
    headers = {"mam-attempt": str(attempt), "mam-start": str(since), "mam-end": str(end)}
    return Answer(body=data, headers=headers, media_type="application/octet-stream")


async def output_or_follow(call: Call) -> Answer | Response:
    if not call.get("follow", False):
        return await call.server.call(output, call)
    job = await call.server.call(call.rights.get, call.job)
    since = call.get("Last-Event-ID", call.get("since", 0))
    return EventStream(_follow(call, job, since), media_type="text/event-stream", headers=HEADERS)


def _read(source: OutputSource, since: int) -> tuple[bytes, int]:
    """A part of the output, and the position after it."""
    held, size, end = list[bytes](), 0, since
    for after, part in source.parts(since):
        held.append(part)
        size, end = size + len(part), after
        if size >= PART_LIMIT:
            break
    return b"".join(held), end


async def _follow(call: Call, job: Job, since: int) -> AsyncIterator[bytes]:
    """New output until the attempt ends. The id of an event is the offset in bytes after it."""
    server, loop = call.server, asyncio.get_running_loop()
    attempt, decoder = call.get("attempt"), codecs.getincrementaldecoder("utf-8")("replace")
    yield b": mam\n\n"
    spoke, over, log_in = loop.time(), False, log_in_watch(server, call.request)
    while not server.hub.is_stopped and not await log_in.has_ended():
        number = server.hub.last
        job = await server.call(server.registry.get_exact, job.job_id)
        held = attempt or job.attempt
        over = job.status.ended or (attempt is not None and job.attempt > attempt)
        data, end = (b"", since) if not held else await server.call(_read_part, call, job.job_id, held, since)
        if data:
            # A letter whose bytes are not all there yet comes with the next event.
            words = decoder.decode(data)
            since = end
            yield b"id: %d\nevent: output\ndata: %b\n\n" % (
                since, to_bytes({"attempt": held, "end": since, "text": words})
            )  # fmt: skip
            spoke = loop.time()
        elif over:
            yield b"event: end\ndata: %b\n\n" % to_bytes({"status": job.status, "attempt": held, "end": since})
            return
        elif loop.time() - spoke > 15:
            yield b": keep-alive\n\n"
            spoke = loop.time()
        if not data:
            await server.hub.wait_for_job(job.job_id, number, LOOK_SECONDS)


def _read_part(call: Call, job_id: str, attempt: int, since: int) -> tuple[bytes, int]:
    return _read(output_of(call.server.registry, job_id, attempt), since)


def conversation(call: Call) -> Answer:
    job, source, attempt = _source(call)
    items, skip, limit = [], call.get("after", 0), call.get("limit", ITEMS_LIMIT)
    total = 0
    for item in _items(_reader(job.agent), source.read()):
        total += 1
        if skip < total <= skip + limit:
            items.append(item)
    return Answer(body={"job_id": job.job_id, "attempt": attempt, "items": items, "total": total})


def _items(reader: ConversationReader, chunks: Iterator[bytes]) -> Iterator[object]:
    for chunk in chunks:
        for item in reader.feed(chunk):
            yield item_json(item)
    for item in reader.end():
        yield item_json(item)


def _reader(agent: str) -> ConversationReader:
    named = agent_kind(agent).conversation
    made: ConversationReader = load(named)() if named else PlainReader()
    return made


def _source(call: Call) -> tuple[Job, OutputSource, int]:
    job = call.rights.get(call.job)
    attempt = call.get("attempt", job.attempt)
    source = output_of(call.server.registry, job.job_id, attempt)
    if not attempt or not source.exists():
        what = "it has not run yet" if not job.attempt else f"the store has none of attempt {attempt}"
        raise Refused(why=f"Job {job.job_id} has no output here: {what}.")
    return job, source, attempt


def diff(call: Call) -> Answer:
    from mam.stores.outputs import DIFF
    from mam.work.git.command import GitFailed
    from mam.work.git.diffs import DiffMissing, job_diff
    from mam.work.state_dirs import private_prefix, work_directory

    job, registry = call.rights.get(call.job), call.server.registry
    directory = work_directory(registry.store.address)
    private = f"{private_prefix(directory, job.job_id, job.attempt)}.diff-{os.getpid()}-{os.urandom(4).hex()}"
    try:
        found = job_diff([job], directory, private)
        data = _bounded(found.stream(stat=call.get("stat", False)))
    except DiffMissing as missing:
        stored = registry.store.outputs.get(job.job_id, job.attempt, DIFF)
        if stored is None or call.get("stat", False):
            raise Refused(why=f"Job {job.job_id} has no diff here: {missing}.") from None
        data = stored
    except GitFailed as failed:
        raise Refused(why=f"The changes of job {job.job_id} cannot be shown: {failed}.") from None
    return Answer(body=data, media_type="text/x-diff; charset=utf-8")


def _bounded(parts: Iterator[bytes]) -> bytes:
    held, size = list[bytes](), 0
    for part in parts:
        held.append(part)
        size += len(part)
        if size > DIFF_LIMIT:
            raise Problem(413, f"The diff has more than {DIFF_LIMIT:,} bytes; `mam diff` prints it.")
    return b"".join(held)


def artifacts(call: Call) -> Answer:
    job = call.rights.get(call.job)
    attempt = call.get("attempt", job.attempt)
    found = stored_artifacts(call.server.registry.store, job, attempt)
    return Answer(body={"job_id": job.job_id, "attempt": attempt, "host": job.host, "artifacts": list(found.values())})


def artifact(call: Call) -> Answer:
    """An agent wrote it, so a browser saves it and neither shows nor runs it."""
    job = call.rights.get(call.job)
    data = read_artifact(call.server.registry.store, job, call.get("attempt", job.attempt), call.get("path"))
    headers = {
        "content-disposition": "attachment", "content-security-policy": "sandbox; default-src 'none'",
    }  # fmt: skip
    return Answer(body=data, headers=headers, media_type="application/octet-stream")


_BYTES = {"type": "string", "format": "binary"}

ROUTES = (
    Route(
        method="GET", path="/jobs/{job}/output", name="job_output", summary="What the agent of a job printed.",
        scopes=SEE, handler=output_or_follow, media_type="application/octet-stream", answer=_BYTES, verb="output",
        params=(
            JOB, _ATTEMPT,
            Param(name="since", schema=whole("", 0, 2**53), meaning="Begin at this byte."),
            Param(name="tail", schema=whole("", 1, 100_000), meaning="Only the last lines."),
            Param(name="follow", schema=flag(""), meaning="As server-sent events, until the attempt ends."),
            Param(name="Last-Event-ID", schema=whole("", 0, 2**53), place=HEADER, meaning="The byte to go on at."),
        ),
        details="The header `Mam-End` names the byte after the answer; so does the id of an event with `follow`.",
    ),
    Route(
        method="GET", path="/jobs/{job}/conversation", name="job_conversation", scopes=SEE, handler=conversation,
        summary="What the agent said, used and changed, as items that are the same for every agent.",
        answer=ref("Conversation"), verb="output",
        params=(
            JOB, _ATTEMPT,
            Param(name="after", schema=whole("", 0, 2**53), meaning="Leave out so many items."),
            Param(name="limit", schema=whole("", 1, ITEMS_LIMIT), meaning=f"Default: {ITEMS_LIMIT}."),
        ),
    ),
    Route(
        method="GET", path="/jobs/{job}/diff", name="job_diff", summary="What a job changed, as git prints it.",
        scopes=SEE, handler=diff, answer={"type": "string"}, media_type="text/x-diff", verb="diff",
        params=(JOB, Param(name="stat", schema=flag(""), meaning="Only the files and how many lines of each.")),
    ),
    Route(
        method="GET", path="/jobs/{job}/artifacts", name="job_artifacts", scopes=SEE, handler=artifacts,
        summary="The artifacts that the worker found.", params=(JOB, _ATTEMPT), answer=ref("ArtifactList"),
        verb="artifacts",
    ),
    Route(
        method="GET", path="/jobs/{job}/artifact", name="job_artifact", summary="The content of an artifact.",
        scopes=SEE, handler=artifact, answer=_BYTES, media_type="application/octet-stream", verb="artifacts",
        params=(JOB, _ATTEMPT, Param(name="path", schema=text(PATH_LIMIT, ""), is_required=True, meaning="Its path.")),
    ),
)  # fmt: skip

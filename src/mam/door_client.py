"""The agent's half of the worker's door: the registry's methods over MAM_SOCKET, for the job it belongs to.

An agent's hook runs this at every event, so it is made of the C halves of `socket` and `json`: their Python halves cost
more than the rest of the command. One request is one JSON line, behind it the bytes of a long text if `body` says so;
one JSON line comes back.
"""

from __future__ import annotations

import _socket
import os
import sys
import time
from itertools import islice
from types import SimpleNamespace

from mam.errors import MamError, StoreMissing, StoreUnavailable, TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from mam.jobs.acts import Fence
    from mam.jobs.record import Job
    from mam.registry import Registry
    from mam.stores.port import Registration
else:
    Registry = object

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 60.0
PARK_SECONDS = 20.0
"""How long a worker keeps a waiting request before it says that nothing has happened; the client then asks again."""

WAIT_LIMIT = 1000
"""Jobs in one such request; as all have to end, the others can be asked about later."""

_GONE = "the worker that opened this socket is gone, and with it probably its claim"
_KEPT_AWAY = "a sandbox keeps this command away from the worker; the last message of your turn reaches it all the same"
_TAKEN = "publish, heartbeat, complete, fail, register, get, result, logs, status and wait"


class DoorError(MamError):
    """{message}"""


class NotHere(DoorError):
    """{message}"""


class DoorRegistry(Registry):
    """A registry of one job and its children. What the door does not take goes to the store, if there is one.

    Type checkers see a Registry, so its methods keep their form; at run time it inherits nothing and imports nothing.
    """

    def __init__(self, address: str, elsewhere: Callable[[], Registry], *, whole: bool = False) -> None:
        self._address = address
        self._elsewhere = elsewhere
        self._whole = whole
        """Whether the caller prints the whole record; most want one word of it."""
        self._other: Registry | None = None
        # At once, so that a dead door is found before anything was said through it.
        self._connection: _socket.socket | None = _connect(address)

    # -- what a holder says --------------------------------------------------------------------------------------

    def publish(
        self,
        job: str,
        *,
        event: str,
        detail: str = "",
        data: Mapping[str, Any] | None = None,
        attempt: int | None = None,
        claim_id: str | None = None,
    ) -> Job:
        fence: Fence = {"attempt": attempt, "claim_id": claim_id}
        try:
            return self._written("publish", job, **fence, event=event, detail=detail, data=data or None)
        except NotHere as refusal:
            store = self._store(refusal)
            return store.publish(job, event=event, detail=detail, data=data, **fence)

    def heartbeat(
        self, job: str, *, attempt: int | None = None, claim_id: str | None = None, lease_seconds: float | None = None
    ) -> Job:
        """The lease stays as long as the worker took it, whatever is asked for: the worker renews it, not the agent."""
        fence: Fence = {"attempt": attempt, "claim_id": claim_id}
        try:
            return self._written("heartbeat", job, **fence)
        except NotHere as refusal:
            return self._store(refusal).heartbeat(job, **fence, lease_seconds=lease_seconds)

    def complete(
        self, job: str, *, attempt: int | None = None, claim_id: str | None = None, result: str | None = None
    ) -> Job:
        fence: Fence = {"attempt": attempt, "claim_id": claim_id}
        try:
            return self._written("complete", job, _body("result", result), **fence)
        except NotHere as refusal:
            return self._store(refusal).complete(job, **fence, result=result)

    def fail(
        self,
        job: str,
        *,
        reason: str,
        attempt: int | None = None,
        claim_id: str | None = None,
        retryable: bool = False,
    ) -> Job:
        fence: Fence = {"attempt": attempt, "claim_id": claim_id}
        try:
            return self._written("fail", job, _body("reason", reason), **fence, retryable=retryable)
        except NotHere as refusal:
            return self._store(refusal).fail(job, reason=reason, **fence, retryable=retryable)

    def register(
        self, *, prompt: str, agent: str, job_id: str | None = None, sign: bool = False, **choices: Any
    ) -> Registration:
        """A child of the door's job; the worker says so itself, whatever is said here."""
        if job_id is not None:
            choices["job_id"] = job_id
        words = {"agent": agent, "choices": choices, "whole": self._whole, **({"sign": True} if sign else {})}
        answer = self._ask("register", _body("prompt", prompt), **words)
        return SimpleNamespace(job=_partial_job(answer["job"]), created=answer["created"])  # type: ignore[return-value]

    # -- reading -------------------------------------------------------------------------------------------------

    def resolve(self, text: str) -> str:
        try:
            job_id: str = self._ask("resolve", job=text)["job_id"]
        except NotHere as refusal:
            return self._store(refusal).resolve(text)
        return job_id

    def get(self, job: str) -> Job:
        try:
            fields = self._ask("get", job=job)["job"]
        except NotHere as refusal:
            return self._store(refusal).get(job)
        return self._parsed(fields)

    def logs(self, job: str) -> Iterator[dict[str, Any]]:
        """The job's history, oldest line first; a long one comes in several answers."""
        place = 0
        while True:
            answer = self._ask("logs", job=job, place=place)
            yield from answer["lines"]
            if answer["place"] == place:
                return
            place = answer["place"]

    def follow(self, job_ids: Sequence[str], timeout: float | None = None) -> Iterator[Job]:
        """As the registry's own: each job now and whenever it changes, until all have ended."""
        ends = None if timeout is None else time.monotonic() + timeout
        seen: dict[str, str] = dict.fromkeys(job_ids, "")
        lost: list[MamError] = []
        while seen:
            left = PARK_SECONDS if ends is None else max(0.0, ends - time.monotonic())
            try:
                answer = self._ask("wait", seen=dict(islice(seen.items(), WAIT_LIMIT)), longest=min(left, PARK_SECONDS))
            except NotHere as refusal:
                yield from self._store(refusal).follow(job_ids, timeout)
                return
            for missing in answer["lost"]:
                lost.append(_error(missing))
                seen.pop(missing["job_id"], None)
            for news in answer["jobs"]:
                job = self._parsed(news["job"])
                seen[job.job_id] = news["mark"]
                if job.status.ended:
                    del seen[job.job_id]
                yield job
            if seen and not left and not answer["jobs"]:
                who = "1 job has" if len(seen) == 1 else f"{len(seen)} jobs have"
                raise TimedOut(what=f"{who} not ended", seconds=f"{timeout:g}")
        if lost:
            raise lost[0]

    # -- how it is done ------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        refusal = NotHere(message=f"The socket of a worker takes only {_TAKEN}, and there is no store for the rest.")
        return getattr(self._store(refusal), name)

    def _store(self, refusal: NotHere) -> Registry:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._other is None:
            try:
                self._other = self._elsewhere()
            except StoreMissing:
                raise refusal from None
        return self._other

    def _written(self, verb: str, job: str, body: bytes | None = None, **fields: Any) -> Job:
        return _partial_job(self._ask(verb, body, job=job, whole=self._whole, **fields)["job"])

    def _parsed(self, fields: Any) -> Job:
        from mam.jobs.record import parse_job

        return parse_job(fields, self._address)

    def _ask(self, verb: str, body: bytes | None = None, **fields: Any) -> dict[str, Any]:
        request = {"verb": verb, **{name: value for name, value in fields.items() if value is not None}}
        if body is not None:
            request["body"] = len(body)
        connection, self._connection = self._connection or _connect(self._address), None
        answer = _exchange(connection, _encode(request).encode() + b"\n" + (body or b""), self._address)
        if "error" in answer:
            raise _error(answer)
        return answer


class PartialJob:
    """The job after a write, as far as the worker told of it."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def __getattr__(self, name: str) -> Any:
        try:
            value = self._fields[name]
        except KeyError:
            raise AttributeError(name) from None
        return SimpleNamespace(**value) if name == "lease" and value else value

    def to_json(self) -> dict[str, Any]:
        return self._fields


def peer_uid(connection: _socket.socket) -> int:
    """Who is at the other end, by the kernel's word."""
    if hasattr(_socket, "SO_PEERCRED"):
        credentials = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)  # pid, uid, gid
    else:
        credentials = connection.getsockopt(0, 1, 76)  # LOCAL_PEERCRED of macOS and the BSDs: version, uid, groups
    return int.from_bytes(credentials[4:8], sys.byteorder)


def _partial_job(fields: dict[str, Any]) -> Job:
    return PartialJob(fields)  # type: ignore[return-value]


def _body(what: str, text: str | None) -> bytes | None:
    if text is None:
        return None
    from mam.jobs.input_rules import REASON_LIMIT, TEXT_LIMIT, check_text

    return check_text(what, text, REASON_LIMIT if what == "reason" else TEXT_LIMIT).encode()


def _error(answer: dict[str, Any]) -> DoorError:
    kind = NotHere if answer["error"] == NotHere.__name__ else DoorError
    error = kind(message=answer["message"], type=answer["error"])
    error.exit_code = answer["exit_code"]
    return error


def _connect(address: str) -> _socket.socket:
    """StoreUnavailable when nobody is there, or somebody else is."""
    ends = time.monotonic() + CONNECT_SECONDS
    try:
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    except PermissionError:
        raise StoreUnavailable(store=address, problem=_KEPT_AWAY) from None
    connection.settimeout(ANSWER_SECONDS)
    while True:
        try:
            connection.connect(address)
            break
        except BlockingIOError:  # the worker is there, and others are before us
            if time.monotonic() > ends:
                connection.close()
                raise StoreUnavailable(store=address, problem="the worker has too many callers") from None
            time.sleep(0.01)
        except OSError as error:
            connection.close()
            problem = _KEPT_AWAY if isinstance(error, PermissionError) else _GONE
            raise StoreUnavailable(store=address, problem=problem) from None
    if peer_uid(connection) != os.geteuid():
        connection.close()
        raise StoreUnavailable(store=address, problem="this socket is another user's")
    return connection


def _exchange(connection: _socket.socket, request: bytes, address: str) -> dict[str, Any]:
    problem = "the worker went away before it answered; whether it did what was asked is not known"
    parts: list[bytes] = []
    try:
        connection.sendall(request)
    except OSError:
        pass  # a request that is refused early is not read to its end; the answer says why
    try:
        while part := connection.recv(1 << 18):
            parts.append(part)
    except TimeoutError:
        problem = f"the worker did not answer within {ANSWER_SECONDS:g} s; whether it did what was asked is not known"
    except OSError:
        pass
    connection.close()
    text = b"".join(parts)
    if not text.endswith(b"\n"):
        raise StoreUnavailable(store=address, problem=problem)
    return _decode(text.decode())


def _encode(value: Any) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quoted(name)}:{_encode(item)}" for name, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_encode, value)) + "]"
    return repr(value)


def _decode(text: str) -> dict[str, Any]:
    value: dict[str, Any] = _scan(text, 0)[0]
    return value


try:
    from _json import encode_basestring_ascii as _quoted
    from _json import make_scanner

    # A scanner asks for a decoder's settings; these are those of the standard one.
    _settings: Any = SimpleNamespace(
        strict=True, object_hook=None, object_pairs_hook=None, parse_float=float, parse_int=int, parse_constant=float,
        memo={},
    )  # fmt: skip
    _scan: Callable[[str, int], tuple[Any, int]] = make_scanner(_settings)
except (ImportError, TypeError, AttributeError):  # another interpreter has no such halves
    from json import JSONDecoder
    from json import dumps as _quoted

    _scan = JSONDecoder().raw_decode

"""The client of a worker's door: the commands of an agent about its own job, over the socket MAM_SOCKET.

An agent's hook runs this at every event, so it uses the C modules behind `socket` and `json`: importing their Python
modules takes longer than the rest of the command. A request is one JSON line; if it has `body`, that many bytes of a
long text follow. The answer is one JSON line.
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

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 60.0
PARK_SECONDS = 20.0
"""How long a worker holds a `wait` request before it answers that nothing has changed; the client then asks again."""

WAIT_LIMIT = 1000
"""Jobs in one `wait` request. All have to end, so the client asks about the others later."""

_GONE = "the worker that opened this socket is gone, and with it probably its claim"
_SANDBOXED = "a sandbox keeps this command away from the worker; the worker still reads the last message of your turn"


class DoorError(MamError):
    """{message}"""


class NotHere(DoorError):
    """{message}"""

    # The door does not serve this job or this command. The name is part of the protocol.


def not_served() -> NotHere:
    """For a command that needs a store, in a job without one."""
    served = "publish, heartbeat, complete, fail, ask, register, get, result, logs, status and wait"
    return NotHere(message=f"The socket of a worker takes only {served}, and there is no store for the rest.")


class DoorClient:
    """The commands that a worker's door serves, for its job and the children of that job.

    What the door does not serve goes to `fallback`, the registry over the store, if there is one.
    """

    def __init__(self, address: str, fallback: Callable[[], Registry] | None = None, *, whole: bool = False) -> None:
        self._address = address
        self._fallback = fallback
        self._whole = whole
        """Whether the caller prints the whole record; most callers need one field of it."""
        self._store: Registry | None = None
        # Connect at once, so that a closed door is found before the first write.
        self._connection: _socket.socket | None = _connect(address)

    # -- writing, as the holder of the claim -----------------------------------------------------------------------

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
            return self._write("publish", job, **fence, event=event, detail=detail, data=data or None)
        except NotHere as refusal:
            return self.open_store(refusal).publish(job, event=event, detail=detail, data=data, **fence)

    def heartbeat(
        self, job: str, *, attempt: int | None = None, claim_id: str | None = None, lease_seconds: float | None = None
    ) -> Job:
        """The door ignores `lease_seconds`: the worker renews the lease, not its agent."""
        fence: Fence = {"attempt": attempt, "claim_id": claim_id}
        try:
            return self._write("heartbeat", job, **fence)
        except NotHere as refusal:
            return self.open_store(refusal).heartbeat(job, **fence, lease_seconds=lease_seconds)

    def complete(
        self, job: str, *, attempt: int | None = None, claim_id: str | None = None, result: str | None = None
    ) -> Job:
        fence: Fence = {"attempt": attempt, "claim_id": claim_id}
        try:
            return self._write("complete", job, _body("result", result), **fence)
        except NotHere as refusal:
            return self.open_store(refusal).complete(job, **fence, result=result)

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
            return self._write("fail", job, _body("reason", reason), **fence, retryable=retryable)
        except NotHere as refusal:
            return self.open_store(refusal).fail(job, reason=reason, **fence, retryable=retryable)

    def register(self, *, prompt: str, agent: str, sign: bool = False, **choices: Any) -> Registration:
        """Registers a child of the door's job; the worker sets its parent."""
        fields = {"agent": agent, "choices": choices, "whole": self._whole, **({"sign": True} if sign else {})}
        answer = self.call("register", _body("prompt", prompt), **fields)
        return SimpleNamespace(job=_partial_job(answer["job"]), created=answer["created"])  # type: ignore[return-value]

    # -- reading -------------------------------------------------------------------------------------------------

    def resolve(self, text: str) -> str:
        try:
            job_id: str = self.call("resolve", job=text)["job_id"]
        except NotHere as refusal:
            return self.open_store(refusal).resolve(text)
        return job_id

    def get(self, job: str) -> Job:
        try:
            fields = self.call("get", job=job)["job"]
        except NotHere as refusal:
            return self.open_store(refusal).get(job)
        return self._parse(fields)

    def logs(self, job: str) -> Iterator[dict[str, Any]]:
        """The audit log of the job, oldest line first; a long one comes in several answers."""
        place = 0
        while True:
            answer = self.call("logs", job=job, place=place)
            yield from answer["lines"]
            if answer["place"] == place:
                return
            place = answer["place"]

    def follow(self, job_ids: Sequence[str], timeout: float | None = None) -> Iterator[Job]:
        """As `Registry.follow`: each job now and whenever it changes, until all have ended."""
        ends = None if timeout is None else time.monotonic() + timeout
        seen: dict[str, str] = dict.fromkeys(job_ids, "")
        lost: list[MamError] = []
        while seen:
            left = PARK_SECONDS if ends is None else max(0.0, ends - time.monotonic())
            try:
                answer = self.call("wait", seen=dict(islice(seen.items(), WAIT_LIMIT)), longest=min(left, PARK_SECONDS))
            except NotHere as refusal:
                yield from self.open_store(refusal).follow(job_ids, timeout)
                return
            for missing in answer["lost"]:
                lost.append(_error(missing))
                seen.pop(missing["job_id"], None)
            for changed in answer["jobs"]:
                job = self._parse(changed["job"])
                seen[job.job_id] = changed["mark"]
                if job.status.ended:
                    del seen[job.job_id]
                yield job
            if seen and not left and not answer["jobs"]:
                who = "1 job has" if len(seen) == 1 else f"{len(seen)} jobs have"
                raise TimedOut(what=f"{who} not ended", seconds=f"{timeout:g}")
        if lost:
            raise lost[0]

    # -- the connection ------------------------------------------------------------------------------------------

    def open_store(self, refusal: NotHere) -> Registry:
        """The registry for what the door does not serve; raises the refusal if there is none."""
        if self._store is None:
            if self._fallback is None:
                raise refusal
            try:
                self._store = self._fallback()
            except StoreMissing:
                raise refusal from None
        return self._store

    def _write(self, verb: str, job: str, body: bytes | None = None, **fields: Any) -> Job:
        return _partial_job(self.call(verb, body, job=job, whole=self._whole, **fields)["job"])

    def _parse(self, fields: Any) -> Job:
        from mam.jobs.record import parse_job

        return parse_job(fields, self._address)

    def call(self, verb: str, body: bytes | None = None, **fields: Any) -> dict[str, Any]:
        """One request, also for verbs without a method here; DoorError if the worker refuses it."""
        request = {"verb": verb, **{name: value for name, value in fields.items() if value is not None}}
        if body is not None:
            request["body"] = len(body)
        connection, self._connection = self._connection or _connect(self._address), None
        answer = _exchange(connection, encode_json(request).encode() + b"\n" + (body or b""), self._address)
        if "error" in answer:
            raise _error(answer)
        return answer


class PartialJob:
    """The fields of a job that the worker returns after a write."""

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
    """The user of the process at the other end, as the kernel reports it."""
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
    """StoreUnavailable when no process listens there, or another user's does."""
    ends = time.monotonic() + CONNECT_SECONDS
    try:
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    except PermissionError:
        raise StoreUnavailable(store=address, problem=_SANDBOXED) from None
    connection.settimeout(ANSWER_SECONDS)
    while True:
        try:
            connection.connect(address)
            break
        except BlockingIOError:  # the worker listens, and its queue of callers is full
            if time.monotonic() > ends:
                connection.close()
                raise StoreUnavailable(store=address, problem="the worker has too many callers") from None
            time.sleep(0.01)
        except OSError as error:
            connection.close()
            problem = _SANDBOXED if isinstance(error, PermissionError) else _GONE
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
        pass  # the worker may refuse a request before it has read all of it; the answer has the reason
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
    return decode_json(text.decode())


def encode_json(value: Any) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quoted(name)}:{encode_json(item)}" for name, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(encode_json, value)) + "]"
    return repr(value)


def decode_json(text: str) -> dict[str, Any]:
    value: dict[str, Any] = _scan(text, 0)[0]
    return value


try:
    from _json import encode_basestring_ascii as _quoted
    from _json import make_scanner

    # A scanner reads a decoder's settings; these are those of the standard decoder.
    _settings: Any = SimpleNamespace(
        strict=True, object_hook=None, object_pairs_hook=None, parse_float=float, parse_int=int, parse_constant=float,
        memo={},
    )  # fmt: skip
    _scan: Callable[[str, int], tuple[Any, int]] = make_scanner(_settings)
except (ImportError, TypeError, AttributeError):  # an interpreter without these C modules
    from json import JSONDecoder
    from json import dumps as _quoted

    _scan = JSONDecoder().raw_decode

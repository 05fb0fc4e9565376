"""A model that does what its prompt tells it, word by word, on loopback.

A prompt may contain lines `model: …`, one step each, done in order; what the tools answered says how far it is:

  model: write PATH TEXT      the agent's own tool for writing files (a shell command where it has none)
  model: run COMMAND          the agent's own shell
  model: beg COMMAND          the same, with a request to be let out of the sandbox where the agent has one
  model: read PATH            the agent's own tool for reading; steps in what it reads take the place of these
  model: ask QUESTION         the agent's tool for questions to its user
  model: tool NAME JSON       a tool of an MCP server; `{found}` and `{handle}` come from a tool's answer
  model: say TEXT             the last answer; without it that is "Done."
  model: delegate A; B        the agent's own tool for subagents: one does the steps A and B
  model: refuse TEXT          the model declines
  model: hang                 no answer until `release`, or until the agent goes away

`{job}` in them is the job that the prompt is about.

Requests without such steps, or without tools, are errands of the agent's own (a title, a summary): they are answered
with one word. `trouble` makes every other request fail in a way that the agent's vendor would.
"""

from __future__ import annotations

import json
import re
import select
import shlex
import socket
import threading
import time
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

from tests.real_agents.dialects import Call, Completions, Dialect, Messages, Reply, Request, Responses

if TYPE_CHECKING:
    from collections.abc import Callable

    Json = dict[str, Any]

_STEP = re.compile(r"\bmodel: (write|run|beg|read|ask|tool|say|delegate|refuse|hang)\b[ \t]*(.*)")
_JOB = re.compile(r"\bThis is job (\w+),")
_FOUND = re.compile(r"\bjob_id\W+(\w{32})\b|\btaskId\W+(\w{32})\b|\bmam job (\w{32})\b")
_HANDLE = re.compile(r"\bhandle\W+(\w{32}\.\d+\.\w+)\b")
_HANDED = re.compile(r"\bRead (\S+) and do what it says\.")
"""The line by which a live session is handed a job: as good as `model: read`."""
_DIALECTS: dict[str, tuple[str, Dialect]] = {
    "/messages": ("anthropic", Messages()),
    "/responses": ("openai", Responses()),
    "/chat/completions": ("openai", Completions()),
}
_QUESTIONS = {"Bash": "AskUserQuestion", "bash": "question", "exec_command": "request_user_input"}
"""Each agent's own, by its shell."""
_SHELLS = ("Bash", "bash", "exec_command", "shell_command", "shell")


@dataclass(frozen=True)
class ErrorReply:
    """An answer that is an error: what each vendor says, and with which headers."""

    status: int
    anthropic: Json
    openai: Json
    headers: dict[str, str] = field(default_factory=dict)


def usage_limit(resets_at: int) -> ErrorReply:
    """A plan's limit, with the time of its reset where each vendor puts it."""
    left = max(0, resets_at - int(time.time()))
    headers = {
        "retry-after": str(left), "x-should-retry": "false",
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": str(resets_at),
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
    }  # fmt: skip
    said = {
        "type": "usage_limit_reached", "plan_type": "plus", "resets_at": resets_at, "resets_in_seconds": left,
        "message": f"The usage limit has been reached. Please try again in {left}s.",
    }  # fmt: skip
    words = "This request would exceed your account's rate limit. Please try again later."
    return ErrorReply(429, {"type": "rate_limit_error", "message": words}, said, headers)


def overload() -> ErrorReply:
    words = {"message": "The server is overloaded. Please try again later.", "type": "server_error"}
    return ErrorReply(529, {"type": "overloaded_error", "message": "Overloaded"}, words, {"x-should-retry": "false"})


def logged_out() -> ErrorReply:
    words = {"message": "Incorrect API key provided.", "type": "invalid_request_error", "code": "invalid_api_key"}
    return ErrorReply(401, {"type": "authentication_error", "message": "invalid x-api-key"}, words)


def unpaid() -> ErrorReply:
    anthropic = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."
    openai = "You exceeded your current quota, please check your plan and billing details."
    return ErrorReply(
        400,
        {"type": "invalid_request_error", "message": anthropic},
        {"message": openai, "type": "insufficient_quota", "code": "insufficient_quota"},
    )


class ModelServer:
    """Answers until it is closed. `trouble` may be set and taken away at any time; `seen` counts real requests."""

    def __init__(self) -> None:
        self.trouble: ErrorReply | Callable[[], ErrorReply | None] | None = None
        self.broken: Json | None = None
        """What its streams contain in place of an answer."""
        self.insists = False
        """Whether it asks by a tool also where none is offered, as models do that remember one."""
        self.seen: list[Request] = []
        self.paths: list[str] = []
        """Every path that was requested, including side requests."""
        self.hanging = threading.Semaphore(0)
        """Released once for each answer that hangs: `hanging.acquire()` awaits that an agent is in its turn."""
        self._released = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), lambda *about: _RequestHandler(self, *about))
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def limit(self, seconds: float) -> Callable[[], float]:
        """A usage limit that ends by itself so long after a request has met it. Returns a function that says when that
        is, in seconds since 1970."""
        times: list[int] = []

        def trouble() -> ErrorReply | None:
            if not times:
                times.append(int(time.time() + seconds) + 1)
            return usage_limit(times[0]) if time.time() < times[0] else None

        self.trouble = trouble
        return lambda: times[0]

    def release(self) -> None:
        self._released.set()

    def close(self) -> None:
        self._released.set()
        self._http.shutdown()
        self._http.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def answer(self, request: Request, is_gone: Callable[[], bool]) -> Reply | Call | ErrorReply:
        steps, done = steps_of(request)
        if steps is None or not request.tools:
            return Reply("Errand")
        self.seen.append(request)
        trouble = self.trouble() if callable(self.trouble) else self.trouble
        if trouble is not None:
            return trouble
        verb, words = steps[done] if done < len(steps) else ("say", "Done.")
        if verb == "hang":
            self.hanging.release()
            while not self._released.wait(0.05) and not is_gone():
                pass
            return Reply("Done at last.")
        if verb in ("say", "refuse"):
            return Reply(words, refused=verb == "refuse")
        if verb == "ask" and self.insists:
            asking = (tool for shell, tool in _QUESTIONS.items() if shell in request.tools)
            request = replace(request, tools=[*request.tools, *asking])
        if verb == "tool":
            words = words.replace("{found}", found_in(request, _FOUND)).replace("{handle}", found_in(request, _HANDLE))
        # Also across turns of one conversation no two calls have the same number.
        return call(verb, words, request.tools, sum(heard.is_result for heard in request.heard) + 1)


def steps_of(request: Request) -> tuple[list[tuple[str, str]] | None, int]:
    """The steps that count now, and how many of them have been done; None when there are none."""
    for place in range(len(request.heard) - 1, -1, -1):
        text = request.heard[place].text
        job = _JOB.search(text)
        steps = [(found[1], found[2].strip().replace("{job}", job[1] if job else "")) for found in _STEP.finditer(text)]
        steps = steps or [("read", found[1]) for found in _HANDED.finditer(text)]
        if steps:
            return steps, sum(heard.is_result for heard in request.heard[place + 1 :])
    return None, 0


def found_in(request: Request, pattern: re.Pattern[str]) -> str:
    """What a tool named last."""
    for heard in reversed(request.heard):
        names: list[str] = [next(filter(None, found.groups())) for found in pattern.finditer(heard.text)]
        if names:
            return names[-1]
    return "none"


def call(verb: str, words: str, tools: list[str], number: int) -> Reply | Call:
    path, _, text = words.partition(" ")
    own: dict[str, list[tuple[str, Json]]] = {
        "write": [
            ("Write", {"file_path": path, "content": text + "\n"}),
            ("write", {"filePath": path, "content": text + "\n"}),
        ],
        "read": [("Read", {"file_path": path}), ("read", {"filePath": path})],
        "delegate": [
            ("Agent", {**_subagent(words), "subagent_type": "general-purpose"}),
            ("task", {**_subagent(words), "subagent_type": "general"}),
        ],
        "ask": [(tool, {"questions": [_question(words)]}) for tool in _QUESTIONS.values()],
        "beg": [
            ("exec_command", {"cmd": words, "sandbox_permissions": "require_escalated", "justification": "Please"})
        ],
    }
    if verb == "tool":
        named = next((tool for tool in tools if tool.endswith((f"_{path}", f".{path}"))), f"mcp__mam__{path}")
        return Call(named, json.loads(text or "{}"), number)
    for tool, arguments in own.get(verb, ()):
        if tool in tools:
            return Call(tool, arguments, number)
    if verb == "ask":
        return Reply(f"I have a question: {words}")
    commands = {"write": f"echo {shlex.quote(text)} > {shlex.quote(path)}", "read": f"cat {shlex.quote(path)}"}
    return _shell(commands.get(verb, words), tools, number)


def _subagent(steps: str) -> Json:
    return {"description": "a part", "prompt": "\n".join(f"model: {step.strip()}" for step in steps.split(";"))}


def _question(words: str) -> Json:
    options = [{"label": "Yes", "description": "Do it"}, {"label": "No", "description": "Leave it"}]
    return {"id": "choice", "question": words, "header": "Choice", "options": options, "multiSelect": False}


def _shell(command: str, tools: list[str], number: int) -> Call:
    tool = next((one for one in _SHELLS if one in tools), "Bash")
    arguments: dict[str, Json] = {
        "Bash": {"command": command, "description": "as told"},
        "bash": {"command": command, "description": "as told"},
        "exec_command": {"cmd": command},
        "shell_command": {"command": command},
        "shell": {"command": ["/bin/sh", "-c", command]},
    }
    return Call(tool, arguments[tool], number)


class _RequestHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, server: ModelServer, *about: Any) -> None:
        self._model = server
        super().__init__(*about)

    def log_message(self, *_words: object) -> None:
        """Its result is not used."""

    def do_HEAD(self) -> None:
        self._put(200, {})

    def do_GET(self) -> None:
        self._model.paths.append(self.path)
        self._put(404, {"error": {"message": "not here"}})

    def do_POST(self) -> None:
        self._model.paths.append(self.path)
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        known = next((known for end, known in _DIALECTS.items() if self._bare.endswith(end)), None)
        if known is None:
            return self._put(200 if self._bare.endswith("count_tokens") else 404, {"input_tokens": 10})
        vendor, dialect = known
        request = dialect.read(json.loads(body))
        answer = self._model.answer(request, self._is_gone)
        if isinstance(answer, ErrorReply):
            error = answer.anthropic if vendor == "anthropic" else answer.openai
            said = {"type": "error", "error": error} if vendor == "anthropic" else {"error": error}
            return self._put(answer.status, said, answer.headers)
        if self._model.broken is not None and request.tools:
            return self._stream([("", self._model.broken), ("", None)])
        if not request.streamed:
            return self._put(200, dialect.whole(answer, request.model))
        events = dialect.stream(answer, request.model)
        return self._stream([*events, *([("", None)] if self._bare.endswith("completions") else [])])

    @property
    def _bare(self) -> str:
        return self.path.partition("?")[0]

    def _is_gone(self) -> bool:
        """Whether the agent has hung up."""
        if not select.select([self.connection], [], [], 0)[0]:
            return False
        try:
            return not self.connection.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def _put(self, status: int, body: Json, headers: dict[str, str] | None = None) -> None:
        content = json.dumps(body).encode()
        self._begin(status, "application/json", {**(headers or {}), "content-length": str(len(content))})
        if self.command != "HEAD":
            self._write(content)

    def _stream(self, events: list[tuple[str, Json | None]]) -> None:
        self._begin(200, "text/event-stream", {"connection": "close"})
        for name, data in events:
            head = f"event: {name}\n" if name else ""
            self._write(f"{head}data: {'[DONE]' if data is None else json.dumps(data)}\n\n".encode())
        self.close_connection = True

    def _begin(self, status: int, kind: str, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"content-type": kind, "request-id": "req_1", **headers}.items():
            self.send_header(name, value)
        try:
            self.end_headers()
        except OSError:
            self.close_connection = True

    def _write(self, content: bytes) -> None:
        try:
            self.wfile.write(content)
            self.wfile.flush()
        except OSError:
            self.close_connection = True


def main() -> None:
    """For trying an agent by hand: prints the address, answers until it is ended."""
    with ModelServer() as server:
        print(server.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()

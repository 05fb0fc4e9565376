"""A program that speaks JSON in lines on its stdin and stdout, most of them JSON-RPC.

One thread reads. Any thread may write: the answer to a request of the program comes when a person has decided.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections import deque

from mam.util.encoding import to_bytes
from mam.util.strict_json import safe_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mam.jobs.record import Json

LINE_LIMIT = 64 << 20
"""A longer line is read in pieces, none of which is JSON, so it is skipped."""
CLOSE_SECONDS = 10.0


class RpcError(Exception):
    """The program answered with an error; the text is its message."""


class ProgramEnded(Exception):
    """The program ended before it answered."""


class JsonLinesProgram:
    def __init__(self, argv: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        """Its stderr is the caller's. It has a process group of its own, so that its children end with it."""
        self._process = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0)
        self._writing = threading.Lock()
        self._unread: deque[Json] = deque()
        self._next_id = 0

    # -- writing -------------------------------------------------------------------------------------------------

    def request(self, method: str, params: Json) -> int:
        """Sends a request; its answer comes as a message with this id."""
        with self._writing:
            self._next_id += 1
            number = self._next_id
            self._write({"id": number, "method": method, "params": params})
        return number

    def notify(self, method: str) -> None:
        with self._writing:
            self._write({"method": method})

    def reply(self, request_id: object, result: Json) -> None:
        with self._writing:
            self._write({"id": request_id, "result": result})

    def reply_unsupported(self, request_id: object, method: str) -> None:
        error = {"code": -32601, "message": f"mam does not support {method[:80]}"}
        with self._writing:
            self._write({"id": request_id, "error": error})

    def send(self, message: Json) -> None:
        """For a protocol of other messages."""
        with self._writing:
            self._write(message)

    def _write(self, message: Json) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(to_bytes(message) + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError):
            return  # it has ended, which its reader notices

    # -- reading, in one thread ----------------------------------------------------------------------------------

    def call(self, method: str, params: Json) -> Json:
        """The result of a request. What the program says meanwhile stays for `messages`."""
        number = self.request(method, params)
        skipped: list[Json] = []
        try:
            for message in self.messages():
                if message.get("id") == number and "method" not in message:
                    return _result(message)
                skipped.append(message)
        finally:
            self._unread.extend(skipped)
        raise ProgramEnded(f"it ended before it answered {method}")

    def messages(self) -> Iterator[Json]:
        """Every message until the program closes its stdout."""
        while self._unread:
            yield self._unread.popleft()
        for _, message in self.lines():
            if message is not None:
                yield message

    def lines(self) -> Iterator[tuple[bytes, Json | None]]:
        """Every line as it came, and the object in it, if there is one."""
        assert self._process.stdout is not None
        while line := self._process.stdout.readline(LINE_LIMIT):
            yield line, _parsed(line)

    def close_input(self) -> None:
        """It gets no more; some programs then end."""
        with self._writing:
            assert self._process.stdin is not None
            try:
                self._process.stdin.close()
            except OSError:
                pass

    def close(self) -> int:
        """Closes its stdin, waits for its end, and ends its group if it stays. Returns its exit code."""
        self.close_input()
        try:
            self._process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            end_group(self._process)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return self._process.wait()


def outlive_sigterm() -> None:
    """SIGTERM reaches the agent too. A driver that ended first would close the agent's stdin, which some agents take
    for a refusal, after which they go on. A handler, unlike SIG_IGN, is not inherited."""
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends a program and its children, which have one process group. Some launchers ignore SIGTERM themselves."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(CLOSE_SECONDS)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
        else:
            return


def _result(message: Json) -> Json:
    error = message.get("error")
    if error is not None:
        text = error.get("message") if isinstance(error, dict) else None
        code = error.get("code") if isinstance(error, dict) else None
        raise RpcError(f"{text if isinstance(text, str) else json.dumps(error)} (code {code})")
    result = message.get("result")
    return result if isinstance(result, dict) else {}


def _parsed(line: bytes) -> Json | None:
    try:
        message = safe_json(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None

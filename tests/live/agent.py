"""A program with a prompt that behaves as a coding agent does in tmux: it reads lines and calls the hooks it was given.

What it tells its hooks was recorded from the real ones. A prompt names a file, and lines `agent: …` in that say what
to do. It is run as a script of its own, by the interpreter that the first line names.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from mam.agents.hook_log import append

STEP = re.compile(r"^agent: (\S+) ?(.*)$", re.MULTILINE)


class Agent:
    def __init__(
        self, recorded: Path, log: Path, hooks: dict[str, str], turn_field: str, transcript: Path | None = None
    ) -> None:
        self._transcript = transcript
        lines = [json.loads(line) for line in recorded.read_text("utf-8").splitlines()]
        self._recorded: dict[str, dict[str, Any]] = {line["tag"]: line["stdin"] for line in lines}
        self._log = log
        self._hooks = hooks
        self._turn_field = turn_field
        self._session = str(uuid.uuid4())
        self._turn = ""
        self._said = ""

    def run(self) -> None:
        self.hook("SessionStart", source="startup")
        self.note("ready")
        self.show("ready\n❯ ")
        for line in sys.stdin:
            self.note(f"line {line.rstrip()}")
            if line.strip() == "/clear":
                self.hook("SessionEnd", reason="clear")
                self._session = str(uuid.uuid4())
                self.hook("SessionStart", source="clear")
            elif line.strip():
                self.turn(line.strip())
            self.show("❯ ")

    def turn(self, prompt: str) -> None:
        self._turn, self._said = str(uuid.uuid4()), "Done."
        self.write({"type": "user", "promptId": self._turn, "message": prompt})
        self.hook("UserPromptSubmit", prompt=prompt)
        found = re.search(r"Read (\S+) and", prompt)
        steps = STEP.findall(Path(found[1]).read_text("utf-8")) if found else []
        job = prompt.rpartition("(mam:")[2].partition(".")[0]
        for verb, words in steps:
            if getattr(self, f"do_{verb}")(words.replace("{job}", job)) == "no end":
                return
        self.hook("Stop", last_assistant_message=self._said, stop_hook_active=False)
        self.show(f"● {self._said}\n")

    # -- what a prompt may tell it to do ---------------------------------------------------------------------------

    def do_write(self, words: str) -> None:
        path, _, text = words.partition(" ")
        self.hook("PreToolUse", tool_name="Write")
        Path(path).write_text(text, "utf-8")
        self.hook("PostToolUse", tool_name="Write")

    def do_run(self, words: str) -> None:
        self.hook("PreToolUse", tool_name="Bash")
        ran = subprocess.run(words, shell=True, capture_output=True, text=True)
        self.note(f"ran {ran.returncode} {ran.stdout.strip()} {ran.stderr.strip()}")
        self.hook("PostToolUse", tool_name="Bash")

    def do_ask(self, _words: str) -> None:
        self.hook("PermissionRequest", tool_name="Write")
        self.show(" Do you want to create a file?\n ❯ 1. Yes\n   2. No\n")
        answer = sys.stdin.readline()
        self.note(f"answer {answer.rstrip()}")
        print("\033[2J\033[H", end="")
        self.hook("PostToolUse", tool_name="Write")

    def do_await(self, words: str) -> None:
        while not Path(words).exists():
            time.sleep(0.02)  # nothing tells an agent that a file has come

    def do_say(self, words: str) -> None:
        self._said = words

    def do_hook(self, words: str) -> None:
        """Any hook with any fields, lies too."""
        name, _, fields = words.partition(" ")
        self.hook(name, **json.loads(fields or "{}"))

    def do_ask_at_once(self, _words: str) -> None:
        """Two hooks that are there in the same moment."""
        names = ("PreToolUse", "PermissionRequest")
        lines = [
            {"at_ms": time.time_ns() // 1_000_000, "hook_event_name": name, "tool_name": "Bash", "turn": self._turn}
            for name in names
        ]
        both = "\n".join(json.dumps(line) for line in lines)
        append(os.environ["MAM_SESSION_DIR"], os.environ["MAM_GENERATION"], both.encode())
        sys.stdin.readline()

    def do_refused(self, words: str) -> str:
        """As Codex at its vendor's refusal: no hook tells of it, but its transcript does."""
        payload = {"type": "task_complete", "turn_id": self._turn, "error": {"message": words}}
        self.write({"type": "event_msg", "payload": payload})
        return "no end"

    def do_answer(self, words: str) -> None:
        """An answer of the model, as Claude Code's transcript has it."""
        fresh, output = map(int, words.split())
        usage = {"input_tokens": fresh, "output_tokens": output}
        self.write({"type": "assistant", "message": {"id": str(uuid.uuid4()), "usage": usage}})

    def do_background(self, _words: str) -> None:
        """It stops while a task of its own runs, and prompts itself when that has ended."""
        self.hook("Stop", background_tasks=[{"id": "1"}], last_assistant_message="soon")
        self._turn = str(uuid.uuid4())
        self.hook("UserPromptSubmit", prompt="<task-notification>\n<task-id>1</task-id>\n</task-notification>")

    def do_fail(self, words: str) -> str:
        self.hook("StopFailure", error=words)
        return "no end"

    def do_stay(self, _words: str) -> str:
        """As if a person had interrupted it: no hook reports that."""
        return "no end"

    def do_die(self, _words: str) -> None:
        os._exit(1)

    # -- how ---------------------------------------------------------------------------------------------------------

    def hook(self, name: str, **fields: Any) -> None:
        if name not in self._hooks:
            return
        given = {**self._recorded.get(name, self._recorded["SessionStart"]), "hook_event_name": name}
        given |= {"session_id": self._session, "cwd": os.getcwd()}
        given["transcript_path"] = None if self._transcript is None else str(self._transcript)
        if self._turn and name not in ("SessionStart", "SessionEnd"):
            given[self._turn_field] = self._turn
        ran = subprocess.run(
            self._hooks[name], shell=True, input=json.dumps(given | fields).encode(), capture_output=True, timeout=60
        )
        if ran.returncode or ran.stdout or ran.stderr:
            self.note(f"hook {name} {ran.returncode} {ran.stdout!r} {ran.stderr!r}")

    def write(self, line: dict[str, Any]) -> None:
        """Into its transcript, if it has one."""
        if self._transcript is not None:
            with self._transcript.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    def note(self, what: str) -> None:
        with self._log.open("a", encoding="utf-8") as file:
            file.write(what + "\n")

    def show(self, text: str) -> None:
        print(text, end="", flush=True)


def hooks_of(words: list[str]) -> tuple[dict[str, str], str]:
    """The commands that were given for this session, and what this kind of agent calls a turn."""
    if "--settings" in words:
        settings = json.loads(Path(words[words.index("--settings") + 1]).read_text("utf-8"))
        return {name: groups[0]["hooks"][0]["command"] for name, groups in settings["hooks"].items()}, "prompt_id"
    found = {}
    for word in words:
        if match := re.match(
            r'hooks\.(\w+)=\[\{hooks=\[\{type="command",command=(".*?[^\\]"),timeout=\d+\}\]\}\]$', word
        ):
            found[match[1]] = json.loads(match[2])
    return found, "turn_id"


def main(recorded: str, log: str, words: list[str]) -> None:
    hooks, turn_field = hooks_of(words)
    transcript = Path(words[words.index("--transcript") + 1]) if "--transcript" in words else None
    Agent(Path(recorded), Path(log), hooks, turn_field, transcript).run()

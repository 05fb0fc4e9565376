"""A child has no more rights than its parent, whatever an agent writes into the socket of its worker."""

from __future__ import annotations

import inspect
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from mam.config.settings import Config
from mam.errors import BadInput, Refused
from mam.jobs import rights
from mam.jobs.draft import draft_job
from mam.jobs.rights import Grants, child_choices
from mam.stores.port import Query
from tests.work.worker_harness import Harness
from tests.work.worker_harness_fixtures import harness_fixture, quick_fixture

if TYPE_CHECKING:
    from pathlib import Path

    from mam.jobs.record import Job

__all__ = ["harness_fixture", "quick_fixture"]

AGENT = """
import json, os, socket, sys
if not os.path.exists("requests.json"):
    sys.exit()
requests = json.load(open("requests.json"))
os.unlink("requests.json")  # a child that runs here asks for nothing
for asked in requests:
    if "do" in asked:
        exec(asked["do"])
        continue
    with socket.socket(socket.AF_UNIX) as door, open("answers.jsonl", "ab") as answers:
        door.connect(os.environ["MAM_SOCKET"])
        door.sendall(json.dumps({"verb": "register", **asked}).encode() + b"\\n")
        while part := door.recv(1 << 16):
            answers.write(part)
"""
"""An agent that writes what it likes into the socket, and may do something between two requests."""


def attacked(harness: Harness, *requests: dict[str, Any], **choices: Any) -> list[dict[str, Any]]:
    """What a real worker answers to an agent with `ask`."""
    config = {"commands": {"mine": {"argv": [sys.executable, "-c", AGENT], "prompt": "stdin"}}}
    harness.config = Config(**{**harness.config.as_dict(), **config})
    (harness.place / "requests.json").write_text(json.dumps(requests))
    job = harness.ended("attack", **{"agent": "mine", "permissions": "ask", **choices})
    assert job.status == "completed", job.reason
    return [json.loads(line) for line in (harness.place / "answers.jsonl").read_text().splitlines()]


def child(agent: str = "mine", **choices: Any) -> dict[str, Any]:
    return {"agent": agent, "prompt": "a part", "choices": choices}


def all_jobs(harness: Harness) -> list[Job]:
    return list(harness.registry.select(Query()))


def only_child(harness: Harness) -> Job:
    (found,) = [job for job in all_jobs(harness) if job.parent_id is not None]
    return found


# -- attacks -----------------------------------------------------------------------------------------------------------

ATTACKS: dict[str, tuple[dict[str, Any], str]] = {
    "a shell": (child("shell"), "only for mine, human"),
    "another agent": (child("codex"), "only for mine, human"),
    "a shell in other letters": (child("Shell"), "only for mine, human"),
    "a shell in wide letters": (child("\uff53hell"), "only for mine, human"),
    "a shell with an invisible mark": (child("shell\u200b"), "only for mine, human"),
    "the root of a process": (child(workdir="/proc/self/root"), "outside"),
    "a directory above, behind one inside": (child(workdir="PLACE/sub/../.."), "outside"),
    "the conversation of another job": (child(continues="x"), "continues"),
    "an agent that the worker would replace": (child("unknown"), "only for mine, human"),
    "a validation script of its own": (child(validation={"script": "/bin/sh", "sha256": "x"}), "[children]"),
    "the root": (child(workdir="/"), "outside"),
    "a directory above": (child(workdir="PLACE/../.."), "outside"),
    "a directory beside": (child(workdir="PLACE-secret"), "outside"),
    "a link to the root": (child(workdir="PLACE/link"), "outside"),
    "a directory behind a link": (child(workdir="PLACE/link/etc"), "outside"),
    "a worktree of another repository": (child(workdir="/", workspace="worktree"), "worktrees"),
    "a worktree that its own .git leads astray": (
        child(workdir="PLACE/sub", workspace="worktree"),
        "worktrees",
    ),
    "full permissions": (child(permissions="full"), "permissions ask"),
    "the label of a live session": (child(label="tmux:claude"), "labels"),
    "a person's job in a live session": (child("human", label="tmux:claude"), "labels"),
    "no timeout": (child(timeout_sec=0), "timeout_sec"),
    "a longer timeout": (child(timeout_sec=3601), "timeout_sec"),
    "more retries": (child(max_retries=1000), "max_retries"),
    "the head of the queue": (child(priority=1000), "priority"),
    "an id": (child(job_id="mine"), "job_id"),
    "a retry of another job": (child(retry_of="x"), "retry_of"),
    "a repository to push to": (child(repository={"name": "a/b", "push": True}), "repository"),
    "an inbox": (child(inbox={"root": "/"}), "inbox"),
    "a broker": (child(broker={"host": "evil"}), "broker"),
    "a token": (child(auth_token="known"), "auth_token"),
    "a topic": (child(topic_prefix="a/b"), "topic_prefix"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_rejected_in_one_line_and_changes_nothing(quick: Harness, name: str) -> None:
    request, word = ATTACKS[name]
    os.symlink("/", quick.place / "link")
    (quick.place / "sub").mkdir()
    (quick.place / "sub" / ".git").write_text("gitdir: /somewhere/private/.git")
    text = json.dumps(request).replace("PLACE", str(quick.place))
    (answer,) = attacked(quick, json.loads(text))
    assert answer.get("exit_code") == 1, answer
    assert word in answer["message"]
    assert "\n" not in answer["message"]
    assert [job.parent_id for job in all_jobs(quick)] == [None]


@pytest.mark.parametrize("more", [{"broker": {"host": "evil"}}, {"permissions": "full"}, {"env": {"PATH": "."}}])
def test_register_takes_no_options_outside_of_choices(quick: Harness, more: dict[str, Any]) -> None:
    (answer,) = attacked(quick, {**child(), **more})
    assert answer.get("exit_code") == 2, answer
    assert [job.parent_id for job in all_jobs(quick)] == [None]


def test_a_second_request_behind_the_first_is_not_read(quick: Harness) -> None:
    """Neither on a second line nor inside a text that the first line announces."""
    shell = json.dumps({"verb": "register", **child("shell")})
    first = {"verb": "register", **child()}
    smuggled = [json.dumps(first) + "\n" + shell, json.dumps({**first, "body": len(shell)}) + "\n" + shell]
    send = (
        "door = socket.socket(socket.AF_UNIX); door.connect(os.environ['MAM_SOCKET']); door.sendall(%r); "
        "answer = b''.join(iter(lambda: door.recv(1 << 16), b'')); open('answers.jsonl', 'ab').write(answer)"
    )
    answers = attacked(quick, *({"do": send % f"{text}\n".encode()} for text in smuggled))
    assert len(answers) == len(smuggled), answers
    children = [job for job in all_jobs(quick) if job.parent_id is not None]
    assert {job.agent for job in children} <= {"mine"}


def test_the_command_meets_the_same_rule(quick: Harness) -> None:
    """`mam register` in the agent's own process, on every choice that it sends by itself."""
    program = "import os, sys, subprocess; os.path.exists('codes') and sys.exit()"
    program += "; q = [sys.executable, '-m', 'mam', 'register', 'p', '--agent']"
    program += "; open('codes', 'w').write(repr([subprocess.run(q + words).returncode for words in [%s]]))"
    script = quick.place / "check.sh"
    script.write_text("exit 0")
    words = ["['mine']", "['shell']", "['mine', '--workdir', '/']", "['mine', '--validate', 'check.sh']"]
    argv = [sys.executable, "-c", program % ", ".join(words)]
    quick.config = Config(commands={"mine": {"argv": argv, "prompt": "stdin"}})
    job = quick.ended("attack", agent="mine", permissions="ask", timeout_sec=60, max_retries=1)
    assert job.status == "completed", job.reason
    assert (quick.place / "codes").read_text() == "[0, 1, 1, 1]"
    made = only_child(quick)
    assert (made.permissions, made.timeout_sec, made.max_retries) == ("ask", 60, 1)
    assert made.workdir == os.path.realpath(quick.place)


def test_a_directory_that_becomes_a_link_is_not_entered(harness: Harness) -> None:
    """Checked when it was registered, swapped before it runs."""
    outside = harness.folder / "outside"
    outside.mkdir()
    swap = f"os.rename('sub', 'was'); os.symlink({str(outside)!r}, 'sub')"
    (harness.place / "sub").mkdir()
    (answer,) = attacked(harness, child(workdir=str(harness.place / "sub")), {"do": swap})
    assert answer["ok"], answer
    harness.drain(labels=("mine",))
    made = only_child(harness)
    assert made.status == "error"
    assert "has become a link" in str(made.reason)
    assert os.listdir(outside) == []


def test_a_child_without_a_directory_runs_in_that_of_its_parent(quick: Harness) -> None:
    (answer,) = attacked(quick, child())
    assert answer["ok"], answer
    assert only_child(quick).workdir == os.path.realpath(quick.place)


def test_the_map_of_other_hosts_leads_no_child_out(quick: Harness, tmp_path: Path) -> None:
    quick.config = Config(workdirs={str(quick.place): str(tmp_path)})
    (answer,) = attacked(quick, child(workdir=str(quick.place), origin_host="elsewhere"))
    assert answer["ok"], answer
    assert only_child(quick).origin_host == os.uname().nodename


def test_a_child_takes_no_key_that_the_user_may_choose(quick: Harness) -> None:
    first, again = attacked(quick, child(key="release"), child(key="release"))
    assert (first["created"], again["created"]) == (True, False)
    registration = quick.registry.register(prompt="the user's", agent="mine", key="release")
    assert registration.created


def test_the_directory_of_a_parent_is_where_it_began(quick: Harness, tmp_path: Path) -> None:
    """An agent that puts a link in the place of its own directory gains nothing by it."""
    swap = f"os.chdir('..'); os.rename('place', 'was'); os.symlink({str(tmp_path)!r}, 'place'); os.chdir('was')"
    requests = [{"do": swap}, child(workdir=str(quick.place)), child(workdir=str(tmp_path))]
    undo = {"do": "os.unlink('../place'); os.rename('../was', '../place')"}
    answers = attacked(quick, *requests, undo)
    assert [answer.get("exit_code") for answer in answers] == [1, 1]


# -- what is given -----------------------------------------------------------------------------------------------------


def test_the_users_settings_allow_more(quick: Harness, tmp_path: Path) -> None:
    script = tmp_path / "check.sh"
    script.write_text("exit 3")
    quick.config = Config(
        children={"agents": ["codex"], "labels": ["night"], "worktrees": True, "validation": str(script)}
    )
    answers = attacked(quick, child("codex", label="night", workspace="worktree"), child("shell"))
    assert [answer.get("exit_code") for answer in answers] == [None, 1]
    made = only_child(quick)
    assert (made.agent, made.agent_session, made.workspace) == ("codex", "night", "worktree")
    assert (made.validation or {})["script"] == str(script)


def test_the_script_of_the_settings_is_what_it_was_when_the_worker_began(quick: Harness) -> None:
    script = quick.place / "check.sh"
    script.write_text("exit 3")
    quick.config = Config(children={"validation": str(script)})
    (answer,) = attacked(quick, {"do": "open('check.sh', 'w').write('exit 0')"}, child())
    assert answer["ok"], answer
    assert "has changed since it was trusted" in str(only_child(quick).reason)


@pytest.mark.parametrize("choices", [{"agent": "shell"}, {"permissions": "full"}])
def test_an_agent_that_can_run_anything_may_name_any_agent(quick: Harness, choices: dict[str, Any]) -> None:
    parent = quick.registry.get(quick.job("p", **{"agent": "mine", **choices}))
    for agent in ("shell", "codex"):
        assert child_choices(parent, agent, {"label": "tmux:a"}, Grants(), "/p", str)["label"] == "tmux:a"
    with pytest.raises(Refused, match="outside"):
        child_choices(parent, "shell", {"workdir": "/"}, Grants(), "/p", str)
    with pytest.raises(Refused, match="validation"):
        child_choices(parent, "shell", {"validation": {}}, Grants(), "/p", str)


def test_every_choice_of_a_registration_is_decided_once() -> None:
    tables = [*rights.ALLOWED, *rights.NAMED, *rights.WIDTHS, *rights.SET_BY_WORKER, *rights.REJECTED]
    assert len(tables) == len(set(tables))
    assert set(inspect.signature(draft_job).parameters) - {"prompt", "agent"} <= set(tables)


def test_a_silent_child_is_stopped_as_its_parent_is(quick: Harness) -> None:
    parent = quick.registry.get(quick.job("p", agent="mine", on_idle="stop", idle_timeout_sec=30))
    made = child_choices(parent, "mine", {}, Grants(), "/p", str)
    assert (made["on_idle"], made["idle_timeout_sec"]) == ("stop", 30)
    with pytest.raises(Refused, match="idle_timeout_sec 30"):
        child_choices(parent, "mine", {"idle_timeout_sec": 0}, Grants(), "/p", str)
    assert child_choices(parent, "human", {"timeout_sec": 0}, Grants(), "/p", str)["timeout_sec"] == 0


@pytest.mark.parametrize("choices", [{"permissions": "root"}, {"timeout_sec": True}, {"timeout_sec": 10**30}, {"x": 1}])
def test_impossible_values_are_bad_input(quick: Harness, choices: dict[str, Any]) -> None:
    parent = quick.registry.get(quick.job("p"))
    with pytest.raises(BadInput):
        child_choices(parent, "mine", choices, Grants(), "/p", str)


def test_a_child_may_ask_only_if_its_parent_may(quick: Harness) -> None:
    (answer,) = attacked(quick, child(may_ask=True), may_ask=False)
    assert not answer.get("error"), answer
    assert only_child(quick).may_ask is False

"""How an adapter starts an agent, and which variables it passes on. The launches are really started."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from mam.agent_table import AGENTS
from mam.config.settings import Config
from mam.errors import AgentNotFound, UnknownAgent
from mam.jobs.record import Job
from mam.machine.environment import agent_environment, find_program, script_environment, without_secrets
from mam.work.adapters import known_agents, load_adapter
from mam.work.adapters.port import Launch
from mam.work.brief import brief
from mam.work.process.runner import GuardianClient, Plan
from mam.work.workdir import WorkDir
from tests.unit.jobs import running
from tests.work.support import ENV, finish


class Bench:
    def __init__(self, root: Path, guardian: GuardianClient) -> None:
        self.place = WorkDir(path=str(root / "place"), kind="fresh")
        self.private = root / "private" / "abc12345.1"
        os.mkdir(self.place.path)
        self.private.parent.mkdir(mode=0o700)
        self._guardian = guardian

    def launch(self, name: str, job: Job, **table: Any) -> Launch | None:
        config = Config(commands={name: table} if table else {})
        return load_adapter(name, config).launch(job, brief(job), self.place, str(self.private))

    def run(self, launch: Launch | None) -> tuple[int | None, str]:
        assert launch is not None
        plan = Plan(argv=launch.argv, env={**ENV, **launch.env}, cwd=self.place.path, stdin=launch.stdin)
        with self._guardian.start(plan, f"{self.private}.log") as run:
            ended = finish(run)
        return ended.exit_code, ended.stdout_tail


@pytest.fixture
def bench(tmp_path: Path, guardian: GuardianClient) -> Bench:
    return Bench(tmp_path, guardian)


def job(prompt: str = "sort ten numbers", **choices: Any) -> Job:
    return running(prompt=prompt, **choices)


def arguments(text: str) -> list[str]:
    return text.split("\0")[:-1]


ECHO = ["/bin/sh", "-c", 'printf "%s\\0" "$@"', "sh"]


# -- shell and human -------------------------------------------------------------------------------------------------


def test_shell_runs_the_prompt_as_a_script(bench: Bench) -> None:
    launch = bench.launch("shell", job('echo "$0" | wc -l; false\nhas=\'quotes "\'; echo "$has"; pwd; exit 3\n'))
    assert launch is not None
    assert launch.argv == ("/bin/sh", f"{bench.private}.script")
    assert Path(f"{bench.private}.script").stat().st_mode & 0o777 == 0o700
    code, out = bench.run(launch)
    assert code == 3
    assert out.split("\n")[1:3] == ['quotes "', bench.place.path]


def test_a_script_may_name_its_interpreter(bench: Bench) -> None:
    assert bench.run(bench.launch("shell", job("#!/bin/cat\nall of it"))) == (0, "#!/bin/cat\nall of it")


def test_a_script_of_a_mebibyte_works(bench: Bench) -> None:
    prompt = "# " + "x" * (1 << 20) + "\necho done\n"
    launch = bench.launch("shell", job(prompt))
    assert launch is not None
    assert sum(map(len, launch.argv)) < 4096
    assert bench.run(launch) == (0, "done\n")


def test_a_leftover_script_is_replaced_and_a_link_not_followed(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    Path(f"{bench.private}.script").symlink_to(tmp_path / "precious")
    assert bench.run(bench.launch("shell", job("echo one"))) == (0, "one\n")
    assert bench.run(bench.launch("shell", job("echo two"))) == (0, "two\n")
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_prompt_that_no_file_can_hold_is_reported(bench: Bench) -> None:
    with pytest.raises(AgentNotFound, match="not text"):
        bench.launch("shell", job().replace(prompt="\ud800"))


def test_a_human_has_no_process(bench: Bench) -> None:
    assert bench.launch("human", job()) is None


# -- commands --------------------------------------------------------------------------------------------------------


def test_placeholders_are_filled_once(bench: Bench) -> None:
    asked = job("{job_id} {brief} {workdir} $(x) `y` ; {prompt}")
    launch = bench.launch("mine", asked, argv=[*ECHO, "--task={prompt}", "{job_id}", "in {workdir}!", "{unknown}"])
    assert arguments(bench.run(launch)[1]) == [
        "--task={job_id} {brief} {workdir} $(x) `y` ; {prompt}", "abc12345", f"in {bench.place.path}!", "{unknown}",
    ]  # fmt: skip


def test_the_brief_comes_by_argument_stdin_or_file(bench: Bench) -> None:
    text = brief(job())
    assert arguments(bench.run(bench.launch("mine", job(), argv=[*ECHO, "{brief}", "x"]))[1]) == [text, "x"]
    assert arguments(bench.run(bench.launch("mine", job(), argv=[*ECHO, "-p"]))[1]) == ["-p", text]
    assert bench.run(bench.launch("mine", job(), argv=["cat"], prompt="stdin")) == (0, text)
    by_file = bench.launch("mine", job(), argv=["cat", "{brief}"], prompt="file")
    assert bench.run(by_file) == (0, text)
    assert bench.run(bench.launch("mine", job(), argv=["cat"], prompt="file")) == (0, text)
    both = bench.launch("mine", job(), argv=[*ECHO, "{prompt}", "{brief}"], prompt="file")
    assert arguments(bench.run(both)[1]) == ["sort ten numbers", f"{bench.private}.brief.md"]


def test_a_long_prompt_needs_stdin_or_a_file(bench: Bench) -> None:
    asked = job("x" * (1 << 20))
    with pytest.raises(AgentNotFound, match=r'prompt = "stdin" or prompt = "file"'):
        bench.launch("mine", asked, argv=["cat", "{prompt}"])
    assert bench.run(bench.launch("mine", asked, argv=["wc", "-c"], prompt="stdin"))[1].strip() == str(
        len(brief(asked))
    )
    assert bench.run(bench.launch("mine", job("x" * 130_000), argv=["echo", "{prompt}"]))[0] == 0


def test_a_prompt_is_never_an_option(bench: Bench) -> None:
    asked = job("--dangerously-do-anything")
    with pytest.raises(AgentNotFound, match="would be read as an option"):
        bench.launch("mine", asked, argv=[*ECHO, "{prompt}"])
    assert bench.launch("mine", asked, argv=[*ECHO, "--", "{prompt}"]) is not None
    assert bench.launch("mine", asked, argv=[*ECHO, "-p={prompt}"]) is not None
    assert bench.launch("mine", asked, argv=[*ECHO, "{brief}"]) is not None


def test_the_table_goes_with_the_launch(bench: Bench) -> None:
    launch = bench.launch(
        "mine", job(), argv=["sh", "-c", 'echo "$A"'], success="said", retry_codes=[75, 111], env={"A": "b c"}
    )
    assert launch is not None
    assert (launch.success, launch.retry_codes, launch.env, launch.stdin) == ("said", (75, 111), {"A": "b c"}, None)
    assert bench.run(launch) == (0, "b c\n")
    plain = bench.launch("mine", job(), argv=["true"])
    assert plain is not None
    assert (plain.success, plain.retry_codes) == ("exit", ())


@pytest.mark.parametrize("program", ["no-such-agent", "/no/such/agent", "~/no-such-agent", "/etc/passwd", "/etc"])
def test_a_missing_agent_is_reported(bench: Bench, program: str) -> None:
    with pytest.raises(AgentNotFound, match=r"\[commands\.mine\]"):
        bench.launch("mine", job(), argv=[program])


def test_the_repositorys_own_programs_are_not_found(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "place/agent").write_text("#!/bin/sh\n")
    (tmp_path / "place/agent").chmod(0o755)
    monkeypatch.chdir(bench.place.path)
    monkeypatch.setenv("PATH", f".::{tmp_path}/place/../place:")
    with pytest.raises(AgentNotFound):
        bench.launch("mine", job(), argv=["no-such-agent"])
    monkeypatch.setenv("PATH", ".:")
    with pytest.raises(AgentNotFound, match="not on PATH"):
        bench.launch("mine", job(), argv=["agent"])


def test_an_unknown_agent_names_what_there_is() -> None:
    config = Config(commands={"mine": {"argv": ["x"]}})
    assert known_agents(config) == [*AGENTS, "mine"]
    message = r"no-such-agent is not .* shell, human, mine\. .*\[commands\.no-such-agent\]"
    with pytest.raises(UnknownAgent, match=message):
        load_adapter("no-such-agent", config)


# -- environment -----------------------------------------------------------------------------------------------------


def test_an_agent_inherits_all_but_mams_secrets() -> None:
    kept = {
        "PATH": "/bin", "HOME": "/h", "ANTHROPIC_API_KEY": "theirs", "OPENAI_API_KEY": "theirs", "MQTT_BROKER": "b",
        "PGHOST": "db", "PGUSER": "me", "MAM_CONFIG": "/c", "DATABASE_URL": "postgresql://u:p@h/x", "KEY": "x",
        "MAM_DEFAULT_AGENT": "x",
    }  # fmt: skip
    hidden = {
        "MQTT_PASSWORD": "s", "MQTT_USERNAME": "s", "PGPASSWORD": "s", "MAM_WEB_TOKEN": "s", "MAM_TOKEN": "s",
        "MAM_DOOR_SECRET": "s", "MAM_SIGNING_KEY": "s", "MAM_X_PASSWORD": "s",
    }  # fmt: skip
    outer = {"MAM_JOB_ID": "outer", "MAM_ATTEMPT": "9", "MAM_SOCKET": "/outer/door", "MAM_STORE_MARK": "outer"}
    given = agent_environment({**kept, **hidden, **outer}, job(), "mark")
    assert given == {**kept, "MAM_JOB_ID": "abc12345", "MAM_ATTEMPT": "1", "MAM_STORE_MARK": "mark"}


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("/home/me/.mam/jobs", True),
        ("sqlite:///home/me/a:b@c.db", True),
        ("postgresql://me@host/jobs", True),
        ("postgresql:///jobs?host=/run/pg", True),
        ("postgresql://host:5432/jobs", True),
        ("postgresql://me:secret@host/jobs", False),
        ("postgresql://me:p@ss@host/jobs", False),
        ("postgres://me:secret@h1,h2/jobs", False),
        ("postgresql://host/jobs?password=secret", False),
        ("postgresql://host/jobs?p%61ssword=secret", False),
        ("postgresql://host/jobs?sslpassword=secret", False),
    ],
)
def test_a_store_with_a_password_stays_hidden(address: str, kept: bool) -> None:
    assert ("MAM_STORE" in without_secrets({"MAM_STORE": address})) is kept


def test_nothing_is_taken_from_the_environment_itself() -> None:
    environ = {"PGPASSWORD": "x"}
    agent_environment(environ, job(), "mark")
    assert environ == {"PGPASSWORD": "x"}


def test_a_script_gets_hardly_anything() -> None:
    environ = {"PATH": ".:/bin", "HOME": "/h", "LANG": "C", "X": "y", "LC_ALL": "C"}
    assert script_environment(environ, job(), "mark") == {
        "PATH": "/bin", "HOME": "/h", "LANG": "C", "MAM_JOB_ID": "abc12345", "MAM_ATTEMPT": "1",
        "MAM_STORE_MARK": "mark",
    }  # fmt: skip


def test_programs_are_found_by_name_and_by_absolute_path(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("")
    environ = {"PATH": f"{tmp_path}:/bin"}
    assert find_program("sh", environ) == "/bin/sh"
    assert find_program("/bin/sh", {}) == "/bin/sh"
    assert find_program("tool", environ) is None
    (tmp_path / "tool").chmod(0o755)
    assert find_program("tool", environ) == str(tmp_path / "tool")
    for name in ("./tool", "bin/sh", "", "."):
        assert find_program(name, environ) is None

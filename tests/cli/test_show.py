"""`mam show`: the overview of a job."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from mam.cli.render.ansi import to_ansi
from mam.cli.render.closing import closing_line
from mam.cli.render.overview import overview_lines
from mam.cli.render.prose import cell_length
from mam.jobs import question_acts
from mam.jobs.activity import State
from mam.jobs.overview import Overview, Relative, next_steps
from mam.jobs.question import Draft
from mam.jobs.record import Job
from mam.jobs.status import ENDED, Status
from tests.cli.command import Mam
from tests.unit.jobs import NOW, in_status

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "overview.schema.json").read_bytes())
del SCHEMA["properties"]["questions"]["items"]  # another file, which tests/docs checks
STATE = State(state="unknown", source="process", at_ms=0)
HOSTILE = "\x1b[2J\x1b]0;t\x07 \u202eevil " + "x" * 500


@pytest.fixture
def mam(tmp_path: Path) -> Mam:
    here, home = tmp_path / "project", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    return Mam(here, home)


def shown(overview: Overview, width: int = 80) -> list[str]:
    return [to_ansi(line, False) for line in overview_lines(overview, NOW.wall_ms, width)]


def full_job(status: Status, text: str = "fine") -> Job:
    """A job that has every section."""
    return in_status(status).replace(
        prompt=text, result=text, agent_session=text, reason=text, owner=text, parent_id="ab" * 16,
        validation={"script": f"/home/{text}/check.sh"},
        run={"host": text, "place": f"/home/{text}", "wall_seconds": 431.2,
             "changes": {"files": 1, "added": 6, "removed": 2, "branch": text, "shared": True},
             "agent": {"session": text, "version": text, "cost_usd": 0.31, "tokens": {"input": 40_000, "output": 900}}},
        checks={"artifacts": [{"path": text, "size": 2048}], "problem": text,
                "script": {"exit_code": 1, "output": f"{text}\n{text}"}},
        seen={"by": text, "at": "2026-06-19T09:30:00Z"},
        applied={"by": text, "at": "2026-06-19T09:30:00Z", "how": "merge", "branch": text},
    )  # fmt: skip


@pytest.mark.parametrize("status", list(Status))
def test_every_section_is_there(status: Status) -> None:
    relatives = (
        Relative(relation="child", job_id="cd" * 16, status=Status.RUNNING),
        Relative(relation="after", job_id="x"),
    )
    overview = Overview(job=full_job(status), why=["It is so."], state=STATE, chain=relatives, children=9)
    text = "\n".join(shown(overview))
    for words in ("It is so.", "1 file +6 -2 on branch fine", "check.sh ended with 1", "41k tokens · $0.31",
                  "may include others' changes", "✓ applied to fine by fine, ", "7 min",
                  "parent of cdcdcdcd  running", "after x  gone", "… and 8 more", "by fine",
                  "fine  2.0 KiB"):  # fmt: skip
        assert words in text
    assert json.loads(json.dumps(overview.to_json()))["cost"] == {
        "usd": 0.31, "tokens": {"input": 40_000, "output": 900}, "from": None,
    }  # fmt: skip
    Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(overview.to_json())))


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("status", list(Status))
def test_hostile_text_neither_moves_the_cursor_nor_leaves_the_line(status: Status, width: int) -> None:
    overview = Overview(job=full_job(status, HOSTILE), why=[HOSTILE], state=STATE)
    for line in shown(overview, width):
        assert cell_length(line) <= width
        assert line.isprintable()


def test_the_next_steps_fit_the_job() -> None:
    def steps(job: Job, *chain: Relative) -> list[str]:
        return [step.command.split()[1] for step in next_steps(Overview(job=job, why=[], state=STATE, chain=chain))]

    failed = in_status(Status.ERROR).replace(attempt=1)
    again = Relative(relation="retried_as", job_id="x", status=Status.PENDING)
    assert steps(failed) == ["output", "retry", "seen"]
    assert steps(failed.replace(seen={"by": "anna"})) == ["output", "retry"]
    assert steps(failed, again) == ["output"]
    assert steps(in_status(Status.PENDING)) == ["worker", "edit", "cancel"]
    assert steps(in_status(Status.RUNNING).replace(agent="human")) == ["complete", "fail"]
    question = Draft(kind="permission", text="may I push?", tool="Bash")
    asking = question_acts.ask(in_status(Status.RUNNING), NOW, attempt=1, draft=question).job
    assert steps(asking)[0] == "answer"
    assert "may I push?" in "\n".join(shown(Overview(job=asking, why=[], state=STATE)))
    for status in ENDED:
        assert "result" in steps(in_status(status).replace(result="x"))


def test_it_shows_jobs_of_a_real_store(mam: Mam) -> None:
    mam("init")
    mam("show").failed(1, "no job", "mam run")
    parent = mam.register("first")
    job = mam.register("second", "--after", parent)
    mam("status", parent, "--set", "error")
    mam("retry", parent)
    newest = mam("show", "--json").json
    assert newest["prompt"] == "first"
    assert newest["chain"] == [{"relation": "retry_of", "job_id": parent, "status": "error"}]
    failed = mam("show", parent[:8], "--json").json
    assert [relative["relation"] for relative in failed["chain"]] == ["retried_as"]
    waiting = mam("show", job)
    assert waiting.code == 0
    assert f"after {parent[:8]}  error" in waiting.out
    assert "It waits for job" in waiting.out
    Draft202012Validator(SCHEMA).validate(failed)
    screen = mam.on_terminal("show", job, columns=60).stdout.decode()
    assert "\x1b[34m" in screen
    mam.env["NO_COLOR"] = "1"
    assert "\x1b" not in mam.on_terminal("show", job).stdout.decode()


class TestClosingLine:
    def test_it_names_the_checks_and_the_cost(self) -> None:
        job = full_job(Status.COMPLETED, "report.md").replace(checked=True)
        line = closing_line(job, "abc12345")
        assert line == (
            "abc12345 completed after 7 min 11 s · report.md found · validation passed · 41k tokens · $0.31"
        )

    def test_a_failure_names_its_reason_once(self) -> None:
        job = in_status(Status.ERROR).replace(reason="exit code 3.")
        assert closing_line(job, "abc12345") == "abc12345 ended in error: exit code 3; `mam show abc12345` shows more"

    def test_hostile_text_is_escaped(self) -> None:
        assert closing_line(full_job(Status.ERROR, HOSTILE), "abc12345").isprintable()
        assert closing_line(full_job(Status.COMPLETED, HOSTILE), "abc12345").isprintable()

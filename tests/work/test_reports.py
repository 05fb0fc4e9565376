"""How the readers interpret the output of real agents: whole, cut at any byte, and with garbage in between."""

from __future__ import annotations

import itertools
import json
import os
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mam.agent_table import CODING_AGENTS, load
from mam.work.reports.claude_code import ClaudeCodeReader
from mam.work.reports.codex import CodexReader, read_rollout
from mam.work.reports.line_buffer import LineBuffer, LineShortener
from mam.work.reports.opencode import OpenCodeReader
from mam.work.reports.problems import kind_of, reset_in
from mam.work.reports.report import BILLING, DECLINED, FAILED, LIMIT, LOGIN, OVERLOAD, RESULT_LIMIT, Report
from tests.work.agent_facts import AGENT_FACTS, RECORDINGS, TESTED, agent_of
from tests.work.replay import KEPT

if TYPE_CHECKING:
    from mam.work.reports.report import Reader

NOW = datetime(2026, 11, 16, 4, 16, tzinfo=UTC)


def output(name: str) -> tuple[bytes, bytes]:
    return (KEPT / f"{name}.out").read_bytes(), (KEPT / f"{name}.err").read_bytes()


def new_reader(agent: str) -> Reader:
    made: Reader = load(CODING_AGENTS[agent].reader)()
    return made


def reader_of(recording: str) -> Reader:
    return new_reader(agent_of(recording))


def heard(name: str) -> Report:
    reader = reader_of(name)
    out, err = output(name)
    reader.feed(out)
    reader.feed_errors(err)
    return reader.end()


def facts(report: Report) -> dict[str, Any]:
    """When a limit ends is reckoned from now, which goes on between two readings."""
    problem = {} if report.problem is None else report.problem.as_dict()
    return {**vars(report), "problem": {**problem, "resets_at_ms": problem.get("resets_at_ms") is not None}}


@pytest.mark.parametrize("agent", TESTED)
def test_a_turn_that_went_well(agent: str) -> None:
    report = heard(f"{agent}-write")

    assert report.is_over
    assert report.has_answered
    assert report.problem is None
    assert report.denied == []
    assert report.last_message == "I wrote it."
    assert bool(report.session) == AGENT_FACTS[agent].resumes
    assert report.tokens == AGENT_FACTS[agent].tokens
    assert (report.to_json()["cost_usd"] is not None) == AGENT_FACTS[agent].prints_cost, "unknown is not zero"
    assert report.unknown_lines == 0


@pytest.mark.parametrize("agent", TESTED)
@pytest.mark.parametrize(
    ("scene", "kind"),
    [("limit", LIMIT), ("overload", OVERLOAD), ("logged_out", LOGIN), ("unpaid", BILLING), ("declined", DECLINED)],
)
def test_problems_are_classified(agent: str, scene: str, kind: str) -> None:
    report = heard(f"{agent}-{scene}")

    assert report.problem is not None
    assert report.problem.kind == kind, report.problem


@pytest.mark.parametrize("agent", [name for name in TESTED if AGENT_FACTS[name].prints_denials])
def test_a_denied_tool_is_found_even_if_the_model_reports_success(agent: str) -> None:
    report = heard(f"{agent}-denied")

    assert report.denied
    assert json.loads((KEPT / "exit_codes.json").read_text())[f"{agent}-denied"] == 0


def test_a_limit_of_a_plan_states_its_reset() -> None:
    """The line tells it in seconds since 1970; a test that is run later than that takes it as unknown."""
    reader = ClaudeCodeReader()
    soon = round(datetime.now(UTC).timestamp()) + 3600
    out = output("claude-code-plan_limit")[0]
    written = json.loads(next(line for line in out.splitlines() if b"rate_limit_event" in line))
    stamp = str(written["rate_limit_info"]["resetsAt"]).encode()

    reader.feed(out.replace(stamp, str(soon).encode()))

    problem = reader.end().problem
    assert problem is not None
    assert (problem.kind, problem.resets_at_ms) == (LIMIT, soon * 1000)


@pytest.mark.parametrize("agent", TESTED)
def test_output_that_was_cut_off_has_no_end(agent: str) -> None:
    report = heard(f"{agent}-cut")

    assert not report.is_over
    assert bool(report.session) == AGENT_FACTS[agent].resumes
    assert report.has_answered


@pytest.mark.parametrize("name", RECORDINGS)
def test_it_does_not_matter_how_the_bytes_come(name: str) -> None:
    whole, pieces = heard(name), reader_of(name)
    out, err = output(name)

    for at in range(0, len(out), 7):
        pieces.feed(out[at : at + 7])
    for at in range(0, len(err), 3):
        pieces.feed_errors(err[at : at + 3])

    assert facts(pieces.end()) == facts(whole)


@pytest.mark.parametrize("name", RECORDINGS)
def test_cut_at_any_byte_it_is_never_more_than_it_was(name: str) -> None:
    """A success that is cut off anywhere before its last line is no success."""
    whole = heard(name)
    out, err = output(name)
    last = out.rstrip(b"\n").rfind(b"\n") + 1
    for at in {*range(0, len(out), max(1, len(out) // 200)), last, max(0, len(out) - 2)}:
        reader = reader_of(name)
        reader.feed(out[:at])
        reader.feed_errors(err)
        report = reader.end()
        assert whole.is_over or not report.is_over, at
        if at <= last and not name.startswith("opencode"):
            assert not report.is_over, at


rubbish = st.one_of(
    st.binary(max_size=60),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=8,
    ).map(lambda value: json.dumps(value).encode()),
)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), name=st.sampled_from(RECORDINGS))
def test_lines_of_other_kinds_change_nothing(data: st.DataObject, name: str) -> None:
    out, err = output(name)
    lines = out.splitlines()
    for _ in range(data.draw(st.integers(1, 4))):
        extra = data.draw(rubbish).replace(b"\n", b" ")
        lines.insert(data.draw(st.integers(0, len(lines))), extra)
    reader = reader_of(name)

    reader.feed(b"\n".join(lines) + b"\n")
    reader.feed_errors(err)

    found, known = facts(reader.end()), facts(heard(name))
    assert {**found, "unknown_lines": 0} == {**known, "unknown_lines": 0}


@settings(max_examples=150, deadline=None)
@given(data=st.data(), agent=st.sampled_from(TESTED))
def test_a_line_may_hold_anything_in_any_place(data: st.DataObject, agent: str) -> None:
    """A known kind of line whose inside is not as it should be."""
    lines = [json.loads(line) for line in output(f"{agent}-write")[0].splitlines()]
    line = data.draw(st.sampled_from(lines))
    key = data.draw(st.sampled_from(sorted(line)))
    value = data.draw(st.one_of(st.none(), st.integers(), st.text(max_size=5), st.lists(st.integers(), max_size=2),
                                st.dictionaries(st.text(max_size=5), st.integers(), max_size=2)))  # fmt: skip
    reader = new_reader(agent)

    reader.feed(json.dumps({**line, key: value}).encode() + b"\n")

    report = reader.end()
    json.dumps(report.to_json()).encode()


@pytest.mark.parametrize("agent", TESTED)
def test_a_hundred_megabytes_in_one_line_are_left_out(agent: str) -> None:
    reader = new_reader(agent)
    for _ in range(100):
        reader.feed(b"x" * (1 << 20))
    reader.feed(b"\n" + output(f"{agent}-write")[0])

    report = reader.end()

    assert report.is_over
    assert report.unknown_lines == 1


def test_lines_hold_no_more_than_their_limit() -> None:
    lines = LineBuffer(limit=10)
    assert lines.feed(b"12345") == []
    assert lines.feed(b"678901") == []
    assert sum(map(len, lines._parts)) == 0
    assert lines.feed(b"more\nshort\nlo") == [b"short"]
    assert (lines.rest(), lines.left_out) == (b"lo", 1)


def test_long_texts_in_a_line_above_the_limit_keep_their_end() -> None:
    lines, kept = LineBuffer(), 0
    for part in [b'{"type": "result", "result": "', *[b"0123456789abcdef" * 4096] * 1024, b'the end", "n": 1}']:
        assert lines.feed(part) == []
        kept = max(kept, lines._shortened.size if lines._shortened else 0)
    (line,) = lines.feed(b"\n[1]")
    message = json.loads(line)
    assert (message["type"], message["n"], message["result"][-9:]) == ("result", 1, "efthe end")
    assert len(message["result"]) >= RESULT_LIMIT
    assert kept < 9 << 20
    assert (lines.rest(), lines.left_out) == (b"[1]", 0)


@pytest.mark.parametrize("more", [b"[" + b"1," * (5 << 20), b'"a",' * (3 << 20), b"\\" * (9 << 20)])
def test_a_line_that_is_too_long_without_its_texts_is_left_out(more: bytes) -> None:
    lines = LineBuffer()
    lines.feed(more)
    assert lines.feed(b"\n[1]\n") == [b"[1]"]
    assert lines.left_out == 1


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)),
       st.lists(st.integers(1, 9), min_size=1), st.booleans())  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_a_shortened_line_is_the_line_with_the_ends_of_its_texts(value: Any, cuts: list[int], ascii_: bool) -> None:
    line = json.dumps(value, ensure_ascii=ascii_).encode("utf-8", "surrogatepass")
    whole, short = LineShortener(kept=1 << 20), LineShortener(kept=12)
    at = 0
    for size in itertools.cycle(cuts):
        whole.add(line[at : at + size])
        short.add(line[at : at + size])
        at += size
        if at >= len(line):
            break
    assert whole.line() == line
    assert _ends(json.loads(short.line()), value)


def _ends(short: Any, whole: Any) -> bool:
    """Escapes and pairs that were cut through leave something behind, so only the rest of a text is compared."""
    if isinstance(whole, str):
        return isinstance(short, str) and short[-1:] == whole[-1:]
    if isinstance(whole, list):
        return len(short) == len(whole) and all(map(_ends, short, whole))
    return bool(type(short) is type(whole) and (isinstance(whole, dict) or short == whole))


@pytest.mark.parametrize("agent", TESTED)
def test_progress_contains_no_path_and_no_command(agent: str) -> None:
    reader = new_reader(agent)

    told = reader.feed(output(f"{agent}-write")[0])

    assert told
    assert "/" not in "".join(told)


def test_a_session_that_would_be_an_option_is_no_session() -> None:
    reader = CodexReader()
    reader.feed(b'{"type":"thread.started","thread_id":"--dangerously"}\n')
    assert reader.end().session is None


def test_a_command_that_the_sandbox_stopped_is_found_in_the_sessions_file() -> None:
    def line(at: str, output: str, kind: str = "function_call_output") -> bytes:
        return json.dumps({"timestamp": at, "payload": {"type": kind, "output": output}}).encode()

    stopped = "Process exited with code 1\nOutput:\n/bin/bash: line 1: a.txt: Read-only file system\n"
    grep = "Process exited with code 0\nOutput:\nnotes.md: Read-only file system\n"

    assert in_session(line("2026-11-16T04:00:01.000Z", stopped)).denied == ["a command"]
    assert in_session(line("2026-11-16T03:59:59.000Z", stopped)).denied == []
    assert in_session(line("2026-11-16T04:00:01.000Z", grep)).denied == []
    assert in_session(b"not json", b"[]", b'{"timestamp":5}').denied == []


def test_tokens_of_earlier_turns_are_not_counted_again() -> None:
    def told(kind: str, **payload: object) -> bytes:
        return json.dumps({"timestamp": "x", "payload": {"type": kind, **payload}}).encode()

    def count(turns: int) -> bytes:
        usage = {"input_tokens": 222 * turns, "cached_input_tokens": 22 * turns, "output_tokens": 44 * turns}
        return told("token_count", info={"total_token_usage": usage})

    def left(*lines: bytes) -> dict[str, int]:
        report = Report()
        report.count(input=600, cached=66, output=132)
        read_rollout(lines, "2026-11-16T04:00:00.000Z", report)
        return report.tokens

    begun, no_news = told("task_started"), told("token_count", info=None)
    assert left(begun, count(1), no_news, begun, count(2), begun, count(3)) == {
        "input": 200,
        "cached": 22,
        "output": 44,
    }
    assert left(begun, count(3)) == {"input": 600, "cached": 66, "output": 132}
    assert left(begun, count(9), begun) == {"input": 600, "cached": 66, "output": 132}, "more than there is"


def in_session(*lines: bytes) -> Report:
    report = Report()
    read_rollout(lines, "2026-11-16T04:00:00.000Z", report)
    return report


# -- questions without an answer -------------------------------------------------------------------------------------


def claude_uses(name: str, **given: object) -> bytes:
    block = {"type": "tool_use", "name": name, "input": given}
    return json.dumps({"type": "assistant", "message": {"content": [block]}}).encode() + b"\n"


def codex_calls(name: str, arguments: str) -> bytes:
    payload = {"type": "function_call", "name": name, "arguments": arguments}
    return json.dumps({"timestamp": "2026-11-16T04:00:01.000Z", "payload": payload}).encode()


def opencode_uses(tool: str, /, **given: object) -> bytes:
    state = {"status": "completed", "input": given}
    return json.dumps({"type": "tool_use", "part": {"tool": tool, "state": state}}).encode() + b"\n"


COLOUR = [{"question": "Which colour?"}]


def test_a_question_after_which_nothing_was_done_is_remembered() -> None:
    claude, opencode = ClaudeCodeReader(), OpenCodeReader()
    claude.feed(claude_uses("Write") + claude_uses("AskUserQuestion", questions=COLOUR))
    opencode.feed(opencode_uses("write") + opencode_uses("invalid", tool="question", error="unavailable"))

    assert claude.end().asked == "Which colour?"
    assert opencode.end().asked == "a question"
    asked = codex_calls("request_user_input", json.dumps({"questions": COLOUR}))
    assert in_session(codex_calls("exec_command", "{}"), asked).asked == "Which colour?"
    assert in_session(codex_calls("request_user_input", "[")).asked == "a question"


def test_an_agent_that_asked_and_then_continued_needs_no_answer() -> None:
    claude, opencode = ClaudeCodeReader(), OpenCodeReader()
    claude.feed(claude_uses("AskUserQuestion", questions=COLOUR) + claude_uses("Write"))
    opencode.feed(opencode_uses("question", questions=COLOUR) + opencode_uses("write"))

    assert (claude.end().asked, opencode.end().asked) == (None, None)
    assert in_session(codex_calls("request_user_input", "{}"), codex_calls("exec_command", "{}")).asked is None


# -- words of vendors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("You’ve hit your usage limit. Upgrade or try again at 5:16 AM.", timedelta(hours=1, minutes=1)),
        ("try again at 4:16 AM.", timedelta(minutes=1)),
        ("try again at 4:15 AM.", timedelta(days=1)),
        ("try again at Nov 17th, 2026 4:16 AM.", timedelta(days=1, minutes=1)),
        ("You've hit your 5-hour limit · resets 5:16am (UTC)", timedelta(hours=1, minutes=1)),
        ("You've hit your limit · resets 6am (Europe/Berlin)", timedelta(minutes=45)),
        ("Weekly limit reached · resets Nov 20, 4am", timedelta(days=3, hours=23, minutes=45)),
        ("Rate limit reached. Please try again in 20s.", timedelta(seconds=20)),
        ("Please try again in 6m0s.", timedelta(minutes=6)),
        ("Usage limit reached. It will reset in 3 hours 5 minutes.", timedelta(hours=3, minutes=5)),
        ("It will reset in 1 day 2 hours", timedelta(days=1, hours=2)),
    ],
)
def test_when_a_limit_ends(text: str, after: timedelta) -> None:
    assert reset_in(text, NOW) == round((NOW + after).timestamp() * 1000)


def test_an_old_form_has_seconds_since_1970() -> None:
    stamp = round(NOW.timestamp()) + 600
    assert reset_in(f"Claude AI usage limit reached|{stamp}", NOW) == stamp * 1000


def test_clock_times_are_local_where_no_zone_is_named() -> None:
    now = NOW.astimezone(timezone(timedelta(hours=2)))
    assert reset_in("try again at 7:16 AM.", now) == round((NOW + timedelta(hours=1, minutes=1)).timestamp() * 1000)


@pytest.mark.parametrize(
    "text",
    ["try again later", "resets 25:99pm", "resets 5am (Nowhere/City)x", "try again in 999999 days", "|9999999999", ""],
)
def test_an_invalid_time_is_unknown(text: str) -> None:
    found = reset_in(text, NOW)
    assert found is None or found > NOW.timestamp() * 1000


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="resettryagain in at0123456789:apm|dhs(),NovU TC/", max_size=60))
def test_any_sentence_can_be_classified(text: str) -> None:
    reset_in(text, NOW)
    kind_of(text)


@pytest.mark.parametrize(
    ("text", "status", "kind"),
    [
        ("Overloaded", 529, OVERLOAD),
        ("You exceeded your current quota, please check your plan and billing details.", 429, BILLING),
        ("slow down", 429, LIMIT),
        ("no", 403, LOGIN),
        ("unexpected status 529 <unknown status code>: The server is overloaded.", None, OVERLOAD),
        ("unexpected status 401 Unauthorized: Incorrect API key provided.", None, LOGIN),
        ("API Error: API returned an empty or malformed response (HTTP 200) — check for a proxy", None, OVERLOAD),
        ('Type validation failed: Value: {"nothing":"that a vendor says"}. Error message: [', None, OVERLOAD),
        ("We're currently experiencing high demand, which may cause temporary errors.", None, OVERLOAD),
        ("No conversation found with session ID: x", None, FAILED),
    ],
)
def test_each_problem_has_a_kind(text: str, status: int | None, kind: str) -> None:
    assert kind_of(text, status) == kind


def test_a_key_in_an_error_of_the_vendor_is_not_stored() -> None:
    reader = CodexReader()
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz"
    reader.feed(
        json.dumps({"type": "turn.failed", "error": {"message": f"Incorrect API key provided: {key}"}}).encode()
    )
    reader.feed_errors(f"error: cannot read /home/anna/.codex/{key}\n".encode())

    report = reader.end()

    assert report.problem is not None
    assert report.last_stderr_line is not None
    assert key not in report.problem.text + report.last_stderr_line
    assert "/home/anna" not in report.last_stderr_line


def test_the_transcripts_contain_no_path_of_the_recorder() -> None:
    assert len(RECORDINGS) >= 27
    for name in RECORDINGS:
        assert os.fsencode("/var/tmp") not in b"".join(output(name)), name


# -- what a turn took -------------------------------------------------------------------------------------------------


def claude_result(**fields: object) -> bytes:
    whole = {"type": "result", "subtype": "success", "is_error": False, "session_id": "abc", **fields}
    return json.dumps(whole).encode() + b"\n"


def claude_used(tokens: int, dollars: float) -> dict[str, object]:
    return {"inputTokens": tokens, "outputTokens": tokens, "cacheReadInputTokens": 0, "costUSD": dollars}


def test_a_resumed_conversation_costs_only_its_new_turn() -> None:
    """`total_cost_usd` is the sum of all turns; every model that worked in this turn counts."""
    new = {"sonnet": claude_used(100, 0.5), "haiku": claude_used(10, 0.25)}

    report = read("claude-code", claude_result(total_cost_usd=9.75, model_usage_since_last_result=new))

    assert report.cost_usd == 0.75
    assert report.tokens == {"input": 110, "output": 110, "cached": 0}


def test_an_older_version_prints_only_the_total() -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 1, "output_tokens": 2}

    report = read("claude-code", claude_result(total_cost_usd=0.5, usage=usage))

    assert (report.cost_usd, report.tokens) == (0.5, {"input": 5, "cached": 1, "output": 2})


def test_the_usage_of_an_interrupted_turn_is_unknown_and_not_zero() -> None:
    nothing = {"total_cost_usd": 0, "usage": {"input_tokens": 0, "output_tokens": 0}}
    cut = claude_result(**nothing, subtype="error_during_execution", is_error=True, model_usage_since_last_result={})

    report = read("claude-code", cut)

    assert (report.cost_usd, report.tokens) == (None, {})
    assert "cost_usd" not in report.to_json()


def read(agent: str, data: bytes) -> Report:
    reader = new_reader(agent)
    reader.feed(data)
    return reader.end()


# -- progress that is none --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", TESTED)
def test_steps_in_which_nothing_happens_are_no_progress(agent: str) -> None:
    report = read(agent, AGENT_FACTS[agent].empty_step * 20)

    assert (report.is_stuck, report.is_over, report.has_answered) == (True, False, False)
    assert report.problem is not None
    assert report.problem.kind == OVERLOAD


@pytest.mark.parametrize("agent", TESTED)
def test_an_answer_in_between_is_progress(agent: str) -> None:
    report = read(agent, (AGENT_FACTS[agent].empty_step * 3 + AGENT_FACTS[agent].answer) * 20)

    assert (report.is_stuck, report.has_answered) == (False, True)


def test_the_same_error_in_the_log_again_and_again_is_no_progress() -> None:
    line = b'level=ERROR message="stream error" x session.id=ses_1 small=false agent=build error.error="AI_X: bad"\n'

    assert not errors_of_opencode(line * 11).is_stuck
    report = errors_of_opencode(line * 12)

    assert report.is_stuck
    assert report.problem is not None
    assert report.problem.kind == OVERLOAD


def errors_of_opencode(data: bytes) -> Report:
    reader = OpenCodeReader()
    reader.feed_errors(data)
    return reader.report

"""The conversation readers: the output of real agents becomes the same few kinds of items, and no line is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from mam.agent_table import CODING_AGENTS, load
from mam.conversation.items import (
    DENIED,
    DONE,
    FAILED,
    RUNNING,
    Asked,
    Began,
    Changed,
    Cost,
    Ended,
    Line,
    Notice,
    Plan,
    Said,
    Step,
    Thought,
    Used,
    to_json,
)
from mam.conversation.lines import KEPT, LINE_LIMIT
from mam.conversation.reader import PlainReader, read_all
from tests.work.agent_facts import AGENT_FACTS, RECORDINGS, TESTED, agent_of
from tests.work.replay import KEPT as TRANSCRIPTS

if TYPE_CHECKING:
    from mam.conversation.items import Item

SCHEMA = Path(__file__).parents[2] / "schemas" / "conversation_item.schema.json"
VALIDATOR = Draft202012Validator(json.loads(SCHEMA.read_bytes()))


def items_of(agent: str, output: bytes) -> list[Item]:
    return list(read_all(load(CODING_AGENTS[agent].conversation)(), [output]))


def recorded(name: str) -> list[Item]:
    return items_of(agent_of(name), (TRANSCRIPTS / f"{name}.out").read_bytes())


def printed(*messages: object) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


@pytest.mark.parametrize("recording", RECORDINGS)
def test_every_line_that_a_real_agent_printed_is_understood(recording: str) -> None:
    items = recorded(recording)
    assert not [item for item in items if isinstance(item, Line)]
    assert all(VALIDATOR.is_valid(to_json(item)) for item in items)


@pytest.mark.parametrize("recording", RECORDINGS)
def test_output_in_pieces_gives_the_same_items(recording: str) -> None:
    output = (TRANSCRIPTS / f"{recording}.out").read_bytes()
    reader = load(CODING_AGENTS[agent_of(recording)].conversation)()
    pieces = [output[at : at + 37] for at in range(0, len(output), 37)]
    assert list(read_all(reader, pieces)) == recorded(recording)


class TestRecordings:
    @pytest.mark.parametrize("agent", TESTED)
    def test_the_last_message_is_one_item(self, agent: str) -> None:
        said = [item for item in recorded(f"{agent}-text") if isinstance(item, Said)]
        assert said == [Said(text="Hello.")]

    @pytest.mark.parametrize("agent", TESTED)
    def test_a_turn_that_ended_well(self, agent: str) -> None:
        assert recorded(f"{agent}-write")[-1] == Ended(ok=True)

    @pytest.mark.parametrize("agent", [name for name in TESTED if "input" in AGENT_FACTS[name].tokens])
    def test_the_cost_of_a_turn_comes_before_its_end(self, agent: str) -> None:
        *_, cost, _ = recorded(f"{agent}-write")
        assert isinstance(cost, Cost)
        assert {"input": cost.input, "cached": cost.cached, "output": cost.output} == AGENT_FACTS[agent].tokens

    @pytest.mark.parametrize("agent", [name for name in TESTED if AGENT_FACTS[name].prints_changes])
    def test_a_new_file_is_a_change(self, agent: str) -> None:
        (changed,) = [item for item in recorded(f"{agent}-write") if isinstance(item, Changed)]
        assert (changed.path, changed.action, changed.added, changed.removed) == ("notes.txt", "create", 1, 0)

    def test_codex_writes_with_a_command(self) -> None:
        started, ended = [item for item in recorded("codex-write") if isinstance(item, Used)]
        assert (started.state, ended.state, ended.exit_code) == (RUNNING, DONE, 0)
        assert ended.target == "echo 'it was me' > notes.txt"

    @pytest.mark.parametrize("agent", [name for name in TESTED if AGENT_FACTS[name].prints_denials])
    def test_a_denied_tool_has_the_state_denied(self, agent: str) -> None:
        used = [item for item in recorded(f"{agent}-denied") if isinstance(item, Used)][-1]
        assert (used.verb, used.target, used.state) == ("write", "notes.txt", DENIED)
        assert used.output

    @pytest.mark.parametrize("recording", ["claude-code-limit", "codex-limit", "opencode-unpaid", "claude-code-gone"])
    def test_a_turn_that_failed(self, recording: str) -> None:
        ended = recorded(recording)[-1]
        assert isinstance(ended, Ended)
        assert not ended.ok
        assert ended.text

    def test_a_turn_without_tokens_has_no_cost(self) -> None:
        """Claude Code prints zeros for it, which mean that the cost is unknown."""
        assert not [item for item in recorded("claude-code-limit") if isinstance(item, Cost)]

    def test_the_first_item_names_program_and_session(self) -> None:
        began = recorded("claude-code-text")[0]
        assert isinstance(began, Began)
        assert (began.version, began.model) == ("2.1.325", "claude-sonnet-4-5")
        assert began.session is not None


def claude(*blocks: object, kind: str = "assistant", **fields: object) -> dict[str, object]:
    return {"type": kind, "message": {"content": list(blocks)}, **fields}


class TestClaudeCode:
    def test_an_edit_counts_its_lines(self) -> None:
        tool = {"type": "tool_use", "id": "t1", "name": "Edit", "input": {"file_path": "/w/a.py"}}
        result = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
        patch = [{"lines": [" x", "-old", "+new", "+more"]}]
        output = printed(claude(tool), claude(result, kind="user", tool_use_result={"structuredPatch": patch}))
        used, changed = items_of("claude-code", output)
        assert isinstance(used, Used)
        assert changed == Changed(id="t1", path="/w/a.py", added=2, removed=1, patch=" x\n-old\n+new\n+more")

    def test_a_failed_command_has_the_state_failed(self) -> None:
        tool = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make test"}}
        result = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "Exit code 2\nno rule"}
        first, last = "2026-11-15T21:38:34.000Z", "2026-11-15T21:38:46.500Z"
        output = printed(claude(tool, timestamp=first), claude(result, kind="user", timestamp=last))
        used = items_of("claude-code", output)[-1]
        assert isinstance(used, Used)
        assert (used.verb, used.target, used.state, used.exit_code) == ("ran", "make test", FAILED, 2)
        assert (used.output, used.seconds) == ("no rule", 12.5)

    def test_thoughts_plans_questions_and_subagents_are_items(self) -> None:
        todos = [{"content": "one", "status": "completed"}, {"content": "two", "status": "in_progress"}]
        question = {"question": "Which?", "options": [{"label": "this"}, {"label": "that"}]}
        output = printed(
            claude({"type": "thinking", "thinking": "hm"}),
            claude({"type": "tool_use", "id": "1", "name": "TodoWrite", "input": {"todos": todos}}),
            claude({"type": "tool_use", "id": "2", "name": "AskUserQuestion", "input": {"questions": [question]}}),
            claude({"type": "text", "text": "looking"}, parent_tool_use_id="3"),
        )
        thought, plan, asked, _, said = items_of("claude-code", output)
        assert thought == Thought(text="hm")
        assert plan == Plan(steps=(Step(text="one", state="done"), Step(text="two", state="active")))
        assert asked == Asked(question="Which?", choices=("this", "that"))
        assert said == Said(text="looking", by="subagent")

    def test_the_cost_of_a_resumed_turn_is_its_own(self) -> None:
        """`total_cost_usd` is that of the whole conversation."""
        result = {"type": "result", "subtype": "success", "result": "", "total_cost_usd": 3.0,
                  "usage": {"input_tokens": 5}, "model_usage_since_last_result": {"m": {"costUSD": 0.25}}}  # fmt: skip
        cost = items_of("claude-code", printed(result))[0]
        assert cost == Cost(usd=0.25, input=5)


class TestCodex:
    def test_reasoning_files_tools_and_plans_are_items(self) -> None:
        def done(**item: object) -> dict[str, object]:
            return {"type": "item.completed", "item": {"id": "i", **item}}

        output = printed(
            done(type="reasoning", text="hm"),
            done(type="file_change", status="completed", changes=[{"path": "/w/a", "kind": "add"}, {"path": "/w/b"}]),
            done(type="mcp_tool_call", server="git", tool="log", status="failed", error={"message": "gone"}),
            done(type="todo_list", items=[{"text": "a", "completed": True}, {"text": "b"}, {"text": "c"}]),
        )
        thought, first, second, tool, plan = items_of("codex", output)
        assert thought == Thought(text="hm")
        assert (first, second) == (
            Changed(id="i", path="/w/a", action="create"),
            Changed(id="i", path="/w/b"),
        )
        assert isinstance(tool, Used)
        assert (tool.verb, tool.state, tool.output) == ("git.log", FAILED, "gone")
        assert isinstance(plan, Plan)
        assert [step.state for step in plan.steps] == ["done", "active", "pending"]


class TestUnknownLines:
    @pytest.mark.parametrize("agent", TESTED)
    @given(text=st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), min_size=1))
    def test_a_line_of_text_stays_as_it_is(self, agent: str, text: str) -> None:
        assert items_of(agent, text.encode() + b"\n") == [Line(text=text)]

    @pytest.mark.parametrize("agent", TESTED)
    def test_an_unknown_kind_stays_as_it_is(self, agent: str) -> None:
        line = '{"type": "invented", "x": "\\u202e"}'
        assert items_of(agent, line.encode()) == [Line(text=line)]

    @pytest.mark.parametrize("agent", TESTED)
    @given(
        message=st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["message", "content", "item", "part", "state", "input", "changes", "id", "x"]), inner
            ),
        ),
        kind=st.sampled_from([
            "system", "assistant", "user", "result", "item.completed", "item.started", "turn.completed", "turn.failed",
            "error", "tool_use", "step_finish", "text", "rate_limit_event",
        ]),
        inner=st.sampled_from(["tool_use", "tool_result", "file_change", "todo_list", "command_execution", "text"]),
    )  # fmt: skip
    def test_nonsense_never_raises(self, agent: str, message: object, kind: str, inner: str) -> None:
        blocks = {"content": [{"type": inner, "input": message, "content": message}]}
        part = {"type": inner, "state": message, "changes": message, "items": message, "tokens": message}
        line = {"type": kind, "message": blocks, "item": part, "part": part, "error": message, "usage": message}
        for item in items_of(agent, printed(line)):
            assert VALIDATOR.is_valid(json.loads(json.dumps(to_json(item))))

    def test_each_line_of_a_plain_program_is_an_item(self) -> None:
        items = list(read_all(PlainReader(), [b"one\n\ntw", b"o\xff"]))
        assert items == [Line(text="one"), Line(text=""), Line(text="two\ufffd")]


class TestLongLines:
    def test_a_long_line_of_text_is_cut_and_counted(self) -> None:
        (line,) = items_of("codex", b"x" * (LINE_LIMIT + 5) + b"\n")
        assert line == Line(text="x" * KEPT, left_out=LINE_LIMIT + 5 - KEPT)

    def test_a_long_message_keeps_its_end(self) -> None:
        item = {"type": "item.completed", "item": {"type": "agent_message", "text": "x" * 3 * LINE_LIMIT + "end"}}
        said, notice = items_of("codex", printed(item))
        assert isinstance(said, Said)
        assert said.text.endswith("xend")
        assert len(said.text) < LINE_LIMIT
        assert isinstance(notice, Notice)
        assert "left out" in notice.text

    def test_a_long_line_of_structure_is_cut(self) -> None:
        line = b'{"type":"error","x":[' + b'"a",' * (LINE_LIMIT + LINE_LIMIT // 2) + b'"b"]}\n'
        found, after = items_of("opencode", line + b"after\n")
        assert isinstance(found, Line)
        assert len(found.text) == KEPT
        assert found.left_out == len(line) - 1 - KEPT
        assert after == Line(text="after")

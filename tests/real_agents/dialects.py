"""The three model interfaces, as far as the agents use them: a request, and one answer, streamed or whole."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    Json = dict[str, Any]

INPUT_TOKENS, CACHED_TOKENS, OUTPUT_TOKENS = 100, 11, 22
"""What every answer is said to have cost."""


@dataclass(frozen=True)
class ModelInput:
    """One thing of a conversation that the model did not say itself."""

    text: str
    is_result: bool
    """Whether it came from a tool."""


@dataclass(frozen=True)
class Request:
    heard: list[ModelInput]
    tools: list[str]
    model: str
    streamed: bool


@dataclass(frozen=True)
class Reply:
    text: str
    refused: bool = False
    """Whether the model declines instead of answering."""


@dataclass(frozen=True)
class Call:
    tool: str
    arguments: Json = field(default_factory=dict)
    number: int = 1


_numbers = count(1)


def _new_id(kind: str) -> str:
    """Agents take two answers of one name for parts of the same."""
    return f"{kind}_{next(_numbers)}"


def texts(content: object) -> str:
    """Of a text, or of a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part.get("text", "") or texts(part.get("content")) for part in parts if isinstance(part, dict))


class Dialect(Protocol):
    def read(self, body: Json) -> Request: ...

    def whole(self, answer: Reply | Call, model: str) -> Json: ...

    def stream(self, answer: Reply | Call, model: str) -> Iterator[tuple[str, Json]]:
        """Names and data of events."""


class Messages:
    """Anthropic's `/v1/messages`."""

    def read(self, body: Json) -> Request:
        heard = []
        for message in body.get("messages", []):
            if message.get("role") != "user":
                continue
            content = message["content"]
            for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                if part.get("type") == "tool_result":
                    heard.append(ModelInput(texts(part.get("content")), True))
                elif part.get("type") == "text":
                    heard.append(ModelInput(part["text"], False))
        tools = [tool["name"] for tool in body.get("tools", []) if "name" in tool]
        return Request(heard, tools, body.get("model", ""), bool(body.get("stream")))

    def whole(self, answer: Reply | Call, model: str) -> Json:
        stop = "tool_use" if isinstance(answer, Call) else "refusal" if answer.refused else "end_turn"
        usage = {
            "input_tokens": INPUT_TOKENS, "cache_read_input_tokens": CACHED_TOKENS, "output_tokens": OUTPUT_TOKENS,
        }  # fmt: skip
        block: Json = {"type": "text", "text": answer.text} if isinstance(answer, Reply) else {
            "type": "tool_use", "id": f"toolu_{answer.number}", "name": answer.tool, "input": answer.arguments,
        }  # fmt: skip
        return {
            "id": _new_id("msg"), "type": "message", "role": "assistant", "model": model, "content": [block],
            "stop_reason": stop, "stop_sequence": None, "usage": usage,
        }  # fmt: skip

    def stream(self, answer: Reply | Call, model: str) -> Iterator[tuple[str, Json]]:
        whole = self.whole(answer, model)
        block = whole["content"][0]
        begun = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
        yield "message_start", {"type": "message_start", "message": begun}
        if isinstance(answer, Reply):
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": answer.text}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(answer.arguments)}
        yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": empty}
        yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": 0}
        stopped = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield "message_delta", {"type": "message_delta", "delta": stopped, "usage": {"output_tokens": OUTPUT_TOKENS}}
        yield "message_stop", {"type": "message_stop"}


class Responses:
    """OpenAI's `/v1/responses`."""

    def read(self, body: Json) -> Request:
        heard = []
        asked = body.get("input", [])
        for item in [{"role": "user", "content": asked}] if isinstance(asked, str) else asked:
            if str(item.get("type", "message")).endswith("_output"):
                output = item.get("output")
                heard.append(ModelInput(output if isinstance(output, str) else texts(output), True))
            elif item.get("role") == "user":
                heard.append(ModelInput(texts(item.get("content")), False))
        tools = []
        for tool in body.get("tools", []):
            name = tool.get("name", tool.get("type", ""))
            inner = tool.get("tools") if tool.get("type") == "namespace" else None
            tools += [name] if inner is None else [f"{name}.{one['name']}" for one in inner]
        return Request(heard, tools, body.get("model", ""), bool(body.get("stream")))

    def whole(self, answer: Reply | Call, model: str) -> Json:
        return self._response(self._item(answer), model, "completed")

    def stream(self, answer: Reply | Call, model: str) -> Iterator[tuple[str, Json]]:
        item = self._item(answer)
        begun = self._response(None, model, "in_progress")
        yield "response.created", {"type": "response.created", "response": begun}
        yield "response.output_item.added", {"type": "response.output_item.added", "output_index": 0, "item": item}
        if isinstance(answer, Reply):
            delta = {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0}
            yield "response.output_text.delta", {**delta, "delta": answer.text}
        yield "response.output_item.done", {"type": "response.output_item.done", "output_index": 0, "item": item}
        done = self._response(item, model, "completed")
        yield "response.completed", {"type": "response.completed", "response": done}

    def _item(self, answer: Reply | Call) -> Json:
        if isinstance(answer, Call):
            space, _, name = answer.tool.rpartition(".")
            return {
                **({"namespace": space} if space else {}), "type": "function_call",
                "id": f"fc_{answer.number}", "call_id": f"call_{answer.number}",
                "name": name, "arguments": json.dumps(answer.arguments), "status": "completed",
            }  # fmt: skip
        content = {"type": "refusal", "refusal": answer.text} if answer.refused else {
            "type": "output_text", "text": answer.text, "annotations": [],
        }  # fmt: skip
        return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [content]}

    def _response(self, item: Json | None, model: str, status: str) -> Json:
        usage = {
            "input_tokens": INPUT_TOKENS + CACHED_TOKENS, "input_tokens_details": {"cached_tokens": CACHED_TOKENS},
            "output_tokens": OUTPUT_TOKENS, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": INPUT_TOKENS + CACHED_TOKENS + OUTPUT_TOKENS,
        }  # fmt: skip
        return {
            "id": "resp_1", "object": "response", "created_at": int(time.time()), "model": model, "status": status,
            "output": [item] if item else [], "usage": usage if item else None,
        }  # fmt: skip


class Completions:
    """OpenAI's `/v1/chat/completions`."""

    def read(self, body: Json) -> Request:
        heard = [
            ModelInput(texts(message.get("content")), message["role"] == "tool")
            for message in body.get("messages", [])
            if message.get("role") in ("user", "tool")
        ]
        tools = [tool["function"]["name"] for tool in body.get("tools", []) if "function" in tool]
        return Request(heard, tools, body.get("model", ""), bool(body.get("stream")))

    def whole(self, answer: Reply | Call, model: str) -> Json:
        message, finish = self._message(answer)
        return {**self._chunk(model), "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                "usage": self._usage()}  # fmt: skip

    def stream(self, answer: Reply | Call, model: str) -> Iterator[tuple[str, Json]]:
        message, finish = self._message(answer)
        chunk = {**self._chunk(model), "object": "chat.completion.chunk"}
        yield "", {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}
        yield "", {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
        yield "", {**chunk, "choices": [], "usage": self._usage()}

    def _message(self, answer: Reply | Call) -> tuple[Json, str]:
        if isinstance(answer, Reply):
            finish = "content_filter" if answer.refused else "stop"
            return {"role": "assistant", "content": answer.text}, finish
        call = {
            "index": 0, "id": f"call_{answer.number}", "type": "function",
            "function": {"name": answer.tool, "arguments": json.dumps(answer.arguments)},
        }  # fmt: skip
        return {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"

    def _chunk(self, model: str) -> Json:
        return {"id": "chatcmpl-1", "object": "chat.completion", "created": int(time.time()), "model": model}

    def _usage(self) -> Json:
        return {
            "prompt_tokens": INPUT_TOKENS + CACHED_TOKENS, "completion_tokens": OUTPUT_TOKENS,
            "total_tokens": INPUT_TOKENS + CACHED_TOKENS + OUTPUT_TOKENS,
            "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS},
        }  # fmt: skip

"""The requests of `codex app-server` as questions, and the answers as it expects them. Pure."""

from __future__ import annotations

from mam.work.drivers.drafts import permission_draft, question_draft, script_of
from mam.work.reports.report import get_list, get_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.question import Draft
    from mam.jobs.record import Json
    from mam.work.asking.port import Decision

COMMAND, FILES, RIGHTS, INPUT, ELICITATION = (
    "item/commandExecution/requestApproval", "item/fileChange/requestApproval", "item/permissions/requestApproval",
    "item/tool/requestUserInput", "mcpServer/elicitation/request",
)  # fmt: skip
ASKING = (COMMAND, FILES, RIGHTS, INPUT)
"""The requests that always become questions."""
AGENT = "Codex"
ON_REQUEST = "on-request"


def call_of(params: object) -> str:
    """Codex's name of the tool's use; it is also that of the call in its session file."""
    return str(get_path(params, "itemId") or "")


def drafts_of(method: str, params: object, item: Json, policy: str) -> list[Draft]:
    """One draft, or one for each question. `item` is the change that a request about files names."""
    match method:
        case "item/commandExecution/requestApproval":
            return [_command(params, policy)]
        case "item/fileChange/requestApproval":
            return [_files(params, item)]
        case "item/permissions/requestApproval":
            given = {**_reason(params), "permissions": get_path(params, "permissions"), **_directory(params)}
            return [permission_draft(AGENT, "get more rights for this turn", "request_permissions", given)]
    return [
        question_draft(get_path(one, "question"), [get_path(it, "label") for it in get_list(one, "options")])
        for one in get_list(params, "questions")
    ]


def is_tool_approval(params: object) -> bool:
    """Whether a request of an MCP server is Codex's own, about a tool of that server. mam shows no forms of servers."""
    return any(get_path(params, name, "codex_approval_kind") == "mcp_tool_call" for name in ("_meta", "meta"))


def tool_approval(params: object, item: Json) -> Draft:
    """`item` is the use of the tool, which the request does not name."""
    about = get_path(params, "_meta") or get_path(params, "meta")
    given: Json = {"message": get_path(params, "message"), "arguments": get_path(about, "tool_params")}
    tool = ".".join(str(part) for part in (get_path(params, "serverName"), item.get("tool")) if part)
    return permission_draft(AGENT, "use a tool of an MCP server", tool, given)


def tool_approval_reply(decision: Decision) -> Json:
    if decision.is_allowed:
        return {"action": "accept", "content": {}}
    return {"action": "cancel" if decision.is_undecided else "decline", "content": None}


def _command(params: object, policy: str) -> Draft:
    network = get_path(params, "networkApprovalContext")
    if network is not None and get_path(params, "command") is None:
        return permission_draft(AGENT, "reach a host", "network", {**_reason(params), "network": network})
    given: Json = {"command": script_of(get_path(params, "command")), **_directory(params), **_reason(params)}
    more = get_path(params, "additionalPermissions")
    if more is not None:
        given["additional_permissions"] = more
    # Only a wish to leave the sandbox has a reason.
    is_outside = policy == ON_REQUEST or "reason" in given
    return permission_draft(AGENT, f"run a command{' outside its sandbox' if is_outside else ''}", "shell", given)


def _files(params: object, item: Json) -> Draft:
    changes = [
        {"path": get_path(one, "path"), "kind": get_path(one, "kind"), "diff": get_path(one, "diff")}
        for one in get_list(item, "changes")
    ]
    given: Json = {"changes": changes, **_reason(params)}
    root = get_path(params, "grantRoot")
    return permission_draft(
        AGENT, "change files", "apply_patch", given if root is None else {**given, "write_below": root}
    )


def _reason(params: object) -> Json:
    reason = get_path(params, "reason")
    return {"reason": reason} if isinstance(reason, str) and reason else {}


def _directory(params: object) -> Json:
    directory = get_path(params, "cwd")
    return {"cwd": directory} if isinstance(directory, str) else {}


def permission_reply(method: str, params: object, decision: Decision) -> Json:
    """A decision counts once: Codex must not remember it. A refusal that no one decided ends the turn, because the
    job cannot succeed any more."""
    if method == RIGHTS:
        wanted = get_path(params, "permissions")
        return {"permissions": wanted if decision.is_allowed and wanted else {}, "scope": "turn"}
    if decision.is_allowed:
        return {"decision": "accept"}
    return {"decision": "cancel" if decision.is_undecided else "decline"}


def answers_reply(params: object, decisions: list[Decision]) -> Json:
    """An empty list means that there is no answer."""
    ids = [str(get_path(one, "id")) for one in get_list(params, "questions")]
    given = [[decision.text or ""] if decision.text else [] for decision in decisions]
    return {"answers": {name: {"answers": answer} for name, answer in zip(ids, given, strict=False)}}

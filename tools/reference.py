"""docs/reference.md, made from the code: help texts, error sentences, settings, statuses.

Where the code has no sentence of its own (an environment variable, an event, a line of the audit log) the sentence is
here, and the names are compared with those that the code uses, so that none is missing and none is left over.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from mam import errors
from mam.__main__ import BROKEN_PIPE, FIRST_VERBS, INTERRUPTED, MORE_VERBS, load
from mam.agents import errors as agent_errors
from mam.cli.args.parser import Parser
from mam.cli.verbs.wait import ENDED_IN_ERROR, WAS_CANCELLED
from mam.config.prices import PRICE
from mam.config.settings import SETTINGS, Config, Setting
from mam.config.tables import COMMAND, TABLES
from mam.events.event import EVENTS
from mam.jobs import status

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 98

OTHER_EXITS = {
    0: "Done. A repeat of what has already happened is 0 too.",
    1: "Also what mam did not foresee: `this is a bug in mam: …`.",
    ENDED_IN_ERROR: "`mam wait`: a job ended in error.",
    WAS_CANCELLED: "`mam wait`: a job was cancelled, and none ended in error.",
    9: "Also an error of the system, such as a disk that cannot be written: the file and the system's own words.",
    INTERRUPTED: "Interrupted by Ctrl-C.",
    BROKEN_PIPE: "Whoever read stdout went away.",
}

ENVIRONMENT = {
    "MAM_STORE": "The store, as `--store` would name it. The flag wins over it, it wins over the user's file.",
    "MAM_JOB_ID": "The job this process works on. Stands in for JOB in `get`, `publish`, `heartbeat`, `complete`, "
    "`fail` and `release`.",
    "MAM_ATTEMPT": "Its attempt. Stands in for `--attempt` where the job is the one of MAM_JOB_ID, and counts nowhere "
    "else.",
    "MAM_CLAIM": "The id of its claim. Goes with MAM_ATTEMPT, and with an equal `--attempt` for the same job; it is "
    "ignored otherwise.",
    "MAM_SOCKET": "The door of the worker that runs this process: its own job's verbs go through it, without a store.",
    "MAM_AGENTS_DIR": "Where the directory of live sessions is, absolute; else `mam/agents` in XDG_STATE_HOME.",
    "MAM_AGENT_ID": "The agent whose session this process belongs to, as `mam agents start` named it. Stands in for "
    "AGENT, and with MAM_GENERATION for the session that `mam pick` claims for.",
    "MAM_GENERATION": "The life of that session.",
    "MAM_SESSION_DIR": "Where that session keeps what its hooks tell and which job it is at.",
    "CLAUDE_CONFIG_DIR": "Where Claude Code keeps its skills and transcripts; `~/.claude` if unset.",
    "MQTT_PASSWORD": "The broker's password; never printed, stored in a record or handed to an agent.",
    "MAM_CONFIG": "The user's file. It must be there when it is named.",
    "PGHOST": "As for every PostgreSQL program: the server, when the address names none; PGPASSWORD likewise.",
    "PGHOSTADDR": "The same, by number.",
    "MAM_DEBUG": "1 shows the traceback of a bug in mam.",
    "EDITOR": "What `mam config edit` opens.",
    "VISUAL": "Wins over EDITOR.",
    "TERM": "`dumb` keeps `mam watch` to plain lines.",
    "DELEGATE_JOB_LOGS_DIR": "The audit log; else `delegate_job_logs` beside the store.",
    "CODEX_HOME": "Where Codex keeps its sessions, which are looked at for refused commands and as proof that a turn "
    "began; `~/.codex` if unset.",
    "PATH": "Where agents, git and tmux are found; places in it that are not absolute are passed over.",
    "TMUX": "Whether `mam agents attach` is typed inside tmux already.",
    "TMPDIR": "Where temporary files go; also the sockets of a worker's doors, without `XDG_RUNTIME_DIR` and if its "
    "name is short enough, else `/tmp`.",
    "TMUX_TMPDIR": "Where tmux keeps its sockets.",
    "XDG_CONFIG_HOME": "The user's file is `mam/config.toml` in it; `~/.config` if unset.",
    "XDG_CACHE_HOME": "What was read from that file is kept in `mam/config.json` in it; `~/.cache` if unset.",
    "XDG_RUNTIME_DIR": "The sockets of a worker's doors are in `mam` in it; a private temporary directory if unset.",
    "XDG_STATE_HOME": "`mam/trusted.json` in it says which project files and stores are trusted, `mam/work` is "
    "where jobs have their fresh directories, worktrees and outputs; `~/.local/state` if unset.",
}

EVENT_SENTENCES = {
    "started": "Somebody begins. On a pending job this is a claim by `manual`; on a running one it renews the lease.",
    "permission_required": "The agent waits for a person. Renews the lease.",
    "progress": "A word on the way. Renews the lease.",
    "completed": "Done. Ends the job, if the files it promised are there. Every job that ends in `completed` has one.",
    "error": "Failed. Ends the job. Every job that ends in `error` or `cancelled` has one; `data.status` says which.",
}

LINE_SENTENCES = {
    "registered": "A job is there: its first `status`, `retry_of` if it does another one's work again, `by` `foreign` "
    "if another program wrote the record.",
    "status_changed": "`from`, `to`, `by` what, the `attempt`, the `owner` of a claim, `losses`, `reason`; `unfenced` "
    "if the writer named no attempt.",
    "published": "An event; `payload` is exactly what was stored.",
    "reserved": "A sequence number that an old script took without an event.",
    "imported": "Sequence numbers (`seq` to `upto`) that a record had used before mam saw it.",
    "adopted": "Another program changed the record: which `fields` were taken over, which were `restored`.",
    "said": "What the agent said about its end (`status`) while a worker held the claim; the worker looks first.",
    "settled": "All that it comes after has ended; now it waits for its start time.",
    "refused": "A write that came too late (`verb`, `why`), or a status another program wrote that may not follow.",
    "migrated": "It came whole from another registry, in this `status`; its events follow, unless this log has them.",
    "archived": "It had ended, and left the registry for its archive.",
    "received": "What a subscriber heard. Nothing in this version writes it but `append_event` of the old helpers.",
}
NOT_COPIED = {"renewed": "A heartbeat. In the journal only; the audit log does without."}


def reference() -> str:
    """The whole page."""
    sections = (_verbs(), _exits(), _settings(), _environment(), _statuses(), _events(), _lines())
    return f"{_HEAD}\n" + "\n".join(sections)


_HEAD = """\
<!-- Written by `make docs` from the code. Change the code, or tools/reference.py. -->

# Reference

[Verbs](#verbs) · [Exit codes](#exit-codes) · [Settings](#settings) · [Environment](#environment) ·
[Statuses](#statuses) · [Events](#events) · [Lines of the audit log](#lines-of-the-audit-log)
"""


# -- verbs -----------------------------------------------------------------------------------------------------------


def _verbs() -> str:
    parts = [
        "## Verbs\n\nA job is named by its id or by any unique beginning of it. `--option value` may also be written\n"
        "`--option=value`.\n"
    ]
    for title, verbs in (("First", FIRST_VERBS), ("More", MORE_VERBS)):
        links = " · ".join(f"[{verb}](#mam-{verb})" for verb in verbs)
        parts.append(f"{title}: {links}\n")
    for verb in FIRST_VERBS + MORE_VERBS:
        parts.append(f"### mam {verb}\n\n```text\n{_help(verb)}```\n")
        if verb != "admin":  # another name of a verb that is there already
            parts.extend(f"#### mam {verb} {one}\n\n```text\n{_help(verb, one)}```\n" for one in second_words(verb))
    return "\n".join(parts)


def second_words(verb: str) -> list[str]:
    """What may stand behind a verb that has verbs of its own."""
    parser = Parser(verb, "")
    load(verb).add_arguments(parser)
    return list(parser.subverbs)


def _help(*verb: str) -> str:
    env = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "NO_COLOR": "1"}
    ran = subprocess.run(
        [sys.executable, "-m", "mam", *verb, "--help"], capture_output=True, text=True, check=True, env=env
    )
    return _same_for_all_pythons(ran.stdout)


def _same_for_all_pythons(text: str) -> str:
    """argparse breaks the usage lines, and writes options with two names, differently from Python to Python."""
    usage, blank, rest = text.partition("\n\n")
    words = re.findall(r"\[[^]]*\]|\S+ [A-Z]+(?=\s|$)|\S+", " ".join(usage.split()))
    begin = " ".join(words[:3])
    lines = textwrap.wrap(
        " ".join(word.replace(" ", "\0") for word in words[3:]), WIDTH - len(begin) - 1, break_on_hyphens=False
    )
    usage = f"{begin} " + f"\n{' ' * (len(begin) + 1)}".join(lines)
    rest = re.sub(r"^  (--[\w-]+) ([A-Z]+), (-\w) \2$", r"  \1, \3 \2", rest, flags=re.MULTILINE)
    return usage.replace("\0", " ") + blank + rest


# -- exit codes ------------------------------------------------------------------------------------------------------


def error_classes() -> list[type[errors.MamError]]:
    """Those of mam, and behind them those that only the sessions of agents know."""
    found = [*vars(errors).values(), *vars(agent_errors).values()]
    kinds = [kind for kind in found if isinstance(kind, type) and issubclass(kind, errors.MamError)]
    return [kind for kind in dict.fromkeys(kinds) if kind is not errors.MamError]


def sentence_of(kind: type[errors.MamError]) -> str:
    return " ".join((kind.__doc__ or "").split())


def _exits() -> str:
    rows = ["| exit | error | sentence |", "|---|---|---|"]
    for code in sorted({kind.exit_code for kind in error_classes()} | set(OTHER_EXITS)):
        kinds = [kind for kind in error_classes() if kind.exit_code == code]
        rows += [f"| {code} | `{kind.__name__}` | {sentence_of(kind)} |" for kind in kinds]
        if code in OTHER_EXITS:
            rows.append(f"| {code} | | {OTHER_EXITS[code]} |")
    return (
        "## Exit codes\n\nWhat goes wrong is one line on stderr and one of these codes. Names in braces are filled\n"
        "in. The classes are those of `mam.errors` and, of sessions, of `mam.agents.errors`, for programs that import\n"
        "mam.\n\n" + "\n".join(rows) + "\n"
    )


# -- settings --------------------------------------------------------------------------------------------------------


def _settings() -> str:
    harmless = ", ".join(f"`{setting.name}`" for setting in SETTINGS if setting.harmless)
    return (
        "## Settings\n\nA flag wins over the environment, which wins over the user's file, which wins over the\n"
        "project's file, which wins over the default. The user's file is `~/.config/mam/config.toml`, the project's\n"
        "the nearest `.mam/config.toml` upward. An unknown name is an error, so that a typo is never silent.\n"
        "`mam config list` shows every value and where it comes from.\n\n"
        "```toml\n"
        'default_agent = "claude-code"\nrequire_attempt = true\n\n'
        '[workdirs]\n"/home/me/src" = "~/work"\n\n'
        '[commands.my-agent]\nargv = ["my-agent", "--task-file", "{brief}"]\nprompt = "file"\n'
        "```\n\n" + _keys("", SETTINGS) + f"\nOf a project's file that is not trusted only {harmless} count. "
        "`mam trust` lets the\nrest count too, for as long as the file says the same.\n\n"
        "An agent of your own is a table `[commands.NAME]`:\n\n"
        + _keys("commands.NAME.", COMMAND)
        + "\nWhat the tokens of an agent cost is a table `[prices.NAME]`, with `input` and `output` at least:\n\n"
        + _keys("prices.NAME.", PRICE)
        + "".join(f"\nIn the table `[{name}]`:\n\n" + _keys(f"{name}.", table) for name, table in TABLES.items())
    )


def _keys(table: str, settings: tuple[Setting, ...]) -> str:
    rows = ["| setting | default | variable | meaning |", "|---|---|---|---|"]
    for setting in settings:
        default = Config.field_defaults.get(setting.name) if not table else None
        variable = f"`{setting.variable}`" if setting.variable else ""
        rows.append(f"| `{table}{setting.name}` | {_shown(default)} | {variable} | {setting.meaning} |")
    return "\n".join(rows) + "\n"


def _shown(default: object) -> str:
    words: dict[object, str] = {None: "none", True: "`true`", False: "`false`"}
    return "none" if default == {} else words.get(default, f"`{default}`")


def key_names() -> list[str]:
    """Every setting by the name that `mam config` knows it by."""
    return [
        f"{table}{setting.name}"
        for table, settings in (*_all_settings(), ("commands.NAME.", COMMAND), ("prices.NAME.", PRICE))
        for setting in settings
    ]


def _all_settings() -> list[tuple[str, tuple[Setting, ...]]]:
    return [("", SETTINGS), *((f"{name}.", table) for name, table in TABLES.items())]


def docstrings_of(kind: type) -> dict[str, str]:
    """The sentence under each member of an enumeration, by its value."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, below in zip(body.body, body.body[1:], strict=False):
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
            name = _field_name(field)
            if name is not None:
                found[name] = " ".join(below.value.value.split())
    return found


def _field_name(field: ast.stmt) -> str | None:
    if isinstance(field, ast.Assign) and isinstance(field.value, ast.Constant):
        return str(field.value.value)
    return None


def _environment() -> str:
    settings = {
        str(setting.variable): f"Wins over the setting `{table}{setting.name}`."
        for table, settings in _all_settings()
        for setting in settings
        if setting.variable and setting.variable not in ENVIRONMENT
    }
    _same_names("the environment", set(ENVIRONMENT) | set(settings), environment_names())
    sentences = {**ENVIRONMENT, **settings}
    return "## Environment\n\nAn empty variable counts as unset.\n\n" + _table("variable", sentences)


def environment_names() -> set[str]:
    """Every variable that the code reads, by its name or by the tables of settings."""
    names = {setting.variable for _, settings in _all_settings() for setting in settings if setting.variable}
    for text in _sources():
        names.update(re.findall(r"(?:\benviron(?:\.get\(|\[)|\bgetenv\()\"(\w+)\"", text))
    return names


# -- jobs ------------------------------------------------------------------------------------------------------------


def _statuses() -> str:
    return (
        "## Statuses\n\n"
        + _table("status", docstrings_of(status.Status))
        + "\n[lifecycle.md](lifecycle.md) has a paragraph for each, and every move between them.\n"
    )


def _events() -> str:
    _same_names("events", set(EVENT_SENTENCES), set(EVENTS))
    return (
        "## Events\n\nNumbered from 1 without gaps for each job, kept in `<id>.events.log`. A payload has\n"
        "`schema_version`, `seq`, `job_id`, `event`, `timestamp`, `detail` (one line, absolute paths shortened) and\n"
        "`data` (a JSON object).\n\n" + _table("event", EVENT_SENTENCES)
    )


def _lines() -> str:
    _same_names("lines", {*LINE_SENTENCES, *NOT_COPIED}, line_names() | {"received"})
    return (
        "## Lines of the audit log\n\n`events.ndjson` of a job, one JSON object a line: `timestamp`, `event`,\n"
        "`job_id`, what the table says, and `entry`, which names the journal entry it was copied from. `mam logs\n"
        "JOB --json` prints them.\n\n" + _table("line", {**LINE_SENTENCES, **NOT_COPIED})
    )


def line_names() -> set[str]:
    """Every kind of line that the code writes: the first word given to `line`, `marked`, or an `event` in a literal."""
    names: set[str] = set()
    for text in _sources():
        names.update(re.findall(r"(?<![\w.])line\(\s*\"(\w+)\"", text))
        names.update(re.findall(r"(?<![\w.])marked\(.*?, \"(\w+)\"", text))
        names.update(re.findall(r"\"timestamp\": [\w.]+, \"event\": \"(\w+)\"", text))
    return names


# -- shared ----------------------------------------------------------------------------------------------------------


def _sources() -> Iterator[str]:
    """The product, without what it has for the authors of stores."""
    package = ROOT / "src" / "mam"
    for file in sorted(package.rglob("*.py")):
        if package / "testing" not in file.parents:
            yield file.read_text(encoding="utf-8")


def _table(word: str, sentences: dict[str, str]) -> str:
    rows = [f"| `{name}` | {sentence} |" for name, sentence in sentences.items()]
    return "\n".join([f"| {word} | meaning |", "|---|---|", *rows]) + "\n"


def _same_names(what: str, documented: set[str], used: set[str]) -> None:
    if documented != used:
        missing, left_over = sorted(used - documented), sorted(documented - used)
        raise SystemExit(f"tools/reference.py, {what}: not documented {missing}, not in the code {left_over}")

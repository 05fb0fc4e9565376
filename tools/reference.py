"""Make docs/reference.md from the code: help texts, error sentences, settings, statuses.

The code has no sentence for an environment variable, an event or a line of the audit log. Those sentences are here. The
script compares their names with the names that the code uses, so that none is missing and none is left over.
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
from mam.agent_table import AGENTS
from mam.agents import errors as agent_errors
from mam.cli.args.parser import Parser
from mam.cli.verbs.wait import ENDED_IN_ERROR, WAS_CANCELLED
from mam.config.settings import SETTINGS, Config, Setting
from mam.config.tables import COMMAND, PRICE, TABLES
from mam.events.event import EVENTS
from mam.jobs import status

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 80

OTHER_EXITS = {
    0: "Success, also of a repeat that changes nothing.",
    1: "Also an unexpected error: `this is a bug in mam: …`.",
    ENDED_IN_ERROR: "`mam wait`: a job ended in error.",
    WAS_CANCELLED: "`mam wait`: a job was cancelled, and none ended in error.",
    9: "Also an error of the system, such as a disk that cannot be written. The message names the file.",
    INTERRUPTED: "Interrupted by Ctrl-C.",
    BROKEN_PIPE: "The reader of stdout has closed it.",
}

ENVIRONMENT = {
    "MAM_STORE": "The store, in the form of `--store`. The flag takes precedence; the user's file does not.",
    "MAM_JOB_ID": "The job that this process works on: the default of JOB in `get`, `publish`, `heartbeat`, "
    "`complete`, `fail` and `release`.",
    "MAM_ATTEMPT": "The attempt of that job: the default of `--attempt` for the job MAM_JOB_ID only.",
    "MAM_CLAIM": "The claim id. mam uses it together with MAM_ATTEMPT, or with an equal `--attempt`, for the job "
    "MAM_JOB_ID only.",
    "MAM_SOCKET": "The door of the worker that runs this process. Commands about its own job go through it and need no "
    "store.",
    "PV_CONFIG_PATH": "The settings file of prompt-valet; otherwise `config/prompt-valet.yaml` in the inbox's root.",
    "MAM_AGENTS_DIR": "The directory of live sessions, absolute; otherwise `mam/agents` in XDG_STATE_HOME.",
    "HOUMAO_GLOBAL_REGISTRY_DIR": "The same, if MAM_AGENTS_DIR is not set: the variable of the other system.",
    "MAM_AGENT_ID": "The agent whose session this process belongs to, as `mam agents start` named it: the default of "
    "AGENT, and with MAM_GENERATION the session that `mam pick` claims for.",
    "MAM_GENERATION": "The generation of that session.",
    "MAM_SESSION_DIR": "The directory in which that session stores its hook events and its current job.",
    "CLAUDE_CONFIG_DIR": "The directory of Claude Code's skills and transcripts; `~/.claude` if unset.",
    "MQTT_PASSWORD": "The broker's password. mam never prints it, stores it in a record or passes it to an agent.",
    "MAM_CONFIG": "The user's file of settings. If this names a file, the file must exist.",
    "PGHOST": "The PostgreSQL server, if the address names none. PGPASSWORD works as for every PostgreSQL program.",
    "PGHOSTADDR": "The same, as an IP address.",
    "MAM_DEBUG": "1 shows the traceback of an unexpected error.",
    "EDITOR": "The program that `mam edit`, `mam config edit` and `mam diff --comment` open; `vi` if unset.",
    "GIT_PAGER": "The program that shows `mam diff` on a terminal; otherwise `pager.diff` or `core.pager` of your git.",
    "PAGER": "The same, if neither is set; `less` if this is not set either.",
    "VISUAL": "Takes precedence over EDITOR.",
    "CI": "If it is set, new jobs may not ask a person, unless `--ask` or `[questions] ask` allows it.",
    "TERM": "`dumb` makes `mam watch` print plain lines, and turns colours off.",
    "NO_COLOR": "If set, mam prints no colours.",
    "DELEGATE_JOB_LOGS_DIR": "The audit log; otherwise `delegate_job_logs` beside the store.",
    "CODEX_HOME": "The directory of Codex's sessions, which mam reads to find rejected commands and the start of a "
    "turn; `~/.codex` if unset.",
    "PATH": "The directories of agents, git and tmux. mam ignores entries that are not absolute.",
    "TMUX": "Set if `mam agents attach` runs inside tmux. With TMUX_PANE, a hook finds the adopted session in whose "
    "pane it runs.",
    "TMUX_PANE": "The pane of tmux in which a hook runs.",
    "TMPDIR": "The directory of temporary files. Without XDG_RUNTIME_DIR it also holds the sockets of a worker's "
    "doors, if its name is short enough; otherwise `/tmp` does.",
    "TMUX_TMPDIR": "The directory of tmux's sockets.",
    "XDG_CONFIG_HOME": "Contains the user's file, `mam/config.toml`; `~/.config` if unset.",
    "XDG_CACHE_HOME": "Contains the parsed copy of that file, `mam/config.json`; `~/.cache` if unset.",
    "XDG_DATA_HOME": "Contains `mam/plugin`, the plugin for Claude Code; `~/.local/share` if unset.",
    "XDG_RUNTIME_DIR": "Contains the sockets of a worker's doors, in `mam`; a private temporary directory if unset.",
    "JOURNAL_STREAM": "systemd sets it for a service: then `mam serve` prints an address without a code.",
    "XDG_STATE_HOME": "Contains `mam/trusted.json` (project files and stores that you trust) and `mam/work` (fresh "
    "directories, worktrees and outputs of jobs); `~/.local/state` if unset.",
}

EVENT_SENTENCES = {
    "started": "The work begins. On a pending job this is a claim by `manual`; on a running one it renews the lease.",
    "permission_required": "The agent waits for a person. Renews the lease.",
    "progress": "A progress report. Renews the lease.",
    "completed": "Ends the job as completed, if the expected artifacts exist. Every completed job has one.",
    "error": "Ends the job in error. Every job in `error` or `cancelled` has one; `data.status` states which.",
}

LINE_SENTENCES = {
    "registered": "A new job: its first `status`, `retry_of` for a retry, "
    "`continues` for a continuation, `by` `foreign` if another program wrote the "
    "record.",
    "status_changed": "A transition: `from`, `to`, `by` which command, the `attempt`, the `owner` of a claim, "
    "`losses`, `reason`; `unfenced` if the writer gave no attempt.",
    "published": "An event. `payload` is exactly what was stored.",
    "reserved": "A sequence number that an old script took without an event.",
    "imported": "Sequence numbers (`seq` to `upto`) that a record had used before mam first read it.",
    "adopted": "Another program changed the record: the `fields` that mam took over and those that it `restored`.",
    "said": "The outcome that the agent reported (`status`) while a worker held the claim. The worker checks it first.",
    "applied": "A person applied its changes: `by` whom, `how`, and the `commit`, `branch` and `directory`.",
    "edited": "A person changed the unclaimed job (`by`): its values `before` and `after`.",
    "seen": "A person looked at the outcome of the ended job (`by`).",
    "notified": "A browser was sent a message (`mam push`): the `notice` it is about, `to` which browser, the "
    "`outcome` and `why`.",
    "asked": "The agent asks a person: the number of the `question`, its `kind`, the `tool`, and the `digest` of what "
    "is asked. The record has the text.",
    "answered": "A question was answered or its deadline passed: `decided` by a person, a rule or the deadline, `by` "
    "whom, `after_seconds`, the `answer` to a permission, and the `reason`.",
    "withdrawn": "The attempt ended while its question was open, or the agent no longer waits for the answer.",
    "decided": "A rule, or an earlier answer `always`, decided about a permission without a person: the `rule`, the "
    "`answer`, the `tool`, `what` it wanted in one line, and the `digest` of all of it.",
    "settled": "All dependencies have ended, and the job now waits for its start time.",
    "refused": "A rejected write that came too late (`verb`, `why`), or an illegal status that another program wrote.",
    "migrated": "The job came from another registry, in this `status`. Its events follow, unless this log has them.",
    "archived": "The job had ended and moved to the archive.",
    "received": "An event that a subscriber received. Only `append_event` of the old helpers writes it.",
}
NOT_COPIED = {"renewed": "A heartbeat. The journal has it; the audit log does not."}


def reference() -> str:
    """The whole page."""
    sections = (_verbs(), _exits(), _settings(), _environment(), _statuses(), _events(), _lines())
    return f"{_HEAD}\n" + "\n".join(sections)


_HEAD = """\
<!-- Written by `make docs` from the code. Change the code, or tools/reference.py. -->

# Reference

[Commands](#commands) · [Exit codes](#exit-codes) · [Settings](#settings) · [Environment](#environment) ·
[Statuses](#statuses) · [Events](#events) · [Lines of the audit log](#lines-of-the-audit-log)
"""


# -- verbs -----------------------------------------------------------------------------------------------------------


def _verbs() -> str:
    parts = [
        "## Commands\n\nA unique prefix of a job's id is sufficient. `--option value` may also be written\n"
        "`--option=value`.\n"
    ]
    for title, verbs in (("First", FIRST_VERBS), ("More", MORE_VERBS)):
        links = " · ".join(f"[{verb}](#mam-{verb})" for verb in verbs)
        parts.append(f"{title}: {links}\n")
    for verb in FIRST_VERBS + MORE_VERBS:
        parts.append(f"### mam {verb}\n\n```text\n{_help(verb)}```\n")
        if verb != "admin":  # an alias of a verb that the page already has
            parts.extend(f"#### mam {verb} {one}\n\n```text\n{_help(verb, one)}```\n" for one in second_words(verb))
    return "\n".join(parts)


def second_words(verb: str) -> list[str]:
    """The subcommands of a verb."""
    parser = Parser(verb, "")
    load(verb).add_arguments(parser)
    return list(parser.subverbs)


def _help(*verb: str) -> str:
    env = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "COLUMNS": str(WIDTH)}
    ran = subprocess.run(
        [sys.executable, "-m", "mam", *verb, "--help"], capture_output=True, text=True, check=True, env=env
    )
    return _same_for_all_pythons(ran.stdout)


def _same_for_all_pythons(text: str) -> str:
    """argparse wraps usage lines and formats options with two names differently in each version of Python."""
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
    """The errors of mam, then those of sessions."""
    found = [*vars(errors).values(), *vars(agent_errors).values()]
    kinds = [kind for kind in found if isinstance(kind, type) and issubclass(kind, errors.MamError)]
    return [kind for kind in dict.fromkeys(kinds) if kind is not errors.MamError]


def sentence_of(kind: type[errors.MamError]) -> str:
    return " ".join((kind.__doc__ or "").split())


_JSON_ERRORS = """\
With `--json`, the line is a JSON object, also for wrong arguments. `type` is the name in the column *error*; the facts
of the sentence, such as `job` or `candidates`, are further fields. stdout stays empty. Verbs that take several jobs
print one such line for each job that they cannot change.

```json
{"error": {"type": "UnknownJob", "message": "No job 3f in /jobs.", "exit_code": 1, "job": "3f", "store": "/jobs"}}
```

An error of the system has the type `SystemError`, an unexpected one `Bug`. Other lines on stderr begin with `mam: `.

"""


def _exits() -> str:
    rows = ["| exit | error | sentence |", "|---|---|---|"]
    for code in sorted({kind.exit_code for kind in error_classes()} | set(OTHER_EXITS)):
        kinds = [kind for kind in error_classes() if kind.exit_code == code]
        rows += [f"| {code} | `{kind.__name__}` | {sentence_of(kind)} |" for kind in kinds]
        if code in OTHER_EXITS:
            rows.append(f"| {code} | | {OTHER_EXITS[code]} |")
    return (
        "## Exit codes\n\nAn error prints one line on stderr and exits with one of these codes. mam replaces the\n"
        "names in braces. The classes are in `mam.errors` and, for sessions, in `mam.agents.errors`.\n\n"
        + _JSON_ERRORS
        + "\n".join(rows)
        + "\n"
    )


# -- settings --------------------------------------------------------------------------------------------------------


def _settings() -> str:
    harmless = ", ".join(f"`{setting.name}`" for setting in SETTINGS if setting.harmless)
    return (
        "## Settings\n\nIn order of precedence: a flag, the environment, the user's file, the project's file, the\n"
        "default. The user's file is `~/.config/mam/config.toml`. The project's file is the nearest\n"
        "`.mam/config.toml` upward. An unknown name is an error. `mam config list` shows every value and its\n"
        "origin.\n ```toml\n"
        'default_agent = "claude-code"\nrequire_attempt = true\n\n'
        '[workdirs]\n"/home/me/src" = "~/work"\n\n'
        '[commands.my-agent]\nargv = ["my-agent", "--task-file", "{brief}"]\nprompt = "file"\n'
        "```\n\n" + _keys("", SETTINGS) + f"\nIf a project's file is not trusted, mam uses only {harmless} of it. "
        "`mam trust`\naccepts the rest, until the content of the file changes.\n\n"
        "A table `[commands.NAME]` defines an agent of your own:\n\n"
        + _keys("commands.NAME.", COMMAND)
        + "\nA table `[prices.NAME]` gives the prices of an agent's tokens, at least `input` and `output`:\n\n"
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
    return "none" if default in ({}, []) else words.get(default, f"`{default}`")


def key_names() -> list[str]:
    """The name of every setting, as `mam config` uses it."""
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
        str(setting.variable): f"Takes precedence over the setting `{table}{setting.name}`."
        for table, settings in _all_settings()
        for setting in settings
        if setting.variable and setting.variable not in ENVIRONMENT
    }
    _same_names("the environment", set(ENVIRONMENT) | set(settings), environment_names())
    sentences = {**ENVIRONMENT, **settings}
    return "## Environment\n\nAn empty variable counts as unset.\n\n" + _table("variable", sentences)


def environment_names() -> set[str]:
    """Every variable that the code reads, directly or through the tables of settings."""
    names = {setting.variable for _, settings in _all_settings() for setting in settings if setting.variable}
    names.update(kind.config_variable for kind in AGENTS.values() if kind.config_variable)
    for text in _sources():
        names.update(re.findall(r"(?:\benviron(?:\.get\(|\[)|\bgetenv\()\"(\w+)\"", text))
    return names


# -- jobs ------------------------------------------------------------------------------------------------------------


def _statuses() -> str:
    return (
        "## Statuses\n\n"
        + _table("status", docstrings_of(status.Status))
        + "\n[lifecycle.md](lifecycle.md) describes each status and every transition.\n"
    )


def _events() -> str:
    _same_names("events", set(EVENT_SENTENCES), set(EVENTS))
    return (
        "## Events\n\nEvents are numbered from 1 without gaps for each job. `<id>.events.log` holds them. A payload\n"
        "has `schema_version`, `seq`, `job_id`, `event`, `timestamp`, `detail` (one line, absolute paths shortened)\n"
        "and `data` (a JSON object).\n\n" + _table("event", EVENT_SENTENCES)
    )


def _lines() -> str:
    _same_names("lines", {*LINE_SENTENCES, *NOT_COPIED}, line_names() | {"received"})
    return (
        "## Lines of the audit log\n\n`events.ndjson` of a job has one JSON object a line: `timestamp`, `event`,\n"
        "`job_id`, the fields of the table, and `entry`, the journal entry that it copies. `mam logs JOB --json`\n"
        "prints the lines.\n\n" + _table("line", {**LINE_SENTENCES, **NOT_COPIED})
    )


def line_names() -> set[str]:
    """Every kind of line that the code writes: given to `audit_record` or `marked`, or an `event` in a literal."""
    names: set[str] = set()
    for text in _sources():
        names.update(re.findall(r"(?<![\w.])audit_record\(\s*\"(\w+)\"", text))
        names.update(re.findall(r"(?<![\w.])marked\(.*?, \"(\w+)\"", text))
        names.update(re.findall(r"\"timestamp\": [\w.]+, \"event\": \"(\w+)\"", text))
    return names


# -- shared ----------------------------------------------------------------------------------------------------------


def _sources() -> Iterator[str]:
    """The source files of the product, without mam.testing."""
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

"""Strict parser of session records. Every rejection names the field and the reason.

Version 2 is upgraded to version 3. A newer version has its own exception, so that no caller removes a record that only
a newer program can read.
"""

from __future__ import annotations

from mam.agents.names import is_agent_id, is_name
from mam.agents.record import (
    ACTIVE,
    LIVE,
    RETIRED,
    SCHEMA_VERSION,
    STATES,
    AgentRecord,
    Identity,
    Lifecycle,
    Liveness,
    MamGroup,
    Runtime,
    Terminal,
)
from mam.util.clock import parse_time
from mam.util.strict_json import DuplicateName, strict_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.agents.record import Json

TEXT_LIMIT = 4096
OWN = ("schema_version", "agent_name", "agent_id", "generation_id",
       "lifecycle", "identity", "runtime", "terminal", "liveness", "mam")  # fmt: skip


class Malformed(ValueError):
    """Not JSON, or not an object."""


class Invalid(ValueError):
    """JSON that is not a valid record; the text states why."""


class Newer(ValueError):
    """A record of a newer schema version."""


def parse_record(data: bytes) -> AgentRecord:
    try:
        value = strict_json(data)
    except DuplicateName as doubt:
        raise Invalid(str(doubt)) from None
    except ValueError:
        raise Malformed("it is not JSON") from None
    if not isinstance(value, dict):
        raise Malformed("it is JSON but not an object")
    return record_from(value)


def record_from(value: Json) -> AgentRecord:
    version = value.get("schema_version", 2)
    if type(version) is not int or version < 2:
        raise Invalid(f"schema_version is {_shown(version)}; 2 and {SCHEMA_VERSION} are known")
    if version > SCHEMA_VERSION:
        raise Newer(f"schema_version {version}; this one knows {SCHEMA_VERSION}")
    if version == 2:
        value = _upgraded(value)
    record = AgentRecord(
        agent_name=_text(value, "agent_name"),
        agent_id=_text(value, "agent_id"),
        generation_id=_text(value, "generation_id"),
        lifecycle=_lifecycle(_group(value, "lifecycle", Lifecycle.field_names)),
        identity=_identity(_group(value, "identity", Identity.field_names)),
        runtime=_runtime(_group(value, "runtime", Runtime.field_names)),
        terminal=_terminal(_group(value, "terminal", Terminal.field_names)),
        liveness=_liveness(value),
        mam=_mam_group(value),
        groups=_other_groups(value),
    )
    _check_names(record)
    _check_consistency(record)
    return record


def _upgraded(old: Json) -> Json:
    """Version 2 has only live sessions, one session name, and the times at the top level."""
    runtime, terminal = old.get("runtime"), old.get("terminal")
    if not isinstance(runtime, dict) or not isinstance(terminal, dict):
        raise Invalid("runtime and terminal must be objects")
    _check_fields(terminal, "terminal", ("kind", "session_name"))
    session = terminal.get("session_name")
    new = {name: held for name, held in old.items() if name not in ("published_at", "lease_expires_at")}
    published = old.get("published_at")
    return {
        **new,
        "schema_version": SCHEMA_VERSION,
        "lifecycle": {
            "state": ACTIVE,
            "relaunchable": runtime.get("session_root") is not None,
            "state_updated_at": published,
        },
        "terminal": {
            "kind": terminal.get("kind", "tmux"),
            "current_session_name": session,
            "last_session_name": session,
        },
        "liveness": {"published_at": published, "lease_expires_at": old.get("lease_expires_at")},
    }


# -- groups ----------------------------------------------------------------------------------------------------------


def _lifecycle(group: Json) -> Lifecycle:
    state = group.get("state")
    if state not in STATES:
        raise Invalid(f"lifecycle.state must be one of {', '.join(STATES)}, not {_shown(state)}")
    if type(group.get("relaunchable")) is not bool:
        raise Invalid("lifecycle.relaunchable must be true or false")
    stopped = _optional_time(group, "stopped_at", "lifecycle")
    reason = _optional_text(group, "stop_reason", "lifecycle")
    if state in LIVE and (stopped is not None or reason is not None):
        raise Invalid(f"lifecycle.stopped_at and stop_reason are not allowed in a record that is {state}")
    if state not in LIVE and stopped is None:
        raise Invalid(f"lifecycle.stopped_at is missing in a record that is {state}")
    if state == RETIRED and group["relaunchable"]:
        raise Invalid("lifecycle.relaunchable must be false in a record that is retired")
    return Lifecycle(
        state=state,
        relaunchable=group["relaunchable"],
        state_updated_at=_time(group, "state_updated_at", "lifecycle"),
        stopped_at=stopped,
        stop_reason=reason,
    )


def _identity(group: Json) -> Identity:
    return Identity(backend=_text(group, "backend", "identity"), tool=_text(group, "tool", "identity"))


def _runtime(group: Json) -> Runtime:
    return Runtime(
        manifest_path=_text(group, "manifest_path", "runtime"),
        session_root=_optional_text(group, "session_root", "runtime"),
        agent_def_dir=_optional_text(group, "agent_def_dir", "runtime"),
    )


def _terminal(group: Json) -> Terminal:
    if group.get("kind", "tmux") != "tmux":
        raise Invalid(f"terminal.kind must be tmux, not {_shown(group['kind'])}")
    return Terminal(
        current_session_name=_optional_text(group, "current_session_name", "terminal"),
        last_session_name=_text(group, "last_session_name", "terminal"),
    )


def _liveness(value: Json) -> Liveness | None:
    if value.get("liveness") is None:
        return None
    group = _group(value, "liveness", Liveness.field_names)
    liveness = Liveness(
        published_at=_time(group, "published_at", "liveness"),
        lease_expires_at=_time(group, "lease_expires_at", "liveness"),
    )
    if parse_time(liveness.lease_expires_at) <= parse_time(liveness.published_at):
        raise Invalid("liveness.lease_expires_at must be later than published_at")
    return liveness


def _mam_group(value: Json) -> MamGroup:
    if value.get("mam") is None:
        return MamGroup()
    return parse_mam_group(_group(value, "mam", MamGroup.field_names))


def parse_mam_group(group: Json) -> MamGroup:
    _check_fields(group, "mam", MamGroup.field_names)
    fields: Json = {}
    for name, held in group.items():
        default = MamGroup.field_defaults[name]
        if isinstance(default, tuple):
            if not isinstance(held, list) or not all(isinstance(item, str) for item in held):
                raise Invalid(f"mam.{name} must be a list of strings")
            held = tuple(held)
        elif default is None and not isinstance(held, dict):
            raise Invalid(f"mam.{name} must be an object")
        elif default is not None and type(held) is not type(default):
            raise Invalid(f"mam.{name} must be a {'number' if default == 0 else 'text'}")
        fields[name] = held
    return MamGroup(**fields)


def _other_groups(value: Json) -> Json:
    """Groups of other programs are not checked; any other unknown field is an error."""
    others = {name: held for name, held in value.items() if name not in OWN and held is not None}
    for name, held in others.items():
        if not isinstance(held, dict):
            raise Invalid(f"{name[:80]!r} is not a field of a record")
    return others


def _check_names(record: AgentRecord) -> None:
    if not is_name(record.agent_name):
        raise Invalid(f"agent_name {record.agent_name[:80]!r} is not a name")
    for what in ("agent_id", "generation_id"):
        if not is_agent_id(getattr(record, what)):
            raise Invalid(f"{what} {getattr(record, what)[:80]!r} is not an id")


def _check_consistency(record: AgentRecord) -> None:
    state, session = record.lifecycle.state, record.terminal.current_session_name
    if record.live and record.liveness is None:
        raise Invalid(f"liveness is missing in a record that is {state}")
    if not record.live and record.liveness is not None:
        raise Invalid(f"liveness is not allowed in a record that is {state}")
    if record.live and session is None:
        raise Invalid(f"terminal.current_session_name is missing in a record that is {state}")
    if not record.live and session is not None:
        raise Invalid(f"terminal.current_session_name must be null in a record that is {state}")
    if not record.live and "gateway" in record.groups:
        raise Invalid(f"gateway is not allowed in a record that is {state}")


# -- fields ----------------------------------------------------------------------------------------------------------


def _group(value: Json, name: str, fields: tuple[str, ...]) -> Json:
    group = value.get(name)
    if not isinstance(group, dict):
        raise Invalid(f"{name} must be an object")
    _check_fields(group, name, fields)
    return group


def _check_fields(group: Json, name: str, fields: tuple[str, ...]) -> None:
    for field in group:
        if field not in fields:
            raise Invalid(f"{name}.{field[:80]} is not a field of a record")


def _text(group: Json, field: str, name: str = "") -> str:
    where = f"{name}.{field}" if name else field
    value = group.get(field)
    if not isinstance(value, str) or not value.strip():
        raise Invalid(f"{where} must be a text that is not blank")
    if value != value.strip() or len(value) > TEXT_LIMIT or any(ord(letter) < 32 for letter in value):
        raise Invalid(f"{where} must be one line without spaces around it, at most {TEXT_LIMIT} characters")
    return value


def _optional_text(group: Json, field: str, name: str) -> str | None:
    return None if group.get(field) is None else _text(group, field, name)


def _time(group: Json, field: str, name: str) -> str:
    text = _text(group, field, name)
    try:
        parse_time(text)
    except (ValueError, OverflowError, OSError) as error:
        zone = "time zone" in str(error)
        why = "must be timezone-aware: " + str(error) if zone else f"{text[:80]!r} is not a time"
        raise Invalid(f"{name}.{field} {why}") from None
    return text


def _optional_time(group: Json, field: str, name: str) -> str | None:
    return None if group.get(field) is None else _time(group, field, name)


def _shown(value: object) -> str:
    return repr(value)[:80]

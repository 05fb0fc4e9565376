"""The rules for ids, names and other input, checked before a path or a query is built from it."""

from __future__ import annotations

from mam.errors import BadInput
from mam.events.topic import events_topic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ID_LIMIT = 64
SESSION_ID_LIMIT = 128
ID_PREFIX_SHOWN = 8

TEXT_LIMIT = 8 * 1024 * 1024
"""Bytes of a prompt or a result. A larger one belongs in a file that the prompt names."""

NAME_LIMIT = 256
"""Bytes of a label, an agent, an owner or a key."""

REASON_LIMIT = 64 * 1024
PATH_LIMIT = 4096

LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999."""


def is_job_id(text: str) -> bool:
    """Matches `^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`; compiling the pattern would slow down every start."""
    return len(text) <= ID_LIMIT and (text.isascii() if text.isalnum() else _has_id_characters(text))


def is_session_id(text: object) -> bool:
    """The id of an agent or a generation: as a job id, but up to 128 characters."""
    return isinstance(text, str) and _has_id_characters(text) and len(text) <= SESSION_ID_LIMIT


def is_claim_id(text: object) -> bool:
    """`^[A-Za-z0-9_-]{1,64}$`."""
    if not isinstance(text, str) or len(text) > ID_LIMIT:
        return False
    return text.isascii() and text.replace("_", "a").replace("-", "a").isalnum()


def check_claim_id(text: str) -> str:
    if not is_claim_id(text):
        raise BadInput(why=f"{str(text)[:80]!r} is not a claim id: letters, digits, _ and -, at most {ID_LIMIT}")
    return text


def check_session_id(what: str, text: str) -> str:
    if not is_session_id(text):
        raise BadInput(why=f"{text[:80]!r} is not {what}: letters, digits, _ and -, at most {SESSION_ID_LIMIT}")
    return text


def _has_id_characters(text: str) -> bool:
    if text.isalnum():
        return text.isascii()
    letters = text.replace("_", "").replace("-", "")
    return text.isascii() and letters.isalnum() and text[0].isalnum()


def check_job_id(text: str) -> str:
    if not is_job_id(text):
        raise BadInput(why=f"{text[:80]!r} is not a job id: letters, digits, _ and -, at most 64")
    return text


def check_name(what: str, text: str) -> str:
    """A short name: one line without control characters."""
    check_text(what, text, NAME_LIMIT)
    if not text.strip():
        raise BadInput(why=f"the {what} is empty")
    if not text.isprintable() and any(ord(character) < 32 or 0x7F <= ord(character) < 0xA0 for character in text):
        raise BadInput(why=f"the {what} contains a control character")
    return text


def check_model(name: str) -> str:
    """It becomes an argument of the agent's command line."""
    check_name("model", name)
    if name.startswith("-") or any(character.isspace() for character in name):
        raise BadInput(why=f"{name[:80]!a} is not the name of a model")
    return name


def check_prompt(text: str) -> str:
    check_text("prompt", text, TEXT_LIMIT)
    if not text.strip():
        raise BadInput(why="the prompt is empty")
    return text


def check_text(what: str, text: str, limit: int) -> str:
    if "\0" in text:
        raise BadInput(why=f"the {what} contains a NUL character")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise BadInput(why=f"the {what} is not valid UTF-8") from None
    if size > limit:
        raise BadInput(why=f"the {what} has {size:,} bytes; at most {limit:,} are taken")
    return text


def check_artifact(path: str) -> str:
    """A relative path that stays inside the job's directory."""
    check_text("artifact", path, PATH_LIMIT)
    names = [name for name in path.split("/") if name not in ("", ".")]
    if not names or path.startswith(("/", "~")) or ".." in names or path.endswith("/"):
        raise BadInput(why=f"the artifact {path!r} must be a relative path inside the job's directory")
    return path


def check_topic_prefix(prefix: str) -> str:
    """The first part of an MQTT topic; a wildcard in it would match the topics of other jobs."""
    check_name("topic prefix", prefix)
    if events_topic(prefix) is None:
        raise BadInput(why=f"the topic prefix {prefix!r} must have no + or # and not begin with $")
    return prefix


def check_auth_token(token: str) -> str:
    """A token that signs events. The message does not repeat it."""
    if not 1 <= len(token) <= NAME_LIMIT or not token.isascii() or not token.isprintable() or " " in token:
        raise BadInput(why=f"an auth token has 1 to {NAME_LIMIT} visible ASCII characters")
    return token


def check_count(what: str, number: int, least: int = 0, most: int = 2**31 - 1) -> int:
    if type(number) is not int:  # True and 1.5 would compare like numbers, but make a bad record
        raise BadInput(why=f"the {what} must be a whole number, not {number!r}")
    if not least <= number <= most:
        raise BadInput(why=f"the {what} must be between {least} and {most}, not {number}")
    return number


def check_choice(what: str, word: str, choices: Mapping[str, tuple[str, ...]]) -> str:
    """One of the words that this field of a record can hold."""
    if word not in choices[what]:
        raise BadInput(why=f"{what} must be one of {', '.join(choices[what])}, not {word[:80]!r}")
    return word


def check_seconds(what: str, seconds: float) -> float:
    """A duration in seconds; the comparison also refuses NaN."""
    if type(seconds) not in (int, float):
        raise BadInput(why=f"the {what} must be a number of seconds, not {seconds!r}")
    if not 0 <= seconds <= 2**31 - 1:
        raise BadInput(why=f"the {what} must be between 0 and {2**31 - 1} seconds, not {seconds}")
    return seconds


def check_moment(what: str, wall_ms: int) -> int:
    """A time that fits the form YYYY-MM-DD."""
    if type(wall_ms) is not int:
        raise BadInput(why=f"the {what} must be a whole number of milliseconds, not {wall_ms!r}")
    if not 0 <= wall_ms <= LAST_MS:
        raise BadInput(why=f"the {what} must lie in the years 1970 to 9999")
    return wall_ms

"""Type a text into a session: once, complete, submitted, and only when it is safe.

tmux reads the text from stdin into a buffer and pastes it, because it would read text on a command line as key names.
The tmux server checks the pane and the generation and runs the step in one command. Only a person who starts to type
between two steps cannot be fenced.
"""

from __future__ import annotations

import fcntl
import os
import time

from mam.agents import errors
from mam.agents.screen_prompts import find_question
from mam.agents.tmux import generation_condition
from mam.errors import BadInput, StoreUnavailable
from mam.stores.private_files import read_json_file, replace_json_file
from mam.util.state_dir import make_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.agents.control import Target
    from mam.agents.tmux import Pane

PERSON_SECONDS = 30
SETTLE_SECONDS = 0.5
"""A program takes an Enter that follows immediately as part of the pasted text."""

LONGEST_TEXT = 8 * 1024 * 1024
KEYS_REMEMBERED = 500
BEGUN, DONE = "begun", "done"


def strip_controls(text: str) -> bytes:
    """The text without control characters (C0 except tab and newline, DEL, C1)."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise BadInput(why="the text is not valid UTF-8") from None
    if len(data) > LONGEST_TEXT:
        raise BadInput(why=f"the text has {len(data):,} bytes; the limit is {LONGEST_TEXT:,}")
    kept = "".join(letter for letter in text if not _is_control(letter))
    if not kept.strip():
        raise BadInput(why="there is nothing to send")
    return kept.encode()


def _is_control(letter: str) -> bool:
    code = ord(letter)
    return (code < 0x20 and letter not in "\t\n") or 0x7F <= code < 0xA0


def send(target: Target, text: str, key: str | None = None) -> bool:
    """True if the text was sent now; False if a text with this key was sent before."""
    data = strip_controls(text)
    root = make_private(target.record.runtime.session_root or os.path.dirname(target.record.runtime.manifest_path))
    with _send_lock(root, target.name):
        if key is not None and _was_sent(root, key, target.name):
            return False
        check_can_type(target)
        if key is not None:
            # Stored before typing: if mam is killed in between, a second attempt must not type the text twice.
            _remember(root, key, BEGUN)
        _paste(target, data)
        if key is not None:
            _remember(root, key, DONE)
        return True


def press_key(target: Target, key: str) -> None:
    """Press one key in exactly this pane, unless a person is typing."""
    root = make_private(target.record.runtime.session_root or os.path.dirname(target.record.runtime.manifest_path))
    with _send_lock(root, target.name):
        _check_no_typing(target)
        _run_fenced(target, f"send-keys -t {target.pane.pane} {key}")


def check_can_type(target: Target) -> None:
    """Raise if typing would disturb a person, a program or a question in the pane."""
    name, pane = target.name, target.pane
    _check_no_typing(target)
    question = find_question(target.tmux.run("capture-pane", "-p", "-t", pane.pane))
    if question is not None:
        raise errors.PaneAsks(name=name, question=question[:120])


def _check_no_typing(target: Target) -> None:
    name, pane = target.name, target.pane
    if pane.dead:
        raise errors.PaneDead(name=name)
    if pane.mode is not None:
        raise errors.PaneInMode(name=name, mode=pane.mode)
    typed = _last_typed(target, pane)
    ago = int(time.time()) - typed
    # tmux reports wall-clock seconds: after a small step back of the clock, the last key may be in the future.
    if abs(ago) < PERSON_SECONDS:
        raise errors.PersonTypes(name=name, seconds=max(0, ago), wait=PERSON_SECONDS - ago)


def _last_typed(target: Target, pane: Pane) -> int:
    """When a person last pressed a key. The session's own time covers clients that have detached."""
    times = [pane.session_activity] if pane.session_activity > pane.session_created else []
    listed = target.tmux.run("list-clients", "-F", "#{client_activity} #{client_readonly} #{session_id}")
    for line in listed.splitlines():
        fields = line.split(" ")
        if len(fields) == 3 and fields[0].isdigit() and fields[1] != "1" and fields[2] == pane.session_id:
            times.append(int(fields[0]))
    return max(times, default=0)


def _paste(target: Target, data: bytes) -> None:
    tmux, pane = target.tmux, target.pane.pane
    buffer = f"mam-{os.urandom(8).hex()}"
    tmux.run("load-buffer", "-b", buffer, "-", data=data)
    pasted = False
    try:
        # -p: bracketed paste if the program asked for it; -r: newlines stay newlines.
        pasted = _run_fenced(target, f"paste-buffer -p -r -d -b {buffer} -t {pane}")
    finally:
        if not pasted:
            tmux.run("delete-buffer", "-b", buffer)
    if not pasted:
        raise errors.GenerationDiffers(
            what="The tmux session", name=target.name, found="another state", record=target.record.generation_id
        )
    time.sleep(SETTLE_SECONDS)
    if not _run_fenced(target, f"send-keys -t {pane} Enter"):
        raise errors.SendUnknown(name=target.name, why="the session has changed in between")


def _run_fenced(target: Target, command: str) -> bool:
    """Run the command if the pane and the generation are unchanged; returns whether it ran."""
    idle = "#{&&:#{==:#{pane_dead},0},#{==:#{pane_in_mode},0}}"
    same = f"#{{&&:{generation_condition(target.record.generation_id)},{idle}}}"
    return target.tmux.run_if(target.pane.pane, same, command)


class _send_lock:  # noqa: N801 - used as a function
    """One sender at a time: the Enter of one must not submit the incomplete text of another."""

    def __init__(self, root: str, name: str) -> None:
        self._path, self._name = os.path.join(root, "send.lock"), name

    def __enter__(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(self._path, flags, 0o600)
        try:
            _lock(self._descriptor, self._path)
        except BaseException:
            os.close(self._descriptor)
            raise

    def __exit__(self, *_exception: object) -> None:
        os.close(self._descriptor)


def _lock(descriptor: int, path: str, wait_seconds: float = 30.0) -> None:
    ends = time.monotonic() + wait_seconds
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= ends:
                raise StoreUnavailable(store=path, problem=f"others have been sending for {wait_seconds:g} s") from None
        time.sleep(0.02)


def _was_sent(root: str, key: str, name: str) -> bool:
    state = _read_keys(root).get(key)
    if state == BEGUN:
        raise errors.SentBefore(key=key[:80], name=name)
    return state == DONE


def _remember(root: str, key: str, state: str) -> None:
    keys = _read_keys(root)
    keys.pop(key, None)
    kept = dict(list(keys.items())[-KEYS_REMEMBERED + 1 :])
    replace_json_file(os.path.join(root, "sent.json"), {**kept, key: state})


def _read_keys(root: str) -> dict[str, str]:
    found = read_json_file(os.path.join(root, "sent.json"))
    return found if isinstance(found, dict) else {}

"""The session directory as files of one user on one host. Readers take no lock, because records are replaced
atomically."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager

from mam.agents import files_tree as tree
from mam.agents.errors import BadName
from mam.agents.lookup import FOUND, INVALID, MALFORMED, MISSING, NEWER, Lookup
from mam.agents.mam_file import encode_groups, parse_groups, with_group
from mam.agents.names import is_agent_id
from mam.agents.record import MamGroup
from mam.agents.record_parser import Invalid, Malformed, Newer, parse_record
from mam.errors import BadInput, StoreUnavailable
from mam.stores.files.lock import WAIT_SECONDS, registry_lock
from mam.util.clock import SystemClock
from mam.util.state_dir import make_private, state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.agents.acts import Act
    from mam.agents.record import AgentRecord
    from mam.util.clock import Clock


def agents_directory() -> str:
    """The user's directory of sessions: MAM_AGENTS_DIR, otherwise the variable of the other system, otherwise `agents`
    in mam's state directory."""
    named = {
        "MAM_AGENTS_DIR": os.environ.get("MAM_AGENTS_DIR", ""),
        "HOUMAO_GLOBAL_REGISTRY_DIR": os.environ.get("HOUMAO_GLOBAL_REGISTRY_DIR", ""),
    }
    for variable, text in named.items():
        if text.strip():
            path = os.path.expanduser(text.strip())
            if not os.path.isabs(path) or "\0" in path:
                raise BadInput(why=f"{variable} must be an absolute path, not {text[:200]!r}")
            return os.path.normpath(path)
    return os.path.join(state_directory(), "agents")


class FilesDirectory:
    def __init__(self, root: str, clock: Clock | None = None, lock_wait_seconds: float = WAIT_SECONDS) -> None:
        self.address = self.opener = root
        self.clock: Clock = clock or SystemClock()
        self._wait_seconds = lock_wait_seconds

    def close(self) -> None:
        """Nothing stays open between acts."""

    # -- looking ---------------------------------------------------------------------------------------------------

    def read(self, agent_id: str) -> Lookup:
        if not is_agent_id(agent_id):
            return Lookup(agent_id=agent_id, kind=MISSING, reason=f"{agent_id[:80]!r} is not an id")
        with self._live_agents() as live:
            if isinstance(live, Lookup):
                return live.replace(agent_id=agent_id)
            return self._look(live, agent_id)

    def read_all(self) -> Iterator[Lookup]:
        with self._live_agents() as live:
            if isinstance(live, Lookup):
                return
            for name in tree.names(live):
                lookup = self._look(live, name)
                # Skip an entry that was removed since the list was read. An entry without a record is still reported.
                if lookup.kind != MISSING or _is_there(live, name):
                    yield lookup

    def leftovers(self) -> Iterator[Lookup]:
        with self._root() as root:
            if root is None:
                return
            if _is_link(root, tree.LIVE_AGENTS):
                path = os.path.join(self.address, tree.LIVE_AGENTS)
                yield Lookup(agent_id=tree.LIVE_AGENTS, kind=MALFORMED, reason="live_agents is a link", path=path)
            if not tree.is_directory(root, tree.PUT_ASIDE):
                return
            with tree.open_dir(tree.PUT_ASIDE, root) as aside:
                for name in tree.names(aside):
                    path = os.path.join(self.address, tree.PUT_ASIDE, name)
                    yield Lookup(agent_id=name, kind=MALFORMED, reason="set aside, or left behind", path=path)

    # -- changing --------------------------------------------------------------------------------------------------

    def change(self, agent_id: str, act: Act) -> AgentRecord | None:
        _check_single(agent_id)
        with self._locked() as root:
            with self._live_directory(root) as live:
                lookup = self._look(live, agent_id)
                wanted = act(lookup, self.clock.now())
                if wanted is None:
                    self._remove(root, live, agent_id)
                elif wanted is not lookup.record:
                    self._write(root, live, lookup, wanted)
                return wanted

    def discard(self, leftover: Lookup) -> None:
        with self._locked() as root:
            if leftover.agent_id == tree.LIVE_AGENTS:
                if _is_link(root, tree.LIVE_AGENTS):
                    os.unlink(tree.LIVE_AGENTS, dir_fd=root)
                return
            with tree.open_dir(tree.PUT_ASIDE, root) as aside:
                tree.delete(aside, leftover.agent_id)

    def _write(self, root: int, live: int, lookup: Lookup, record: AgentRecord) -> None:
        if not tree.is_directory(live, lookup.agent_id) and _is_there(live, lookup.agent_id):
            tree.put_aside(root, live, lookup.agent_id, lookup.agent_id)
        tree.make_entry(live, lookup.agent_id)
        with tree.open_dir(lookup.agent_id, live) as entry:
            tree.sweep_temporary(entry)
            if lookup.record is None and _is_there(entry, tree.RECORD):
                tree.put_aside(root, entry, tree.RECORD, f"{lookup.agent_id}.{tree.RECORD}")
            if record.mam != MamGroup() or _is_there(entry, tree.MAM_FILE):
                tree.write_file(entry, tree.MAM_FILE, encode_groups(record, lookup.record))
            tree.write_file(entry, tree.RECORD, _encode(record))

    def _remove(self, root: int, live: int, agent_id: str) -> None:
        """Rename first, so that readers never see half an entry; then delete."""
        if not _is_there(live, agent_id):
            return
        name = tree.put_aside(root, live, agent_id, f"{agent_id}.removed")
        with tree.open_dir(tree.PUT_ASIDE, root) as aside:
            tree.delete(aside, name)

    def _look(self, live: int, name: str) -> Lookup:
        path = os.path.join(self.address, tree.LIVE_AGENTS, name)
        try:
            record = _read(live, name)
        except FileNotFoundError:
            reason = f"there is no {tree.RECORD}" if _is_there(live, name) else "there is none"
            return Lookup(agent_id=name, kind=MISSING, reason=reason, path=path)
        except Newer as error:
            return Lookup(agent_id=name, kind=NEWER, reason=str(error), path=path)
        except Invalid as error:
            return Lookup(agent_id=name, kind=INVALID, reason=f"its record is not valid: {error}", path=path)
        except (Malformed, tree.NotARecord) as error:
            return Lookup(agent_id=name, kind=MALFORMED, reason=str(error), path=path)
        return Lookup(agent_id=name, kind=FOUND, record=record, path=path)

    # -- the root --------------------------------------------------------------------------------------------------

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The root, with its lock held. An OSError becomes StoreUnavailable with the directory's address."""
        try:
            real = make_private(self.address)
            with registry_lock(real, self._wait_seconds):
                with tree.open_dir(real) as root:
                    yield root
        except OSError as error:
            raise StoreUnavailable(store=self.address, problem=error.strerror or type(error).__name__) from None

    @contextmanager
    def _live_directory(self, root: int) -> Iterator[int]:
        if _is_there(root, tree.LIVE_AGENTS) and not tree.is_directory(root, tree.LIVE_AGENTS):
            tree.put_aside(root, root, tree.LIVE_AGENTS, tree.LIVE_AGENTS)
        tree.make_entry(root, tree.LIVE_AGENTS)
        with tree.open_dir(tree.LIVE_AGENTS, root) as live:
            yield live

    @contextmanager
    def _root(self) -> Iterator[int | None]:
        root = tree.open_root(self.address)
        try:
            yield root
        finally:
            if root is not None:
                os.close(root)

    @contextmanager
    def _live_agents(self) -> Iterator[int | Lookup]:
        """The directory of the entries; a Lookup if it is missing or unusable."""
        path = os.path.join(self.address, tree.LIVE_AGENTS)
        with self._root() as root:
            if root is None or not _is_there(root, tree.LIVE_AGENTS):
                yield Lookup(agent_id="", kind=MISSING, reason="there is none", path=path)
            elif not tree.is_directory(root, tree.LIVE_AGENTS):
                reason = f"{tree.LIVE_AGENTS} is a link, or not this user's directory"
                yield Lookup(agent_id="", kind=MALFORMED, reason=reason, path=path)
            else:
                with tree.open_dir(tree.LIVE_AGENTS, root) as live:
                    yield live


def _read(live: int, name: str) -> AgentRecord:
    """FileNotFoundError if there is no record, also when it was removed a moment ago."""
    try:
        with tree.open_dir(name, live) as entry:
            problem = tree.ownership_problem(os.fstat(entry))
            if problem is not None:
                raise tree.NotARecord(f"its directory: {problem}")
            data = tree.read_file(entry, tree.RECORD)
            facts = _mam_file(entry)  # written before the record, with the facts of the earlier generation too
    except FileNotFoundError:
        raise
    except OSError as error:
        link = _is_link(live, name)
        raise tree.NotARecord("its directory is a link" if link else f"its directory: {error.strerror}") from None
    record = parse_record(data)
    if record.agent_id != name:
        raise Invalid(f"it is the record of {record.agent_id}, under another id")
    return with_group(record, parse_groups(facts))


def _mam_file(entry: int) -> bytes:
    try:
        return tree.read_file(entry, tree.MAM_FILE)
    except (FileNotFoundError, tree.NotARecord):
        return b""


def _check_single(name: str) -> None:
    """Cleanup also removes entries without a valid id, but each must be a single name in the directory."""
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        raise BadName(name=repr(name[:80]), why="it is not a single file name")


def _encode(record: AgentRecord) -> bytes:
    """Indented and sorted, as the other system writes it. Only escaped JSON can hold half a surrogate pair."""
    for readable in (True, False):
        try:
            value = {name: held for name, held in record.to_json().items() if name != "mam"}
            text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=not readable, allow_nan=False)
            return text.encode() + b"\n"
        except UnicodeEncodeError:
            continue
    raise AssertionError("escaped JSON is ASCII")


def _is_there(parent: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError:
        return False
    return True


def _is_link(parent: int, name: str) -> bool:
    try:
        os.readlink(name, dir_fd=parent)
    except OSError:
        return False
    return True

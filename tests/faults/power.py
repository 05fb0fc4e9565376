"""Every state of the disk that a power cut may leave: all that was synced, and any part of the rest.

The rules are those of POSIX, not of one file system. The bytes of a file are safe after a sync of that file, a name
after a sync of its directory; a sync of anything else promises nothing. What is not safe may be there or not: names
of one directory up to any point, in order; the writes to a file all, none, the first, the last, half of one, or as
zeros. A real ext4 keeps more, so cutting its power finds little.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

from mam.util.frozen import Frozen
from tests.faults.recording import ROOT, Created, Printed, Removed, Renamed, Step, Synced, Truncated, Written

Disk = dict[str, bytes | None]
"""Path below the root -> content of the file, or None for a directory."""

Chosen = dict[int, str]
"""For each file or directory with unsafe steps: which of them are on the disk."""

OF_FILES = ("none", "all", "first", "last", "torn", "zeros")
OF_DIRECTORIES = ("none", "all", "first", "but last")


class PowerCut(Frozen):
    """One power cut: the step before which it came, which unsafe steps are on the disk, and what was printed."""

    before: int
    chosen: Chosen
    heard: tuple[str, ...]
    disk: Disk

    @property
    def told(self) -> str:
        return f"before step {self.before}, {self.chosen or 'everything safe'}"


def power_cuts(steps: list[Step], chance: random.Random, mixes: int = 2) -> Iterator[PowerCut]:
    """All different cuts. At each step, `mixes` more are drawn at random, with a choice of its own for each file."""
    seen: set[int] = set()
    for before in range(len(steps) + 1):
        done = steps[:before]
        heard = tuple(step.text for step in done if isinstance(step, Printed))
        unsafe = _unsafe(done)
        for chosen in _fates(unsafe, done, chance, mixes):
            disk = _disk(done, unsafe, chosen)
            mark = hash((heard[-1:], tuple(sorted(disk.items()))))
            if mark not in seen:
                seen.add(mark)
                yield PowerCut(before=before, chosen=chosen, heard=heard, disk=disk)


def written(disk: Disk, root: Path) -> None:
    """Writes the disk as files. The shared memory of SQLite does not outlive a machine."""
    root.mkdir(parents=True)
    for path, data in sorted(disk.items()):
        if data is None:
            (root / path).mkdir(mode=0o700)
        elif not path.endswith("-shm"):
            (root / path).write_bytes(data)


def _owner(step: Step) -> int:
    """The file or directory whose sync makes the step safe."""
    match step:
        case Created() | Renamed() | Removed():
            return step.directory
        case Written() | Truncated():
            return step.number
    raise AssertionError(step)


def _unsafe(done: list[Step]) -> dict[int, list[int]]:
    """The steps of each file or directory since its last sync."""
    unsafe: dict[int, list[int]] = {}
    for place, step in enumerate(done):
        if isinstance(step, Synced):
            unsafe.pop(step.number, None)
        elif not isinstance(step, Printed):
            unsafe.setdefault(_owner(step), []).append(place)
    return unsafe


def _fates(unsafe: dict[int, list[int]], done: list[Step], chance: random.Random, mixes: int) -> Iterator[Chosen]:
    fates = {owner: _fates_of(done[places[0]]) for owner, places in unsafe.items()}
    yield dict.fromkeys(unsafe, "none")
    yield dict.fromkeys(unsafe, "all")
    for owner, words in fates.items():
        for word in words:
            yield {**dict.fromkeys(unsafe, "all"), owner: word}
            yield {**dict.fromkeys(unsafe, "none"), owner: word}
    for _ in range(mixes):
        yield {owner: chance.choice(words) for owner, words in fates.items()}


def _fates_of(step: Step) -> tuple[str, ...]:
    return OF_FILES if isinstance(step, Written | Truncated) else OF_DIRECTORIES


def _disk(done: list[Step], unsafe: dict[int, list[int]], chosen: Chosen) -> Disk:
    left_out: set[int] = set()
    changed: dict[int, Callable[[bytes], bytes]] = {}
    for owner, places in unsafe.items():
        match chosen[owner]:
            case "none":
                left_out.update(places)
            case "first":
                left_out.update(places[1:])
            case "last":
                left_out.update(places[:-1])
            case "but last":
                left_out.update(places[-1:])
            case "torn":
                changed[places[-1]] = lambda data: data[: len(data) // 2]
            case "zeros":
                changed[places[-1]] = lambda data: bytes(len(data))
    return _carried_out(done, left_out, changed)


def _carried_out(done: list[Step], left_out: set[int], changed: dict[int, Callable[[bytes], bytes]]) -> Disk:
    names: dict[int, dict[str, int]] = {ROOT: {}}
    contents: dict[int, bytearray] = {}
    directories = {ROOT}
    for place, step in enumerate(done):
        if isinstance(step, Created):  # the file itself; whether it has a name is another matter
            (directories.add if step.is_directory else lambda number: contents.setdefault(number, bytearray()))(
                step.number
            )
            names.setdefault(step.number, {})
        if place in left_out:
            continue
        match step:
            case Created():
                names[step.directory][step.name] = step.number
            case Renamed():
                names[step.directory][step.to] = names[step.directory].pop(step.name)
            case Removed():
                names[step.directory].pop(step.name, None)
            case Written():
                _write(contents[step.number], step.offset, changed.get(place, bytes)(step.data))
            case Truncated():
                content = contents[step.number]
                content[step.size :] = bytes(max(0, step.size - len(content)))
    return dict(_tree(ROOT, "", names, contents, directories))


def _write(content: bytearray, offset: int, data: bytes) -> None:
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


def _tree(
    number: int, path: str, names: dict[int, dict[str, int]], contents: dict[int, bytearray], directories: set[int]
) -> Iterator[tuple[str, bytes | None]]:
    for name, there in names[number].items():
        if there in directories:
            yield f"{path}{name}", None
            yield from _tree(there, f"{path}{name}/", names, contents, directories)
        else:
            yield f"{path}{name}", bytes(contents[there])

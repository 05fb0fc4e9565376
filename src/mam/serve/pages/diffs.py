"""A diff of git as files, hunks and numbered lines, in bounded memory. Pure.

The names of all files are kept; the lines only of the first ones, or of the file that the viewer asks for. A diff is
what an agent made, so nothing in it is trusted: every text is made safe here, and templates escape it.
"""

from __future__ import annotations

import re

from mam.util.frozen import Frozen
from mam.util.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FILES_OPEN, LINES_SHOWN, LINE_LIMIT = 40, 4_000, 1_000
FILES_LISTED, BYTES_READ = 10_000, 32 << 20
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+(\d{1,9})(?:,\d{1,9})? @@ ?(.*)")
_INDEX = re.compile(r"index ([0-9a-f]{4,64})\.\.([0-9a-f]{4,64})")
_QUOTED = re.compile(r"\\([0-7]{3}|.)")
_ESCAPES = {"n": 10, "t": 9, "r": 13, "a": 7, "b": 8, "f": 12, "v": 11}
ADDED, REMOVED, SAME, HUNK = "add", "del", "same", "hunk"


class DiffLine(Frozen):
    kind: str
    text: str
    before: int | None = None
    after: int | None = None


class DiffFile(Frozen):
    path: str
    action: str = "changed"
    """changed, added, deleted or renamed."""
    was: str = ""
    blob: str = ""
    """The new content as git abbreviates its id; a comment is bound to it."""
    added: int = 0
    removed: int = 0
    is_binary: bool = False
    lines: tuple[DiffLine, ...] = ()
    hidden: int = 0
    """Lines that are not shown here."""

    @property
    def anchor(self) -> str:
        from hashlib import sha256

        return f"file-{sha256(self.path.encode(errors='surrogatepass')).hexdigest()[:12]}"


class Diff(Frozen):
    files: tuple[DiffFile, ...]
    added: int = 0
    removed: int = 0
    is_cut: bool = False
    """Whether the diff was too long to be read to its end."""

    def find(self, path: str) -> DiffFile | None:
        return next((file for file in self.files if file.path == path), None)


def read_diff(parts: Iterable[bytes], only: str | None = None) -> Diff:
    """With `only`, the lines of that file alone, whatever its place."""
    reader = _Reader(only)
    size = 0
    for text in _lines(parts):
        size += len(text) + 1
        if size > BYTES_READ or len(reader.files) > FILES_LISTED:
            return reader.result(is_cut=True)
        reader.read(text)
    return reader.result(is_cut=False)


def _lines(parts: Iterable[bytes]) -> Iterator[str]:
    rest = b""
    for part in parts:
        *whole, rest = (rest + part).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace")
        if len(rest) > BYTES_READ:
            break
    if rest:
        yield rest.decode("utf-8", "replace")


class _Reader:
    def __init__(self, only: str | None) -> None:
        self._only = only
        self.files: list[DiffFile] = []
        self._current: DiffFile | None = None
        self._lines: list[DiffLine] = []
        self._hidden = 0
        self._shown = 0
        self._in_hunk = False
        self._before = self._after = 0

    def read(self, text: str) -> None:
        if text.startswith("diff --git "):
            self._end_file()
            self._current, self._in_hunk = DiffFile(path=_path_of_heading(text)), False
        elif self._current is None:
            return
        elif hunk := _HUNK.match(text):
            self._in_hunk = True
            self._before, self._after = int(hunk[1]), int(hunk[2])
            self._keep(DiffLine(kind=HUNK, text=one_line(text[:LINE_LIMIT])))
        elif self._in_hunk:
            self._read_line(text)
        else:
            self._current = _with_heading(self._current, text)

    def _read_line(self, text: str) -> None:
        assert self._current is not None
        sign, rest = text[:1], _shown(text[1:])
        if sign == "+":
            self._current = self._current.replace(added=self._current.added + 1)
            self._keep(DiffLine(kind=ADDED, text=rest, after=self._after))
            self._after += 1
        elif sign == "-":
            self._current = self._current.replace(removed=self._current.removed + 1)
            self._keep(DiffLine(kind=REMOVED, text=rest, before=self._before))
            self._before += 1
        elif sign in (" ", ""):
            self._keep(DiffLine(kind=SAME, text=rest, before=self._before, after=self._after))
            self._before += 1
            self._after += 1
        else:
            self._keep(DiffLine(kind=HUNK, text=one_line(text[:LINE_LIMIT])))  # no newline at the end of the file

    def _keep(self, line: DiffLine) -> None:
        assert self._current is not None
        is_wanted = len(self.files) < FILES_OPEN if self._only is None else self._current.path == self._only
        if is_wanted and self._shown < LINES_SHOWN:
            self._lines.append(line)
            self._shown += 1
        else:
            self._hidden += 1

    def _end_file(self) -> None:
        if self._current is not None:
            self.files.append(self._current.replace(lines=tuple(self._lines), hidden=self._hidden))
        self._current, self._lines, self._hidden = None, [], 0

    def result(self, *, is_cut: bool) -> Diff:
        self._end_file()
        added, removed = sum(file.added for file in self.files), sum(file.removed for file in self.files)
        return Diff(files=tuple(self.files), added=added, removed=removed, is_cut=is_cut)


def _with_heading(file: DiffFile, text: str) -> DiffFile:
    """What a line between the name of a file and its first hunk says."""
    if index := _INDEX.match(text):
        return file.replace(blob=index[2])
    for prefix, action in (("new file", "added"), ("deleted file", "deleted")):
        if text.startswith(prefix):
            return file.replace(action=action)
    if text.startswith("rename from "):
        return file.replace(action="renamed", was=one_line(_unquoted(text[12:])))
    if text.startswith("rename to "):
        return file.replace(path=one_line(_unquoted(text[10:])))
    if text.startswith(("+++ ", "--- ")) and text[4:] != "/dev/null":
        name = _unquoted(text[4:].rstrip("\t"))
        return file.replace(path=one_line(name[2:]))
    if text.startswith(("Binary files ", "GIT binary patch")):
        return file.replace(is_binary=True)
    return file


def _path_of_heading(text: str) -> str:
    """The name in `diff --git a/NAME b/NAME`; a later line tells it for names that this line leaves open."""
    rest = text.removeprefix("diff --git ")
    if rest.startswith('"'):
        return one_line(_unquoted(rest.partition('" ')[2])[2:] or rest)
    half = rest[: len(rest) // 2]
    return one_line(half[2:] if half[2:] == rest[len(half) + 3 :] else rest.rpartition(" b/")[2] or rest)


def _unquoted(name: str) -> str:
    """git quotes names with unusual characters as C does."""
    if not (len(name) > 1 and name[0] == name[-1] == '"'):
        return name
    parts, end, inner = [], 0, name[1:-1]
    for found in _QUOTED.finditer(inner):
        parts.append(inner[end : found.start()].encode(errors="surrogatepass"))
        code = found[1]
        parts.append(bytes([int(code, 8) & 255 if len(code) == 3 else _ESCAPES.get(code, ord(code[0]) & 255)]))
        end = found.end()
    parts.append(inner[end:].encode(errors="surrogatepass"))
    return b"".join(parts).decode("utf-8", "replace")


def _shown(text: str) -> str:
    text = text.removesuffix("\r").expandtabs(4)
    if len(text) > LINE_LIMIT:
        text = f"{text[:LINE_LIMIT]} … {len(text) - LINE_LIMIT:,} more characters"
    return one_line(text)

"""What `mam --help` says. A verb's own help is the docstring of its module."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TOP = """\
mam hands work to coding agents and knows what became of it.

usage: mam VERB [options]
       mam VERB --help
begin: mam run -- echo hi

"""
_BOTTOM = """
A job is named by its id or by any unique beginning of it. Every verb takes --json for programs, and
--store ADDRESS (or MAM_STORE) to name the store; without it, it is the nearest .mam/jobs upward from
here, and `mam where` says which.
"""


def overview(documents: Mapping[str, str], first: Sequence[str]) -> str:
    more = [verb for verb in documents if verb not in first]
    return _TOP + _lines(documents, first) + "\nmore:\n" + _lines(documents, more) + _BOTTOM


def _lines(documents: Mapping[str, str], verbs: Sequence[str]) -> str:
    return "".join(f"  {verb:<10} {_summary(documents[verb])}\n" for verb in verbs)


def _summary(document: str) -> str:
    line = document.partition("\n")[0].rstrip(".")
    return line[:1].lower() + line[1:]

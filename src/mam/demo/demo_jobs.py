"""The jobs of the demo, and how each must end."""

from __future__ import annotations

from mam.jobs.status import CANCELLED, COMPLETED, ERROR, Status
from mam.util.frozen import Frozen

LABEL = "demo"
KILLED_WORKER, OTHER_WORKERS = "carl", ("anna", "ben")
SHORT_LEASE_SECONDS, CONCURRENCY = 5, 4

CHAPTERS = ("sorting", "searching", "graphs", "strings")
BOOK, REINDEX, UPLOAD, REPORT, CRAWL = "book", "reindex", "upload", "report", "crawl"
VALIDATOR = "has-a-conclusion"


class DemoJob(Frozen):
    name: str
    script: str
    ends: Status = COMPLETED
    attempts: int = 1
    priority: int = 0
    after: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    validated: bool = False


_CHAPTER = """\
for step in 1 2 3; do
    sleep 0.5
    mam publish progress --detail "$step of 3 exercises about {subject}" >/dev/null
done
echo "three exercises about {subject}" > {subject}.md
"""

_BOOK = """\
cat {files} > book.md
sleep 0.5
mam complete --result "$(wc -l < book.md) chapters are bound" >/dev/null
"""

# The first attempt takes minutes; its worker is killed before.
_REINDEX = """\
if [ "$MAM_ATTEMPT" = 1 ]; then
    mam publish progress --detail "a third is done" >/dev/null
    sleep 600
fi
mam publish progress --detail "continues after attempt 1" >/dev/null
sleep 1
mam complete --result "the index is complete" >/dev/null
"""

_UPLOAD = """\
sleep 0.5
if [ "$MAM_ATTEMPT" = 1 ]; then
    mam fail --retryable --reason "the server is busy" >/dev/null
    exit 0
fi
mam complete --result "uploaded at the second attempt" >/dev/null
"""

_REPORT = """\
sleep 0.5
echo "Introduction. To be continued." > report.md
mam complete --result "the report is finished" >/dev/null
"""

# A background process and two child jobs, each with a background process: a tree of jobs and of processes.
_CRAWL = """\
sleep 600 &
for page in 1 2; do
    mam register "sleep 600 & sleep 600" --agent shell --label demo --priority 5 >/dev/null
done
mam publish progress --detail "two pages are being fetched" >/dev/null
sleep 600
"""

VALIDATION = """\
#!/bin/sh
grep -q Conclusion report.md || { echo "report.md has no conclusion"; exit 1; }
"""


def demo_jobs() -> list[DemoJob]:
    chapters = [DemoJob(name=subject, script=_CHAPTER.format(subject=subject)) for subject in CHAPTERS]
    files = " ".join(f"{subject}.md" for subject in CHAPTERS)
    return [
        DemoJob(name=REINDEX, script=_REINDEX, attempts=2, priority=10),
        DemoJob(name=CRAWL, script=_CRAWL, ends=CANCELLED, priority=5),
        DemoJob(name=UPLOAD, script=_UPLOAD, attempts=2, priority=5),
        *chapters,
        DemoJob(name=BOOK, script=_BOOK.format(files=files), after=CHAPTERS, artifacts=("book.md",)),
        DemoJob(name=REPORT, script=_REPORT, ends=ERROR, artifacts=("report.md",), validated=True),
    ]

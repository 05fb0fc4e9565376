"""What the demonstration promises, each looked at when all is over; one that was not kept makes it fail."""

from __future__ import annotations

from mam.demo.parts import BOOK, CHAPTERS, CRAWL, DOOMED, REINDEX, REPORT, UPLOAD, parts
from mam.errors import ClaimLost
from mam.jobs.status import CANCELLED, COMPLETED, ERROR
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.demo.chronicle import Life
    from mam.demo.stage import Stage
    from mam.demo.story import Story

LATE_WORD = 4
"""The exit code of a command whose claim is lost."""


class Promise(Frozen):
    words: str
    problem: str | None = None

    @property
    def kept(self) -> bool:
        return self.problem is None


def looked_at(stage: Stage, story: Story) -> list[Promise]:
    lives = story.chronicle.lives
    of = {name: lives[job_id] for name, job_id in story.ids.items()}
    left = stage.await_gone(story.chronicle.of(lives), all_marked=True)
    return [
        Promise(
            words="Four jobs ran side by side and told of their progress.",
            problem=_fan_out([of[name] for name in CHAPTERS]),
        ),
        Promise(words="The book began when the last of its chapters was there, not before.", problem=_order(of)),
        Promise(words=f"{UPLOAD} failed, waited a little, and was tried again.", problem=_retry(stage, of[UPLOAD])),
        Promise(
            words=f"{REPORT} said that it was finished; the worker looked, and did not believe it.",
            problem=_unbelieved(stage, of[REPORT]),
        ),
        Promise(
            words=f"{CRAWL} was called off while it ran, with the jobs and processes below it.",
            problem=_called_off(lives, of[CRAWL], story.tree_left),
        ),
        Promise(
            words=f"{DOOMED} was killed with -9; somebody else finished what he had begun.",
            problem=_taken_over(of[REINDEX]),
        ),
        Promise(
            words=f"A late word of {DOOMED}'s attempt is refused (exit {LATE_WORD}) and changes nothing.",
            problem=_late_word(stage, of[REINDEX]),
        ),
        Promise(words="Every job ended as it should, exactly once.", problem=_once(lives, story)),
        Promise(words="Nothing was left running.", problem=_left(left, politely=story.politely)),
    ]


def _fan_out(lives: list[Life]) -> str | None:
    silent = [life.name for life in lives if len(life.signs) < 3]
    if silent:
        return f"{', '.join(silent)} told too little"
    begun = max(life.attempts[0].since for life in lives)
    ended = min(life.spans[-1].since for life in lives)
    return None if begun < ended else "they ran one after the other"


def _order(of: dict[str, Life]) -> str | None:
    ready = max(of[name].spans[-1].since for name in CHAPTERS)
    return None if of[BOOK].attempts[0].since >= ready else "it began too early"


def _retry(stage: Stage, life: Life) -> str | None:
    job = stage.registry.get(life.job_id)
    return None if job.retries == 1 and job.status is COMPLETED else f"it is {job.status} after {job.retries} retries"


def _unbelieved(stage: Stage, life: Life) -> str | None:
    job = stage.registry.get(life.job_id)
    if (job.said or {}).get("status") != COMPLETED:
        return "it never said so"
    return None if job.status is ERROR and (job.checks or {}).get("problem") else f"it is {job.status}"


def _called_off(lives: dict[str, Life], root: Life, left: list[int]) -> str | None:
    tree = [life for life in lives.values() if root.job_id in (life.job_id, life.parent)]
    wrong = [life.name for life in tree if life.state is not CANCELLED or not life.attempts]
    if len(tree) != 3:
        return f"there were {len(tree)} jobs and not three"
    if left:
        return f"these processes went on: {', '.join(map(str, left))}"
    return f"not so: {', '.join(wrong)}" if wrong else None


def _taken_over(life: Life) -> str | None:
    owners = [span.owner for span in life.attempts]
    if owners[0] != DOOMED or owners[-1] == DOOMED:
        return f"it was held by {', '.join(map(str, owners))}"
    return None if life.state is COMPLETED else f"it is {life.state}"


def _late_word(stage: Stage, life: Life) -> str | None:
    before = stage.registry.get(life.job_id)
    try:
        stage.registry.complete(life.job_id, attempt=1, result="too late")
    except ClaimLost as lost:
        unchanged = stage.registry.get(life.job_id) == before
        return None if unchanged and lost.exit_code == LATE_WORD else "it was refused, and yet something changed"
    return "it was accepted"


def _left(left: list[int], *, politely: bool) -> str | None:
    if left:
        return f"these processes are still there: {', '.join(map(str, left))}"
    return None if politely else "a worker did not go when it was told to"


def _once(lives: dict[str, Life], story: Story) -> str | None:
    wrong = [
        f"{life.name} ended {life.endings} times" for life in lives.values() if (life.endings, life.farewells) != (1, 1)
    ]
    for part in parts():
        life = lives[story.ids[part.name]]
        if life.state is not part.ends:
            wrong.append(f"{part.name} is {life.state}")
        if len(life.attempts) < part.attempts:
            wrong.append(f"{part.name} was tried {len(life.attempts)} times")
    return "; ".join(wrong) or None

"""The adapter for a user's own agent: a `[commands.NAME]` table of the settings."""

from __future__ import annotations

import os
import re

from mam.errors import AgentNotFound
from mam.machine.environment import find_program
from mam.work.adapters.port import Launch
from mam.work.job_dir import write_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from mam.jobs.record import Job
    from mam.work.workdir import WorkDir

_FIELD = re.compile(r"\{(prompt|brief|job_id|workdir)\}")
_WORD_LIMIT = 128 * 1024 - 1
"""Linux's limit for one argument of a command line."""


class CommandAdapter:
    """The settings have checked the table."""

    def __init__(self, name: str, table: dict[str, Any]) -> None:
        self.name = name
        self._table = table

    def launch(self, job: Job, brief: str, workdir: WorkDir, private: str) -> Launch:
        way = self._table.get("prompt", "argument")
        told = _written(brief, private) if way == "file" else brief
        values = {"prompt": job.prompt, "brief": told, "job_id": job.job_id, "workdir": workdir.path}
        program, *templates = self._table["argv"]
        argv = [self._program(program)]
        for template in templates:
            argv.append(self._filled(template, values, behind_dashes="--" in argv))
        if way != "stdin" and not any({"prompt", "brief"}.intersection(_FIELD.findall(word)) for word in templates):
            argv.append(self._filled("{brief}", values, behind_dashes=False))
        return Launch(
            argv=tuple(argv),
            env=dict(self._table.get("env", {})),
            stdin=brief.encode(errors="replace") if way == "stdin" else None,
            success=self._table.get("success", "exit"),
            retry_codes=tuple(self._table.get("retry_codes", ())),
        )

    def _program(self, name: str) -> str:
        found = find_program(os.path.expanduser(name), {**os.environ, **self._table.get("env", {})})
        if found is None:
            where = "is not a program that can be run" if "/" in name else "is not on PATH"
            self._refuse(f"{name} {where}; install it, or correct argv in [commands.{self.name}]")
        return found

    def _filled(self, template: str, values: dict[str, str], *, behind_dashes: bool) -> str:
        """Replaces all fields in one pass, so that a prompt that contains `{job_id}` stays unchanged."""
        word = _FIELD.sub(lambda field: values[field[1]], template)
        if word.startswith("-") and not template.startswith("-") and not behind_dashes:
            self._refuse(
                f'the prompt begins with a dash and would be read as an option; put "--" before {template} in argv, '
                "or use {brief}"
            )
        if "\0" in word:
            self._refuse("the prompt contains a NUL character, which no command line can hold")
        if len(word.encode(errors="surrogateescape")) > _WORD_LIMIT:
            self._refuse(
                "the prompt is too long for a command line; "
                f'set prompt = "stdin" or prompt = "file" in [commands.{self.name}]'
            )
        return word

    def _refuse(self, why: str) -> NoReturn:
        raise AgentNotFound(agent=self.name, why=why)


def _written(brief: str, private: str) -> str:
    path = f"{private}.brief.md"
    write_private(path, brief.encode(errors="replace"))
    return path

"""What these routes answer when something is wrong: `{"detail": TEXT}`, with the codes of prompt-valet."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from mam.serve.problems import facts_of

UNAUTHORIZED = {"www-authenticate": 'Basic realm="mam", charset="UTF-8"'}


class ValetProblem(Exception):
    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


def problem_answer(error: Exception) -> Response:
    if isinstance(error, ValetProblem):
        return JSONResponse({"detail": error.detail}, error.status)
    facts = facts_of(error)
    headers = UNAUTHORIZED if facts.status == 401 else facts.headers
    return JSONResponse({"detail": facts.detail}, facts.status, headers=headers)

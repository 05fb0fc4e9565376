"""Reads what clients of prompt-valet send: parameters, a JSON body, uploaded files."""

from __future__ import annotations

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from mam.jobs.input_rules import TEXT_LIMIT
from mam.serve.valet.problem import ValetProblem
from mam.serve.valet.submitting import Sent
from mam.util.strict_json import strict_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

FILE_LIMIT = 100
_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


def whole_in(given: Mapping[str, str], name: str, default: int, least: int = 1) -> int:
    text = given.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 15 or int(text) < least:
        raise ValetProblem(422, f"{name} must be a whole number from {least}.")
    return int(text)


def flag_in(given: Mapping[str, str], name: str) -> bool | None:
    text = given.get(name)
    if text is None:
        return None
    if text.lower() not in (*_TRUE, *_FALSE):
        raise ValetProblem(422, f"{name} must be true or false.")
    return text.lower() in _TRUE


async def submission_of(request: Request) -> tuple[str, str, Sent]:
    try:
        body = strict_json(await request.body())
    except ValueError:
        raise ValetProblem(422, "The body must be a JSON object.") from None
    if not isinstance(body, dict):
        raise ValetProblem(422, "The body must be a JSON object.")
    for name in ("repo", "branch", "markdown_text"):
        if not isinstance(body.get(name), str):
            raise ValetProblem(422, f"{name} is missing, or is not a text.")
    file = body.get("filename")
    if file is not None and not isinstance(file, str):
        raise ValetProblem(422, "filename must be a text.")
    return body["repo"], body["branch"], Sent(content=body["markdown_text"].encode(errors="surrogatepass"), name=file)


async def upload_of(request: Request) -> tuple[str, str, list[Sent]]:
    try:
        async with request.form(max_files=FILE_LIMIT, max_fields=10, max_part_size=TEXT_LIMIT + 1) as form:
            repo, branch = form.get("repo"), form.get("branch")
            files = [one for one in form.getlist("files") if isinstance(one, UploadFile)]
            if not isinstance(repo, str) or not isinstance(branch, str) or not files:
                raise ValetProblem(422, "The form needs repo, branch and one or more files.")
            return repo, branch, [Sent(content=await one.read(), name=one.filename or "") for one in files]
    except HTTPException as wrong:
        raise ValetProblem(422, f"{wrong.detail}.") from None

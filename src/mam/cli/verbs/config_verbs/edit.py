"""Edit your file of settings; print its path.

mam opens a copy in your editor (VISUAL, EDITOR, otherwise vi). A valid copy replaces the file. If the copy is not
valid, mam keeps it, prints its path and leaves the settings unchanged.
"""

from __future__ import annotations

import os

from mam.cli.editor import open_editor
from mam.cli.render.streams import print_json, print_row, say
from mam.cli.verbs.config_verbs.common import add_project, chosen_file, refuse_inside_a_job
from mam.errors import BadConfig, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_project(parser)


def run(options: Options) -> int:
    refuse_inside_a_job()
    from mam.config.edit import read_text, replace_text

    file = chosen_file(options)
    before = read_text(file)
    copy = _copied(file, before)
    try:
        open_editor(copy)
        after = read_text(copy)
    except BaseException:
        os.unlink(copy)
        raise
    changed = after != before
    if changed:
        try:
            if read_text(file) != before:
                raise Refused(why=f"{file} changed meanwhile; your text is in {copy}")
            replace_text(file, after)
        except BadConfig as bad:
            raise BadConfig(
                file=file, problem=f"{bad.facts['problem']}; the file is unchanged, and your text is in {copy}"
            ) from None
    os.unlink(copy)
    if options.json:
        print_json({"file": file, "changed": changed})
    else:
        print_row(file)
    say("changed" if changed else "unchanged")
    return 0


def _copied(file: str, text: str) -> str:
    """A copy beside the file, which no other user can read, with the same suffix for the editor."""
    from tempfile import mkstemp

    os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
    descriptor, copy = mkstemp(prefix=".edit-", suffix=".toml", dir=os.path.dirname(file))
    with open(descriptor, "w", encoding="utf-8", newline="") as opened:
        opened.write(text)
    return copy

"""A worker in a process of its own, to be killed: runs one plan, says who is who, and waits.

Arguments: the log directory, then the command.
"""

from __future__ import annotations

import json
import sys

from mam.work.process.messages import Started
from mam.work.process.runner import GuardianClient, Plan


def main() -> None:
    guardian = GuardianClient()
    plan = Plan(argv=tuple(sys.argv[2:]), env={"PATH": "/usr/bin:/bin"}, cwd="/")
    for message in guardian.start(plan, sys.argv[1]).messages():
        if isinstance(message, Started):
            print(json.dumps({"guardian": guardian.pid, **message.to_json()}), flush=True)
        else:
            print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

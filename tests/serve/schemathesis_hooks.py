"""What schemathesis must not do with the API: follow a stream that has no end, or wait long. And the formats of mam."""

from __future__ import annotations

from typing import Any

import schemathesis
from hypothesis import strategies as st

TIMES = ["+2h", "90s", "3d", "2099-11-15T10:00:00Z", "2099-01-31T23:59:59+02:00"]
schemathesis.openapi.format("mam-time", st.sampled_from(TIMES))
schemathesis.openapi.format("mam-path", st.sampled_from(["a", "out/report.md", ".github/x y", "é"]))
KEY = "Idempotency-Key"
used_keys: set[str] = set()


@schemathesis.hook
def before_call(_context: Any, case: Any, _kwargs: Any) -> None:
    query = case.query if isinstance(case.query, dict) else {}
    if case.operation.path == "/events":
        case.query = {**query, "follow": "false"}
    if case.operation.path == "/jobs/{job}/output" and query.get("follow") in (True, "true"):
        case.query = {**query, "follow": "false"}
    if query.get("timeout") not in (None, 0) and case.operation.path == "/jobs/{job}/wait":
        case.query = {**query, "timeout": 0}
    if isinstance(case.body, dict) and isinstance(case.body.get("wait"), (int, float)) and 0 < case.body["wait"] <= 300:
        case.body = {**case.body, "wait": 0}
    if query.get("unseen") in (True, "true"):  # it goes with neither of these, which a schema cannot say
        case.query = {name: value for name, value in query.items() if name not in ("status", "archived")}
    if isinstance(case.body, dict) and case.operation.path.endswith("/questions"):  # one of the choices
        case.body = {name: value for name, value in case.body.items() if name not in ("default", "choices")}
    key = (case.headers or {}).get(KEY)
    if key is not None and case.meta is not None and case.meta.generation.mode.is_positive:
        if key in used_keys:  # with another body it is refused, as the description says
            del case.headers[KEY]
        used_keys.add(key)

"""What a claim sees of the store before it decides."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.clock import Moment
    from mam.stores.sql.rows import Row


class Look:
    """`due`: whose time has come, longest due first. `unsettled`: a job has ended and those that come after it have not
    been told. `first`: the one that may be claimed, when there is nothing to settle before."""

    __slots__ = ("due", "first", "moment", "unsettled")

    def __init__(self, moment: Moment, due: list[Row], unsettled: bool, first: Row | None) -> None:
        self.moment = moment
        self.due = due
        self.unsettled = unsettled
        self.first = first

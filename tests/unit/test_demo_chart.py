"""The chart of the demo, also for very short spans."""

from __future__ import annotations

import pytest

from mam.cli.render.demo_chart import Workers, chart, plain
from mam.demo.timelines import Span, Timeline
from mam.jobs.status import COMPLETED, RUNNING

LOST = (
    Span(state=RUNNING, since=0.0, until=10.0, owner="carl", because="lost"),
    Span(state=RUNNING, since=10.0, until=12.0, owner="anna"),
    Span(state=COMPLETED, since=12.0),
)


@pytest.mark.parametrize("whole", [12.0, 25.0, 60.0])
@pytest.mark.parametrize("death", [0.1, 2.0, 9.0])
def test_a_death_is_drawn_next_to_the_name_of_the_worker(whole: float, death: float) -> None:
    timeline = Timeline(name="reindex", job_id="1", spans=LOST)
    bar, _axis = plain(chart([timeline], whole, 80, Workers(owners=("carl", "anna"), killed_at={"carl": death})))
    assert bar.index("c") < bar.index("╳") < bar.index("†") < bar.index("✔")
    assert "━" not in bar[bar.index("╳") : bar.index("†")]

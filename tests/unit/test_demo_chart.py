"""The demo's picture, however short what it shows has become."""

from __future__ import annotations

import pytest

from mam.cli.render.demo_chart import Crew, chart, plain
from mam.demo.chronicle import Life, Span
from mam.jobs.status import COMPLETED, RUNNING

LOST = (
    Span(state=RUNNING, since=0.0, until=10.0, owner="carl", because="lost"),
    Span(state=RUNNING, since=10.0, until=12.0, owner="anna"),
    Span(state=COMPLETED, since=12.0),
)


@pytest.mark.parametrize("whole", [12.0, 25.0, 60.0])
@pytest.mark.parametrize("death", [0.1, 2.0, 9.0])
def test_a_death_is_seen_also_where_the_name_stands(whole: float, death: float) -> None:
    life = Life(name="reindex", job_id="1", spans=LOST)
    bar, _axis = plain(chart([life], whole, 80, Crew(owners=("carl", "anna"), deaths={"carl": death})))
    assert bar.index("c") < bar.index("╳") < bar.index("†") < bar.index("✔")
    assert "━" not in bar[bar.index("╳") : bar.index("†")]

"""The frame of a statement: one row per group, types by the domain alone, caveats as data."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lrm
from lrm.domain import Categories, Dates, Domain, Integers, Numbers
from lrm.errors import UsageError
from stored_releases import CASES, stored

DOMAIN = Domain(
    [
        Integers("hour", 0, 3, outside="cell"),
        Integers("age", 0, 2),
        Categories("ward", ["north", "south"], null="cell"),
        Categories("urgent", [True, False], null="cell"),
        Dates("day", "2024-01-30", "2024-02-02"),
    ],
    "visits",
)


def released(text, domain=DOMAIN):
    plan = lrm.plan(lrm.sql(text, domain), "noise-on-data")
    counts = np.random.default_rng(3).integers(0, 50, plan.workload.shape[1])
    return lrm.release(plan, counts, epsilon=1)


def types(release, statement):
    return [str(kind) for kind in release.frame(statement).to_arrow().schema.types]


@pytest.mark.parametrize("column", ["hour", "age", "ward", "urgent", "day"])
@pytest.mark.parametrize("condition", ["", "WHERE hour < 2", "WHERE ward = 'south'"])
def test_the_type_of_a_column_depends_on_the_domain_alone(column, condition):
    grouped = f"SELECT {column}, COUNT(*) AS n FROM visits {condition} GROUP BY {column}"
    alone = released(f"SELECT {column}, COUNT(*) AS n FROM visits GROUP BY {column}")
    others = "SELECT ward AS age, COUNT(*) AS x FROM visits GROUP BY ward"
    kind = types(released(f"{grouped}; {others}"), "n")[0]
    assert kind == types(alone, "n")[0]
    schema = released(grouped).frame("n").to_polars().schema[column]
    assert schema == alone.frame("n").to_polars().schema[column]


def test_missing_integers_and_booleans_stay_what_they_are():
    rollup = released("SELECT age, urgent, COUNT(*) AS n FROM visits GROUP BY ROLLUP (age, urgent)")
    frame = rollup.frame().to_pandas()
    assert frame["age"].dtype == pd.Int64Dtype()
    assert frame["urgent"].dtype == pd.BooleanDtype()
    assert frame["age"].isna().sum() == 1
    two = released(
        "SELECT age, COUNT(*) AS n FROM visits GROUP BY age; SELECT COUNT(*) AS m FROM visits"
    )
    assert two.to_pandas()["age"].dtype == pd.Int64Dtype()


def test_null_is_null_and_differs_from_a_total():
    text = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY {}"
    plain = released(text.format("ward")).frame().to_arrow().column("ward").to_pylist()
    assert plain == ["north", "south", None]
    both = released(text.format("ROLLUP (ward)")).frame().to_arrow().column("ward").to_pylist()
    assert both == ["north", "south", "(null)", None]


def test_columns_are_those_of_select():
    frame = released(
        "SELECT ward, COUNT(*) AS n, age, AVG(age) AS mean FROM visits GROUP BY age, ward"
    ).frame("n")
    endings = ("", "_standard_error", "_low", "_high")
    numbers = [name + ending for name in ("n", "mean") for ending in endings]
    assert frame.to_arrow().column_names == ["ward", "age", *numbers]
    assert frame.header == frame.to_arrow().column_names


def test_answers_of_one_name_keep_it_in_the_table_of_their_statement():
    text = "SELECT COUNT(*) AS n FROM visits WHERE age = 0; SELECT COUNT(*) AS n FROM visits"
    release = released(text)
    assert [frame.header[0] for frame in release.frames()] == ["n", "n"]
    assert release.to_pandas()["query"].tolist() == ["q1.n", "q2.n"]
    assert release.to_pandas()["statement"].nunique() == 2


def test_the_numbers_of_a_frame_are_those_of_the_long_form():
    for name in CASES:
        release = stored(name)
        long = release.table()
        for frame in release.frames(0.95):
            for place in range(len(frame.answers)):
                known = frame.positions[:, place] >= 0
                positions = frame.positions[known, place]
                for key in ("standard_error", "low", "high"):
                    expected = long.numbers[key][positions, 0]
                    assert np.array_equal(
                        frame.numbers[key][known, place], expected, equal_nan=True
                    )


def test_the_long_form_names_the_statement_of_each_answer():
    for name in CASES:
        release = stored(name)
        statements = release.to_arrow().column("statement").to_pylist()
        for frame in release.frames():
            for position in frame.positions[frame.positions >= 0].ravel():
                assert statements[position] == frame.name


def test_caveats_are_data():
    domain = Domain(
        [Numbers("days", [0, 7, 30]), Categories("ward", ["a", "b"])],
        "stays",
        unit=lrm.PrivacyUnit("person", 2),
    )
    plan = lrm.plan(lrm.sql("SELECT SUM(days) AS days FROM stays", domain), "noise-on-data")
    rows = pd.DataFrame({"person": [1, 2], "days": [3, 4], "ward": ["a", "b"]})
    frame = lrm.release(plan, rows, epsilon=1, ledger=None).frame()
    kinds = [caveat.kind for caveat in frame.caveats]
    assert kinds == ["limit", "clipped", "dropped"]
    assert "caveats" in frame.to_pandas().attrs
    shown = released(
        "SELECT age, COUNT(*) AS n FROM visits GROUP BY age ORDER BY n DESC LIMIT 1"
    ).frame()
    assert len(shown) == 1
    assert [caveat.kind for caveat in shown.caveats][-1] == "display"


def test_processed_answers_stand_beside_the_released_ones():
    release = released("SELECT age, COUNT(*) AS n FROM visits GROUP BY age")
    frame = release.frame(processed=release.consistent())
    assert frame.header[-1] == "n_processed"
    assert frame.to_arrow().column("n").to_pylist() == pytest.approx(list(release.answers))


def test_a_release_is_a_collection_of_its_statements():
    release = released(
        "SELECT age, COUNT(*) AS n FROM visits GROUP BY age; SELECT COUNT(*) AS m FROM visits"
    )
    assert list(release) == ["n", "m"]
    assert len(release) == 2
    assert "n" in release
    assert "other" not in release
    assert 3 not in release
    with pytest.raises(UsageError, match="2 statements; name one of 'n', 'm'"):
        release.frame()


def test_libraries_that_read_arrow_take_a_release_and_its_frames():
    release = released("SELECT day, COUNT(*) AS n FROM visits GROUP BY day")
    frame = release.frame()
    assert pa.table(frame).column("day").to_pylist()[0] == dt.date(2024, 1, 30)
    assert pl.DataFrame(frame).shape == (4, 5)
    assert pd.api.interchange.from_dataframe(frame)["n"].tolist() == list(release.answers)
    assert len(pd.api.interchange.from_dataframe(release)) == 4
    assert pa.table(release).num_rows == pa.table(release["n"]).num_rows == 4


def test_pictures_show_themselves():
    release = released(
        "SELECT age, COUNT(*) AS n, AVG(hour) AS mean FROM visits WHERE hour BETWEEN 0 AND 3 "
        "GROUP BY age"
    )
    for shown in (release, release["n"]):
        assert shown.plot()._repr_png_().startswith(b"\x89PNG")
    drawing = release.frame("n").plot()
    assert [axes.get_xlabel() for axes in drawing.panels] == ["n", "mean"]
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    assert release["n"].plot(ax=axes).axes is axes
    assert axes.lines
    with pytest.raises(UsageError, match="has 2 answers"):
        release.frame("n").plot(ax=axes)


def test_pictures_have_the_lines_that_pages_have():
    release = released("SELECT day, urgent, COUNT(*) AS n FROM visits GROUP BY day, urgent")
    frame = release.frame("n")
    drawing = frame.plot()
    assert [axes.get_title("left") for axes in drawing.panels] == ["true", "false", "(null)"]
    assert len({axes.get_ylim() for axes in drawing.panels}) == 1  # one measure has one axis
    for axes in drawing.panels:
        assert axes.get_xlabel() == "day"
        assert axes.get_xticklabels()[0].get_text() == "30 Jan 2024"
    (line,) = drawing.panels[0].lines
    rows = frame.codes[:, 1] == 0
    assert line.get_ydata().tolist() == frame.numbers["answer"][rows, 0].tolist()
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    assert frame.plot(axes).axes is axes
    assert len(axes.lines) == 3
    several = released("SELECT day, COUNT(*) AS n, AVG(age) AS mean FROM visits GROUP BY day")
    assert len(several.frame("n").plot().panels) == 2
    with pytest.raises(UsageError, match="has 2 answers"):
        several.frame("n").plot(axes)


def test_a_table_and_its_long_form_pivot_alike():
    release = released("SELECT age, urgent, COUNT(*) AS n FROM visits GROUP BY age, urgent")
    for values in ("answer", "high"):
        frames = release.frame("n"), release["n"]
        wide, long = (frame.pivot(values) for frame in frames)  # noqa: PD010 - of one number
        assert np.array_equal(wide.to_numpy(), long.to_numpy())
        assert wide.index.tolist() == long.index.tolist()
    two = released("SELECT hour, COUNT(*) AS n, AVG(age) AS mean FROM visits GROUP BY hour")
    assert list(two.frame().pivot()) == ["n", "mean"]  # noqa: PD010 - same


def test_rows_of_one_query_are_those_that_the_release_returns():
    release = released(
        "SELECT age, COUNT(*) AS n FROM visits GROUP BY age; SELECT COUNT(*) AS m FROM visits"
    )
    table = release.table()
    for name in ("n", "m"):
        assert table.of(name).to_pandas().equals(release[name].to_pandas())
        assert list(table.of(name).labels()) == list(release[name].labels())


def test_rows_are_said_to_be_left_out_by_the_attributes_that_a_statement_uses(tmp_path):
    domain = lrm.Domain([lrm.Categories("zone", ["a", "b"]), lrm.Integers("fare", 0, 9)], "trips")
    text = """SELECT zone, COUNT(*) AS n FROM trips GROUP BY zone;
        SELECT fare, COUNT(*) AS k FROM trips GROUP BY fare; SELECT COUNT(*) AS every FROM trips;
        SELECT zone, AVG(fare) AS mean FROM trips GROUP BY zone;
        SELECT AVG(fare) AS overall, MEDIAN(fare) AS middle FROM trips"""
    release = lrm.release(lrm.plan(text, domain=domain, effort="quick"), [1] * 20, epsilon=1)
    release.save(tmp_path / "r.lrm")
    left_out = {
        name: [c.sentence for c in release.frame(name).caveats if c.kind == "dropped"]
        for name in lrm.load_release(tmp_path / "r.lrm")
    }
    one = "rows without a declared value of {} are in no answer"
    assert left_out == {
        "n": [one.format("zone")],
        "k": [one.format("fare")],
        "every": [],
        "mean": [one.format("zone or fare")],
        "overall": [one.format("fare")],
    }

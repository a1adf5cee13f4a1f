"""A report by months and weeks after post-processing: it adds up in every output."""

import csv
import datetime as dt
import json
import re
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import lrm
from lrm.cli import main
from lrm.releases.postprocess import process

SQL = """
SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS by_month FROM stays GROUP BY month;
SELECT DATE_TRUNC('week', day) AS week, COUNT(*) AS by_week FROM stays GROUP BY week;
SELECT DATE_TRUNC('month', day) AS month, ward, COUNT(*) AS n FROM stays GROUP BY month, ward;
SELECT COUNT(*) AS dated FROM stays WHERE day >= '2024-01-01'
"""
EVERY = "abcdef"


@pytest.fixture(scope="module")
def release():
    days = lrm.Dates("day", "2024-01-01", "2024-03-31")  # thirteen whole weeks
    ward = lrm.Categories("ward", list(EVERY), null="cell", outside="cell")
    plan = lrm.plan(lrm.sql(SQL, lrm.Domain([days, ward], "stays")), effort="quick")
    rng = np.random.default_rng(1)
    dates = np.datetime64("2024-01-01") + rng.integers(0, 91, 900)
    table = pa.table({"day": dates, "ward": rng.choice(["a", "b"], 900)})
    return lrm.release(plan, table, epsilon="0.05", ledger=None)


def check(counts):
    """``counts`` are pairs of a statement and a processed count."""
    sums, least = {}, 0.0
    for statement, count in counts:
        sums[statement] = sums.get(statement, 0.0) + count
        least = min(least, count)
    assert least >= 0
    assert set(sums) == {"by_month", "by_week", "n", "dated"}
    for total in sums.values():
        assert total == pytest.approx(sums["dated"], rel=1e-9)


def test_tables_add_up_in_files_and_frames(release, tmp_path):
    fixed = release.consistent()
    assert (release.answers < 0).any()
    for ending in ("csv", "parquet", "json", "xlsx"):
        release.write(tmp_path / f"answers.{ending}", processed=fixed)
    with (tmp_path / "answers.csv").open(encoding="utf-8", newline="") as file:
        check((row["query"], float(row["processed"])) for row in csv.DictReader(file))
    rows = pq.read_table(tmp_path / "answers.parquet").to_pylist()
    check((row["query"], row["processed"]) for row in rows)
    facts = json.loads((tmp_path / "answers.json").read_text(encoding="utf-8"))
    check((row["query"], row["processed"]) for row in facts["answers"])
    check((row["query"], row["processed"]) for row in fixed.to_arrow().to_pylist())
    names = ("by_month", "by_week", "n", "dated")
    frames = {name: release.frame(name, processed=fixed).to_arrow() for name in names}
    check(
        (name, count)
        for name, frame in frames.items()
        for count in frame[f"{name}_processed"].to_pylist()
    )
    book = zipfile.ZipFile(tmp_path / "answers.xlsx")
    sheets = [book.read(name) for name in book.namelist() if "worksheets/sheet" in name]
    numbers = {float(v) for sheet in sheets for v in re.findall(rb"<v>([^<]*)</v>", sheet)}
    for count in fixed.answers.tolist():
        assert min(abs(number - count) for number in numbers) <= 1e-9 * max(1.0, count)


def test_every_output_says_how_far_answers_were_moved(release, tmp_path):
    """CSV has columns alone; every other output has the distance of each statement."""
    fixed = release.consistent()
    words = fixed.moved_words
    assert "negative" in fixed.sentences[-1]
    for ending in ("parquet", "xlsx", "md", "html"):
        release.write(tmp_path / f"answers.{ending}", processed=fixed)
    stated = pq.read_schema(tmp_path / "answers.parquet").metadata[b"processed"].decode()
    sheets = zipfile.ZipFile(tmp_path / "answers.xlsx").read("xl/sharedStrings.xml").decode()
    texts = [stated, sheets, release.frame("n", processed=fixed).to_pandas().attrs["processed"]]
    texts += [(tmp_path / f"answers.{e}").read_text(encoding="utf-8") for e in ("md", "html")]
    for text in texts:
        plain = re.sub(r"\s+", " ", text.replace("\\", ""))  # Markdown has lines and \_
        assert words in plain
        assert fixed.sentences[-1] in plain
    assert "processed" not in release.to_pandas().attrs


def test_columns_that_follow_from_answers_follow_from_processed_ones():
    domain = lrm.Domain([lrm.Integers("age", 0, 19, null="never", outside="never")], "t")
    text = """SELECT age, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place,
        MAX(COUNT(*)) OVER () AS most FROM t GROUP BY age"""
    made = lrm.release(lrm.plan(text, domain=domain), [0] * 19 + [900], epsilon="0.1")
    frame = made.frame("n", processed=made.consistent()).to_pandas()
    counts = frame["n_processed"]
    assert (made.answers < 0).any()
    assert frame["place_processed"].tolist() == counts.rank(method="min", ascending=False).tolist()
    assert (frame["most_processed"] == counts.max()).all()


def test_no_processed_count_is_negative_for_readers(release, tmp_path):
    fixed = release.consistent()
    release.save(tmp_path / "answers.lrm")
    texts = []
    for ending in ("md", "html"):
        release.write(tmp_path / f"answers.{ending}", processed=fixed)
        texts.append((tmp_path / f"answers.{ending}").read_text(encoding="utf-8"))
    args = ["show", str(tmp_path / "answers.lrm"), "--post-process", "consistent"]
    shown = CliRunner().invoke(main, args)
    assert shown.exit_code == 0, shown.output
    for text in (*texts, shown.output):
        assert "processed" in text
        assert not re.search(r"processed[\s\xa0]+[-\u2212]\d", text)
    markdown = texts[0].partition("### by week")[2].partition("###")[0]
    weeks = [line.split("|")[-2] for line in markdown.splitlines() if re.match(r"\| \d", line)]
    assert len(weeks) == 13
    assert all(float(week.replace(",", "")) >= 0 for week in weeks)


def printed_sums(text):
    """The sum of the processed counts of each statement in what readers see."""
    sums = []
    titles = r"(?m)^(?:### )?(?=(?:by month|by week|n by month and ward|dated)(?:, ±.*)?$)"
    for part in re.split(titles, text)[1:]:
        name, _, lines = part.partition("\n")
        lines = re.split(r"(?m)^(?:### Post|at ε)", lines)[0]
        crossed = re.findall(r"processed ([\d,]+)", lines)
        last = re.findall(r"(?m)[ ]([\d,]+)(?: \|)?$", lines)
        counts = crossed if name.startswith("n by") else last
        sums.append(sum(int(count.replace(",", "")) for count in counts))
    return sums


def test_whole_numbers_add_up_as_readers_see_them(release, tmp_path):
    """Printed numbers are rounded; counts of whole rows add up to the last digit all the same."""
    whole = process(release, ["integer", "consistent"])
    assert np.array_equal(whole.answers, np.rint(whole.answers))
    check((row["query"], row["processed"]) for row in whole.to_arrow().to_pylist())
    assert np.array_equal(release.synthesize(seed=0).counts, whole.answers)
    assert "seed 0" in dict(whole.notes)["integer"]
    release.save(tmp_path / "answers.lrm")
    release.write(tmp_path / "answers.md", processed=whole)
    steps = ["--post-process", "consistent,integer", "--limit", "100"]
    shown = CliRunner().invoke(main, ["show", str(tmp_path / "answers.lrm"), *steps])
    assert shown.exit_code == 0, shown.output
    for text in ((tmp_path / "answers.md").read_text(encoding="utf-8"), shown.output):
        assert printed_sums(text) == [whole.answers[-1]] * 4


def test_a_total_of_all_rows_says_why_it_is_above_its_parts():
    """Rows that a rule drops have no month: a total counts them, and a table by month does not."""
    sentences = []
    for rule in ("drop", "never"):
        day = lrm.Dates("day", "2024-01-01", "2024-01-03", null=rule, outside=rule)
        text = "SELECT COUNT(*) AS n FROM t; SELECT day, COUNT(*) AS by_day FROM t GROUP BY day"
        plan = lrm.plan(text, domain=lrm.Domain([day], "t"), effort="quick")
        made = lrm.release(
            plan, pa.table({"day": [dt.date(2024, 1, 2)] * 9}), epsilon=1, ledger=None
        )
        sentences.append(" ".join(made.consistent().sentences))
    assert "Statements that use day leave out rows" in sentences[0]
    assert "leave out rows" not in sentences[1]

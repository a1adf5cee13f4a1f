"""The README's sessions, run as a reader would: real processes, in an empty folder."""

import re

from pages import ROOT, blocks, commands, run_page

README = ROOT / "README.md"


def test_the_sessions_print_what_the_page_shows(tmp_path):
    run_page(README, tmp_path, as_processes=True)


def test_the_first_screen_shows_the_chart_and_then_a_session():
    text = README.read_text(encoding="utf-8")
    chart = re.search(r"!\[[^\]]+\]\((docs/img/[a-z]+\.svg)\)", text)
    assert chart
    assert text[: chart.start()].count("\n") < 12
    assert (ROOT / chart[1]).exists()
    session = next(block for block in blocks(README) if block.language == "console")
    assert chart.start() < text.index(session.text)
    typed = [command.split()[:2] for command, _ in commands(session.text)]
    assert [words for words in typed if words[0] == "lrm"] == [
        ["lrm", word] for word in ("demo", "plan", "budget", "release", "report")
    ]
    assert ["cat", "questions.sql"] in typed


def test_the_commands_of_make_exist():
    named = set(re.findall(r"\bmake ([a-z]+)\b", README.read_text(encoding="utf-8")))
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"demo", "test"} <= named <= targets

"""A browser for the tests of a folder, and a small folder to work in."""

import contextlib

import pytest

from report.browser import browser, need_browser
from workbench.served import write_example


@pytest.fixture(scope="session")
def tab():
    need_browser()
    with browser() as opened:
        yield opened


@pytest.fixture
def page(tab):
    """Leave the page of the test before, which asks for a server that is gone."""
    tab.call("Page.navigate", url="about:blank")
    tab.wait("location.protocol === 'about:'")
    tab.console.clear()
    tab.requests.clear()
    return tab


@pytest.fixture
def small(tmp_path):
    write_example(tmp_path)
    with contextlib.chdir(tmp_path):
        yield tmp_path

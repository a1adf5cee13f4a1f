"""The workbench showed the address of a database, and its password, to the page.

The ledger of ``--ledger`` or ``LRM_LEDGER`` was in the page's state, host and database in errors,
and both addresses among the arguments of the process that makes the release, where every user of
the machine can list them.
"""

import contextlib
import json
import subprocess
from pathlib import Path

import pytest

import lrm
from lrm.ledger import Ledger
from lrm.workbench import commands
from workbench.served import serving, write_example

LEDGER = "postgresql://bob:hunter2@127.0.0.1:1/secretdb"
TABLE = "postgresql://eve:hunter3@127.0.0.1:1/secretdb?table=visits"
NAMES = {"domain": "domain.yaml", "batch": "questions.sql"}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    place = tmp_path_factory.mktemp("bench")
    write_example(place)
    with contextlib.chdir(place), serving(place, LEDGER) as served:
        served.key = served.must("enter", token=served.token)["key"]
        yield served


def quiet(found):
    said = json.dumps(found)
    return not any(word in said for word in ("hunter", "127.0.0.1", "secretdb", "bob", "eve"))


def test_the_page_is_told_of_a_ledger_no_more_than_the_scheme(client):
    state = client.must("state", **NAMES)
    assert state["ledger"] == "postgresql://…"
    assert quiet(state)


@pytest.mark.parametrize("named", ["", "postgresql://…", LEDGER])
def test_the_page_names_it_by_what_it_was_told(client, named):
    status, found = client.ask("budgets", ledger=named)
    assert status == 400
    assert "nothing answers at this host and port" in found["error"]
    assert quiet(found)


def test_a_command_is_not_among_the_arguments_of_a_process(client, tmp_path, monkeypatch):
    seen = []
    real = subprocess.Popen.__init__

    def started(self, args, *rest, **more):
        seen.append(list(args))
        real(self, args, *rest, **more)

    monkeypatch.setattr(subprocess.Popen, "__init__", started)
    asked = commands.release_command("plan.lrm", TABLE, {"epsilon": "1"}, LEDGER, "")
    ran = commands.run([*asked, "-o", "answers.lrm"], tmp_path)
    assert ran.facts is None
    assert "plan.lrm" in ran.error
    assert len(seen) == 1
    assert quiet(seen)
    assert quiet(ran.error)


def test_a_ledger_is_called_by_its_scheme():
    assert repr(Ledger.open(LEDGER)) == "<Ledger postgresql://…>"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/state", b"[" * 100_000),
        ("/api/state", b'{"domain": "\\ud800"}'),
        ("/api/save", b'{"name": "a.sql", "text": "\\ud800", "base": ""}'),
    ],
)
def test_any_request_has_an_answer(client, path, body):
    status, _, data = client.send(path, body=body)
    assert status == 400
    assert "must be" in json.loads(data)["error"]


def test_a_file_of_any_name_is_sent(client):
    name = "r\u00e9sum\u00e9 \u03a9.lrm"
    lrm.release(lrm.plan([[1, 1]], "noise-on-data"), [3, 4], epsilon=1).save(name)
    address = client.must("download", file=name, **{"as": "lrm"})["address"]
    status, headers, data = client.send(address, method="GET")
    assert (status, data) == (200, Path(name).read_bytes())
    assert headers["Content-Disposition"].startswith("attachment; filename*=UTF-8''r%C3%A9")

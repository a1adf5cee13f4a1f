"""Requests of the workbench that are wrong in a field: each is refused with a sentence."""

import contextlib
import http.client
import io
import json
import socket

import pytest

from lrm.errors import PlanWarning
from lrm.ledger import Ledger
from lrm.planning.plan import concerns
from lrm.workbench import planning
from lrm.workbench.folder import Text
from lrm.workbench.jobs import Planner
from lrm.workbench.server import MOST_ENTERING
from workbench.served import lrm, serving, write_example

NAMES = {"domain": "domain.yaml", "batch": "questions.sql"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("bench")
    write_example(place)
    with contextlib.chdir(place):
        for noise, file in (("pure", "l.lrm"), ("gaussian", "g.lrm")):
            plan = ("plan", "questions.sql", "--domain", "domain.yaml", "--effort", "quick")
            lrm(*plan, "--noise", noise, "-o", file)
        yield place


@pytest.fixture(scope="module")
def client(folder):
    with serving(folder) as served:
        yield served


@pytest.fixture(scope="module")
def inside(client):
    client.key = client.must("enter", token=client.token)["key"]
    return client


def test_a_token_that_is_no_text_is_a_wrong_token(client):
    for body in (b'{"token": "\\ud800"}', b'{"token": ["\\udfff"]}', b'{"token": 1}', b"[]"):
        status, _, data = client.send("/api/enter", body=body)
        assert status == 401, data
        assert "not valid" in json.loads(data)["error"]


def test_the_key_is_checked_before_the_body_is_read(client):
    """The headers alone are answered: a visitor without a key cannot make the server wait."""
    head = (
        f"POST /api/save HTTP/1.1\r\nHost: {client.host}\r\nContent-Type: application/json\r\n"
        "X-Lrm-Key: wrong\r\nContent-Length: 4000000\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", client.port), timeout=20) as connection:
        connection.sendall(head.encode())
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        assert answer.status == 401
        assert "not signed in" in json.loads(answer.read())["error"]


def test_who_is_not_let_in_yet_may_send_a_token_and_no_more(client):
    length = {"Content-Length": str(MOST_ENTERING + 1)}
    status, _, data = client.send("/api/enter", body=b"x" * 10, **length)
    assert status == 413, data


def test_what_a_plan_is_warned_about_is_shown_once(inside, folder, monkeypatch, capsys):
    """Files do not hold even splits: the process that plans says what it has found."""
    monkeypatch.setattr(concerns, "NOTABLE", 0.0)
    text = "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex; SELECT COUNT(*) AS k FROM visits"
    step = {"noise": "pure", "effort": "quick", "file": "w.lrm", "before": None}
    job = {
        "domain": vars(Text("domain.yaml", (folder / "domain.yaml").read_text())),
        "batch": vars(Text("w.sql", text)),
        "steps": [{**step, "equal": False, "meet": None}],
    }
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(job) + "\n"))
    monkeypatch.setattr("os.nice", lambda step: step)
    with pytest.warns(PlanWarning):
        planning.main()
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (warnings,) = (facts["warnings"] for facts in told if "plan" in facts)
    assert [warning.split("'")[1] for warning in warnings] == ["n", "k"]
    monkeypatch.setattr(Planner, "warnings_of", lambda _, plan: [*warnings, *warnings])
    _, found = inside.ask("errors", **FIELDS["errors"])
    assert found["warnings"] == warnings


LONG = int("1" + "0" * 400)
WRONG = (None, True, LONG, -LONG, 0, -1, 2.5, "", "\0", "a\0b", "x" * 5000, [], {}, "1e99999", "-")
FIELDS = {
    "state": {**NAMES, "domain_seal": "", "batch_seal": ""},
    "save": {"name": "n.sql", "text": "SELECT COUNT(*) FROM visits", "base": "e3b0c44298fc1c14"},
    "compile": {**NAMES, "domain_text": "a", "batch_text": "b"},
    "errors": {
        "plan": "l.lrm",
        "outcome": "",
        "epsilon": "0.1",
        "delta": "1e-9",
        "confidence": 0.95,
        "beside": "g.lrm",
        "beside_name": "Gaussian",
    },
    "rivals": {"plan": "l.lrm", "epsilon": "0.1", **NAMES},
    "settings": {"noise": "pure", "amount": "1", "delta": "1e-9", "confidence": 0.95},
    "worst": {"plan": "l.lrm", "epsilon": "0.1", "confidence": 0.95},
    "inverse": {"plan": "l.lrm", "wanted": 12, "statement": -1},
    "budgets": {"ledger": "none.sqlite", "table": "visits"},
    "create-budget": {
        **NAMES,
        "ledger": "other.sqlite",
        "table": "t",
        "limit": "1",
        "accounting": "rho",
    },
    "dry-run": {
        **NAMES,
        "plan": "l.lrm",
        "table": "visits.csv",
        "ledger": "budget.sqlite",
        "epsilon": "0.1",
        "budget": "visits",
    },
    "release": {"ticket": "x"},
    "results": {"release": "none.lrm"},
    "query": {"release": "none.lrm", "sql": "SELECT 1", "confidence": 0.9},
    "download": {"file": "none.lrm", "as": "csv"},
}


@pytest.mark.parametrize("action", FIELDS)
def test_a_wrong_value_in_any_field_is_no_error_of_lrm_itself(inside, action):
    for field in FIELDS[action]:
        for value in WRONG:
            values = {**FIELDS[action], field: value}
            status, found = inside.ask(action, **values)
            assert status in {200, 400, 409}, (field, value, found)


@pytest.mark.parametrize("statement", [-1, 0])
def test_an_error_of_any_size_may_be_wanted(inside, statement):
    for wanted in (LONG, -LONG, 0, -1):
        status, found = inside.ask("inverse", plan="l.lrm", wanted=wanted, statement=statement)
        assert status == 400
        assert "number" in found["error"]


def test_a_cost_is_shown_to_a_few_digits(inside, folder):
    """The rho of a Gaussian release is a fraction of seventeen digits over as many."""
    ledger = Ledger.open(folder / "rho.sqlite")
    ledger.create("visits", "1", "rho")
    asked = {**NAMES, "plan": "g.lrm", "table": "visits.csv", "epsilon": "1", "delta": "1e-9"}
    found = inside.must("dry-run", **asked, ledger="rho.sqlite")
    for words in (found["cost"], found["left"]):
        assert "/" not in words
        assert len(words) < 40, words
    assert found["cost"].startswith("≈")
    Ledger.open(folder / "epsilon.sqlite").create("visits", "1", "epsilon")
    status, refused = inside.ask("dry-run", **asked, ledger="epsilon.sqlite")
    assert status == 400
    assert "--accounting rho" in refused["error"]


def test_while_a_release_is_made_there_is_no_other_dry_run(inside, folder, monkeypatch):
    """The ledger and the new file are seen before the release is done, with its page written."""
    import threading

    from lrm.workbench import releasing

    saved, go_on = threading.Event(), threading.Event()
    really = releasing.write_release_page

    def slow(*args):
        saved.set()
        assert go_on.wait(60)
        return really(*args)

    monkeypatch.setattr(releasing, "write_release_page", slow)
    Ledger.open(folder / "slow.sqlite").create("visits", "1", "epsilon")
    asked = {**NAMES, "plan": "l.lrm", "table": "visits.csv", "epsilon": "0.25"}
    asked["ledger"] = "slow.sqlite"
    found = inside.must("dry-run", **asked)
    try:
        assert inside.must("release", ticket=found["ticket"])["state"] == "running"
        assert saved.wait(60)
        state = inside.must("state")
        assert state["release"]["state"] == "running"
        assert found["files"][0] in state["files"]["release"]
        assert inside.must("budgets", ledger="slow.sqlite")["budgets"][0]["spent"] == "1/4"
        status, refused = inside.ask("dry-run", **asked)
        assert status == 400
        assert "another release is being made" in refused["error"]
    finally:
        go_on.set()
    done = inside.until("state", lambda state: state["release"]["state"] != "running")
    assert done["release"]["state"] == "done"


def test_the_amount_for_all_tolerances(tmp_path):
    """The page asks by a number of its own for the least amount that meets all tolerances."""
    import lrm
    from lrm.workbench.rating import Rated, tolerated

    domain = lrm.Domain([lrm.Integers("age", 0, 9)], "people")
    text = "-- Everybody\n-- within: 50\nSELECT COUNT(*) AS n FROM people"
    plan = lrm.plan(lrm.sql(text, domain), noise="laplace", meet=0.95, effort="quick")
    found = tolerated(Rated(plan), 0.95)
    assert found["name"] == "epsilon"
    assert float(found["exact"].split("/")[0]) > 0
    assert "Everybody" in found["because"]


def test_tolerances_are_asked_for_by_a_number(inside):
    status, found = inside.ask("inverse", plan="l.lrm", statement=-2, confidence=0.9)
    assert status == 400
    assert "-- within: 50" in found["error"]


def test_tolerances_are_planned_for_at_the_confidence_of_the_page(inside, folder):
    """Plans were for 95 % whatever was chosen, and the command beside them left tolerances out."""
    from lrm import load_plan

    name, text = "near.sql", "-- within: 50\nSELECT COUNT(*) AS n FROM visits"
    (folder / name).write_text(text)
    least = {}
    for confidence in (0.95, 0.99):
        asked = {"domain": "domain.yaml", "batch": name, "confidence": confidence}
        found = inside.must("plan", **asked, noise="pure", effort="quick")
        options = " --confidence 0.99" if confidence == 0.99 else ""
        assert f" --meet{options} -o " in found["command"]
        done = inside.until("state", lambda state: state["job"]["state"] != "running", **asked)
        assert done["job"]["state"] == "done", done["job"]
        texts = {"domain_text": (folder / "domain.yaml").read_text(), "batch_text": text}
        plan = inside.must("compile", **asked, **texts)["plans"]["pure"]
        made = load_plan(folder / plan)
        assert made.objective == "within"
        # The name with its confidence was refused, so that the page showed no errors.
        rated = inside.must("errors", plan=plan, epsilon="1", confidence=confidence)
        assert rated["statements"]
        least[confidence] = plan, made.meets(confidence).privacy.epsilon
    assert least[0.95][0] != least[0.99][0]
    assert least[0.95][1] < least[0.99][1]

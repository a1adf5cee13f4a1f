"""The workbench's server by real requests: who is let in, what is refused, what is done once."""

import contextlib
import hashlib
import http.client
import json
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

import lrm as library
from lrm.cli import main
from lrm.domain.file import parse_domain
from lrm.workbench.checks import KEY_HEADER
from lrm.workbench.folder import MOST_TEXT
from lrm.workbench.params import Params
from lrm.workbench.server import MOST_BYTES
from workbench.served import DOMAIN, QUESTIONS, Client, lrm, serving, write_example

BUNDLE = "ec81ffff5a85fdf49f7f72a0baad4180c83ced262a8b292690a64e896a442c66"
NAMES = {"domain": "domain.yaml", "batch": "questions.sql"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("bench")
    write_example(place)
    with contextlib.chdir(place):  # as the command does
        yield place


@pytest.fixture(scope="module")
def client(folder):
    with serving(folder) as served:
        assert served.ask("enter", token=served.token[:-1])[0] == 401
        served.key = served.must("enter", token=served.token)["key"]
        yield served


def test_the_printed_address_lets_one_browser_in(client):
    status, found = client.ask("enter", token=client.token)
    assert status == 401
    assert "used already" in found["error"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X-Lrm-Key": ""}, 401),
        ({"X-Lrm-Key": "wrong"}, 401),
        ({"X-Lrm-Key": "ключ".encode().decode("latin-1")}, 401),
        ({"X-Lrm-Key": None}, 401),
        ({"Host": "evil.example"}, 403),
        ({"Host": "rebound.example:{port}"}, 403),
        ({"Host": "127.0.0.1"}, 403),
        ({"Host": "127.0.0.1:1"}, 403),
        ({"Host": "127.0.0.1.evil.example:{port}"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://127.0.0.1:{port}"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_other_pages_and_other_names_are_refused(client, headers, status):
    given = {
        name: None if value is None else value.format(port=client.port)
        for name, value in headers.items()
    }
    for path in ("/api/state", "/api/release", "/api/save"):
        found, sent, data = client.send(path, dict(NAMES), **given)
        assert found == status, (path, data)
        assert "Access-Control-Allow-Origin" not in sent
        assert "visits" not in data.decode()


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}"])
def test_the_page_itself_is_let_in(client, host):
    name = host.format(port=client.port)
    status, _, _ = client.send("/api/state", dict(NAMES), Host=name, Origin=f"http://{name}")
    assert status == 200


def test_a_request_is_limited(client):
    assert (
        client.send("/api/state", body=b"x" * 10, **{"Content-Length": str(MOST_BYTES + 1)})[0]
        == 413
    )
    assert client.send("/api/state", body=b"", **{"Content-Length": "abc"})[0] == 411
    assert client.send("/api/state", body=b"{")[0] == 400
    assert client.send("/api/state", body=b"[]")[0] == 400
    assert client.send("/api/nothing")[0] == 400
    assert client.send("/elsewhere")[0] == 404
    status, headers, data = client.send("/api/state", method="PUT")
    assert (status, headers["X-Content-Type-Options"]) == (501, "nosniff")
    assert "error" in json.loads(data)


@pytest.mark.parametrize("path", ["/", "/app.js", "/editor.js", "/style.css", "/views.css"])
def test_the_page_needs_nothing_from_elsewhere(client, path):
    status, headers, data = client.send(path, method="GET")
    assert status == 200
    assert "http://" not in data.decode().replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in data.decode()
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert client.send(path, method="GET", Host="evil.example")[0] == 403
    for other in ("/../server.py", "/%2e%2e/server.py", "/page/app.js", "//etc/passwd"):
        assert client.send(other, method="GET")[0] == 404


@pytest.mark.parametrize(
    "name", ["../secret.sql", "/etc/x.sql", ".hidden.sql", "visits.csv", "a/b.sql", "a\n.sql", ""]
)
def test_only_plain_names_of_texts_are_written(client, name):
    status, found = client.ask("save", name=name, text="x", base="e3b0c44298fc1c14")
    assert status == 400
    assert "expected the name of a .sql" in found["error"]


def test_tables_are_never_sent(client, folder):
    """Neither as a download nor as a text, under whatever name they are asked for."""
    for form in ("lrm", "csv", "html", "json"):
        for name in ("visits.csv", "../bench/visits.csv", "plans/../visits.csv"):
            assert client.ask("download", file=name, **{"as": form})[0] == 400
        (folder / "table.lrm").write_bytes((folder / "visits.csv").read_bytes())
        address = client.must("download", file="table.lrm", **{"as": form})["address"]
        status, _, data = client.send(address, method="GET")
        assert (status, b",59" in data) == (400, False)
        (folder / "table.lrm").unlink()
    state = client.must("state")
    assert state["files"]["table"] == ["visits.csv"]
    assert ",59" not in json.dumps(state)


def compiled(client, domain=DOMAIN, batch=QUESTIONS):
    texts = {"domain_text": domain, "batch_text": batch}
    return client.until("compile", lambda found: not found["pending"], **NAMES, **texts)


def test_the_compiler_speaks_at_the_line(client):
    def told(domain=DOMAIN, batch=QUESTIONS):
        return compiled(client, domain, batch)

    good = told()
    assert good["batch"]["problems"] == []
    assert [one["title"] for one in good["batch"]["statements"]] == ["visits by sex", "men by age"]
    assert good["key"]
    assert good["domain"]["attributes"][1]["values"] == ["0..19", "20..39", "40..59"]
    wrong = told(batch=QUESTIONS.replace("GROUP BY age", "GROUP BY agee") + "SELECT 1 FROM visits")
    assert [one["line"] for one in wrong["batch"]["problems"]] == [2, 3]
    assert "agee" in wrong["batch"]["problems"][0]["message"]
    assert wrong["key"] is None
    assert told(domain=DOMAIN.replace("high: 59", "high: -1"))["domain"]["problems"][0]["line"] == 6
    assert told(batch="SELECT 'x")["batch"]["problems"][0]["line"] == 1
    twice = told(
        batch=QUESTIONS.replace("men", "visits").replace("age,", "sex,").replace("BY age", "BY sex")
    )
    titles = [one["title"] for one in twice["batch"]["statements"]]
    assert titles == ["visits by sex", "visits by sex"]
    spaced = told(batch="-- a remark\n\n" + QUESTIONS)
    assert spaced["key"] == good["key"]
    assert good["domain"]["html"].count("<tr>") == 3
    heavy = told(batch="-- importance: 4\n-- expected: 1,000\n" + QUESTIONS)
    assert heavy["key"] != good["key"]
    statement = heavy["batch"]["statements"][0]
    assert (statement["importance"], statement["expected"]) == (4, 1000)
    vague = told(batch="-- expected: some\n" + QUESTIONS)["batch"]
    assert "number above 0, not 'some'" in vague["warnings"][0]["message"]
    assert "the batch is empty" in told(batch="-- a remark\n;")["batch"]["problems"][0]["message"]


def test_unnamed_statements_are_numbered_as_the_compiler_numbers_them(client):
    text = "SELECT COUNT(*) FROM visits UNION ALL SELECT COUNT(sex) FROM visits;\n"
    text += "SELECT COUNT(*), COUNT_IF(sex = 'm') / COUNT(*) AS share FROM visits;\n"
    text += "SELECT COUNT(*) AS n FROM visits"
    found = compiled(client, batch=text)
    whole = library.sql(text, parse_domain(DOMAIN))
    titles = [one["title"] for one in found["batch"]["statements"]]
    assert titles == [one.title for one in whole.tables]


def test_a_file_that_cannot_be_shown_is_refused(client, folder):
    for name, data in (("latin.sql", b"-- caf\xe9"), ("long.sql", b"-" * (MOST_TEXT + 1))):
        (folder / name).write_bytes(data)
        status, found = client.ask("state", domain="domain.yaml", batch=name)
        assert (status, name in found["error"]) == (400, True)
        (folder / name).unlink()


def test_a_file_that_others_changed_is_not_overwritten(client, folder):
    state = client.must("state", **NAMES)
    seal = state["texts"]["batch"]["seal"]
    (folder / "questions.sql").write_text(QUESTIONS + "-- by hand\n")
    status, found = client.ask("save", name="questions.sql", text="mine", base=seal)
    assert status == 409
    assert "changed elsewhere" in found["error"]
    state = client.must("state", **NAMES, batch_seal=seal)
    assert state["texts"]["batch"]["text"].endswith("-- by hand\n")
    seal = state["texts"]["batch"]["seal"]
    client.must("save", name="questions.sql", text=QUESTIONS, base=seal)
    assert (folder / "questions.sql").read_text() == QUESTIONS


@pytest.fixture(scope="module")
def planned(client):
    client.must("plan", **NAMES, noise="pure", effort="quick")
    client.until("state", lambda state: state["job"]["state"] == "done")
    return compiled(client)["plans"]


def test_errors_are_those_of_the_command(client, folder, planned):
    found = client.must("errors", plan=planned["pure"], epsilon="0.1")
    said = json.loads(lrm("explain", planned["pure"], "--epsilon", "0.1", "--json"))
    assert found["typical"] == said["root_mean_squared_error"]
    # The page plans no statement alone, which is what the even split would need.
    alone = [{**one, "of_even_split": None} for one in said["statements"]]
    assert found["facts"] == alone
    for one in said["statements"]:
        assert f'<td class="number" data-value="{one["half_width"]!r}"' in found["statements"]
    assert found["command"] == f"lrm explain {planned['pure']} --epsilon 0.1"
    half = client.must("errors", plan=planned["pure"], epsilon="0.05")
    assert half["typical"] == pytest.approx(2 * found["typical"])
    least = client.must("inverse", plan=planned["pure"], wanted=found["typical"])
    assert least["amount"] == "0.1"
    worst = found["facts"][1]["largest_standard_error"]
    assert (
        client.must("inverse", plan=planned["pure"], wanted=worst, statement=1)["amount"] == "0.1"
    )
    rivals = client.must("rivals", plan=planned["pure"], epsilon="0.1", **NAMES)
    assert '<th scope="row">best</th>' in rivals["html"]
    both = client.must(
        "errors",
        plan=planned["pure"],
        beside=planned["gaussian"],
        beside_name="Gaussian noise",
        epsilon="0.1",
        delta="1e-9",
    )
    assert "guarantees pure ε = 0.1, which is stronger" in both["beside"]
    assert ">Gaussian noise</th>" in both["statements"]
    largest = client.must("worst", plan=planned["pure"], epsilon="0.1")
    assert all(one["name"] in largest["html"] for one in said["queries"])
    assert "times the least" in largest["bound"] or "proved" in largest["bound"]
    for amounts in ({}, {"epsilon": "-1"}, {"epsilon": "x"}, {"delta": "1"}):
        assert client.ask("errors", plan=planned["pure"], **amounts)[0] == 400


def with_budget(client, plan, ledger):
    """Create a budget; return what a request for a release names."""
    budget = {"table": "visits", "limit": "1", "accounting": "epsilon"}
    client.must("create-budget", **NAMES, ledger=ledger, **budget)
    return {**NAMES, "plan": plan, "table": "visits.csv", "ledger": ledger, "epsilon": "0.25"}


@pytest.fixture(scope="module")
def released(client, planned):
    """The name of a release, paid from budget.sqlite."""
    asked = with_budget(client, planned["pure"], "budget.sqlite")
    client.must("release", ticket=client.must("dry-run", **asked)["ticket"])
    done = client.until("state", lambda state: state["release"]["state"] != "running")["release"]
    assert done["state"] == "done", done
    return done["release"]


def test_a_release_is_paid_for_once(client, folder, planned):
    """A double click, a second tab and a void confirmation spend nothing more."""
    asked = with_budget(client, planned["pure"], "once.sqlite")
    first = client.must("dry-run", **asked)
    assert (first["cost"], first["left"]) == ("0.25 epsilon", "0.75 of 1 epsilon")
    assert "one row, added or removed" in first["confirm_html"]
    replaced, first = first, client.must("dry-run", **asked)
    assert client.ask("release", ticket=replaced["ticket"])[0] == 400  # a new dry run replaces it
    with ThreadPoolExecutor(8) as pool:
        sent = [pool.submit(client.ask, "release", ticket=first["ticket"]) for _ in range(8)]
        assert {one.result()[0] for one in sent} == {200}
    done = client.until("state", lambda state: state["release"]["state"] != "running")["release"]
    assert done["state"] == "done", done
    again = client.must("release", ticket=first["ticket"])
    assert again["state"] == "done"
    kept = client.must("budgets", ledger="once.sqlite")
    assert kept["budgets"][0]["spent"] == "1/4"
    assert kept["history"].index("<td>spend</td>") < kept["history"].index("<td>create</td>")
    assert [Path(name).suffix for name in first["files"]] == [".lrm", ".csv", ".html"]
    for name in first["files"]:
        assert (folder / name).exists(), name
    second = client.must("dry-run", **asked)
    assert not set(second["files"]) & set(first["files"])
    plan = library.load_plan(planned["pure"])
    library.release(plan, "visits.csv", "0.1", ledger="once.sqlite")
    status, found = client.ask("release", ticket=second["ticket"])
    assert status == 400
    assert "has changed since the dry run" in found["error"]
    assert client.must("budgets", ledger="once.sqlite")["budgets"][0]["spent"] == "7/20"


def test_what_a_release_would_refuse_is_refused_before(client, folder, planned, released):
    asked = {**NAMES, "plan": planned["pure"], "table": "visits.csv", "ledger": "budget.sqlite"}
    cases = [
        ({"epsilon": "5"}, "but this release costs 5"),
        ({"epsilon": "0.1", "table": "gone.csv"}, "gone.csv"),
        ({"epsilon": "0.1", "table": " "}, "name the table"),
        ({"epsilon": "0.1", "ledger": "none.sqlite"}, "none.sqlite"),
    ]
    for change, words in cases:
        status, found = client.ask("dry-run", **{**asked, **change})
        assert status == 400, found
        assert words in found["error"]
    state = client.must("state", **NAMES)
    seal = state["texts"]["batch"]["seal"]
    ticket = client.must("dry-run", **asked, epsilon="0.1")["ticket"]
    saved = client.must(
        "save", name="questions.sql", text=QUESTIONS + "SELECT COUNT(*) AS n FROM visits", base=seal
    )
    status, found = client.ask("dry-run", **asked, epsilon="0.1")
    assert "is of other questions" in found["error"]
    status, found = client.ask("release", ticket=ticket)
    assert status == 409
    assert "questions.sql has changed since the dry run" in found["error"]
    client.must("save", name="questions.sql", text=QUESTIONS, base=saved["seal"])


def test_further_questions_and_files(client, folder, released):
    assert released in client.must("state")["files"]["release"]
    text = "SELECT COUNT_IF(sex = 'm') AS n, COUNT_IF(sex = 'm') / COUNT(*) AS share FROM visits"
    found = client.must("query", release=released, sql=text)
    said = json.loads(lrm("query", released, text, "--json"))
    assert [one["name"] for one in said["answers"]] == ["n", "share"]
    assert all(f": {one['name']}</th>" in found["html"] for one in said["answers"])
    assert "What is not guaranteed" in client.must("results", release=released)["html"]
    consistent = client.must("results", release=released, consistent=True)
    assert consistent["command"] == f"lrm report {released} --post-process consistent"
    assert "Post-processing" in consistent["html"]
    assert "Post-processing" not in client.must("results", release=released)["html"]
    address = client.must("download", file=released, consistent=True, **{"as": "csv"})["address"]
    data = client.send(address, method="GET")[2]
    lrm("show", released, "--post-process", "consistent", "--csv", "added-up.csv")
    assert data == (folder / "added-up.csv").read_bytes()
    status, refused = client.ask(
        "query", release=released, sql="SELECT COUNT(*) FROM visits WHERE age < 7"
    )
    assert status == 400
    assert "cell" in refused["error"]
    for form in ("lrm", "csv", "html"):
        address = client.must("download", file=released, **{"as": form})["address"]
        assert client.send(address, method="GET", **{"Sec-Fetch-Site": "cross-site"})[0] == 404
        status, headers, data = client.send(address, method="GET")
        assert status == 200
        assert data == (folder / released).with_suffix(f".{form}").read_bytes(), form
        if form == "html":
            assert "sandbox" in headers["Content-Security-Policy"]
        assert client.send(address, method="GET")[0] == 404  # once


def test_the_newest_question_wins(client, folder):
    """A search is ended when the questions change, and can be stopped with the best so far."""
    state = client.must("state", **NAMES)
    wide = DOMAIN.replace("width: 20", "width: 2")
    ranges = "\n".join(
        f"SELECT sex, COUNT(*) AS a{i} FROM visits WHERE age < {2 * i} GROUP BY sex;"
        for i in range(1, 25)
    )
    (folder / "wide.yaml").write_text(wide)
    (folder / "ranges.sql").write_text(ranges)
    names = {"domain": "wide.yaml", "batch": "ranges.sql"}
    first = client.must("plan", **names, noise="pure", effort="thorough")["job"]
    assert first["state"] == "running"
    (folder / "ranges.sql").write_text(ranges.replace("a24", "last"))
    second = client.must("plan", **names, noise="pure", effort="thorough")["job"]
    assert second["key"] != first["key"]
    client.until("state", lambda found: found["job"]["plans"] >= 1)  # the quick plan is there
    client.must("stop")
    done = client.until("state", lambda found: found["job"]["state"] != "running")["job"]
    assert done["key"] == second["key"]
    assert state["texts"]["batch"]["name"] == "questions.sql"
    # a plan that somebody has edited is refused, and makes room for another
    plan = folder / client.must("plan", **names)["plans"]["pure"]
    plan.write_bytes(plan.read_bytes()[:-9])
    status, found = client.ask("errors", plan=f"plans/{plan.name}", epsilon="1")
    assert (status, "is damaged" in found["error"]) == (400, True)
    client.must("plan", **names, again=True, effort="quick")
    done = client.until("state", lambda found: found["job"]["state"] != "running")["job"]
    assert done["state"] == "done", done
    client.must("errors", plan=f"plans/{plan.name}", epsilon="1")
    # the page may ask for a quick plan that has just given way, or for one that was just set back
    stem = plan.name.removesuffix(".lrm").removesuffix("-quick")
    names = [f"plans/{stem}.lrm", f"plans/{stem}-quick.lrm"]
    assert client.must("errors", plan=names[1], epsilon="1")["plan"] == names[0]
    (folder / names[0]).rename(folder / names[1])
    assert client.must("errors", plan=names[0], epsilon="1")["plan"] == names[1]


def test_a_plan_that_is_replaced_while_it_is_asked_for(client, planned, monkeypatch):
    """The file is gone after it was found, and another one is there by then."""
    quick = planned["pure"].replace(".lrm", "-quick.lrm")
    names = iter([quick, planned["pure"]])
    with monkeypatch.context() as patch:
        patch.setattr(client.server.actions.folder, "successor", lambda _: next(names))
        assert client.must("errors", plan=quick, epsilon="1")["plan"] == planned["pure"]
    status, found = client.ask("errors", plan=f"plans/pure-{'0' * 16}.lrm", epsilon="1")
    assert status == 400
    assert "there is no file" in found["error"]


def test_a_ledger_that_is_being_created_is_none_yet(client, folder):
    """The page asks for budgets whenever it likes; SQLite makes an empty file first."""
    with contextlib.closing(sqlite3.connect(folder / "new.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("CREATE TABLE head (version)")
        found = client.must("budgets", ledger="new.sqlite")
        assert found["budgets"] == []
        other.execute("COMMIT")
    assert client.ask("budgets", ledger="new.sqlite")[0] == 400  # some other database


def test_a_new_server_goes_on_from_the_files(client, folder, released):
    with serving(folder) as other:
        assert other.ask("state")[0] == 401
        stale = Client(other.port, client.key)
        assert stale.ask("state")[0] == 401
        other.key = other.must("enter", token=other.token)["key"]
        state = other.must("state", **NAMES)
        assert state["texts"]["batch"]["text"] == QUESTIONS
        assert released in state["files"]["release"]
        assert other.must("budgets", ledger="budget.sqlite")["budgets"][0]["spent"] == "1/4"
        assert compiled(other)["plans"]["pure"]
        assert other.ask("release", ticket="of the old server")[0] == 400


def test_a_server_that_was_closed_begins_no_search(tmp_path):
    """Else a page that is still open would leave a process behind."""
    write_example(tmp_path)
    with serving(tmp_path) as served:
        actions = served.server.actions
    assert actions.call("plan", Params({**NAMES, "noise": "pure"}))["job"] is None


def test_requests_at_once_are_answered(client):
    barrier = threading.Barrier(6)

    def one(number):
        barrier.wait()
        return compiled(client, batch=QUESTIONS.replace("men", f"men{number}"))

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(one, range(6)))
    assert [one["batch"]["statements"][1]["title"] for one in found] == [
        f"men{number} by age" for number in range(6)
    ]


def test_it_listens_on_the_loopback_address_alone(folder):
    done = CliRunner().invoke(main, ["workbench", "--host", "0.0.0.0"])  # noqa: S104 - refused
    assert done.exit_code == 2
    assert "--host" in done.stderr
    with serving(folder) as served, socket.socket() as other:
        address = socket.gethostbyname(socket.gethostname())
        if not address.startswith("127."):
            assert other.connect_ex((address, served.port)) != 0


def test_the_editors_are_the_bundle_that_was_reviewed():
    """CONTRIBUTING.md tells how it is made; no build step is needed by users."""
    place = Path(__file__).parent
    page = place.parent.parent / "src" / "lrm" / "workbench" / "page"
    found = hashlib.sha256((page / "codemirror.js").read_bytes()).hexdigest()
    assert found == BUNDLE
    listed = json.loads((place / "codemirror" / "package.json").read_text())["dependencies"]
    assert all(re.fullmatch(r"[\d.]+", version) for version in listed.values())
    licence = (page / "codemirror.LICENSE.txt").read_text()
    assert "Permission is hereby granted" in licence


def test_settings_are_kept_in_the_folder(client, folder):
    usual = {"noise": "pure", "amount": "0.1", "delta": "1e-9", "confidence": 0.95}
    assert client.must("state")["settings"] == usual
    chosen = {"noise": "rho", "amount": "1/3", "delta": "1e-6", "confidence": 0.99}
    client.must("settings", **chosen)
    assert json.loads((folder / "workbench.json").read_text()) == chosen
    with serving(folder) as other:
        other.key = other.must("enter", token=other.token)["key"]
        assert other.must("state")["settings"] == chosen
        for text in ("{", "[]", '{"noise": "none"}', '{"amount": 3}', '{"confidence": []}'):
            (folder / "workbench.json").write_text(text)
            state = other.must("state")
            assert state["settings"] == usual
            assert "workbench.json cannot be read" in state["settings_problem"]
    (folder / "workbench.json").unlink()


def test_a_folder_that_does_not_exist_is_a_usage_error(tmp_path):
    done = CliRunner().invoke(main, ["workbench", str(tmp_path / "none")])
    assert done.exit_code == 2
    assert "there is no folder" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_without_a_word_while_a_page_is_open(tmp_path, number):
    """The threads of open connections held objects of DuckDB, which listed them all as leaked."""
    write_example(tmp_path)
    command = [sys.executable, "-m", "lrm", "workbench", str(tmp_path), "--no-browser", "--json"]
    process = subprocess.Popen(
        [*command, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A suite that runs in the background ignores SIGINT, and so would its processes.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    address = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")["address"]
    port, token = re.search(r":(\d+)/#token=(.*)", address).groups()
    visitor = Client(int(port))
    visitor.key = visitor.must("enter", token=token)["key"]
    text = "SELECT age // 40 AS half, COUNT(*) AS n FROM visits GROUP BY half"
    texts = {"domain_text": DOMAIN, "batch_text": text}
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=120)
    with contextlib.closing(connection):  # stays open until the command has ended
        headers = {"Content-Type": "application/json", KEY_HEADER: visitor.key}
        connection.request("POST", "/api/compile", json.dumps({**NAMES, **texts}), headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()
        process.send_signal(number)
        rest, errors = process.communicate(timeout=120)
    assert (process.returncode, rest, errors) == (0, "", "")

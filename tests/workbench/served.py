"""A workbench that is served to a test: the real server, on a free port of the loopback address."""

import contextlib
import http.client
import json
import threading
import time

from click.testing import CliRunner

from lrm.cli import main
from lrm.workbench.checks import KEY_HEADER
from lrm.workbench.server import Server

DOMAIN = """\
lrm-domain: 1
table: visits
unit: row
attributes:
  - {name: sex, kind: categories, values: [f, m], null: drop, outside: drop}
  - {name: age, kind: integers, low: 0, high: 59, width: 20, null: drop, outside: drop}
"""
QUESTIONS = """\
SELECT sex, COUNT(*) AS visits FROM visits GROUP BY sex;
SELECT age, COUNT(*) AS men FROM visits WHERE sex = 'm' GROUP BY age;
"""


def write_example(folder, rows=600):
    (folder / "domain.yaml").write_text(DOMAIN)
    (folder / "questions.sql").write_text(QUESTIONS)
    lines = [f"{'fm'[i % 2]},{i % 60}" for i in range(rows)]
    (folder / "visits.csv").write_text("\n".join(["sex,age", *lines, ""]))


class Client:
    """Sends requests as a browser would, or as something else would."""

    def __init__(self, port, key=""):
        self.port, self.key = port, key
        self.host = f"127.0.0.1:{port}"

    def send(self, path, values=None, *, method="POST", body=None, **headers):
        given = {"Host": self.host, "Content-Type": "application/json", KEY_HEADER: self.key}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        with contextlib.closing(connection):
            data = json.dumps(values or {}).encode() if body is None else body
            sent = {name: value for name, value in given.items() if value is not None}
            connection.request(method, path, data if method == "POST" else None, sent)
            answer = connection.getresponse()
            return answer.status, dict(answer.headers), answer.read()

    def ask(self, action, **values):
        status, _, data = self.send(f"/api/{action}", values)
        return status, json.loads(data)

    def must(self, action, **values):
        status, found = self.ask(action, **values)
        assert status == 200, found
        return found

    def until(self, action, done, seconds=300, **values):
        end = time.monotonic() + seconds
        while not done(found := self.must(action, **values)):
            assert time.monotonic() < end, found
            time.sleep(0.05)
        return found


@contextlib.contextmanager
def serving(folder, ledger="budget.sqlite"):
    """The server in a thread, and a client that was let in."""
    server = Server(folder, 0, ledger)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        client = Client(server.visitors.port)
        client.token, client.address = server.keys.token, server.address
        client.server = server
        yield client
    finally:
        server.shutdown()
        server.close_all()
        thread.join()


def lrm(*words):
    """Run the command, in the current folder."""
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    return done.stdout

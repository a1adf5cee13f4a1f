"""Records behave as Python users expect: copies, pickles, names, NumPy."""

import copy
import pickle

import numpy as np
import pytest

import lrm
from lrm.errors import UnknownName, WorkloadError

SQL = """
SELECT zone, COUNT(*) AS n FROM t GROUP BY zone;
SELECT hour, AVG(hour) AS mean, COUNT(*) AS n FROM t WHERE zone <> 'a' OR hour > 2 GROUP BY hour;
SELECT SUM(hour) AS hours FROM t
"""


@pytest.fixture(scope="module")
def domain():
    return lrm.Domain([lrm.Categories("zone", ["a", "b", "c"]), lrm.Integers("hour", 0, 5)], "t")


@pytest.fixture(scope="module")
def release(domain):
    return lrm.release(lrm.plan(SQL, domain=domain, effort="quick"), [5] * 18, epsilon=1)


def pickled(record):
    return pickle.loads(pickle.dumps(record))  # noqa: S301 - of our own making


@pytest.mark.parametrize("noise", ["pure", "laplace", "gaussian"])
def test_records_pickle_and_copy_also_after_they_were_used(domain, noise):
    batch = lrm.sql(SQL, domain)
    plan = lrm.plan(batch, noise=noise, effort="quick")
    amount = {"rho": 1} if noise == "gaussian" else {"epsilon": 1}
    release = lrm.release(plan, [5] * 18, **amount)
    release.to_pandas()
    plan.errors(**amount)
    repr(plan), release._repr_html_(), batch._repr_html_(), domain._repr_html_()
    for record in (domain, batch, plan):
        assert pickled(record).digest == record.digest
        assert copy.deepcopy(record).digest == copy.copy(record).digest == record.digest
    again = pickled(release)
    assert again.to_pandas().equals(release.to_pandas())
    assert copy.deepcopy(release) is copy.copy(release) is release


def test_a_changed_pickle_of_a_plan_is_refused(release):
    data = pickle.dumps(release.plan)
    parse, (content,) = release.plan.__reduce__()
    assert content in data
    with pytest.raises(lrm.LrmError, match="the plan is damaged"):
        parse(content[:-30] + bytes(30))


def test_numpy_takes_the_answers(release):
    assert np.array_equal(np.asarray(release), release.answers)
    assert np.asarray(release, dtype=np.float32).dtype == np.float32
    copied = np.array(release)
    copied[:] = 0
    assert np.any(release.answers)


def test_a_name_that_does_not_exist_is_a_key_error_too(release):
    with pytest.raises(KeyError) as raised:
        release["nothing"]
    assert isinstance(raised.value, UnknownName)
    assert str(raised.value).startswith("no query is called 'nothing'; there are")
    with pytest.raises(KeyError, match="no statement is called 'hour'; near it is 'hours'"):
        release.frame("hour")
    with pytest.raises(KeyError, match="an answer is named by a text, not 2"):
        release[2]
    assert release.frame(2).statement == release.frame("2").statement
    with pytest.raises(KeyError, match="no statement is called '7'"):
        release.frame(7)


def test_plans_and_batches_are_collections_of_the_names_of_their_statements(release):
    for record in (release, release.plan, release.plan.workload):
        assert [*record] == [*release]
        assert len(record) == len(list(record)) == 3
        assert all(name in record for name in record)
        assert "mean" in record
        assert "nothing" not in record
        assert record


def test_an_attribute_that_does_not_exist_is_a_key_error_too(domain):
    with pytest.raises(KeyError) as raised:
        domain.attribute("day")
    assert isinstance(raised.value, lrm.errors.DomainError)
    assert str(raised.value) == "no attribute is called 'day'; the attributes are zone, hour"


def test_an_ambiguous_list_of_attributes_is_refused_with_both_ways_to_write_it(domain):
    with pytest.raises(
        WorkloadError, match=r"\[\['zone', 'hour'\]\] for one table of all"
    ) as raised:
        lrm.marginals(domain, ["zone", "hour"])
    assert "write [['zone', 'hour']] for" in str(raised.value)
    assert "[['zone'], ['hour']] for one table each" in str(raised.value)


def test_a_guarantee_is_printed_as_people_write_it(release):
    assert repr(release.privacy) == "PureDP(epsilon=1)"
    assert "Fraction" not in repr(release.plan.privacy_for(rmse=5))

"""The cases contain every possible pair, and what is left out is left out for a stated reason."""

from matrix.covering import covering_cases, random_cases
from matrix.factors import ALL_PAIRS, FACTORS, IMPOSSIBLE, LARGE_SIZES, LEFT_OUT, is_possible


def test_every_possible_pair_is_in_some_case():
    cases = covering_cases()
    covered = set().union(*(case.pairs for case in cases))
    assert covered == ALL_PAIRS - LEFT_OUT
    assert all(map(is_possible, cases))
    largest, second = sorted((len(levels) for levels in FACTORS.values()), reverse=True)[:2]
    assert largest * second * 0.8 <= len(cases) <= largest * second * 1.2
    print(f"{len(cases)} cases contain {len(covered)} pairs")


def test_the_same_cases_come_every_time():
    assert covering_cases() == covering_cases()
    assert random_cases(20, 1) == random_cases(20, 1) != random_cases(20, 2)


def test_random_cases_have_every_size_and_large_ones_are_in_no_other():
    assert {case.size for case in random_cases(300, 1)} == {*FACTORS["size"], *LARGE_SIZES}
    assert {case.size for case in covering_cases()} == set(FACTORS["size"])


def test_what_is_left_out_names_existing_levels_and_a_reason():
    assert LEFT_OUT <= ALL_PAIRS
    for entry in IMPOSSIBLE:
        assert len(entry.reason.split()) > 5, entry
    for name, levels in FACTORS.items():  # no level may be impossible with all of another factor
        for level in levels:
            assert any(dict(case_pair).get(name) == level for case_pair in ALL_PAIRS - LEFT_OUT)

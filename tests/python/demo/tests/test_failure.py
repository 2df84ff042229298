"""The one test of the demonstration that fails, as it is meant to."""


def test_a_sum_that_is_wrong():
    assert sum(range(4)) == 7

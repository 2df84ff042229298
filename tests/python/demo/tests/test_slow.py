"""A test of some seconds: time to look at the run from outside."""

import time

import pytest


@pytest.mark.parametrize("part", range(3))
def test_slow(part):
    time.sleep(1.5)


def test_after_the_slow_ones():
    assert True


@pytest.mark.skip(reason="to be seen in the counts")
def test_skipped():
    raise AssertionError

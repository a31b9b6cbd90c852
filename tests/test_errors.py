import pytest

from gptscope.errors import (
    ClosedPipe,
    GptscopeError,
    ModelError,
    Status,
    UsageError,
    check_index,
)


def test_exit_statuses():
    assert {status.name: int(status) for status in Status} == {
        "DONE": 0,
        "FAILED": 1,
        "USAGE": 2,
        "INTERRUPTED": 130,
    }


@pytest.mark.parametrize(("kind", "status"), [(GptscopeError, 1), (ModelError, 1), (UsageError, 2)])
def test_each_mistake_has_its_status(kind, status):
    fault = kind("no such thing")
    assert fault.status == status
    assert isinstance(fault, GptscopeError)
    assert str(fault) == fault.message == "no such thing"
    assert fault.hint is None


def test_a_hint_stands_apart():
    fault = ModelError("no such thing", hint="make one")
    assert (fault.message, fault.hint) == ("no such thing", "make one")
    assert "make one" not in str(fault)


def test_a_usage_error_is_a_value_error():
    assert issubclass(UsageError, ValueError)
    assert not issubclass(ModelError, ValueError)


def test_a_closed_pipe_is_no_mistake():
    assert not issubclass(ClosedPipe, GptscopeError)


@pytest.mark.parametrize(("index", "place"), [(0, 0), (3, 3), (-1, 3), (-4, 0)])
def test_an_index_is_counted_from_both_ends(index, place):
    assert check_index("layer", index, 4) == place


@pytest.mark.parametrize("index", [4, -5, 99])
def test_an_index_out_of_range_is_refused(index):
    why = f"^layer {index} is out of range: this one has layers 0 to 3$"
    with pytest.raises(UsageError, match=why):
        check_index("layer", index, 4)

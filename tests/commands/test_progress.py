from contextlib import contextmanager

import pytest

from gptscope.commands import progress as module
from gptscope.commands.progress import counting, ticking
from gptscope.engine.trace import trace


@pytest.fixture
def bars(monkeypatch):
    made = []

    @contextmanager
    def bar(steps, label):
        made.append([steps, label, 0])

        def tick(done):
            made[-1][2] += done

        yield tick

    monkeypatch.setattr(module, "progress", bar)
    return made


def test_a_bar_moves_with_every_block_of_a_pass(tiny, ids, bars):
    with counting(tiny) as model:
        trace(model, ids, ("logits",))
    n = tiny.spec.n_layers
    assert bars == [[n, "blocks", n]]


def test_every_pass_ticks_where_each_has_a_model_of_its_own(tiny, ids):
    told = []
    for _ in range(2):
        trace(ticking(tiny, told.append), ids, ("logits",))
    assert told == [1] * (2 * tiny.spec.n_layers)

import pytest

import gptscope
from gptscope.engine import needs
from gptscope.engine.keep import matcher
from gptscope.engine.needs import bytes_kept, size
from gptscope.errors import GptscopeError
from gptscope.model import memory
from gptscope.model.memory import free, room
from tests.helpers.variants import CHANGES, WIRED

IDS = [3, 1, 4, 1, 5]
MODELS = {**WIRED, **CHANGES}


@pytest.mark.parametrize(
    "keep", [None, ["weights"], ["layers.0.*", "ln_final.out"], ["embeddings"]]
)
@pytest.mark.parametrize("name", MODELS)
def test_what_is_foretold_is_what_a_trace_holds(micro, name, keep):
    model = MODELS[name](micro)
    trace = gptscope.trace(model, IDS, keep)
    held = {id(x): x.nbytes for x in trace.values.values()}
    held["logits"] = len(IDS) * model.spec.n_vocab * model.dtype.itemsize
    if ("logits", None) in trace.values:
        held.pop(id(trace.values["logits", None]))
    wanted = matcher(keep, model.spec.n_layers, model.spec.n_heads)
    assert bytes_kept(model, len(IDS), wanted) == sum(held.values())


def test_what_does_not_fit_is_refused_before_the_pass(micro, monkeypatch):
    monkeypatch.setattr(needs, "SMALL", 1000)
    monkeypatch.setattr(needs, "free", lambda: 2_000)
    why = r"the values of this pass would take 6.4 kB, and 2\.0 kB are free"
    with pytest.raises(GptscopeError, match=why) as fault:
        gptscope.trace(micro, IDS)
    assert "--keep" in fault.value.hint
    assert gptscope.trace(micro, IDS, keep="weights").names()
    monkeypatch.setattr(needs, "free", lambda: 1 << 40)
    assert gptscope.trace(micro, IDS).names()


def test_free_memory_is_a_number_of_bytes():
    assert 1e6 < room() < free() < 1e15


def test_free_memory_where_the_system_does_not_say(monkeypatch):
    def absent(*_args, **_kwargs):
        raise OSError

    monkeypatch.setattr("builtins.open", absent)
    assert memory.free() > 1e6
    monkeypatch.setattr(memory.os, "sysconf", absent)
    assert memory.free() == memory.UNKNOWN


@pytest.mark.parametrize(
    ("n", "words"), [(12, "12 bytes"), (2_340, "2.3 kB"), (5e6, "5.0 MB"), (12.34e9, "12.3 GB")]
)
def test_sizes_in_words(n, words):
    assert size(n) == words

import pytest

import gptscope
from tests.helpers.cli import SENTENCE


@pytest.fixture(scope="session")
def ids(tiny):
    return tiny.tokenizer.encode(SENTENCE)


@pytest.fixture(scope="session")
def labels(tiny, ids):
    return [tiny.tokenizer.text_of(i) for i in ids]


@pytest.fixture(scope="session")
def trace(tiny, ids):
    return gptscope.trace(tiny, ids)

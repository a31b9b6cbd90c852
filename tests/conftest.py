import hypothesis
import pytest

import gptscope
from tests.helpers.folders import CASES, GOLDEN, changed_copy
from tests.helpers.micro import micro_model

# The same examples on every machine; `--hypothesis-profile=default` looks for new ones.
hypothesis.settings.register_profile(
    "gptscope", deadline=None, derandomize=True, max_examples=60, print_blob=True
)
hypothesis.settings.load_profile("gptscope")


@pytest.fixture(scope="session")
def tiny():
    return gptscope.load("tiny")


@pytest.fixture(scope="session", params=CASES)
def golden_folder(request):
    return GOLDEN / request.param


@pytest.fixture(scope="session")
def golden_model(golden_folder):
    return gptscope.load(golden_folder)


@pytest.fixture(scope="session")
def micro():
    return micro_model()


@pytest.fixture
def folder(tmp_path):
    def write(case="gpt2", **changes):
        return changed_copy(tmp_path / "model", case, **changes)

    return write

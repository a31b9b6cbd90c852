# Changed model folders and texts of every kind, in processes whose memory and time are bounded.

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EACH = 5_000
BATCHES = [(kind, seed) for kind in ("models", "texts") for seed in range(2)]
FEW = {"models": 400, "texts": 3_000}  # of a batch, at the least, are good enough to be run


@pytest.fixture(scope="module")
def running():
    # All of them at once: the machine's cores share them.
    one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}
    started = {
        (kind, seed): subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.batch", kind, str(seed), str(EACH)],
            cwd=ROOT,
            env={**os.environ, **one_thread},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for kind, seed in BATCHES
    }
    yield started
    for process in started.values():
        process.kill()
        process.communicate()


def test_ten_thousand_of_each():
    for kind in ("models", "texts"):
        assert sum(EACH for one, _ in BATCHES if one == kind) == 10_000


@pytest.mark.skipif(sys.platform != "linux", reason="memory is bounded as Linux does it")
@pytest.mark.parametrize(("kind", "seed"), BATCHES)
def test_nothing_but_the_programs_own_faults_comes_out(running, kind, seed):
    out, err = running[kind, seed].communicate(timeout=300)
    assert out, err[-3000:].decode()
    told = json.loads(out)
    assert told["which"] == []
    assert told["good"] + told["refused"] == EACH
    assert told["good"] >= FEW[kind]
    assert told["refused"] >= 400
    assert told["slowest"] < 3

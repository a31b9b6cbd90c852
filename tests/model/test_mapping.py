import mmap

import numpy as np
import pytest

from gptscope.model import mapping
from gptscope.model.checkpoint import Checkpoint
from gptscope.model.formats.packed import Packed, Reordered
from gptscope.model.mapping import forgetter, mapped


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(bytes(range(240)))
    return np.memmap(path, np.uint8, mode="r").reshape(12, 20)


def as_float(rows):
    return rows.astype(np.float32)


def test_the_file_behind_every_kind_of_table_is_found(stored):
    packed = Packed(stored, (12, 20), as_float)
    tables = [stored.T[3:], packed, Reordered(packed, np.arange(12)), np.ones(3)]
    found = list(mapped(tables))
    assert len(found) == 3
    assert all(isinstance(one, mmap.mmap) and len(one) == 240 for one in found)


def test_pages_of_large_files_alone_are_given_back_once_each(stored, monkeypatch, tmp_path):
    given = []

    class Watched:
        def __len__(self):
            return 240

        def madvise(self, advice):
            given.append(advice)

    one = Watched()
    monkeypatch.setattr(mapping, "mapped", lambda tables: [one for _ in tables])
    checkpoint = Checkpoint(tmp_path, {"a": stored, "b": stored}, {}, ())
    forgetter(checkpoint)()
    assert given == []
    monkeypatch.setattr(mapping, "LARGE", 240)
    forgetter(checkpoint)()
    assert given == [mmap.MADV_DONTNEED]

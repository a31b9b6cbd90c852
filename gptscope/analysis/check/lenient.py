"""A config and tensors that note every fault where the model's own stop at the first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.errors import ModelError
from gptscope.model.config import Config
from gptscope.model.tensors import Tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gptscope.model.checkpoint import Checkpoint
    from gptscope.model.weights import Table


class LenientConfig(Config):
    """A config that goes on after a key that it does not understand."""

    def __init__(self, config: Config, changes: Mapping[str, Any]) -> None:
        """The same settings with some of them changed."""
        values = {**config.values, **changes}
        super().__init__(values, config.source)
        self.faults: list[str] = []

    def finish(self) -> None:
        """Every key that is not understood is noted."""
        for key, value in self.values.items():
            single = Config({key: value}, self.source)
            single.ask(*self._asked)
            self._note(single)
        for section in self._sections.values():
            self._note(section)

    def _note(self, part: Config) -> None:
        try:
            part.finish()
        except ModelError as fault:
            self.faults.append(whole(fault))


class LenientTensors(Tensors):
    """Tensors of which those that are missing or do not fit are noted; zeros stand in for them."""

    def __init__(
        self, checkpoint: Checkpoint, rename: Callable[[str], str], dtype: np.dtype[Any]
    ) -> None:
        """Nothing is wrong yet."""
        super().__init__(checkpoint, rename, dtype)
        self.missing: dict[str, None] = {}  # in the order in which they were asked for
        self.misfits: dict[str, str] = {}  # name -> what is wrong with it

    def table(self, name: str, *shape: int) -> Table:
        """The tensor, or zeros of its shape."""
        if name not in self:
            self.missing[name] = None
        else:
            try:
                return super().table(name, *shape)
            except ModelError as fault:
                self.misfits[name] = fault.message + turned(self.shape(name), shape)
        self._taken.add(name)
        return np.broadcast_to(np.zeros((), np.float32), shape)

    def left(self) -> list[str]:
        """The stored names of the tensors that nobody asked for."""
        asked = self._taken | self.ignored
        return [stored for name, stored in self._stored_names.items() if name not in asked]


def turned(found: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    """What may have happened to a tensor."""
    return ": it is stored turned" if found == wanted[::-1] != wanted else ""


def whole(fault: ModelError) -> str:
    """What is wrong, and the hint where there is one."""
    return f"{fault.message} ({fault.hint})" if fault.hint else fault.message

"""A file of stories -> clean stories, those to learn from and those held out."""

import hashlib
import lzma
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from training.errors import InputError
from training.progress import bar

END = "<|endoftext|>"
SHORTEST = 150
HELD_OUT_PERCENT = 4
TO_ASCII = {
    "\u201c": '"',
    "\u201d": '"',
    "\u201e": '"',
    "\u2018": "'",
    "\u2019": "'",
    "\u201a": "'",
    "\u2013": "-",
    "\u2014": "-",
    "\u2026": "...",
    "\u00a0": " ",
}


@dataclass(frozen=True)
class Corpus:
    """The clean stories in the order of the file, apart."""

    train: list[str]
    held_out: list[str]

    def fingerprint(self) -> str:
        """SHA-256 of all the text, so that a resumed run can tell whether its text is the same."""
        digest = hashlib.sha256()
        for story in (*self.train, END, *self.held_out):
            digest.update(story.encode() + b"\0")
        return digest.hexdigest()


def characters(stories: Iterable[str]) -> dict[str, Any]:
    """What `text.json` says: every character that is learned from, and what is put for others."""
    seen = set[str]().union(*stories)
    return {"seen": "".join(sorted(seen)), "mapped": TO_ASCII}


def split_stories(lines: Iterable[str]) -> Iterator[str]:
    """The texts between the lines that hold only `<|endoftext|>`."""
    story: list[str] = []
    for line in lines:
        if line.strip() == END:
            yield "".join(story)
            story = []
        else:
            story.append(line)
    yield "".join(story)


def read_stories(path: Path) -> Iterator[str]:
    """The stories of a UTF-8 file, plain or `.xz`; raises InputError if unreadable."""
    opened = lzma.open if path.suffix == ".xz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as lines:
            yield from split_stories(lines)
    except (OSError, EOFError, lzma.LZMAError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {path}: {reason}") from error


def clean(story: str) -> str:
    """Typographic signs as ASCII, runs of spaces as one space, runs of line breaks as one."""
    spaced = re.sub(r"[ \t]+", " ", story.translate(str.maketrans(TO_ASCII)))
    return re.sub(r"\s*\n\s*", "\n", spaced).strip()


def is_kept(story: str) -> bool:
    """Whether a clean story is plain ASCII and long enough."""
    return len(story) >= SHORTEST and story.isascii()


def is_held_out(story: str) -> bool:
    """Whether SHA-256(story), as a number, modulo 100 is below 4: a law of the text alone."""
    return int(hashlib.sha256(story.encode()).hexdigest(), 16) % 100 < HELD_OUT_PERCENT


def read_corpus(path: Path, first: int | None = None) -> Corpus:
    """The (`first`) clean stories of a file, split; raises InputError if a side is empty."""
    stories = bar(read_stories(path), "reading", " stories")
    kept = list(islice(filter(is_kept, map(clean, stories)), first))
    corpus = Corpus(
        train=[story for story in kept if not is_held_out(story)],
        held_out=[story for story in kept if is_held_out(story)],
    )
    if not corpus.train or not corpus.held_out:
        raise InputError(
            f"{path} has {len(corpus.train)} usable stories to learn from and "
            f"{len(corpus.held_out)} to hold out; both must be there (stories stand between lines "
            f"{END}, are plain ASCII and have {SHORTEST} characters or more)"
        )
    return corpus

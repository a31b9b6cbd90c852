"""Models that the Hugging Face tools have downloaded: found in their cache, never fetched.

models--org--name/refs/main holds a commit; snapshots/COMMIT/ holds links into blobs/.
https://huggingface.co/docs/huggingface_hub/guides/manage-cache
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gptscope.errors import ModelError
from gptscope.model.files import reason, short

if TYPE_CHECKING:
    from collections.abc import Mapping

WORD = r"[A-Za-z0-9][\w.-]{0,95}"
REPO = re.compile(rf"(?P<name>({WORD}/)?{WORD})(@(?P<revision>\w[\w./-]*))?", re.ASCII)
WEIGHTS = (".safetensors", ".gguf", ".bin")
LONGEST_COMMIT = 200  # bytes of a file in refs/


@dataclass(frozen=True)
class Repo:
    """A model as the Hub names it."""

    name: str  # org/name
    revision: str | None = None  # a branch, a tag or a commit

    @property
    def folder(self) -> str:
        """What its folder in the cache is called."""
        return f"models--{self.name.replace('/', '--')}"

    @property
    def download(self) -> str:
        """The command that downloads it."""
        revision = f" --revision {self.revision}" if self.revision else ""
        return f"hf download {self.name}{revision}"


def repo_of(name: str) -> Repo | None:
    """`org/name`, `name` or `org/name@revision`; None where it is not written as one."""
    found = REPO.fullmatch(name)
    if found is None or ".." in name:
        return None
    return Repo(found["name"], found["revision"])


def repo_at(path: Path) -> Repo | None:
    """The model whose folder in a cache this is, or one of whose snapshots."""
    folder = path.parent.parent if path.parent.name == "snapshots" else path
    start, _, rest = folder.name.partition("--")
    if start != "models" or not rest or not (folder / "snapshots").is_dir():
        return None
    return Repo(rest.replace("--", "/", 1))


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the Hugging Face tools keep what they download."""
    home = environ.get("HF_HOME") or os.path.join(  # noqa: PTH118 - may begin with ~
        environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface"
    )
    hub = environ.get("HF_HUB_CACHE") or environ.get("HUGGINGFACE_HUB_CACHE")
    return Path(os.path.expandvars(hub or f"{home}/hub")).expanduser()


def snapshot(repo: Repo, folder: Path) -> Path:
    """The snapshot of the revision, or of main, or the newest that has weights.

    Raises:
        ModelError: there is none; the sentence says what to download.
    """
    snapshots = folder / "snapshots"
    if repo.revision is not None:
        chosen = snapshots / (commit_of(folder, repo.revision) or repo.revision)
        if repo.revision in (".", "..") or not chosen.is_dir():
            what = f"{repo.name} is in {folder.parent}, but not its revision {short(repo.revision)}"
            raise ModelError(what, hint=f"to download it: {repo.download}")
        return chosen
    main = commit_of(folder, "main")
    try:
        there = sorted((p for p in snapshots.iterdir() if p.is_dir()), key=newest, reverse=True)
    except FileNotFoundError:
        there = []
    except OSError as fault:
        raise ModelError(f"{snapshots} cannot be opened: {reason(fault)}") from fault
    first = [path for path in there if path.name == main]
    for path in (*first, *there):
        if has_weights(path):
            return path
    raise incomplete(repo, folder, "none of its snapshots has weights")


def incomplete(repo: Repo, folder: Path, why: str) -> ModelError:
    """The fault of a download that has not come to its end."""
    parts = any(folder.glob("blobs/*.incomplete"))
    more = ", and files in blobs are incomplete" if parts else ""
    what = f"the download of {repo.name} in {folder} is not complete: {why}{more}"
    return ModelError(what, hint=f"to complete it: {repo.download}")


def commit_of(folder: Path, revision: str) -> str | None:
    """The commit that a branch or a tag stands for."""
    path = folder / "refs" / revision
    try:
        if not path.is_file() or path.stat().st_size > LONGEST_COMMIT:
            return None
        commit = path.read_text("ascii").strip()
    except (OSError, ValueError):
        return None
    return commit if re.fullmatch(r"\w+", commit) else None


def newest(path: Path) -> float:
    """When a folder was last changed; 0 if that cannot be told."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def has_weights(snapshot: Path) -> bool:
    """Whether there is a file that may hold weights, and no link to nowhere."""
    try:
        return any(p.suffix in WEIGHTS and p.exists() for p in snapshot.iterdir())
    except OSError:
        return False

"""Where the weights of a model are, and what is said where they cannot be opened."""

from __future__ import annotations

from pathlib import Path

from gptscope.errors import ModelError
from gptscope.model import hub
from gptscope.model.files import reason, short, size_of
from gptscope.model.sharded import first_of_sets, names_in, read_places
from gptscope.model.shipped import shipped_folders

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
UNSAFE_ENDINGS = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
CONVERT = (
    "if you trust it, convert it with PyTorch: from safetensors.torch import save_file; "
    "save_file({name: w.clone() for name, w in torch.load(FILE, weights_only=True).items()}, "
    "'model.safetensors'); or with transformers: "
    "AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(NEW_FOLDER)"
)


def find_weights(name: str | Path) -> Path:
    """The file, or the index of several, that holds the weights.

    `name` is a shipped name, a folder, a file, or a model in the cache of Hugging Face: org/name.

    Raises:
        ModelError: there is none, or only files that may run code, or several; it says which.
    """
    if not str(name):
        raise ModelError("the name of the model is empty")
    path = shipped_folders().get(str(name)) or Path(name)
    refuse_unsafe(path)
    try:
        path.stat()
    except FileNotFoundError:
        if not path.is_symlink():
            return cached(path, str(name))
        raise ModelError(f"{path} is a link to a file that is not there") from None
    except (OSError, ValueError) as fault:  # too long a name, a link to itself, no permission
        raise ModelError(f"{short(str(path))} cannot be opened: {reason(fault)}") from fault
    if path.is_dir():
        repo = hub.repo_at(path)
        return weights_in(path) if repo is None else downloaded(repo, path)
    size_of(path)
    return path


def cached(path: Path, name: str) -> Path:
    """The weights of a model that is not at this path, but may have been downloaded.

    Raises:
        ModelError: it has not, or not all of it.
    """
    repo = hub.repo_of(name)
    if repo is None or path.suffix in (".safetensors", ".gguf", ".json"):
        raise absent(path)
    cache = hub.cache_folder()
    if (cache / repo.folder).is_dir():
        return downloaded(repo, cache / repo.folder)
    if "/" not in repo.name or path.parent.is_dir():  # meant as a name or a path of this machine
        raise absent(path)
    raise ModelError(
        f"there is no model at {path}, and {repo.name} is not in the Hugging Face cache {cache}",
        hint=f"to download it: {repo.download}",
    )


def downloaded(repo: hub.Repo, folder: Path) -> Path:
    """The weights in a folder of the cache, or in one of its snapshots.

    Raises:
        ModelError: they are not there, or not all of them.
    """
    inside = folder if folder.parent.name == "snapshots" else hub.snapshot(repo, folder)
    home = inside.parent.parent
    if not hub.has_weights(inside):
        raise hub.incomplete(repo, home, "its snapshot has no weights")
    path = weights_in(inside)
    names = [path.name, "config.json", "tokenizer.json"]
    if path.name == INDEX:
        try:
            names += sorted(set(read_places(path).values()))
        except ModelError as fault:
            raise hub.incomplete(repo, home, fault.message) from fault
    for link in (inside / name for name in names):
        if link.is_symlink() and not link.exists():
            why = f"{link.name} is a link to a file that is not there"
            raise hub.incomplete(repo, home, why)
    return path


def refuse_unsafe(path: Path) -> None:
    """Nothing is opened that could run code.

    Raises:
        ModelError: the name ends as those of pickles do, and the file is none of llama2.c.
    """
    if path.suffix.lower() not in UNSAFE_ENDINGS or path.is_dir() or is_llama2c(path):
        return
    raise ModelError(f"{path} may run code when it is opened, so it is not opened", hint=CONVERT)


def is_llama2c(path: Path) -> bool:
    """Whether this is a .bin file of numbers alone, which fit its header to the byte."""
    if path.suffix.lower() != ".bin":
        return False
    from gptscope.model.formats.llama2c import read_sizes  # noqa: PLC0415 - for a few files alone

    return read_sizes(path) is not None


def weights_in(folder: Path) -> Path:
    """The file in a folder that holds the weights.

    Raises:
        ModelError: there is none, or several; what lies there in its place is named.
    """
    names = sorted(names_in(folder))
    if WEIGHTS in names:
        return folder / WEIGHTS
    if INDEX in names:
        return folder / INDEX
    for others in (first_of_sets(names), ending(names, ".gguf"), of_llama2c(folder, names)):
        if len(others) == 1:
            return folder / others[0]
        if others:
            raise without(folder, others)
    unsafe = [name for name in names if name.lower().endswith(UNSAFE_ENDINGS)]
    if unsafe:
        why = f"{short(unsafe[0])} may run code when it is opened, so it is not opened"
        raise ModelError(f"{folder} has no {WEIGHTS}, and {why}", hint=CONVERT)
    others = ending(names, ".safetensors")
    raise without(folder, others) if others else empty(folder)


def ending(names: list[str], end: str) -> list[str]:
    """The names that end so."""
    return [name for name in names if name.lower().endswith(end)]


def of_llama2c(folder: Path, names: list[str]) -> list[str]:
    """The names of files of llama2.c."""
    return [name for name in ending(names, ".bin") if is_llama2c(folder / name)]


def without(folder: Path, others: list[str]) -> ModelError:
    """There are weights, but not by the usual name, or several."""
    named = ", ".join(short(name) for name in others[:3])
    more = f" and {len(others) - 3} more" if len(others) > 3 else ""
    return ModelError(
        f"{folder} has no {WEIGHTS}, but {named}{more}",
        hint=f"name the file: {folder / others[0]}",
    )


def empty(folder: Path) -> ModelError:
    """A folder without anything that could be opened."""
    return ModelError(f"{folder} holds no weights", hint=f"they are called {WEIGHTS}, as a rule")


def absent(path: Path) -> ModelError:
    """Nothing is there."""
    from difflib import get_close_matches  # noqa: PLC0415 - for a fault alone

    near = get_close_matches(str(path), shipped_folders(), n=1)
    others = f"did you mean {near[0]}?" if near else f"or one of: {', '.join(shipped_folders())}"
    where = "give a folder, a file (.safetensors, .gguf, llama2.c's .bin), org/name of the cache, "
    return ModelError(f"there is no model at {path}", hint=others if near else where + others)

"""Where the weights of a model are, and what is said where they cannot be opened."""

from __future__ import annotations

from pathlib import Path

from gptscope.errors import ModelError
from gptscope.model.files import read_json, reason, short, size_of
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
JOIN = (
    "join them with transformers: AutoModelForCausalLM.from_pretrained(FOLDER)"
    ".save_pretrained(NEW_FOLDER, max_shard_size='1TB')"
)


def find_weights(name: str | Path) -> Path:
    """The file that holds the weights of a shipped name, a folder, or a file.

    Raises:
        ModelError: there is none, or only files that may run code, or several; it says which.
    """
    path = shipped_folders().get(str(name)) or Path(name)
    refuse_unsafe(path)
    try:
        path.stat()
    except FileNotFoundError:
        if not path.is_symlink():
            raise absent(path) from None
        raise ModelError(f"{path} is a link to a file that is not there") from None
    except (OSError, ValueError) as fault:  # too long a name, a link to itself, no permission
        raise ModelError(f"{short(str(path))} cannot be opened: {reason(fault)}") from fault
    if path.is_dir():
        return weights_in(path)
    if path.name.endswith(".index.json"):
        raise several(path)
    size_of(path)
    return path


def refuse_unsafe(path: Path) -> None:
    """Nothing is opened that could run code.

    Raises:
        ModelError: the name ends as those of pickles do.
    """
    if path.suffix.lower() in UNSAFE_ENDINGS and not path.is_dir():
        raise ModelError(
            f"{path} may run code when it is opened, so it is not opened", hint=CONVERT
        )


def weights_in(folder: Path) -> Path:
    """The file in a folder that holds the weights.

    Raises:
        ModelError: there is none; what lies there in its place is named.
    """
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as fault:
        raise ModelError(f"{folder} cannot be opened: {reason(fault)}") from fault
    if WEIGHTS in names:
        return folder / WEIGHTS
    if INDEX in names:
        raise several(folder / INDEX)
    unsafe = [name for name in names if name.lower().endswith(UNSAFE_ENDINGS)]
    if unsafe:
        why = f"{short(unsafe[0])} may run code when it is opened, so it is not opened"
        raise ModelError(f"{folder} has no {WEIGHTS}, and {why}", hint=CONVERT)
    others = [short(name) for name in names if name.endswith(".safetensors")]
    if others:
        raise ModelError(
            f"{folder} has no {WEIGHTS}, but {', '.join(others[:3])}",
            hint=f"name the file: {folder / others[0]}",
        )
    raise absent(folder / WEIGHTS)


def absent(path: Path) -> ModelError:
    """Nothing is there."""
    from difflib import get_close_matches  # noqa: PLC0415 - for a fault alone

    near = get_close_matches(str(path), shipped_folders(), n=1)
    others = f"did you mean {near[0]}?" if near else f"or one of: {', '.join(shipped_folders())}"
    where = f"give a folder with {WEIGHTS}, a .safetensors file, "
    return ModelError(f"there is no model at {path}", hint=others if near else where + others)


def several(index: Path) -> ModelError:
    """The weights lie in several files: those that are missing are named first."""
    names = read_json(index).get("weight_map")
    if not isinstance(names, dict) or not all(isinstance(n, str) for n in names.values()):
        return ModelError(f"{index} has no weight_map that names a file for each tensor")
    files = sorted(set(names.values()))
    outside = [name for name in files if Path(name).name != name]
    if outside:
        return ModelError(f"{index} names {short(outside[0])}, which lies in another folder")
    there = {path.name for path in index.parent.iterdir()}
    missing = [name for name in files if name not in there]
    if missing:
        return ModelError(f"{index} names {short(missing[0])}, which is not there")
    return ModelError(
        f"{index} says that the weights lie in {len(files)} files, which is not supported yet",
        hint=JOIN,
    )

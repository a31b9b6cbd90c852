"""Write what the documentation takes from the program: `python docs/make_docs.py`.

docs/commands.md and a page for each command, docs/python.md, docs/hook-points.md, the pictures, the
table of families, and the output under every `$ gptscope ...` of the README and docs/models.md. A
test checks that nothing has changed since. `--measure` also measures how exact each family is, and
writes that into docs/families.md: it needs torch and transformers.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import gptscope
from gptscope.app import COMMANDS, loaded, run
from gptscope.engine.changes import CHANGES
from gptscope.engine.hook_points import HOOK_POINTS
from gptscope.model.families import FAMILIES, family

ROOT = Path(__file__).parents[1]
HEAD = "| option | what it does | default |\n|---|---|---|"
COMPLETION = """\
## Completion

`gptscope --install-completion` sets up the shell that it is called from (bash, zsh, fish or
PowerShell); `--show-completion` prints what it would install. Commands and options are completed,
and so are models, layers and heads of the model named before, presets, cards, formats, names of
values.
"""
PYTHON = """\
Written by `python docs/make_docs.py` from the docstrings. `import gptscope` loads nothing heavy:
each name is loaded when it is used."""
SENTENCE = "Lily wanted to play with her"
PICTURES = {
    "attention": f'attention "{SENTENCE}" --layer 0 --head 0',
    "embeddings": f'embeddings "{SENTENCE}"',
    "explain": f'explain "{SENTENCE}" "layers.0.heads.0.weights[5,0]"',
    "lens": 'lens "The cat and the dog are best"',
    "next": f'next "{SENTENCE}"',
    "positions": "positions --model toy",
    "tour": f'tour "{SENTENCE}" --card masked-attention',
}


def output(line: str) -> str:
    """What `gptscope LINE` prints on a plain terminal of 80 columns."""
    os.environ["COLUMNS"] = "80"
    out = io.TextIOWrapper(io.BytesIO(), "utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        run(shlex.split(line))
    text = out.buffer.getvalue().decode()  # type: ignore[attr-defined]
    return "\n".join(row.rstrip() for row in text.splitlines())


def filled(path: str) -> str:
    """A page with the output of its commands, and of its Python where it says that it prints."""
    text = (ROOT / path).read_text("utf-8")
    block = re.compile(r"(```console\n\$ gptscope (.*)\n)(?:.*\n)*?(```\n)")
    text = block.sub(lambda found: f"{found[1]}{output(found[2])}\n{found[3]}", text)
    code = re.compile(r"(```python\n(.*?)```\n\nIt prints\n\n```\n)(?:.*?\n)??(```\n)", re.DOTALL)
    return code.sub(lambda found: f"{found[1]}{printed(found[2])}{found[3]}", text)


def printed(code: str) -> str:
    """What a piece of Python prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, "docs", "exec"), {})  # noqa: S102
    return out.getvalue()


def commands_page() -> str:
    """All commands by group, each with a link to its page."""
    lines = ["# Commands", "", "Written by `python docs/make_docs.py` from the program itself."]
    for group in dict.fromkeys(group for group, _ in COMMANDS.values()):
        lines += ["", f"## {group}", "", "| command | what it does |", "|---|---|"]
        inside = ((name, line) for name, (own, line) in COMMANDS.items() if own == group)
        lines += [f"| [{name}](commands/{file_of(name)}) | {line} |" for name, line in inside]
    shared = sorted(common_options(), key=lambda param: param.opts)
    table = "\n".join(option_row(param) for param in shared)
    lines += ["", "## Options of every command", "", f"{HEAD}\n{table}", "", COMPLETION, ""]
    return "\n".join(lines)


def common_options() -> list[Any]:
    """The options that all commands have."""
    params = [{p.name: p for p in loaded(name).params} for name in COMMANDS]
    return [p for name, p in params[0].items() if all(name in one for one in params)]


def file_of(name: str) -> str:
    """The page of a command."""
    return f"{name.replace(' ', '-')}.md"


def command_page(name: str) -> str:
    """One command: what it says of itself, its own options, an example with what it prints."""
    command = loaded(name)
    told = [part.strip() for part in command.help.split("\n\n")]
    examples = [part for part in told if part.startswith("gptscope ")]
    words = [" ".join(part.split()) for part in told if part not in examples]
    shared = {param.name for param in common_options()}
    own = [p for p in command.params if p.name not in shared]
    rows = "\n".join(option_row(p) for p in own)
    shown = output(examples[0].split("   ")[0].removeprefix("gptscope"))
    options = [f"{HEAD}\n{rows}"] if own else []
    return "\n\n".join(
        [
            f"# gptscope {name}",
            *words,
            "```console\n" + "\n".join(f"$ {line}" for line in examples) + "\n```",
            *options,
            "The options of every command are [here](../commands.md).",
            f"The first example prints:\n\n```\n{shown}\n```\n",
        ]
    )


def python_page() -> str:
    """Every public name of the package with its signature and what it says of itself."""
    parts = ["# Python", "", PYTHON]
    for name in gptscope.__all__:
        thing = getattr(gptscope, name)
        parts += ["", f"## gptscope.{name}", "", *said_of(name, thing)]
    return "\n".join(parts) + "\n"


def said_of(name: str, thing: Any) -> list[str]:  # noqa: ANN401
    """Signature and docstring; a table of names has a page of its own."""
    if name == "HOOK_POINTS":
        return ["Every value of a pass: [hook points](hook-points.md)."]
    if inspect.isclass(thing):
        return [inspect.cleandoc(thing.__doc__ or "")]
    signature = re.sub(r"<function .*? at 0x\w+>", "...", str(inspect.signature(thing)))
    signature = signature.replace("'", "")
    return [f"```python\n{name}{signature}\n```", "", inspect.cleandoc(thing.__doc__ or "")]


def option_row(param: Any) -> str:  # noqa: ANN401
    """One row of the table of options."""
    names = ", ".join(f"`{name}`" for name in param.opts)
    names = f"`{param.name.upper()}`" if param.param_type_name == "argument" else names
    default = (
        ""
        if param.default is None or param.default is False
        else f"{getattr(param.default, 'value', param.default)}"
    )
    return f"| {names} | {param.help} | {default} |"


def hook_points_page() -> str:
    """The table of every value of a pass."""
    rows = "\n".join(
        f"| `{p.name}` | {p.axes} | {p.meaning} | {f'`{p.alias}`' if p.alias else ''} |"
        for p in HOOK_POINTS
    )
    return f"""# Hook points

Written by `python docs/make_docs.py` from `gptscope.HOOK_POINTS`. T tokens, S tokens seen, d width,
d_h head width, F feed-forward width, V vocabulary; layers `{{l}}` and heads `{{h}}` count from 0.

`trace["layers.0.heads.1.q"]` and `trace.layers[0].heads[1].q` are one head. TransformerLens' name
works wherever a name does and gives all heads with its axes: positions first for q, k, v and z
([T, H, d_h]), heads first for the patterns ([H, T, S]); `hook_scale` is sqrt(variance + eps), and
`hook_normalized` comes before gain and shift, as in TransformerLens' models with folded norms.

| name | axes | meaning | TransformerLens |
|---|---|---|---|
{rows}
"""


def families_page(measured: str = "") -> str:
    """The page of families: what each is, and how exact it was where that was measured."""
    text = (ROOT / "docs/families.md").read_text("utf-8")
    tables = {"`model_type`": families_table()} | ({"family": measured} if measured else {})
    for first, table in tables.items():
        old = re.compile(rf"^\| {first} \|.*\n(?:\|.*\n)*", re.MULTILINE)
        text = old.sub(lambda _, new=table: f"{new}\n", text)
    return text


def families_table() -> str:
    """What each family is, in the words of its file, and the cases that prove it."""
    folders = (ROOT / "tests/golden").rglob("config.json")
    configs = {path.parent.name: json.loads(path.read_text("utf-8")) for path in folders}
    rows = ["| `model_type` | what it is | proven as |", "|---|---|---|"]
    for name, file in FAMILIES.items():
        said = (family(file).__doc__ or "").partition("\n\n")[0]
        cases = sorted(c for c, config in configs.items() if config.get("model_type") == name)
        proven = ", ".join(f"`{case}`" for case in cases) or "-"
        rows.append(f"| `{name}` | {' '.join(said.split()).rstrip('.')} | {proven} |")
    return "\n".join(rows)


def edits_page() -> str:
    """The page of edits: every way to write a change, and the output of its examples."""
    forms = "\n".join(f"| `{form.written}` | {form.meaning} |" for form in CHANGES)
    old = re.compile(r"(\| change \|.*\n\|---\|---\|\n)(?:\|.*\n)*")
    return old.sub(lambda found: f"{found[1]}{forms}\n", filled("docs/edits.md"))


def measure() -> str:
    """The largest errors of each family against transformers, as a table."""
    command = [sys.executable, "-m", "tests.golden.transformers.measure"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)  # noqa: S603
    return done.stdout.strip()


def pages(measured: str = "") -> dict[str, str]:
    """Path -> text of everything that is written."""
    pictures = {
        f"docs/images/{name}.svg": output(f"{line} -f svg") + "\n"
        for name, line in PICTURES.items()
    }
    return {
        **{path: filled(path) for path in ("README.md", "docs/models.md", "docs/why.md")},
        "docs/edits.md": edits_page(),
        "docs/families.md": families_page(measured),
        "docs/commands.md": commands_page(),
        **{f"docs/commands/{file_of(name)}": command_page(name) for name in COMMANDS},
        "docs/python.md": python_page(),
        "docs/hook-points.md": hook_points_page(),
        **pictures,
    }


def main() -> None:
    """Write all pages."""
    measured = measure() if "--measure" in sys.argv[1:] else ""
    for path, text in pages(measured).items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, "utf-8")


if __name__ == "__main__":
    main()

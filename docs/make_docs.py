"""Write what the documentation takes from the program: `python docs/make_docs.py`.

docs/commands.md and docs/hook-points.md, the pictures, and the output under every `$ gptscope ...`
of the README. A test checks that nothing has changed since.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
from pathlib import Path
from typing import Any

from gptscope.app import COMMANDS, loaded, run
from gptscope.engine.hook_points import HOOK_POINTS

ROOT = Path(__file__).parents[1]
SENTENCE = "Lily wanted to play with her"
PICTURES = {
    "attention": f'attention "{SENTENCE}" --layer 0 --head 0',
    "embeddings": f'embeddings "{SENTENCE}"',
    "explain": f'explain "{SENTENCE}" "layers.0.heads.0.weights[5,0]"',
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


def readme() -> str:
    """The README with the output of its commands."""
    text = (ROOT / "README.md").read_text("utf-8")
    block = re.compile(r"(```console\n\$ gptscope (.*)\n)(?:.*\n)*?(```\n)")
    return block.sub(lambda found: f"{found[1]}{output(found[2])}\n{found[3]}", text)


def commands_page() -> str:
    """Every command: what it says of itself, its options, an example."""
    head = "# Commands\n\nWritten by `python docs/make_docs.py` from the program itself.\n"
    return "\n".join([head, *(command_section(name) for name in COMMANDS)])


def command_section(name: str) -> str:
    """One command."""
    command = loaded(name)
    told = [part.strip() for part in command.help.split("\n\n")]
    example = next(part for part in told if part.startswith("gptscope "))
    words = [f"`{part}`" if part.startswith("gptscope ") else part for part in told]
    rows = "\n".join(option_row(p) for p in command.params if p.name != "help")
    shown = output(example.split("   ")[0].removeprefix("gptscope"))
    table = f"| option | what it does | default |\n|---|---|---|\n{rows}"
    return "\n\n".join([f"## {name}", *words, table, f"```console\n$ {example}\n{shown}\n```\n"])


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


def pages() -> dict[str, str]:
    """Path -> text of everything that is written."""
    pictures = {
        f"docs/images/{name}.svg": output(f"{line} -f svg") + "\n"
        for name, line in PICTURES.items()
    }
    return {
        "README.md": readme(),
        "docs/commands.md": commands_page(),
        "docs/hook-points.md": hook_points_page(),
        **pictures,
    }


def main() -> None:
    """Write all pages."""
    for path, text in pages().items():
        (ROOT / path).parent.mkdir(exist_ok=True)
        (ROOT / path).write_text(text, "utf-8")


if __name__ == "__main__":
    main()

import ast
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "gptscope"
MODULES = sorted(PACKAGE.rglob("*.py"))
# Who may import whom; what is written `model.spec` is that module alone.
INSIDE = {
    "errors": "",
    "glyphs": "",
    "view": "",
    "tokens": "errors",
    "model": "errors tokens",
    "engine": "errors model.spec model.weights model.blocks model.dtypes model.memory model.arrays",
    "analysis": "errors model engine",
    "render": "view glyphs __version__",
    "commands": "errors glyphs tokens view model engine analysis render __version__",
    "app": "errors glyphs __version__",
    "__main__": "app",
    "__init__": "errors engine model analysis",
}
OUTSIDE = {
    "numpy": "view model engine analysis commands render.as_npz",
    "rich": "render.terminal",
    "typer": "app commands",
    "tokenizers": "tokens model.checkpoint model.formats",
    "safetensors": "model",
}
FIXED_BY_THE_API = {"engine.generate.generate"}  # every library calls these settings so
IDS = [str(path.relative_to(PACKAGE)) for path in MODULES]


def dotted(path):
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def within(name, allowed):
    return any(f"{name}.".startswith(f"{one}.") for one in allowed.split())


def imports(tree):
    for node in ast.walk(tree):  # inside functions, and for types alone, as well
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not followed here"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=IDS)
def test_who_imports_whom(path):
    name = dotted(path)
    layer = name.partition(".")[0]
    for target in imports(ast.parse(path.read_text("utf-8"))):
        root, _, inner = target.partition(".")
        if root == "gptscope":
            assert within(inner, f"{layer} {INSIDE[layer]}"), target
            assert layer == "model" or not within(inner, "model.families"), target
        elif root in OUTSIDE:
            assert within(name, OUTSIDE[root]), target
        else:
            assert root in sys.stdlib_module_names, target


@pytest.mark.parametrize("path", MODULES, ids=IDS)
def test_modules_and_functions_are_short(path):
    text, name = path.read_text("utf-8"), dotted(path)
    assert len(text.splitlines()) <= 250
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            of_a_command = name.startswith("commands.") and node.name == "command"
            every = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
            fixed = f"{name}.{node.name}" in FIXED_BY_THE_API
            assert node.end_lineno - node.lineno < 30 or of_a_command, node.name
            assert len(every) <= 6 or of_a_command or fixed, node.name

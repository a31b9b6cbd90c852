import importlib.util
import re
from pathlib import Path

import pytest

from gptscope.app import COMMANDS, loaded
from gptscope.engine.changes import CHANGES
from gptscope.model.dtypes import DTYPES
from gptscope.model.families import FAMILIES
from gptscope.model.find import INDEX, UNSAFE_ENDINGS, WEIGHTS
from gptscope.model.formats.gguf_dialects import DIALECTS
from gptscope.model.shipped import EXAMPLES
from gptscope.model.tokenizer_files import PAIR, WHOLE
from gptscope.render import RENDERERS
from tests.golden.transformers.cases import CASES
from tests.helpers.printed import same_but_for_rounding

ROOT = Path(__file__).parents[1]
INTEGERS = {"I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL"}  # no weights


def make_docs():
    spec = importlib.util.spec_from_file_location("make_docs", ROOT / "docs" / "make_docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages():
    return make_docs().pages()


def test_written_pages_are_those_the_program_writes_now(pages):
    stale = [
        path
        for path, text in pages.items()
        if not same_but_for_rounding((ROOT / path).read_text("utf-8"), text)
    ]
    assert stale == [], "run: python docs/make_docs.py"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_readme(name):
    assert f"gptscope {name}" in (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_line_of_help(name):
    assert all(param.help for param in loaded(name).params)


@pytest.mark.parametrize("name", RENDERERS)
def test_every_format_is_described(name):
    assert f"| `{name}` |" in (ROOT / "docs" / "formats.md").read_text("utf-8")


def test_extending_speaks_of_files_that_are_there():
    text = (ROOT / "docs" / "extending.md").read_text("utf-8")
    named = [path for path in re.findall(r"`([\w./]+/[\w./]*)`", text) if "NAME" not in path]
    assert len(named) > 15
    assert [path for path in named if not (ROOT / path).exists()] == []
    tables = re.findall(r"`([A-Z]{5,})`", text)
    sources = "\n".join(path.read_text("utf-8") for path in (ROOT / "gptscope").rglob("*.py"))
    assert [name for name in tables if not re.search(rf"^{name}\b", sources, re.MULTILINE)] == []


@pytest.mark.parametrize(
    "page", ["README.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text("utf-8"))
    here = (ROOT / page).parent
    assert [link for link in links if not (here / link).exists()] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_page_and_two_examples(name):
    page = (ROOT / "docs" / "commands" / f"{name.replace(' ', '-')}.md").read_text("utf-8")
    assert len(re.findall(rf"^\$ gptscope {name}\b", page, re.MULTILINE)) >= 2


def test_there_is_no_page_of_a_command_that_is_gone():
    pages = {path.stem for path in (ROOT / "docs" / "commands").glob("*.md")}
    assert pages == {name.replace(" ", "-") for name in COMMANDS}


@pytest.mark.parametrize("page", ["README.md", "docs/edits.md"])
def test_python_of_a_page_runs(page):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    exec(compile(code, page, "exec"), {})  # noqa: S102


def test_every_way_to_write_a_change_is_described():
    text = (ROOT / "docs" / "edits.md").read_text("utf-8")
    assert [form.written for form in CHANGES if f"| `{form.written}` |" not in text] == []


def first_column(page, title):
    """The names in the first column of the table that begins so, and its other columns."""
    text = (ROOT / page).read_text("utf-8")
    (table,) = re.findall(rf"^\| {title} \|.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()[1:]]
    return {name: rest for first, *rest in rows for name in re.findall(r"`([\w-]+)`", first)}


def test_every_family_is_described_and_measured():
    described = first_column("docs/families.md", "`model_type`")
    measured = first_column("docs/families.md", "family")
    assert list(described) == list(FAMILIES)
    assert set(measured) == {case.family for case in CASES} <= set(FAMILIES)
    assert {case.name for case in CASES} <= set(re.findall(r"`([\w-]+)`", str(described)))
    for name, (count, error, weight, exact, _) in measured.items():
        assert int(count) == sum(case.family == name for case in CASES), "run: --measure"
        assert float(error) < 2e-5, name
        assert float(weight) < 1e-5, name
        assert float(exact) < 1e-10, name


def test_every_architecture_of_gguf_is_named():
    assert set(first_column("docs/families.md", "architecture")) == set(DIALECTS)


def test_models_names_what_opens():
    text = (ROOT / "docs" / "models.md").read_text("utf-8")
    for name in (*EXAMPLES, *UNSAFE_ENDINGS, INDEX, WEIGHTS, WHOLE, *PAIR, *DTYPES):
        assert name in text or name in INTEGERS, name

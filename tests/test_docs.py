"""Pages that name tests: every one they name exists, and every attack stands in the table."""

import ast
import re
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
PAGES = ("threat-model.md", "attacks.md")
NAMED = re.compile(r"(?P<file>(?:[\w-]+/)*test_\w+\.py)?(?:::(?P<function>test_[\w*]+))?")


def cited(text: str) -> list[tuple[str, str | None]]:
    """Modules and test functions that a page names, in order; ``::test_x`` means the module that was named before."""
    found: list[tuple[str, str | None]] = []
    module = ""
    for match in NAMED.finditer(text):
        if match["file"] or match["function"]:
            module = match["file"] or module
            found.append((module, match["function"]))
    return found


def modules(name: str) -> list[Path]:
    """Test files of this name: below the root, or anywhere in the tests' tree."""
    return [path for path in sorted(TESTS.rglob("test_*.py")) if path.as_posix().endswith(f"/{name}")] if name else []


@cache
def functions(path: Path) -> tuple[str, ...]:
    """Names of the test functions in a file."""
    nodes = ast.parse(path.read_text()).body
    return tuple(node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))


def missing(text: str) -> list[str]:
    """What a page names and the tests' tree has not, or has in several modules; ``*`` stands for any ending."""
    faults = []
    for module, function in cited(text):
        places = modules(module)
        if len(places) != 1:
            faults.append(f"{module}: {len(places)} files")
        elif function and not any(fnmatchcase(name, function) for name in functions(places[0])):
            faults.append(f"{module}::{function}")
    return faults


@pytest.mark.parametrize("page", PAGES)
def test_every_test_that_a_page_names_exists(page):
    text = (ROOT / "docs" / page).read_text()
    assert len(cited(text)) > 30
    assert missing(text) == []


def test_names_that_do_not_exist_are_found():
    text = "`test_keys.py::test_of_nothing`, `::test_a_man_in_the_middle_*`, `test_nowhere.py`, `tests/test_ray.py`"
    assert missing(text) == ["test_keys.py::test_of_nothing", "test_nowhere.py: 0 files"]


def test_every_attack_without_its_guard_is_named_in_the_table():
    table = (ROOT / "docs" / "attacks.md").read_text()
    named = cited(table)
    for path in (*sorted((TESTS / "attacks").glob("test_*.py")), TESTS / "test_sealed_study.py"):
        patterns = [function or "*" for module, function in named if path.as_posix().endswith(f"/{module}")]
        bare = [name for name in functions(path) if "unguarded" in name or "unpinned" in name]
        assert [name for name in bare if not any(fnmatchcase(name, one) for one in patterns)] == [], path.name

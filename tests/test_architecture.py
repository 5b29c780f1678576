"""Imports point inward; no file outgrows its room; the project speaks of itself alone."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
APPLICATION = {"simulate.py", "simulate_sets.py", "play.py"}


def sources(package: str) -> list[Path]:
    """The modules of a package; of the core, all but the application modules that join the two sides."""
    found = sorted((ROOT / package).rglob("*.py"))
    if package != "federated_anon":
        return found
    return [path for path in found if path.name not in APPLICATION and not path.name.startswith("cli")]


def imported_roots(package: str) -> set[str]:
    """First names of everything a package imports, at the top of a module or inside a function."""
    roots = set()
    for path in sources(package):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                roots |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                roots.add(node.module.split(".")[0])
    return roots


@pytest.mark.parametrize(
    ("package", "banned"),
    [
        ("federated_anon", {"nodes", "coordinator", "ray", "pickle", "cloudpickle"}),
        ("nodes", {"coordinator", "pickle", "cloudpickle"}),
        ("coordinator", {"nodes", "pickle", "cloudpickle"}),
    ],
)
def test_imports_point_inward(package, banned):
    assert imported_roots(package).isdisjoint(banned)


@pytest.mark.parametrize(("package", "only"), [("nodes", "actor.py"), ("coordinator", "runtime.py")])
def test_ray_is_known_to_one_file_of_each_side(package, only):
    users = {path.name for path in sources(package) if re.search(r"^\s*(import|from) ray\b", path.read_text(), re.M)}
    assert users <= {only}


def test_algorithms_never_import_messages():
    algorithms = ("som", "microaggregation", "side", "privacy", "setvalued", "utility")
    users = [
        str(path)
        for part in algorithms
        for path in (ROOT / "federated_anon" / part).rglob("*.py")
        if "federated_anon.messages" in path.read_text()
    ]
    assert users == []


def test_no_module_outgrows_its_room():
    long = {
        str(path.relative_to(ROOT)): count
        for package in ("federated_anon", "nodes", "coordinator")
        for path in (ROOT / package).rglob("*.py")
        if (count := len(path.read_text().splitlines())) > 400
    }
    assert long == {}


def test_functions_stay_short():
    long = []
    for package in ("federated_anon", "nodes", "coordinator"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef) and body_length(node) > 60:
                    long.append(f"{path.relative_to(ROOT)}:{node.name}")
    assert long == []


def body_length(function: ast.FunctionDef) -> int:
    """Lines of a function's body, without its docstring."""
    first = function.body[1] if ast.get_docstring(function) and len(function.body) > 1 else function.body[0]
    return (function.end_lineno or 0) - first.lineno + 1


def test_no_absolute_path_of_a_machine_is_committed():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    if not tracked:
        pytest.skip("not a git checkout")
    pattern = re.compile(r"(?<![\w.])/(home|root|work|Users)/\w")
    found = [name for name in tracked if (ROOT / name).is_file() and pattern.search(_text(ROOT / name))]
    assert [name for name in found if name != "tests/test_architecture.py"] == []


def _text(path: Path) -> str:
    return path.read_bytes().decode(errors="ignore")

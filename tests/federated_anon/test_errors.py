from pathlib import Path

from federated_anon import errors

PAGE = (Path(__file__).parents[2] / "docs" / "exit-codes.md").read_text()


def every_error(root: type = errors.FederatedAnonError) -> list[type]:
    return [root, *(error for child in root.__subclasses__() for error in every_error(child))]


def test_every_code_and_exit_code_has_its_line_in_the_docs():
    assert [code for code in errors.Code if f"`{code}`" not in PAGE] == []
    assert [error for error in every_error() if f"\n| {error.exit_code} |" not in PAGE] == []


def test_faults_are_counted_and_listed():
    text = str(errors.SettingsRefused("study.toml", ["one", "two"]))
    assert text == "study.toml refused, 2 faults:\n  one\n  two"
    assert "1 fault:" in str(errors.SettingsRefused("study.toml", ["one"]))

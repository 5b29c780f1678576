import subprocess
import sys

import federated_anon


def test_public_names_are_sorted_and_real():
    assert federated_anon.__all__ == sorted(federated_anon.__all__)
    assert [name for name in federated_anon.__all__ if not hasattr(federated_anon, name)] == []


def test_simulate_and_run_are_functions_whatever_was_imported_before():
    first = "import federated_anon.simulate, nodes.holder; from federated_anon import run, simulate"
    assert told(f"{first}; print(callable(simulate), callable(run))") == "True True"


def test_importing_the_package_does_not_load_ray():
    assert told("import federated_anon, sys; print('ray' in sys.modules)") == "False"


def told(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()

"""What deploy/ promises: files that parse, name what exists, and hold commands that run in a plain shell."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.services import free_port

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
IMAGES = sorted((DEPLOY / "images").glob("*.Dockerfile"))
HOLDERS = ("hospital", "insurer", "registry")


def instructions(file):
    """Every instruction of a Dockerfile with its words."""
    text = re.sub(r"(?m)^#.*\n", "", file.read_text()).replace("\\\n", " ")
    return [line.split(None, 1) for line in text.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())


@pytest.fixture(scope="module")
def cluster():
    return yaml.safe_load((DEPLOY / "kuberay" / "raycluster.yaml").read_text())


@pytest.mark.parametrize("file", IMAGES, ids=lambda file: file.stem)
def test_images_copy_what_exists_are_pinned_and_end_as_a_plain_user(file):
    found = instructions(file)
    copied = [words for name, words in found if name == "COPY" and "--from" not in words]
    for words in copied:
        *sources, _ = words.split()
        assert all((ROOT / source).exists() for source in sources)
    assert re.search(r"python:\d+\.\d+\.\d+-", dict(found)["ARG"])
    users = [words for name, words in found if name == "USER"]
    assert users == ["10001"]
    assert json.loads(dict(found)["ENTRYPOINT"]) == ["federated-anon"]


@pytest.mark.parametrize("file", IMAGES, ids=lambda file: file.stem)
def test_the_packages_that_images_build_are_all_there(file):
    copies = [words.split()[:-1] for name, words in instructions(file) if name == "COPY" and "--from" not in words]
    copied = {word for words in copies for word in words}
    assert {"federated_anon", "nodes", "coordinator", "pyproject.toml", "README.md", "LICENSE"} <= copied


def test_compose_isolates_holders_from_each_other(compose):
    services = compose["services"]
    assert set(services) == {*HOLDERS, "coordinator"}
    for name in HOLDERS:
        assert services[name]["networks"] == [name]
        assert compose["networks"][name]["internal"] is True
        assert services[name]["read_only"] is True
        assert "ports" not in services[name]
    for service in services.values():
        assert (DEPLOY / "compose" / service["build"]["context"] / service["build"]["dockerfile"]).resolve().is_file()


def test_the_trial_of_compose_runs_in_a_plain_shell(compose, tmp_path):
    """The commands of the compose file, with folders for volumes and loopback ports for networks."""
    trial = tmp_path / "trial"
    ports = {name: free_port() for name in HOLDERS}
    addresses = [f"--address={name}=127.0.0.1:{port}" for name, port in ports.items()]
    subprocess.run(
        [sys.executable, DEPLOY / "compose" / "trial.py", trial, *addresses], check=True, capture_output=True
    )
    again = subprocess.run([sys.executable, DEPLOY / "compose" / "trial.py", trial], capture_output=True, text=True)
    assert (again.returncode, "exists already" in again.stderr) == (2, True)

    def command(name):
        folder = trial / name
        words = compose["services"][name]["command"]
        return [
            sys.executable,
            "-m",
            "federated_anon",
            *(re.sub("^/(holder|study)", str(folder), word) for word in words),
        ]

    serving = []
    try:
        for name in HOLDERS:
            serving.append(
                subprocess.Popen(command(name), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            )
        assert all(process.stdout.readline().startswith("Ready:") for process in serving)
        subprocess.run(command("coordinator"), check=True, capture_output=True, timeout=120)
    finally:
        for process in serving:
            process.terminate()
            process.wait(20)
            process.stdout.close()
    run = trial / "coordinator" / "run"
    subprocess.run([sys.executable, "-m", "federated_anon", "verify", run], check=True, capture_output=True)


def test_kuberay_has_a_worker_group_with_its_resource_per_holder(cluster):
    spec = cluster["spec"]
    assert (cluster["apiVersion"], cluster["kind"]) == ("ray.io/v1", "RayCluster")
    assert spec["authOptions"] == {"mode": "token"}
    assert "tlsOptions" in spec
    groups = {group["groupName"]: group for group in spec["workerGroupSpecs"]}
    assert set(groups) == set(HOLDERS)
    for name, group in groups.items():
        assert json.loads(json.loads(group["rayStartParams"]["resources"])) == {name: 1}
        pod = group["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        claims = [volume["persistentVolumeClaim"]["claimName"] for volume in pod["volumes"]]
        assert claims == [f"{name}-data"]


def test_the_job_runs_a_command_that_exists_on_that_cluster(cluster):
    job = yaml.safe_load((DEPLOY / "kuberay" / "rayjob.yaml").read_text())
    assert job["spec"]["clusterSelector"]["ray.io/cluster"] == cluster["metadata"]["name"]
    program, *words = job["spec"]["entrypoint"].split()
    options = [word for word in words if word.startswith("--")]
    told = subprocess.run([sys.executable, "-m", "federated_anon", words[0], "--help"], capture_output=True, text=True)
    assert program == "federated-anon"
    assert all(option in told.stdout for option in options)


def test_the_launcher_file_fits_the_schema_that_ray_ships():
    import ray

    schema = json.loads((Path(ray.__file__).parent / "autoscaler" / "ray-schema.json").read_text())
    content = yaml.safe_load((DEPLOY / "ray" / "cluster.yaml").read_text())
    jsonschema.validate(content, schema)
    assert all(
        str(ip).startswith("192.0.2.") for ip in [content["provider"]["head_ip"], *content["provider"]["worker_ips"]]
    )


@pytest.mark.parametrize("name", ["head_start_ray_commands", "worker_start_ray_commands"])
def test_start_commands_of_the_launcher_are_known_to_ray(name):
    content = yaml.safe_load((DEPLOY / "ray" / "cluster.yaml").read_text())
    told = subprocess.run(
        [sys.executable, "-m", "ray.scripts.scripts", "start", "--help"], capture_output=True, text=True
    )
    for option in re.findall(r"--[a-z-]+", content[name][-1]):
        assert option in told.stdout
    subprocess.run(["bash", "-n", "-c", content[name][-1]], check=True)


def test_the_environment_file_is_what_doctor_asks_for(tmp_path):
    shell = f". {DEPLOY / 'ray' / 'ray.env'} && env"
    said = subprocess.run(
        ["bash", "-c", shell], capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]}
    )
    environment = dict(line.split("=", 1) for line in said.stdout.splitlines() if "=" in line)
    from coordinator.cluster import TLS_FILES, examine_tls, examine_token

    assert "names no file" in examine_token(environment).text
    for name in (*TLS_FILES, "RAY_AUTH_TOKEN_PATH"):
        place = tmp_path / Path(environment[name]).name
        place.write_text("x")
        place.chmod(0o600)
        environment[name] = str(place)
    assert examine_token(environment).ok
    assert [finding.ok for finding in examine_tls(environment)] == [True]
    Path(environment["RAY_TLS_SERVER_KEY"]).chmod(0o644)
    assert "chmod 600" in examine_tls(environment)[0].text
    assert not examine_tls({})[0].ok


def test_the_unit_is_one_that_systemd_accepts(tmp_path):
    unit = (DEPLOY / "systemd" / "federated-anon-holder.service").read_text()
    started = re.search(r"(?m)^ExecStart=(\S+) (.*)$", unit)
    assert Path(started[1]).name == "federated-anon"
    assert started[2].split()[:2] == ["holder", "serve"]
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    copy = tmp_path / "federated-anon-holder.service"
    copy.write_text(unit.replace("/opt/federated-anon/bin/federated-anon", "/bin/true"))
    said = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True)
    complaints = [line for line in said.stderr.splitlines() if copy.name in line]
    assert complaints == []


def test_a_wheel_works_from_any_folder_in_an_empty_environment(tmp_path):
    """The wheel alone is on the path beside the dependencies, which come from here to save the time of installing."""
    source = tmp_path / "source"
    kept = ("federated_anon", "nodes", "coordinator")
    source.mkdir()
    for name in kept:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path / "wheels"]
    subprocess.run([*pip, source], check=True, capture_output=True)
    wheel = next((tmp_path / "wheels").glob("*.whl"))
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "empty"], check=True)
    python = tmp_path / "empty" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel], check=True)
    environment = {**os.environ, "PYTHONPATH": sysconfig.get_paths()["purelib"], "NUMBA_DISABLE_JIT": "1"}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "people.csv").write_text("id,a,b\n" + "\n".join(f"{i},{i % 17},{i % 5}" for i in range(60)))

    def shell(*words):
        program = tmp_path / "empty" / "bin" / "federated-anon"
        done = subprocess.run([program, *words], cwd=elsewhere, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = subprocess.run(
        [python, "-c", "import nodes; print(nodes.__file__)"],
        env=environment,
        cwd=elsewhere,
        capture_output=True,
        text=True,
    )
    assert str(tmp_path / "empty") in where.stdout
    options = ("--key", "id", "--quasi", "*", "--k", "3", "--holders", "2", "--runtime", "in-process")
    assert json.loads(shell("simulate", "people.csv", *options, "--out", "run", "--json"))["k_reached"] >= 3
    shell("verify", "run")

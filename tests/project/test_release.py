"""What is released: wheel and sdist build, an index takes them, and the wheel works installed.

Built without isolation, so nothing is fetched. The wheel is tried in a new environment that finds
its dependencies in this one, and the package itself nowhere but in the wheel.
"""

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import praison_compressor
from tests.helpers.processes import ROOT

PACKAGE = "praison_compressor"
UPSTREAM = f"{PACKAGE}/docs/upstream/"


def run(*command: object, cwd: Path, **environment: str) -> str:
    """Run a command; return its standard output."""
    known = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    words = [str(part) for part in command]
    done = subprocess.run(words, cwd=cwd, env=known | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return the wheel, built from the sdist, and the sdist."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, sdist


def test_the_wheel_has_the_package_and_nothing_else(built):
    """The wheel has the whole package but what is for the host's maintainers."""
    found = (path for path in (ROOT / PACKAGE).rglob("*") if path.is_file())
    names = {str(p.relative_to(ROOT)) for p in found if "__pycache__" not in p.parts}
    wheel = {name for name in zipfile.ZipFile(built[0]).namelist() if ".dist-info/" not in name}
    assert wheel == {name for name in names if not name.startswith(UPSTREAM)}
    assert f"{PACKAGE}/py.typed" in wheel


def test_the_sdist_can_be_tested(built):
    """The sdist has the package, its tests, its examples and its first pages."""
    with tarfile.open(built[1]) as archive:
        tops = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert tops >= {PACKAGE, "tests", "examples", "README.md", "CHANGELOG.md", "LICENSE"}


def test_an_index_would_take_both(built):
    """Both descriptions render."""
    said = run(sys.executable, "-m", "twine", "check", "--strict", *built, cwd=built[0].parent)
    assert said.count("PASSED") == 2


@pytest.fixture
def metadata(built):
    """Return the wheel's metadata."""
    with zipfile.ZipFile(built[0]) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def test_the_package_has_one_description(metadata):
    """Metadata, docstring and README describe the package by one sentence."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first = str(praison_compressor.__doc__).partition("\n")[0]
    assert [first, readme.split("\n")[2]] == [metadata["Summary"]] * 2


def test_the_metadata_are_those_of_the_package(metadata):
    """The metadata have the package's version, Python and extras."""
    assert (metadata["Version"], metadata["Requires-Python"]) == (
        praison_compressor.__version__,
        ">=3.10",
    )
    extras = set(metadata.get_all("Provides-Extra") or ())
    assert extras == {"encryption", "otel", "postgres", "realtime", "test"}


TRY = """
import json, pathlib
from importlib.metadata import entry_points
import praison_compressor

(plugin,) = entry_points(group="praisonai.plugins", name="praison-compressor")
print(json.dumps([praison_compressor.__file__, plugin.load()().info.name]))
"""


def test_the_wheel_works_in_an_environment_of_its_own(built, tmp_path):
    """The plugin and the command of the installed wheel work."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    quiet = ("--no-deps", "--no-index", "--quiet", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", "--python", python, "install", *quiet, built[0], cwd=tmp_path)
    # After its own packages the environment finds those of this one, which has the package too.
    own = sysconfig.get_path("purelib", "posix_prefix", {"base": str(home)})
    paths = {"PYTHONPATH": os.pathsep.join([own, sysconfig.get_path("purelib")])}
    place, plugin = json.loads(run(python, "-c", TRY, cwd=tmp_path, **paths).splitlines()[-1])
    assert Path(place).is_relative_to(home)
    assert plugin == "praison-compressor"
    command, page, talk = home / "bin" / plugin, tmp_path / "page.html", tmp_path / "talk.json"
    said = "The shelf holds boxes, and each is counted. " * 40
    talk.write_text(json.dumps([{"role": "user", "content": said + str(n)} for n in range(40)]))
    given = (talk, "--window", "8k", "--keep-tokens", "1k")
    done = json.loads(run(command, "compress", *given, "--json", cwd=tmp_path, **paths))
    assert done["context_status"] == "summarized"
    run(command, "report", *given, "--out", page, cwd=tmp_path, **paths)
    assert "uPlot" in page.read_text("utf-8")

"""Makes a folder of Python packages of our own: make_venv.py FOLDER PACKAGE...

Works with nothing but python3: Debian leaves out what makes pip, and some hosts have no pip at all.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.request
import venv

PIP = "https://pypi.org/pypi/pip/json"


def install(python, pip, packages):
    subprocess.run([*pip, "install", "--quiet", "--disable-pip-version-check", *packages], check=True)
    return python


def works(command):
    return subprocess.run([*command, "--version"], capture_output=True).returncode == 0


def downloaded_pip(folder):
    """pip as a file that Python runs as it is."""
    with urllib.request.urlopen(PIP) as answer:
        files = json.load(answer)["urls"]
    wheel = next(file for file in files if file["packagetype"] == "bdist_wheel")
    path = pathlib.Path(folder) / wheel["filename"]
    with urllib.request.urlopen(wheel["url"]) as answer:
        path.write_bytes(answer.read())
    return str(path / "pip")


def main(folder, packages):
    try:
        import ensurepip  # noqa: F401 (Debian has it in a package of its own)

        with_pip = True
    except ImportError:
        with_pip = False
    venv.create(folder, with_pip=with_pip, clear=True)
    python = str(pathlib.Path(folder) / "bin" / "python")
    own, host = [python, "-m", "pip"], [sys.executable, "-m", "pip", "--python", python]
    with tempfile.TemporaryDirectory() as temporary:
        if with_pip:
            pip = own
        elif works(host):
            pip = host
        else:
            pip = [python, downloaded_pip(temporary)]
        install(python, pip, packages)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

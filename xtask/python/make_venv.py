"""Makes a folder of Python packages of our own: make_venv.py FOLDER PACKAGE...

With --add, make_venv.py --add FOLDER PACKAGE... installs into one that is there.

Works with nothing but python3: Debian leaves out what makes pip, and some hosts have no pip at all.
"""

import pathlib
import subprocess
import sys
import tempfile
import venv

# What holds pip on Debian and Ubuntu.
PIP_PACKAGE = "python3-pip-whl"


def works(command):
    return subprocess.run([*command, "--version"], capture_output=True).returncode == 0


def downloaded_pip(folder):
    """pip as a file that Python runs as it is, from a package of the distribution; nothing is installed."""
    if subprocess.run(["apt-get", "download", "-qq", PIP_PACKAGE], cwd=folder).returncode != 0:
        subprocess.run(["apt-get", "update"], check=True)
        subprocess.run(["apt-get", "download", "-qq", PIP_PACKAGE], cwd=folder, check=True)
    folder = pathlib.Path(folder)
    package = next(folder.glob("*.deb"))
    subprocess.run(["dpkg", "-x", package, folder / "unpacked"], check=True)
    return str(next((folder / "unpacked").rglob("pip-*.whl")) / "pip")


def make(folder):
    try:
        import ensurepip  # noqa: F401 (Debian has it in a package of its own)

        with_pip = True
    except ImportError:
        with_pip = False
    venv.create(folder, with_pip=with_pip, clear=True)


def install(folder, options):
    python = str(pathlib.Path(folder) / "bin" / "python")
    own, host = [python, "-m", "pip"], [sys.executable, "-m", "pip", "--python", python]
    with tempfile.TemporaryDirectory() as temporary:
        if works(own):
            pip = own
        elif works(host):
            pip = host
        else:
            pip = [python, downloaded_pip(temporary)]
        subprocess.run([*pip, "install", "--quiet", "--disable-pip-version-check", *options], check=True)


def main(arguments):
    if arguments[0] == "--add":
        install(arguments[1], arguments[2:])
    else:
        make(arguments[0])
        install(arguments[0], arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])

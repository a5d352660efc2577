"""Packs the Python package and its extension module into a wheel: make_wheel.py PYPROJECT MODULE VERSION OUTPUT_FOLDER.

maturin makes the wheels that are released. This packs a library that cargo has built already, so that the tests compile nothing twice.
"""

import base64
import hashlib
import pathlib
import sys
import zipfile

try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib

TAG = "cp310-abi3-linux_x86_64"


def record(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}"


def files(pyproject, module, version):
    folder = pyproject.parent
    project = tomllib.loads(pyproject.read_text())["project"]
    for path in sorted((folder / "tollgate").rglob("*")):
        if path.suffix in {".py", ".pyi"} or path.name == "py.typed":
            yield str(path.relative_to(folder)), path.read_bytes()
    yield "tollgate/_core.abi3.so", module.read_bytes()
    info = f"tollgate-{version}.dist-info"
    metadata = ["Metadata-Version: 2.4", "Name: tollgate", f"Version: {version}"]
    metadata += [f"Summary: {project['description']}", f"Requires-Python: {project['requires-python']}"]
    yield f"{info}/METADATA", ("\n".join(metadata) + "\n").encode()
    yield f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: xtask\nRoot-Is-Purelib: false\nTag: {TAG}\n".encode()
    scripts = "".join(f"{name} = {target}\n" for name, target in project["scripts"].items())
    yield f"{info}/entry_points.txt", f"[console_scripts]\n{scripts}".encode()


def main(pyproject, module, version, output):
    output = pathlib.Path(output)
    output.mkdir(parents=True, exist_ok=True)
    wheel = output / f"tollgate-{version}-{TAG}.whl"
    info = f"tollgate-{version}.dist-info"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        records = []
        for name, data in files(pathlib.Path(pyproject), pathlib.Path(module), version):
            archive.writestr(name, data)
            records.append(record(name, data))
        archive.writestr(f"{info}/RECORD", "\n".join([*records, f"{info}/RECORD,,"]) + "\n")
    print(wheel)


if __name__ == "__main__":
    main(*sys.argv[1:])

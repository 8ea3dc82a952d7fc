"""Child process of the interpreter probe: prints one JSON object about the interpreter it runs in.

May live here: what only that interpreter knows. It runs as a script in any CPython from 3.6 on, with the standard
library alone, imports nothing of this package, and never imports torch.
"""

import json
import os
import re
import struct
import sys

NAME = re.compile(r"[-_.]+")
HEADER = re.compile(r"^(Name|Version):\s*(.*?)\s*$", re.MULTILINE)
FOLDER = re.compile(r"^(?P<name>.+?)-(?P<version>[^-]+)(?:-py[0-9.]+.*)?\.(?:dist-info|egg-info)$")
CONDA_FILE = re.compile(r"^(?P<name>.+)-(?P<version>[^-]+)-(?P<build>[^-]+)\.json$")
METADATA_BYTES = 65536


def normalised(name: "str") -> "str":
    """A distribution name as package indexes compare it."""
    return NAME.sub("-", name).lower()


def distribution(folder: "str", entry: "str") -> "dict[str, str] | None":
    """Name and version of one *.dist-info or *.egg-info, from its metadata, else from its name."""
    match = FOLDER.match(entry)
    found = match.groupdict() if match else {}
    path = os.path.join(folder, entry)
    for name in ("METADATA", "PKG-INFO", ""):
        try:
            with open(os.path.join(path, name) if name else path, "rb") as file:
                text = file.read(METADATA_BYTES).decode("utf-8", "replace").replace("\r", "")
        except OSError:
            continue
        found.update((key.lower(), value) for key, value in HEADER.findall(text.split("\n\n", 1)[0]))
        break
    if not found.get("name") or not found.get("version"):
        return None
    return {"name": normalised(found["name"]), "version": found["version"], "location": folder}


def listing(folder: "str") -> "list[str]":
    """The entries of a folder of sys.path; none for what is no folder."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def search_path() -> "list[str]":
    """sys.path without the folder of this script, each folder once."""
    here = os.path.dirname(os.path.abspath(__file__))
    folders: list[str] = []
    for entry in sys.path:
        folder = os.path.abspath(entry or os.curdir)
        if folder not in folders and folder != here:
            folders.append(folder)
    return folders


def distributions(folders: "list[str]") -> "list[dict[str, str]]":
    """All installed distributions; a folder later in sys.path does not hide behind an earlier one of the same name."""
    owner: dict[str, str] = {}
    found = []
    for folder in folders:
        for entry in listing(folder):
            if entry.endswith((".dist-info", ".egg-info")):
                item = distribution(folder, entry)
                if item and owner.setdefault(item["name"], folder) == folder:
                    found.append(item)
    return found


def conda_packages() -> "list[dict[str, str]]":
    """The packages of a conda environment, from the names of its records."""
    matches = (CONDA_FILE.match(entry) for entry in listing(os.path.join(sys.prefix, "conda-meta")))
    return [match.groupdict() for match in matches if match]


def torch_version(folders: "list[str]") -> "dict[str, str] | None":
    """The text of torch/version.py that an import would use."""
    for folder in folders:
        path = os.path.join(folder, "torch", "version.py")
        try:
            with open(path, "rb") as file:
                return {"path": path, "text": file.read(METADATA_BYTES).decode("utf-8", "replace")}
        except OSError:
            continue
    return None


def environment() -> "str":
    """The kind of environment."""
    config = ""
    try:
        with open(os.path.join(sys.prefix, "pyvenv.cfg"), "rb") as file:
            config = file.read(METADATA_BYTES).decode("utf-8", "replace")
    except OSError:
        pass
    if config:
        if os.path.isfile(os.path.join(sys.prefix, ".project")):
            return "pipenv"
        if "pypoetry" in sys.prefix:
            return "poetry"
        return "uv" if re.search(r"^uv\s*=", config, re.MULTILINE) else "venv"
    if os.path.isdir(os.path.join(sys.prefix, "conda-meta")):
        return "conda"
    if sys.prefix != getattr(sys, "base_prefix", sys.prefix):
        return "venv"
    is_system = sys.prefix in ("/usr", "/usr/local") or sys.prefix.startswith(("/Library/", "/System/"))
    return "system" if is_system else "unknown"


def main() -> None:
    """Print everything."""
    folders = search_path()
    version = "{}.{}.{}".format(*sys.version_info[:3])
    if sys.version_info.releaselevel != "final":
        version += {"alpha": "a", "beta": "b", "candidate": "rc"}[sys.version_info.releaselevel]
        version += str(sys.version_info.serial)
    record = {
        "version": version,
        "executable": sys.executable,
        "bits": struct.calcsize("P") * 8,
        "environment": environment(),
        "packages": distributions(folders),
        "conda": conda_packages(),
        "torch": torch_version(folders),
    }
    sys.stdout.write(json.dumps(record))


if __name__ == "__main__":
    main()

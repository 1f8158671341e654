"""The index of the benchmark's networks: every model file is in it once, and the page names networks by its titles."""

import re
import tomllib
from itertools import chain

from checkout import ROOT

from autodiff_gen.targets import installation

FOLDER = ROOT / "bench" / "workloads"
INDEX = tomllib.loads((FOLDER / "index.toml").read_text())
NAMES = [name for group, titles in INDEX.items() if group != "schema" for name in titles]
TITLES = {installation.title(name) for name in NAMES}


def test_every_model_file_is_in_the_index_once():
    files = {path.stem for path in FOLDER.glob("*.py") if re.search(r"^model\b", path.read_text(), re.M)}
    assert files == set(NAMES) and len(NAMES) == len(files) == len(TITLES)


def test_the_title_of_another_model_is_its_name():
    assert installation.title("w1") == "MNIST perceptron" and installation.title("mnist") == "mnist"


PAGE = (ROOT / "docs" / "benchmarks.md").read_text()


def test_the_page_lists_the_networks_with_their_names():
    listed = re.findall(
        r"^\| `(\w+)` \| ([^|]+) \|", PAGE.partition("## Networks")[2].partition("\n## ")[0], re.M
    )
    groups = (INDEX[group] for group in ("workloads", "networks", "sparse_updates"))
    assert listed == [row for group in groups for row in group.items()]
    assert all(f"`{name}`" in PAGE for name in INDEX["small_networks"])


def test_the_page_names_networks_by_their_titles():
    """The first column of each generated table that compares networks."""
    sections = re.findall(r"^<!-- (qemu|host|memory) -->$(.*?)^<!-- /\1 -->$", PAGE, re.M | re.S)
    tables = chain(*(re.findall(r"^\|.*\n\|[ :|-]+\|\n((?:\|.*\n)+)", body, re.M) for _, body in sections))
    kernels = "| gemm_nn |"
    rows = [line for table in tables if not table.startswith(kernels) for line in table.splitlines()]
    named = {re.sub(r", batch \d+$", "", line.split(" | ")[0].strip("| ")) for line in rows}
    assert len(sections) == 3 and len(rows) > 50
    assert named <= {re.sub(r", batch \d+$", "", title) for title in TITLES}

"""Writes the test vectors of an example: `python tests/support/write_vectors.py EXAMPLE FOLDER`, as `pio test` does.

PyTorch computes them, so its Python must have torch.
"""

from __future__ import annotations

import sys
from pathlib import Path

from checkout import ROOT


def main(name: str, folder: str) -> None:
    sys.path.insert(0, str(ROOT))
    from kernel_vectors import kernel_header
    from model_vectors import model_header

    texts = {"kernel_vectors.h": kernel_header(), "model_vectors.h": model_header(name)}
    Path(folder).mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        (Path(folder) / file).write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])

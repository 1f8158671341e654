"""Write the crops of examples/visual_int8, which main.c streams: python data.py --out samples.bin; see there."""

import runpy
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "visual_int8"

sys.path.insert(0, str(FOLDER))
runpy.run_path(str(FOLDER / "data.py"), run_name="__main__")

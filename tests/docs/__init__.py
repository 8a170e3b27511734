"""What the documentation shows is followed. The model server is that of the real loops."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "nanobot"))

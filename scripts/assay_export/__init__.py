"""The parts of export_torch.py. Importing it registers the handlers."""

from . import elementwise, layers, moving, products  # noqa: F401

"""Flower as the server of a fleet (https://flower.ai): boards as its clients. The modules here import flwr."""

import os

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")

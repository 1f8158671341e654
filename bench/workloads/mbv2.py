"""MobileNetV2 0.35 with 8-bit weights; the update that MIT's compiler trains with 49 KB."""

from sparse_update import SparseUpdate

NETWORK = SparseUpdate(
    file="mbv2-w0.35",
    blocks=(
        (0, 3, 1, 8, 0),
        *((48, 3, 2, 8, 0), (48, 3, 1, 8, 1)),
        *((48, 3, 2, 16, 0), (96, 3, 1, 16, 1), (96, 3, 1, 16, 1)),
        *((96, 3, 2, 24, 0), (144, 3, 1, 24, 1), (144, 3, 1, 24, 1), (144, 3, 1, 24, 1)),
        *((144, 3, 1, 32, 0), (192, 3, 1, 32, 1), (192, 3, 1, 32, 1)),
        *((192, 3, 2, 56, 0), (336, 3, 1, 56, 1), (336, 3, 1, 56, 1)),
        (336, 3, 1, 112, 0),
    ),
    biases=16,
    fractions={36: 1, 39: 1, 41: 1 / 4, 42: 1 / 8, 45: 1 / 8, 48: 1 / 8, 49: 1 / 8},
)
model, batch = NETWORK.model(), NETWORK.batch

"""MCUNet-5fps with 8-bit weights; the update that MIT's compiler trains with 49 KB."""

from sparse_update import SparseUpdate

NETWORK = SparseUpdate(
    file="mcunet-5fps",
    blocks=(
        (0, 3, 1, 8, 0),
        *((32, 3, 2, 16, 0), (48, 3, 1, 16, 1)),
        *((48, 7, 2, 24, 0), (120, 3, 1, 24, 1)),
        *((120, 3, 2, 40, 0), (160, 7, 1, 40, 1)),
        *((160, 5, 1, 48, 0), (144, 3, 1, 48, 1), (192, 3, 1, 48, 1)),
        *((240, 7, 2, 96, 0), (384, 5, 1, 96, 1), (384, 5, 1, 96, 1)),
        (576, 3, 1, 160, 0),
    ),
    biases=20,
    fractions={24: 1 / 4, 27: 1 / 2, 30: 1 / 2},
)
model, batch = NETWORK.model(), NETWORK.batch

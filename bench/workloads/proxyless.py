"""ProxylessNAS 0.3 with 8-bit weights; the update that MIT's compiler trains with 49 KB."""

from sparse_update import SparseUpdate

NETWORK = SparseUpdate(
    file="proxyless-w0.3",
    blocks=(
        (0, 3, 1, 8, 0),
        *((24, 5, 2, 16, 0), (48, 3, 1, 16, 1)),
        *((48, 7, 2, 16, 0), (48, 3, 1, 16, 1), (48, 5, 1, 16, 1), (48, 5, 1, 16, 1)),
        *((96, 7, 2, 24, 0), (72, 5, 1, 24, 1), (72, 5, 1, 24, 1), (72, 5, 1, 24, 1)),
        *((144, 5, 1, 32, 0), (96, 5, 1, 32, 1), (96, 5, 1, 32, 1), (96, 5, 1, 32, 1)),
        *((192, 7, 2, 64, 0), (384, 7, 1, 64, 1), (192, 7, 1, 64, 1), (192, 7, 1, 64, 1)),
        (384, 7, 1, 96, 0),
    ),
    biases=21,
    fractions={39: 1 / 4, 42: 1, 45: 1, 51: 1 / 8, 54: 1 / 4, 57: 1 / 4},
)
model, batch = NETWORK.model(), NETWORK.batch

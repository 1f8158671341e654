"""A round's difference as the board sends it: the largest numbers, clipped, with noise that only the board knows."""

from __future__ import annotations

import ctypes
import math
import struct
import zlib

import numpy as np
import pytest
from call_count import growth
from round_board import Library, Twin, checksum, connected

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.datasets.samples import from_arrays
from autodiff_gen.device import frames
from autodiff_gen.device.differences import ClipAndNoise, Encoding
from autodiff_gen.device.errors import DeviceError
from autodiff_gen.device.rounds import LocalWork, Round, shared_slots

pytestmark = pytest.mark.cc
RECORDS, WIDTH, CLASSES = 23, 12, 4
WORK = LocalWork(steps=6, lr=0.3, seed=7)
SEED = bytes(range(32))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    net = nn.Sequential(nn.Linear(WIDTH, 40), nn.Tanh(), nn.Linear(40, CLASSES))
    model = ag.Model.supervised(net, (5, WIDTH), nn.CrossEntropyLoss(), optim.SGD(lr=0.1))
    return Library(model, tmp_path_factory.mktemp("differences"))


@pytest.fixture
def samples(rng):
    x, y = rng.integers(0, 256, (RECORDS, WIDTH)), rng.integers(0, CLASSES, RECORDS)
    return from_arrays(x.astype(np.uint8), y.astype(np.uint8), train=RECORDS, epochs=1)


@pytest.fixture
def weights(library, rng):
    slots = shared_slots(library.program)
    return {s.name: rng.normal(0, 0.3, s.state.logical.shape).astype(np.float32) for s in slots}


@pytest.fixture(autouse=True)
def random_bytes(library):
    library.entropy(SEED)
    yield
    library.entropy(None)


def trained(library, samples, weights, mask=None, number=1, work=WORK):
    round_ = Round(connected(library, Twin(library, samples)), number, weights, mask=mask)
    round_.train(work)
    return round_


@pytest.mark.parametrize("share", (0.02, 0.1, 0.5, 0.9))
def test_the_largest_of_each_piece(library, samples, weights, share):
    round_ = trained(library, samples, weights)
    exact = round_.difference()
    for values in ("f32", "s8"):
        encoding = Encoding(values, share)
        received = round_.board.link.traffic.received
        found = round_.difference(f"top{share}" + (":s8" if values == "s8" else ""), 3)
        received = round_.board.link.traffic.received - received
        pieces = encoding.pieces(len(exact), round_.board.link.payload)
        assert [p.first for p in pieces] == list(np.cumsum([0, *(p.count for p in pieces[:-1])]))
        assert received < sum(map(encoding.size, pieces)) + 20 * len(pieces)
        for p in pieces:
            part, sent = (a[p.first : p.first + p.count] for a in (exact, found))
            chosen = np.sort(np.argsort(-np.abs(part), kind="stable")[: p.top])
            assert p.top == max(1, round(share * p.count)) and np.count_nonzero(sent) <= p.top
            if values == "f32":
                np.testing.assert_array_equal(np.flatnonzero(sent), chosen)
                np.testing.assert_array_equal(sent[chosen], part[chosen])
            else:
                scale = np.abs(part).max() / 127
                assert {*np.flatnonzero(sent)} <= {*chosen}
                assert np.abs(sent[chosen] - part[chosen]).max() <= scale * 1.0001
    assert len(pieces) > 1 or share < 0.5


@pytest.mark.parametrize("how", ("f32", "s8", "top0.1", "top0.1:s8"))
def test_twins_decode_all_pieces_at_once(how):
    """1,000 boards have a million pieces."""
    encoding = Encoding.of(how)

    def work(elements):
        pieces = encoding.pieces(elements, 240)
        data = np.zeros(sum(map(encoding.size, pieces)), np.uint8)
        return lambda: encoding.decoded(pieces, data)

    assert growth(work, 10_000) < 1.1


def test_equal_numbers_have_no_largest(library, samples, weights):
    """Without local steps all are equal: 0."""
    round_ = trained(library, samples, weights, work=LocalWork(0))
    for how in ("top0.3", "top0.3:s8"):
        assert not round_.difference(how).any()


def test_the_norm_is_clipped(library, samples, weights):
    exact = trained(library, samples, weights).difference()
    norm = np.linalg.norm(exact.astype(np.float64))
    for clip in (norm / 100, norm * 0.999, norm * 1.001, 1e30):
        found = trained(library, samples, weights, ClipAndNoise(clip)).difference()
        wanted = exact * np.float64(min(1.0, clip / norm))
        np.testing.assert_allclose(found, wanted, rtol=3e-6, atol=0)
        assert np.linalg.norm(found.astype(np.float64)) <= min(clip, norm) * (1 + 1e-9)
        pieces = trained(library, samples, weights, ClipAndNoise(clip)).difference("s8", 4)
        assert np.abs(pieces - wanted).max() <= np.abs(wanted).max() / 127 * 1.001


def test_chacha20_of_the_standard(library):
    """RFC 8439, 2.3.2."""
    key = (ctypes.c_uint32 * 8)(*np.frombuffer(bytes(range(32)), "<u4").tolist())
    counter_and_nonce = (ctypes.c_uint32 * 4)(1, 0x09000000, 0x4A000000, 0)
    out = (ctypes.c_uint32 * 16)()
    library.c.ag_chacha20(key, counter_and_nonce, out)
    assert bytes(out).hex() == (
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )


def test_noise_is_normal(library):
    """The distribution function, against the normal one; no correlation of neighbours and keys."""

    def drawn(count, seed=0, words=(1, 2, 3, 4)):
        key = (ctypes.c_uint32 * 8)(seed)
        library.c.ag_noise_key(key, (ctypes.c_uint32 * 4)(*words))
        return np.array([library.c.ag_noise(key, k) for k in range(count)])

    many = np.sort(drawn(20000))
    exact = np.array([0.5 + 0.5 * math.erf(x / math.sqrt(2)) for x in many])
    assert np.abs(exact - (np.arange(20000) + 0.5) / 20000).max() < 1.95 / math.sqrt(20000)  # p = 0.001
    assert abs(many.mean()) < 0.03 and abs(many.std() - 1) < 0.02
    assert 30 < (np.abs(many) > 3).sum() < 80 and len(np.unique(many)) > 19900
    base = drawn(2000)
    others = [drawn(2000, words=np.add((1, 2, 3, 4), change)) for change in np.eye(4, dtype=int)]
    for other in (drawn(2000, seed=1), *others, np.roll(base, 1)):
        assert abs(np.corrcoef(base, other)[0, 1]) < 0.08


def test_noise_of_a_round(library, samples, weights):
    """It has the requested deviation, is the same when it is read again, and depends on the board's bytes only."""
    clip, noise = 0.05, 0.5
    calm = trained(library, samples, weights, ClipAndNoise(clip)).difference()
    round_ = trained(library, samples, weights, ClipAndNoise(clip, noise))
    found = round_.difference()
    z = (found - calm) / (clip * noise)
    assert abs(z.mean()) < 4 / math.sqrt(len(z)) and abs(z.std() - 1) < 4 / math.sqrt(2 * len(z))
    np.testing.assert_array_equal(round_.difference(), found)
    assert np.abs(round_.difference("s8", 1) - found).max() <= np.abs(found).max() / 127 * 1.001
    top = round_.difference("top0.1")
    np.testing.assert_array_equal(top[top != 0], found[top != 0])
    # another request, the same bits except for the order of samples in the request
    again = trained(library, samples, weights, ClipAndNoise(clip, noise)).difference()
    np.testing.assert_array_equal(again, found)
    library.entropy(bytes(reversed(SEED)))
    other = trained(library, samples, weights, ClipAndNoise(clip, noise)).difference()
    assert abs(np.corrcoef(other - calm, found - calm)[0, 1]) < 0.2


def test_noise_does_not_cancel_out(library, samples, weights):
    """Two differences of one round, after more steps or with another order, have different noise."""
    round_ = trained(library, samples, weights, ClipAndNoise(0.05, 0.5))
    calm = trained(library, samples, weights, ClipAndNoise(0.05))
    noises = [round_.difference() - calm.difference()]
    for r in (round_, calm):
        r.train(LocalWork(steps=7, lr=WORK.lr, seed=7))
    noises.append(round_.difference() - calm.difference())
    noises.append(
        trained(library, samples, weights, ClipAndNoise(0.05, 0.5), number=2).difference()
        - trained(library, samples, weights, ClipAndNoise(0.05), number=2).difference()
    )
    for k in (1, 2):
        assert abs(np.corrcoef(noises[0], noises[k])[0, 1]) < 0.2


def test_weights_of_equal_checksum_have_different_noise(library, samples, weights):
    """Their CRC-32 is equal where their bits differ by its polynomial."""
    pattern = int(f"{0x104C11DB7:033b}"[::-1], 2)
    changed, noises = [np.uint32(pattern & 0xFFFFFFFF), np.uint32(pattern >> 32)], []
    twins = [Twin(library, samples) for _ in range(2)]
    masked, calm = (
        Round(connected(library, twin), 1, weights, mask=mask)
        for twin, mask in zip(twins, (ClipAndNoise(0.05, 0.5), ClipAndNoise(0.05)), strict=True)
    )
    size = 4 * masked.elements
    sums = []
    for _ in range(2):
        for round_ in (masked, calm):
            round_.board.link.request(frames.LOCAL, struct.pack("<IIHHffI", 1, 0, 0, 0, 0.1, 0, 0), "<2IfQ")
        noises.append(masked.difference() - calm.difference())
        sums.append(zlib.crc32(twins[0].state().tobytes()[:size]))
        for twin in twins:
            twin.state()[:2] ^= changed
    assert sums[0] == sums[1] and np.isfinite(twins[0].state().view(np.float32)).all()
    assert abs(np.corrcoef(*noises)[0, 1]) < 0.2


def test_noise_is_drawn_once_for_each_number_of_a_pass(library, samples, weights):
    """Bytes take another pass, for the scale; the largest numbers some, to find the least of them."""
    round_ = trained(library, samples, weights, ClipAndNoise(0.05, 0.5))
    for how, passes in (("f32", 1), ("s8", 2), ("top0.1", 4), ("top0.1:s8", 4)):
        library.c.board_draws()
        round_.difference(how)
        assert library.c.board_draws() <= passes * round_.elements, how
    calm = trained(library, samples, weights, ClipAndNoise(0.05))
    library.c.board_draws()
    calm.difference("top0.1:s8")
    assert library.c.board_draws() == 0


def test_noise_survives_power_cuts(library, samples, weights):
    """A cut at every operation of the flash while a round begins, and after its steps: a difference that was read once
    is read with the same bits again, though the source of random bytes gives others."""
    mask = ClipAndNoise(0.05, 0.5)
    twin = Twin(library, samples)
    twin.cut(0)
    board = connected(library, twin)
    round_ = Round(board, 1, weights, mask=mask)
    operations = twin.operations
    round_.train(WORK)
    found = checksum(round_.delta())
    library.entropy(bytes(32))
    twin.start()
    again = Round(connected(library, twin), 1, weights, mask=mask)
    again.train(WORK)
    assert checksum(again.delta()) == found
    for cut in range(1, operations + 1, 7):
        library.entropy(SEED)
        twin = Twin(library, samples)
        board = connected(library, twin)
        twin.cut(cut)
        try:
            Round(board, 1, weights, mask=mask)
        except DeviceError as error:
            assert error.status <= -64
        twin.cut(0)
        twin.start()
        library.entropy(SEED)
        after = Round(connected(library, twin), 1, weights, mask=mask)
        after.train(WORK)
        assert checksum(after.delta()) == found, cut


def test_options_are_those_of_the_round(library, samples, weights):
    twin = Twin(library, samples)
    board, own = connected(library, twin), ClipAndNoise(1.0, 0.5)
    round_ = Round(board, 1, weights, mask=own)
    round_.train(WORK)
    for start in (False, True):
        for local_buffers, mask in (
            (False, None),
            (False, ClipAndNoise(1.0)),
            (False, ClipAndNoise(1.0, 0.25)),
            (False, ClipAndNoise(2.0, 0.5)),
            (True, own),
        ):
            if start:
                twin.start()
            with pytest.raises(DeviceError, match=r"with other options, clipping or noise.*status -48"):
                Round(connected(library, twin), 1, weights, local_buffers, mask)
    Round(connected(library, twin), 2, weights, True, own)
    twin.start()
    with pytest.raises(DeviceError, match="status -48"):
        Round(connected(library, twin), 2, weights, False, own)
    Round(connected(library, twin), 2, weights, True, own)


def test_noise_needs_random_numbers(library, samples, weights):
    library.entropy(None)
    board = connected(library, Twin(library, samples))
    with pytest.raises(
        DeviceError, match=r"no source of random numbers.*ag_system_random.*status -47"
    ) as caught:
        Round(board, 1, weights, mask=ClipAndNoise(1.0, 0.5))
    assert "\n" not in str(caught.value) and board.counters().saved == 0
    Round(board, 1, weights, mask=ClipAndNoise(1.0)).train(WORK)

"""Words as features: ten spoken words, synthesised from their sounds and a speaker's voice, as 49 frames of 10 bands.

A speaker has a vocal tract, short or long, which shifts all resonances; an accent, which shifts resonances of sounds
individually; a speed; and a microphone. A sound is three resonances of the voice (formants), noise around some
frequency, or silence.
"""

from dataclasses import dataclass

import numpy as np

FRAMES, BANDS = 49, 10  # a second in steps of 20 ms; on the mel scale, from 100 Hz to 8 kHz
WORDS = ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")
SPELT = ("y e s", "n o u", "v . p", "d a u n", "l e f . t", "r a i . t", "o n", "o f", "s . t o . p", "g o u")

# sound -> frames, formants in Hz, loudness of the voice, centre of the noise in Hz, loudness of the noise
SOUNDS = {
    ".": (4, (500, 1500, 2500), 0.0, 3000, 0.0),
    "a": (8, (730, 1250, 2440), 1.0, 3000, 0.0),
    "d": (3, (300, 1700, 2600), 0.4, 3800, 0.3),
    "e": (9, (530, 1840, 2480), 1.0, 3000, 0.0),
    "f": (7, (500, 1500, 2500), 0.0, 6500, 0.2),
    "g": (3, (280, 1900, 2300), 0.4, 1900, 0.4),
    "i": (7, (330, 2200, 2900), 0.9, 3000, 0.0),
    "l": (6, (360, 1050, 2700), 0.6, 3000, 0.0),
    "n": (8, (270, 1450, 2300), 0.5, 3000, 0.0),
    "o": (10, (600, 950, 2420), 1.0, 3000, 0.0),
    "p": (2, (500, 1500, 2500), 0.0, 900, 0.4),
    "r": (6, (400, 1150, 1650), 0.7, 3000, 0.0),
    "s": (8, (500, 1500, 2500), 0.0, 5600, 0.7),
    "t": (3, (500, 1500, 2500), 0.0, 4200, 0.6),
    "u": (7, (330, 880, 2250), 0.8, 3000, 0.0),
    "v": (9, (640, 1190, 2390), 1.0, 3000, 0.0),
    "y": (6, (280, 2250, 2950), 0.8, 3000, 0.0),
}  # fmt: skip


@dataclass(frozen=True)
class Speaker:
    tract: float  # by which every resonance is multiplied
    accent: dict[str, np.ndarray]  # sound -> by which its three formants are multiplied
    pace: float  # frames of a sound, relative to SOUNDS
    microphone: np.ndarray  # dB by band


def speaker(rng, tract, accent, pace):
    """A speaker whose formants deviate by the relative amount `accent`."""
    deviations = {sound: np.exp(rng.normal(scale=accent, size=3)) for sound in SOUNDS}
    tilt = rng.uniform(-6.0, 6.0) * np.linspace(-1.0, 1.0, BANDS)
    return Speaker(tract, deviations, pace, tilt + rng.normal(scale=1.5, size=BANDS))


def adults(rng, count):
    """Adult speakers, with a slight accent."""
    return [speaker(rng, rng.uniform(0.9, 1.12), 0.03, rng.uniform(0.85, 1.15)) for _ in range(count)]


def child(rng):
    """The new speaker: a short vocal tract, an accent, slower."""
    return speaker(rng, 1.35, 0.10, 1.3)


def mel(hertz):
    return 2595.0 * np.log10(1.0 + np.asarray(hertz) / 700.0)


def spoken(rng, who, word):
    """One word, once: uint8[FRAMES * BANDS], the power of each band in frames one after the other; 0 is -60 dB or less,
    255 is 40 dB or more."""
    pace = who.pace * rng.uniform(0.88, 1.12)
    tracks = []
    for sound in SPELT[word].split():
        frames, formants, voice, centre, noise = SOUNDS[sound]
        hertz = np.array(formants) * who.accent[sound] * np.exp(rng.normal(scale=0.02, size=3))
        track = [*hertz * who.tract, voice, centre * who.tract**0.5, noise]
        tracks += [track] * max(1, round(frames * pace * rng.uniform(0.8, 1.2)))
    rows = np.array(tracks)[:FRAMES]
    first = rng.integers(0, min(14, FRAMES - len(rows)) + 1)
    whole = np.pad(rows, ((first, FRAMES - len(rows) - first), (0, 0)), "edge")
    whole[:first, [3, 5]] = whole[first + len(rows) :, [3, 5]] = 0.0
    smooth = np.pad(whole, ((1, 1), (0, 0)), "edge")
    smooth = (smooth[:-2] + 2.0 * smooth[1:-1] + smooth[2:]) / 4.0
    centres = np.linspace(mel(100.0), mel(8000.0), BANDS + 2)[1:-1]
    loud, power = 10.0 ** rng.uniform(0.5, 1.5), np.full((FRAMES, BANDS), 10.0 ** rng.uniform(-2.5, -1.5))
    for k, share in enumerate((1.0, 0.4, 0.15)):
        near = np.exp(-0.5 * ((mel(smooth[:, k, None]) - centres) / 150.0) ** 2)
        power += loud * share * smooth[:, 3, None] ** 2 * near
    power += (
        loud * smooth[:, 5, None] ** 2 * np.exp(-0.5 * ((mel(smooth[:, 4, None]) - centres) / 350.0) ** 2)
    )
    decibel = 10.0 * np.log10(power) + who.microphone + rng.normal(scale=2.0, size=power.shape)
    return np.clip(np.round((decibel + 60.0) * 2.55), 0, 255).astype(np.uint8).reshape(-1)


def spoken_by(rng, speakers, count):
    """`count` words by any of the speakers, uint8[count, FRAMES * BANDS], and which words."""
    words = rng.integers(0, len(WORDS), count)
    who = [speakers[i] for i in rng.integers(0, len(speakers), count)]
    return np.stack([spoken(rng, s, w) for s, w in zip(who, words, strict=True)]), words.astype(np.uint8)


def features(words):
    """The input of the network: float32[n, 1, FRAMES, BANDS]."""
    return ((words.astype(np.float32) - 128.0) / 64.0).reshape(-1, 1, FRAMES, BANDS)

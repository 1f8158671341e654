"""Words spoken by the voices of espeak-ng, as features: 49 frames of 10 bands, one byte each. Only pretrain.py needs
the synthesiser, Debian's package espeak-ng: the device's words are in words.npz."""

import io
import subprocess
import wave
from concurrent.futures import ThreadPoolExecutor

import numpy as np

FRAMES, BANDS = 49, 10  # one second in steps of 20 ms; on the mel scale, from 100 Hz to 8 kHz
KNOWN = ("yes", "no", "up", "down", "left", "right", "on", "off")  # words of the pretrained network
WORDS = (*KNOWN, "hello", "stop")  # and two that are new on the device
ACCENTS = ("en-us", "en-gb", "en-gb-scotland", "en-gb-x-gbclan", "en-gb-x-rp", "en-gb-x-gbcwmd", "en-029")
SPEAKERS = (
    *("m1", "m2", "m3", "m4", "m5", "m6", "m7", "f1", "f2", "f3", "f4"),
    *("Andy", "Annie", "Denis", "steph", "Tweaky"),
)
NEW_VOICE = "en-029+f5"


def voices():
    """Every speaker with every accent, in random order."""
    found = [f"{accent}+{speaker}" for accent in ACCENTS for speaker in SPEAKERS]
    np.random.default_rng(1).shuffle(found)
    return found


def sound_of(voice, word, speed, pitch):
    """One word: float samples between -1 and 1, and how many make a second."""
    command = ["espeak-ng", "-v", voice, "-s", str(speed), "-p", str(pitch), "--stdout", word]
    said = subprocess.run(command, capture_output=True, check=True).stdout
    with wave.open(io.BytesIO(said)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), np.int16) / 32768.0, file.getframerate()


def mel(hertz):
    return 2595.0 * np.log10(1.0 + np.asarray(hertz) / 700.0)


def spoken(rng, voice, word):
    """One word, once, somewhere in a second with noise: uint8[FRAMES * BANDS], the power of each band in frames one
    after the other; 0 is -60 dB or less, 255 is 40 dB or more."""
    sound, rate = sound_of(voice, word, int(rng.integers(130, 200)), int(rng.integers(25, 75)))
    second, sound = np.zeros(rate), sound[: rate - 1]
    start = rng.integers(0, min(rate // 3, rate - len(sound)) + 1)
    second[start : start + len(sound)] = sound * 10.0 ** rng.uniform(-0.5, 0.3)
    second += rng.normal(scale=10.0 ** rng.uniform(-3.2, -2.4), size=rate)
    step, length = rate // 50, rate // 25
    frames = np.stack([second[i * step : i * step + length] for i in range(FRAMES)]) * np.hanning(length)
    power = np.abs(np.fft.rfft(frames)) ** 2 / length
    edges, at = np.linspace(mel(100.0), mel(8000.0), BANDS + 2), mel(np.fft.rfftfreq(length, 1.0 / rate))
    width = edges[1] - edges[0]
    bands = power @ np.clip(1.0 - np.abs(at - edges[1:-1, None]) / width, 0.0, None).T
    decibel = 10.0 * np.log10(bands + 1e-9) + 20.0
    return np.clip(np.round((decibel + 60.0) * 2.55), 0, 255).astype(np.uint8).reshape(-1)


def spoken_by(seed, speakers, words, each):
    """Every word `each` times by every speaker, in random order: uint8[n, FRAMES * BANDS], and which words."""
    wanted = [(who, word) for who in speakers for word in words for _ in range(each)]
    np.random.default_rng(seed).shuffle(wanted)
    with ThreadPoolExecutor() as pool:
        rows = pool.map(lambda k: spoken(np.random.default_rng((seed, k)), *wanted[k]), range(len(wanted)))
        return np.stack(list(rows)), np.array([WORDS.index(word) for _, word in wanted], np.uint8)

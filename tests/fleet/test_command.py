"""`autodiff-gen fleet`: its output and files, how it continues, and wrong input."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from small_fleet import BATCHES, fleet, write_data, write_model

from autodiff_gen.cli.main import main, parsed
from autodiff_gen.device import qemu
from autodiff_gen.device.rounds import LocalTraining
from autodiff_gen.fleet import rounds_command
from autodiff_gen.fleet.board_group import BoardResult, Failure
from autodiff_gen.fleet.counts import Counts
from autodiff_gen.fleet.entropy import ENTROPY_BYTES, ENTROPY_FILE
from autodiff_gen.fleet.gateway import Gateway
from autodiff_gen.fleet.progress import RoundProgress

pytestmark = pytest.mark.cc
SCHEDULE = ", schedule=optim.lr_scheduler.StepLR(step_size=100)"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_model()
    write_data()


def rounds(text: str) -> list[tuple[int, int, float]]:
    """Number, boards and accuracy of each round that is printed."""
    found = re.findall(r"^round (\d+) +(\d+) boards?.*accuracy +([\d.]+)%.* s$", text, re.MULTILINE)
    return [(int(number), int(boards), float(right)) for number, boards, right in found]


def test_rounds_learn_and_continue(capsys: pytest.CaptureFixture[str]) -> None:
    assert fleet("--boards", "6", "--rounds", "3", "--alpha", "0.5") == 0
    out = capsys.readouterr().out
    assert "m: 6 twins on the host; 60 samples from data.npz" in out and "numbers as f32" in out
    assert [r[:2] for r in rounds(out)] == [(1, 6), (2, 6), (3, 6)]
    assert fleet("--boards", "6", "--rounds", "6", "--alpha", "0.5", "--per-round", "2") == 0
    out = capsys.readouterr().out
    assert "continues after round 3" in out and [r[:2] for r in rounds(out)] == [(4, 2), (5, 2), (6, 2)]
    assert rounds(out)[-1][2] > 80.0
    saved = sorted(Path("build/fleet/m").glob("round-*.npz"))
    assert [f.name for f in saved] == [f"round-0000{k}.npz" for k in range(1, 7)]
    assert (
        main(
            [
                "predict",
                "m.py",
                "--board",
                "host",
                "--data",
                "data.npz",
                "--test",
                "--weights",
                str(saved[-1]),
            ]
        )
        == 0
    )
    assert "accuracy" in capsys.readouterr().err
    assert fleet("--boards", "6", "--rounds", "6") == 0
    assert "nothing to do: build/fleet/m has round 6 of 6" in capsys.readouterr().out


def test_differences_of_8_bits_learn_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    """Within half a point in each round, on 4,000 samples that no board has."""
    write_data(test=4000)
    found = []
    for k, words in enumerate((["f32"], ["s8"], ["s8", "--mu", "0.01"])):
        assert (
            fleet("--boards", "4", "--rounds", "4", "--out", f"o{k}", "--epochs", "3", "--delta", *words) == 0
        )
        found.append([right for _, _, right in rounds(capsys.readouterr().out)])
    np.testing.assert_allclose(found[1], found[0], rtol=0, atol=0.5)
    assert found[0][0] < 70.0 and found[0][-1] > 99.0 and abs(found[2][-1] - found[0][-1]) <= 0.5


def test_a_round_that_is_stopped_is_repeated(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fleet("--boards", "3", "--rounds", "3", "--out", "whole") == 0
    original = rounds_command.run_round

    def stopped(*args, **kwargs):
        if args[3] == 2:
            raise KeyboardInterrupt
        return original(*args, **kwargs)

    monkeypatch.setattr(rounds_command, "run_round", stopped)
    assert fleet("--boards", "3", "--rounds", "3", "--out", "parts") == 130
    assert "stopped in round 2; the same command repeats it" in capsys.readouterr().out
    monkeypatch.setattr(rounds_command, "run_round", original)
    assert fleet("--boards", "3", "--rounds", "3", "--out", "parts") == 0
    for name in ("round-00001.npz", "round-00003.npz"):
        with np.load(f"whole/{name}") as one, np.load(f"parts/{name}") as other:
            assert one.keys() == other.keys() and all(np.array_equal(one[n], other[n]) for n in one)


def test_gateways_with_different_numbers_of_twins_share_no_samples() -> None:
    parts = []
    for gateway, twins in enumerate(("2", "5", "1")):
        args = parsed(["fleet", "m.py", "--data", "data.npz", "--boards", twins, "--alpha", "0.5"])
        args.share = gateway, 3
        parts += Gateway(args).parts
    assert len(parts) == 8 and sorted(np.concatenate(parts).tolist()) == list(range(60))


@pytest.mark.parametrize("words", [[], ["--local-buffers", "--per-round", "2"], ["--profile", "p.toml"]])
def test_twins_continue_with_what_they_kept(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Moments, counters, and running statistics: a run in two parts has the bits of a whole one."""
    Path("p.toml").write_text("[a]\nboards = 3\nstep = 1\n")
    net = Path("m.py").read_text().replace("nn.ReLU()", "nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.2)")
    Path("m.py").write_text(net.replace("SGD(lr=0.3)", "Adam(lr=0.02)"))
    words = [*words, "--epochs", "2", *([] if "--profile" in words else ["--boards", "3"])]
    assert fleet(*words, "--rounds", "4", "--out", "whole") == 0
    assert fleet(*words, "--rounds", "2", "--out", "parts") == 0
    assert [f.name for f in Path("parts").glob("twins-*.npz")] == ["twins-00002.npz"]
    shutil.copytree("parts", "others")
    assert fleet(*words, "--rounds", "4", "--out", "parts") == 0
    assert "is missing" not in capsys.readouterr().out
    with np.load("whole/round-00004.npz") as one, np.load("parts/round-00004.npz") as other:
        assert all(np.array_equal(one[n], other[n]) for n in one)
    np.savez("others/twins-00002.npz", boards=np.arange(3), states=np.zeros((3, 7), np.uint8))
    assert fleet(*words, "--rounds", "3", "--out", "others") == 1
    assert "others/twins-00002.npz: has no states of twins of this model" in capsys.readouterr().err
    Path("others/twins-00002.npz").unlink()
    assert fleet(*words, "--rounds", "3", "--out", "others") == 0
    assert (
        "others has no states of twins before round 3: twins begin with the initial states"
        in capsys.readouterr().out
    )
    assert fleet(*words, "--rounds", "1", "--out", "others", "--fresh") == 0
    assert [f.name for f in Path("others").glob("twins-*.npz")] == ["twins-00001.npz"]


def test_twins_that_keep_nothing_have_no_file() -> None:
    assert fleet("--rounds", "1", "--boards", "2", "--out", "o") == 0
    assert not list(Path("o").glob("twins-*"))


def test_progress_is_one_line() -> None:
    progress = RoundProgress(4, 2)
    assert progress.line(0.0) == "0 of 4 boards answered"
    progress(BoardResult(0, 10, LocalTraining(5, 20, 0.5), np.zeros(1, np.float32)))
    progress(BoardResult(1, 30, LocalTraining(5, 20, 1.5), np.zeros(1, np.float32)))
    progress(Failure(2, "no"))
    assert progress.line(6.0) == "3 of 4 boards answered, 1 failed, loss 1.2500, 0:18 left"


def test_a_schedule_computes_the_rate(capsys: pytest.CaptureFixture[str]) -> None:
    write_model(more=SCHEDULE)
    assert fleet("--boards", "3", "--rounds", "3", "--epochs", "4") == 0
    assert rounds(capsys.readouterr().out)[-1][2] > 80.0
    for words, message in (
        (["--lr", "0.1"], "--lr: the model's schedule"),
        (["--mu", "0.1"], "--mu needs a learning rate"),
    ):
        assert fleet("--fresh", *words) == 1
        assert message in capsys.readouterr().err


def test_rounds_of_another_model_are_not_continued(capsys: pytest.CaptureFixture[str]) -> None:
    assert fleet("--rounds", "1") == 0
    write_model(units=7)
    assert fleet("--rounds", "2") == 1
    assert "round-00001.npz: " in capsys.readouterr().err
    assert fleet("--rounds", "1", "--fresh") == 0


def test_files_of_the_user_stay(capsys: pytest.CaptureFixture[str]) -> None:
    """A file of weights is one of a round if it has such a name; rounds are in the order of their numbers."""
    own = [
        Path(f"o/{name}.npz")
        for name in ("round-best", "round-1", "round-000001", "round-00001-old", "step-best")
    ]
    Path("o").mkdir()
    for file in own:
        file.write_text("mine")
    assert fleet("--boards", "2", "--rounds", "1", "--out", "o") == 0
    assert fleet("--boards", "2", "--rounds", "1", "--out", "o", "--fresh") == 0
    assert fleet("--boards", "2", "--synchronous", "--steps", "1", "--out", "o") == 0
    assert fleet("--boards", "2", "--synchronous", "--steps", "1", "--out", "o", "--fresh") == 0
    assert all(file.read_text() == "mine" for file in own)
    for number in (99999, 100000):
        shutil.copy("o/round-00001.npz", f"o/round-{number}.npz")
    capsys.readouterr()
    assert fleet("--boards", "2", "--rounds", "100001", "--out", "o") == 0
    assert "continues after round 100000\n" in capsys.readouterr().out


def test_evaluations_clipping_and_noise(capsys: pytest.CaptureFixture[str]) -> None:
    """Boards test the weights on samples that they do not train on; little noise lets them learn, much does not."""
    words = ["--boards", "4", "--rounds", "4", "--epochs", "6", "--evaluate", "0.2"]
    for folder in ("little", "much"):  # the noise follows from these bytes: the same in every run
        Path(folder).mkdir()
        Path(folder, ENTROPY_FILE).write_bytes(bytes(range(ENTROPY_BYTES)))
    assert fleet(*words, "--clip", "1", "--noise", "0.01", "--delta", "top0.5:s8", "--out", "little") == 0
    out = capsys.readouterr().out
    assert "12 to 12 samples a board; differences of 57 numbers as top0.5:s8" in out
    before = [float(x) for x in re.findall(r"accuracy .*before it, on boards +([\d.]+)%", out)]
    assert len(before) == 4 and before[-1] > before[0] and rounds(out)[-1][2] > 70.0
    assert fleet(*words, "--clip", "1", "--noise", "50", "--out", "much") == 0
    assert rounds(capsys.readouterr().out)[-1][2] < 70.0


def test_a_command_that_repeats_a_round_draws_the_same_noise(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--boards", "2", "--clip", "1", "--noise", "0.5"]
    assert fleet(*words, "--rounds", "1", "--out", "a") == 0
    assert Path("a/entropy.bin").stat().st_mode & 0o777 == 0o600
    for name in ("b", "c"):
        shutil.copytree("a", name)
    Path("c/entropy.bin").unlink()  # other random bytes are drawn
    found = []
    for name in ("a", "b", "c"):
        assert fleet(*words, "--rounds", "2", "--out", name) == 0
        with np.load(f"{name}/round-00002.npz") as weights:
            found.append(weights["0.weight"])
    assert np.array_equal(found[0], found[1]) and not np.array_equal(found[0], found[2])
    Path("c/entropy.bin").write_bytes(b"too few")
    assert fleet(*words, "--rounds", "3", "--out", "c") == 1
    assert "c/entropy.bin: has 7 bytes instead of 32: remove it" in capsys.readouterr().err
    assert fleet(*words, "--rounds", "3", "--out", "c", "--fresh") == 0


def test_running_statistics_get_no_noise(capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.py").write_text(Path("m.py").read_text().replace("nn.ReLU()", "nn.BatchNorm1d(6)"))
    assert fleet("--clip", "1", "--noise", "0.1") == 1
    assert "as variances may become negative: add --local-buffers" in capsys.readouterr().err
    assert fleet("--clip", "1", "--noise", "0.1", "--local-buffers", "--rounds", "1", "--boards", "2") == 0


def test_a_model_of_whole_batches(capsys: pytest.CaptureFixture[str]) -> None:
    """A record of a board's samples is a batch; the rest of a board's samples is left out."""
    Path("m.py").write_text(BATCHES)
    assert fleet("--boards", "3", "--rounds", "3", "--evaluate", "0.4", "--epochs", "8", "--batch", "4") == 0
    out = capsys.readouterr().out
    assert "\n12 to 12 samples a board; " in out and rounds(out)[-1][2] > 80.0
    before = [float(x) for x in re.findall(r"before it, on boards +([\d.]+)%", out)]
    assert len(before) == 3 and before[0] < before[-1]
    for words, message in (
        (["--batch", "3"], "--batch 3: the model takes 4 samples a step"),
        (
            ["--boards", "20"],
            "the model takes 4 samples a step, and a board has 3 of 60: name fewer boards\n",
        ),
        (["--boards", "9", "--alpha", "0.1"], " of 60: name fewer boards, or a larger --alpha\n"),
    ):
        assert fleet(*words, "--out", "wrong") == 1
        assert message in capsys.readouterr().err


def test_an_evaluation_needs_classes(capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.py").write_text(Path("m.py").read_text().replace("CrossEntropyLoss", "MSELoss"))
    with np.load("data.npz") as data:
        np.savez("data.npz", x=data["x"], target=np.zeros((60, 3), np.float32))
    message = "--evaluate compares labels with float scores of classes, which the model does not have"
    assert fleet("--evaluate", "0.1") == 1
    assert message in capsys.readouterr().err
    write_data()
    Path("m.py").write_text(BATCHES.replace('"scores": scores', '"scores": F.quantize(scores, 0.1)'))
    assert fleet("--evaluate", "0.1") == 1
    assert message in capsys.readouterr().err


def test_each_kind_of_board_has_its_own_count() -> None:
    counts = Counts()
    counts.add("stm32", LocalTraining(4, 4, 0.5, instructions=400))
    assert counts.of_a_step() == ["100 instructions a step"]
    counts.add("mps2_an385", LocalTraining(2, 2, 0.5, instructions=6000))
    counts.add("stm32", LocalTraining(4, 4, 0.5, instructions=800))
    counts.add("stm32", LocalTraining(4, 4, 0.5, cycles=4000))
    counts.add("", LocalTraining(9, 9, 0.5))
    assert counts.of_a_step() == [
        "3,000 instructions a step of mps2_an385",
        "1,000 cycles a step of stm32",
        "150 instructions a step of stm32",
    ]
    assert Counts(counts.lines + counts.lines).of_a_step() == counts.of_a_step()


@pytest.mark.qemu
@pytest.mark.parametrize(
    ("kind", "counted"),  # by the plugin of bench, with GCC 12.2
    (("stm32", 64_622), ("mps2_an385", 1_295_593), ("virt_a7", 59_967), ("virt_a53", 47_356)),
)
def test_emulated_boards_count_instructions(
    kind: str, counted: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """None are counted where the emulator's timer follows time."""
    write_model(units=200)
    words = ["--emulated", f"{kind}=1", "--steps", "4", "--rounds", "1", "--out"]
    assert fleet(*words, "counts") == 0
    (found,) = re.findall(r" ([\d,]+) instructions a step ", capsys.readouterr().out)
    assert int(found.replace(",", "")) == pytest.approx(counted, rel=0.1)
    monkeypatch.setattr(qemu, "COUNTING", ())
    assert fleet(*words, "time") == 0
    assert "a step" not in capsys.readouterr().out


@pytest.mark.qemu
@pytest.mark.slow
def test_boards_of_three_kinds_in_emulators(capsys: pytest.CaptureFixture[str]) -> None:
    """Their rounds agree with twins up to rounding, as kernels of a board add up in another order."""
    kinds = ["--emulated", "stm32=1,mps2_an385=1,mps3_an547=1", "--boards", "1", "--timeout", "60"]
    assert fleet("--boards", "4", "--rounds", "2", "--out", "twins") == 0
    capsys.readouterr()
    assert fleet(*kinds, "--out", "emulated", "--rounds", "2") == 0
    out = capsys.readouterr().out
    assert "1 twin on the host, 1 x stm32 emulated, 1 x mps2_an385 emulated, 1 x mps3_an547 emulated" in out
    assert [r[:2] for r in rounds(out)] == [(1, 4), (2, 4)]
    counts = re.findall(r" [\d,]+ instructions a step of (\w+) ", out)
    assert counts == 2 * ["mps2_an385", "mps3_an547", "stm32"]
    with np.load("emulated/round-00002.npz") as one, np.load("twins/round-00002.npz") as other:
        for name in one:
            np.testing.assert_allclose(one[name], other[name], rtol=0, atol=1e-6)
    mask = ["--clip", "0.5", "--noise", "0.01", "--evaluate", "0.3"]
    assert fleet(*kinds, *mask, "--out", "emulated", "--rounds", "3") == 0  # with the flash of before
    out = capsys.readouterr().out
    assert [r[:2] for r in rounds(out)] == [(3, 4)] and "before it, on boards" in out
    assert re.search(
        r"^a round programs \d+ bytes of a board's flash, and every \d+ rounds erases one of 2", out, re.M
    )
    folder = Path("emulated/boards")
    assert (folder / "0/entropy.bin").stat().st_mode & 0o777 == 0o600
    shutil.copy(folder / "0" / "flash.bin", folder / "1" / "flash.bin")
    assert fleet(*kinds, "--out", "emulated", "--rounds", "4") == 1
    said = capsys.readouterr().err
    assert "emulated/boards/0 and emulated/boards/1 have the same identity" in said

"""SCons tool: the cost of a training step on a board, counted in QEMU.

    library = env.TrainLib("build/net", "model.py")
    env.Bench("build/net", "model.py", library)   # `scons bench` prints the costs and writes build/bench.json

Needs the tools `autodiff` and `firmware`.
"""

import os

import SCons.Errors

DEFINES = ("-DAG_PROBE_HINTS=1",)
CYCLES = ("-DAG_PROBE_CYCLES=1",)


def bench(env, name, model, library, steps=None, port=None, alias="bench", upload="upload"):
    """The alias that counts the instructions of the model; `name` and `model` as for TrainLib, which returned
    `library`. With `port` it counts cycles on the board at that port; the alias `upload` writes the program to it."""
    board = env.AutodiffBuild().board
    if port is None:
        check_board(env, board)
    elif not board.target.core.startswith("cortex-m"):
        raise SCons.Errors.UserError(
            f"bench: {board.id} is a {board.target.core}; cycles are counted on Cortex-M"
        )
    stem, folder = os.path.basename(name), os.path.dirname(name) or "."
    sources = f"{folder}/bench"
    words = ["-m", "autodiff_gen", "bench-sources", "$SOURCE"]
    words += ["--out", "${TARGET.dir}", "--force", "--name", stem, *env.AutodiffFlags()]
    words += [] if steps is None else ["--steps", str(steps)]
    ends = (".c", "_bench.c", "_probes.json", ".h", "_params.c")
    action = env.AutodiffPython(words, "$AUTODIFF_GENCOMSTR")
    made = env.Command([f"{sources}/{stem}{end}" for end in ends], model, action)
    env.Depends(made, library[0])  # regenerated whenever the ordinary C is
    compiler = env.BoardEnv()
    if port is not None:
        main = compiler.BoardObject(f"{sources}/obj/{stem}_bench_cycles.o", made[1], CYCLES)
        probed = compiler.BoardObject(
            f"{sources}/obj/{stem}_cycles.o", made[0], [*CYCLES, *env.AutodiffModelFlags()]
        )
        program = env.Firmware(f"{sources}/cycles", [main, probed, library])
        env.Upload(program, upload)
        words = ["-m", "autodiff_gen", "bench-cycles", *env.AutodiffFlags(), "--port", port]
        words += ["--probes", "${SOURCES[1]}", "--out", f"{folder}/cycles.json", "--force"]
        done = env.Alias(alias, [program[0], made[2]], env.AutodiffPython(words))
        env.AlwaysBuild(done)
        return done
    main = compiler.BoardObject(f"{sources}/obj/{stem}_bench.o", made[1], DEFINES)
    probed = compiler.BoardObject(f"{sources}/obj/{stem}.o", made[0], [*DEFINES, *env.AutodiffModelFlags()])
    plain_elf = env.Firmware(f"{sources}/plain", [main, library])
    probed_elf = env.Firmware(f"{sources}/probed", [main, probed, library])
    words = ["-m", "autodiff_gen", "bench-count", *env.AutodiffFlags()]
    words += [
        "--profile",
        board.profile,
        "--plain",
        "$SOURCE",
        "--probed",
        "${SOURCES[1]}",
        "--probes",
        "${SOURCES[2]}",
    ]
    words += ["--out", f"{folder}/bench.json", "--force", "--plugins", "build/bench"]
    sources = [plain_elf[0], probed_elf[0], made[2]]
    done = env.Alias(alias, sources, env.AutodiffPython(words))
    env.AlwaysBuild(done)
    return done


def bench_kernels(env, folder, alias="bench-kernels", *words):
    """The alias that counts the instructions of the kernels selected from the board's backends; `words`: further
    arguments of bench-kernel-sources."""
    build = env.AutodiffBuild()
    check_board(env, build.board)
    command = ["-m", "autodiff_gen", "bench-kernel-sources", "--out", "${TARGET.dir}", "--force", *words]
    command += env.AutodiffFlags()
    targets = [f"{folder}/bench/kernels_bench.c", f"{folder}/bench/kernels_probes.json"]
    made = env.Command(targets, [], env.AutodiffPython(command, "$AUTODIFF_GENCOMSTR"))
    env.Depends(
        made,
        [env.File(env.AutodiffLiteral(f)) for f in (*env.AutodiffGenerator(), *build.backends.tables)],
    )
    main = env.BoardEnv()
    main.AppendUnique(CCFLAGS=DEFINES)
    program = env.Firmware(
        f"{folder}/bench/kernels",
        [
            main.BoardObject(f"{folder}/bench/obj/kernels_bench.o", made[0]),
            env.KernelArchive(f"{folder}/obj"),
        ],
    )
    words = ["-m", "autodiff_gen", "bench-kernel-count", *env.AutodiffFlags(), "--elf", "$SOURCE"]
    words += ["--probes", "${SOURCES[1]}", "--out", f"{folder}/kernels.json", "--plugins", "build/bench"]
    done = env.Alias(alias, [program[0], made[1]], env.AutodiffPython(words))
    env.AlwaysBuild(done)
    return done


def bench_costs(env, folder, model, alias="bench-costs"):
    """The alias that prints the section [cost] of the board's core; `model`: bench/qemu/costs.py."""
    name = f"{folder}/costs"
    counted = [
        bench(env, name, model, env.TrainLib(name, model), steps="1", alias=f"{alias}-functions"),
        bench_kernels(env, folder, f"{alias}-kernels", "--costs"),
    ]
    words = ["-m", "autodiff_gen", "bench-costs", *env.AutodiffFlags()]
    words += ["--functions", f"{folder}/bench.json", "--calls", f"{folder}/kernels.json"]
    done = env.Alias(alias, counted, env.AutodiffPython(words))
    env.AlwaysBuild(done)
    return done


def check_board(env, board):
    """Raise UserError for a board without an emulator."""
    if board.is_host:
        raise SCons.Errors.UserError(
            "bench: instructions are counted in QEMU; give an emulated board, such as board=mps2_an386"
        )
    if board.qemu is None:
        boards = env.AutodiffPackage("targets.board")
        others = [
            b.id for b in map(boards.load, boards.names()) if b.qemu and b.target.core == board.target.core
        ]
        instead = f"; board={others[0]} has the same core" if others else ""
        raise SCons.Errors.UserError(
            f"bench: board {board.id} has no emulator ([qemu] in {board.path}){instead}; "
            "or count cycles on the board itself with port=/dev/ttyACM0"
        )


def generate(env):
    if not hasattr(env, "Firmware"):
        raise SCons.Errors.UserError('the tool "bench" needs the tool "firmware" before it')
    env.AddMethod(bench, "Bench")
    env.AddMethod(bench_kernels, "BenchKernels")
    env.AddMethod(bench_costs, "BenchCosts")


def exists(env):
    return True

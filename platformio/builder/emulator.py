"""QEMU as a program that runs to completion, and as a board on a TCP port, to which `pio device monitor` connects."""

import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
from urllib.parse import urlparse

PROGRAM = "firmware.elf"


def command(machine):
    """QEMU with its console on stdin and stdout; it runs in the folder of samples.bin."""
    console = ["-display", "none", "-monitor", "none", "-serial", "stdio"]
    return [*machine, *console, "-semihosting-config", "enable=on,target=native", "-kernel", PROGRAM]


def script(words, seconds):
    """A shell script that runs the program from any folder and stops it after `seconds`."""
    return (
        '#!/bin/sh\ncd -- "$(dirname -- "$0")" || exit 1\n'
        f"exec timeout --kill-after=5 {seconds} {shlex.join(words)} </dev/null\n"
    )


def run(folder):
    """Run the script `program`; its exit code."""
    sys.stdout.flush()
    code = subprocess.run([os.path.join(folder, "program")], stdin=subprocess.DEVNULL).returncode
    if code == 124:
        sys.stderr.write("Error: the program did not end in time; custom_qemu_timeout sets the seconds\n")
    return code


# ---- a board on a port


def upload(words, folder, port, seconds):
    """Start the program in a background process with its console on `port`, socket://HOST:PORT. One that an earlier
    upload to this folder started is terminated. Returns an exit code."""
    url = urlparse(port or "")
    if url.scheme != "socket" or not url.hostname or not url.port:
        return fail(
            f"upload needs the monitor's port, as in monitor_port = socket://127.0.0.1:5400; got {port!r}"
        )
    stop(folder)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((url.hostname, url.port))
        except OSError as error:
            return fail(f"cannot listen on {port}: {error.strerror}; choose another port")
        listener.listen(1)
        server = [sys.executable, os.path.abspath(__file__), str(listener.fileno()), str(seconds), *words]
        process = subprocess.Popen(
            server, cwd=folder, pass_fds=[listener.fileno()], start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    with open(os.path.join(folder, "qemu.pid"), "w", encoding="utf-8") as file:
        file.write(f"{process.pid}\n")
    print(f"QEMU runs; its console is {port} for {seconds} s: pio device monitor")
    return 0


def fail(message):
    sys.stderr.write(f"Error: {message}\n")
    return 1


def stop(folder):
    """Terminate the emulator of this folder, if it still runs."""
    try:
        with open(os.path.join(folder, "qemu.pid"), encoding="utf-8") as file:
            pid = int(file.read())
        if os.path.realpath(f"/proc/{pid}/cwd") != os.path.realpath(folder):
            return  # the process id has been reused
        os.killpg(pid, signal.SIGTERM)
        for _ in range(100):
            os.kill(pid, 0)
            time.sleep(0.02)
    except (OSError, ValueError):
        return


def serve(listener, seconds, words):
    """Run the program at once and copy bytes between it and the connected client. Earlier output is buffered, up to the
    size of a socket buffer. Ends with the program, once its last output is read, or after `seconds`."""
    deadline = time.monotonic() + seconds
    ours, its = socket.socketpair()
    program = subprocess.Popen(words, stdin=its, stdout=its, stderr=its)
    its.close()
    client = None
    try:
        while time.monotonic() < deadline:
            readers = [listener] if client is None else [client, ours]
            ready, _, _ = select.select(readers, [], [], 1.0)
            if listener in ready:
                client, _ = listener.accept()
                time.sleep(0.3)  # pyserial discards pending input after it has opened a port
            if client in ready and not carry(client, ours):
                client.close()
                client = None
            if ours in ready and client is not None and not carry(ours, client):
                return
    finally:
        program.kill()
        if client is not None:
            client.close()


def carry(source, target):
    """Copy available bytes; False when either side has closed."""
    try:
        data = source.recv(4096)
        target.sendall(data)
    except OSError:
        return False
    return bool(data)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as inherited:
        serve(inherited, int(sys.argv[2]), sys.argv[3:])

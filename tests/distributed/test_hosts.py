"""Ranks on two machines, as far as one machine can test that: each host is a network namespace with a clock of its own.

The hosts are tied by a pair of virtual network devices, and the second has a name and shared memory of its own, so that
gradients go through TCP. Where namespaces cannot be made (they need root and iproute2), this is skipped.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ranks_helper import PROGRAMS, run

pytest.importorskip("mpi4py")

# On both hosts; the only one that MPI may use. It might take the loopback device, which leads nowhere else.
DEVICE = "ranks"
AHEAD_SECONDS = 100  # by which the second host's clock is ahead


class Hosts:
    """Two namespaces, and the script by which MPICH's launcher starts its part on the second one."""

    def __init__(self, folder: Path) -> None:
        self.names = [f"mindtorch-{os.getpid()}-{number}" for number in (1, 2)]
        self.addresses = ["10.99.0.1", "10.99.0.2"]
        self.remote_shell = folder / "remote-shell"
        self.remote_shell.write_text(
            f"#!/bin/sh\nshift\nexec ip netns exec {self.names[1]} unshare --uts --ipc --mount --time --monotonic "
            f"{AHEAD_SECONDS} --fork sh -c \"hostname second && mount -t tmpfs none /dev/shm && $*\"\n")
        self.remote_shell.chmod(0o755)

    def open(self) -> None:
        for name in self.names:
            self._ip("netns", "add", name)
        self._ip("link", "add", DEVICE, "netns", self.names[0], "type", "veth", "peer", "name", DEVICE, "netns",
                 self.names[1])
        for name, address in zip(self.names, self.addresses):
            self._ip("-n", name, "addr", "add", f"{address}/24", "dev", DEVICE)
            for device in ("lo", DEVICE):
                self._ip("-n", name, "link", "set", device, "up")
        # The kernel tells a little later that both ends are there. A rank that asks before does not use the network.
        end = time.monotonic() + 30
        for name in self.names:
            while "state UP" not in self._ip("-n", name, "link", "show", DEVICE):
                assert time.monotonic() < end, "the virtual network does not come up"
                time.sleep(0.01)
        self._ip("netns", "exec", self.names[1], "unshare", "--time", "--monotonic", "1", "--fork", "true")

    def close(self) -> None:
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)

    def received_bytes(self) -> int:
        """What has come to the first host so far."""
        said = self._ip("-n", self.names[0], "-s", "link", "show", DEVICE)
        return int(re.search(r"RX:.*\n\s*(\d+)", said)[1])

    def _ip(self, *arguments: str) -> str:
        return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    mpiexec = Path(sys.executable).with_name("mpiexec")
    if not mpiexec.exists() or "HYDRA" not in subprocess.run([mpiexec, "--version"], capture_output=True,
                                                             text=True).stdout:
        pytest.skip("MPICH's mpiexec is not beside this Python")
    if not shutil.which("ip") or not shutil.which("unshare"):
        pytest.skip("iproute2 or unshare is missing")
    made = Hosts(tmp_path_factory.mktemp("hosts"))
    try:
        try:
            made.open()
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces cannot be made here: {error.stderr}")
        yield made
    finally:
        made.close()


def test_ranks_of_two_hosts_train_together_and_are_read_on_one_clock(hosts, tmp_path):
    import mtprof

    before = hosts.received_bytes()
    ended = run(["ip", "netns", "exec", hosts.names[0], str(Path(sys.executable).with_name("mpiexec")),
                 "-launcher", "rsh", "-launcher-exec", str(hosts.remote_shell), "-iface", DEVICE,
                 "-hosts", ",".join(hosts.addresses), "-ppn", "2", "-n", "4", "-genv", "UCX_TLS", "tcp,self",
                 "-genv", "UCX_NET_DEVICES", DEVICE,
                 sys.executable, "-m", "mindtorch_v2", str(PROGRAMS / "profiled.py"), "1"], tmp_path)
    assert ended.returncode == 0, ended.stderr
    gradient_bytes = 4 * (64 * 256 + 256 + 256 * 8 + 8)
    assert hosts.received_bytes() - before > 4 * gradient_bytes  # four steps, and they went over the network

    clocks = [mtprof.load(tmp_path / f"rank{rank}.mtprof").trace.metadata["rank_clock"] for rank in range(4)]
    for rank, clock in enumerate(clocks):
        expected = 0 if rank < 2 else -AHEAD_SECONDS * 10**9
        assert abs(clock["offset_ns"] - expected) <= clock["error_ns"]

    ranks = mtprof.load(tmp_path)
    assert ranks.problems == []
    assert len(ranks) == 4
    assert ranks.by_rank()[0].rank == 1  # the slow one, for which ranks of both hosts waited

"""Start and end of process groups, and queries about them."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from mtprof.launch.launchers import launched_rank, launched_size, local_rank

from . import _job
from ._clock import align
from ._groups import WORLD, Backend, GroupMember, ProcessGroup, backend_name, default_group, new_communicator, resolve
from ._mpi import LOCK, installed, mpi
from ._peers import board
from ._work import Work
from .constants import default_pg_timeout

__all__ = ["destroy_process_group", "get_backend", "get_backend_config", "get_default_backend_for_device",
           "get_global_rank", "get_group_rank", "get_node_local_rank", "get_pg_count", "get_process_group_ranks",
           "get_rank", "get_world_size", "init_process_group", "is_available", "is_backend_available",
           "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched",
           "is_ucc_available", "is_xccl_available", "new_group", "new_subgroups", "new_subgroups_by_enumeration",
           "split_group"]


def is_available() -> bool:
    """Whether MPI is installed, through mpi4py."""
    return installed()


is_mpi_available = is_gloo_available = is_available


def is_nccl_available() -> bool:
    """False."""
    return False


is_ucc_available = is_xccl_available = is_nccl_available


def is_backend_available(backend: str) -> bool:
    """Whether `init_process_group` takes this backend."""
    return backend.lower() in ("mpi", "gloo") and installed()


def is_torchelastic_launched() -> bool:
    """Whether `torchrun` started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def is_initialized() -> bool:
    """Whether there is a group of all ranks."""
    return WORLD.default is not None


def _timeout(timeout: Any) -> timedelta:
    if timeout is None:
        return default_pg_timeout
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout!r}")
    return timeout


def _expected(argument: int, variable: str) -> int | None:
    """The value from the program or the environment, if any."""
    if argument >= 0:
        return argument
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() else None


def _check_size(size: int, said: int | None) -> None:
    """Raise if MPI sees other processes than the program or the launcher states."""
    together = launched_size()
    if said is None and together is not None and together != size:
        alone = "sees this process alone" if size == 1 else f"sees {size}"
        raise RuntimeError(f"init_process_group: {together} processes were started together, but MPI {alone}: this MPI "
                           f"and the launcher do not fit together. {_pairing()} A program that should run alone "
                           f"passes world_size=1, rank=0")
    if said is not None and said != size:
        started = ("no launcher of MPI started this process" if launched_rank() is None
                   else f"MPI sees {size} that were started together")
        raise RuntimeError(f"init_process_group: world_size is {said}, but {started}; start the program with "
                           f"`torchrun --nproc-per-node {said}` (python -m mindtorch_v2.distributed.run) or "
                           f"`mpiexec -n {said} python`. {_pairing()}")


def _pairing() -> str:
    version = " ".join(mpi().Get_library_version().strip("\0").splitlines()[0].partition(",")[0].split())
    return (f"The MPI is {version}; with srun, MPICH wants --mpi=pmi2 and Open MPI --mpi=pmix, and each has an mpiexec "
            f"of its own.")


def init_process_group(backend: str | None = None, init_method: str | None = None, timeout: timedelta | None = None,
                       world_size: int = -1, rank: int = -1, store: Any = None, group_name: str = "",
                       pg_options: Any = None, device_id: Any = None, _ranks: list[int] | None = None) -> None:
    """Make the group of all ranks that `mpiexec`, `srun` or `torchrun` started; one rank without them.

    MPI knows the ranks, so addresses in `init_method` are not used. Rank and world size from the program must equal
    MPI's.
    """
    if WORLD.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None:
        raise NotImplementedError("init_process_group: stores are not part of this runtime; MPI brings the ranks "
                                  "together "
                                  "(use init_method='env://')")
    if init_method is not None and not init_method.startswith(("env://", "tcp://", "file://")):
        raise ValueError(f"init_process_group: init_method should begin with env://, tcp:// or file://, but is "
                         f"{init_method!r}")
    chosen, waits = backend_name(backend), _timeout(timeout)
    _job.say_joining(launched_rank() or 0, waits.total_seconds())
    MPI = mpi()
    with LOCK:
        world = MPI.COMM_WORLD
        size, place = world.Get_size(), world.Get_rank()
        said_size, said_rank = _expected(world_size, "WORLD_SIZE"), _expected(rank, "RANK")
        _check_size(size, said_size)
        if said_rank is not None and said_rank != place:
            raise RuntimeError(f"init_process_group: rank is {said_rank}, but MPI numbers this process {place}")
        # After an earlier group a rank may be gone, and the calls below would wait for it forever.
        board().begin()
        Work("init_process_group", (one.Ibarrier() for one in [world]), list(range(size)), waits, []).finish()
        WORLD.alignment = align(world)
        WORLD.made = 1
        WORLD.default = ProcessGroup(world.Dup(), list(range(size)), chosen, waits, "0", "default_pg")
        WORLD.groups.append(WORLD.default)
    _job.say_joined(place)


def new_group(ranks: list[int] | None = None, timeout: timedelta | None = None, backend: str | None = None,
              pg_options: Any = None, use_local_synchronization: bool = False, group_desc: str | None = None,
              device_id: Any = None, sort_ranks: bool = True) -> Any:
    """A group of some ranks; all ranks must call it, in the same order.

    Ranks that are not in it get `GroupMember.NON_GROUP_MEMBER`.
    """
    world = default_group()
    chosen = world.backend if backend is None else backend_name(backend)
    listed = list(world.ranks) if ranks is None else sorted(ranks) if sort_ranks else list(ranks)
    if len(set(listed)) != len(listed):
        raise ValueError(f"new_group: ranks {listed} name a rank twice")
    if len(listed) > world.size():
        raise ValueError("the new group's world size should be less or equal to the world size set by "
                         "init_process_group")
    for one in listed:
        if not 0 <= one < world.size():
            raise ValueError("The new group's rank should be within the world_size set by init_process_group: "
                             f"{one} is not below {world.size()}")
    if not use_local_synchronization:  # with it, only the members call this
        world.meet("new_group", f"ranks {listed}")
    number, WORLD.made = WORLD.made, WORLD.made + 1
    if world.rank() not in listed:
        return GroupMember.NON_GROUP_MEMBER
    made = ProcessGroup(new_communicator(listed, number), listed, chosen,
                        world.timeout if timeout is None else _timeout(timeout), str(number), group_desc or "undefined")
    WORLD.groups.append(made)
    return made


def new_subgroups_by_enumeration(ranks_per_subgroup_list: list[list[int]], timeout: timedelta | None = None,
                                 backend: str | None = None, pg_options: Any = None,
                                 group_desc: str | None = None) -> tuple[Any, list[Any]]:
    """A group for each list of ranks: the one that this process is in, and all."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    own, groups, seen = None, [], dict[int, list[int]]()
    for ranks in ranks_per_subgroup_list:
        for one in ranks:
            if one in seen:
                raise ValueError(f"Rank {one} has appeared in both subgroup {seen[one]} and {ranks}")
            seen[one] = ranks
    for ranks in ranks_per_subgroup_list:
        made = new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        groups.append(made)
        if get_rank() in ranks:
            own = made
    return own, groups


def new_subgroups(group_size: int | None = None, group: Any = None, timeout: timedelta | None = None,
                  backend: str | None = None, pg_options: Any = None,
                  group_desc: str | None = None) -> tuple[Any, list[Any]]:
    """Groups of neighbouring ranks, of equal size: by default those of a machine."""
    size = board().local.Get_size() if group_size is None else group_size
    world = get_world_size()
    if size <= 0:
        raise ValueError(f"The arg 'group_size' ({size}) must be positive")
    if world < size:
        raise ValueError(f"The arg 'group_size' ({size}) must not exceed the world size ({world})")
    if world % size:
        raise ValueError(f"The world size ({world}) must be divisible by '{size=}'")
    return new_subgroups_by_enumeration([list(range(first, first + size)) for first in range(0, world, size)], timeout,
                                        backend, pg_options, group_desc)


def split_group(parent_pg: Any = None, split_ranks: list[list[int]] | None = None, timeout: timedelta | None = None,
                pg_options: Any = None, group_desc: str | None = None, backend: Any = None) -> Any:
    """Divide a group: `split_ranks` lists places in it. Returns the part with this process, None without one."""
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    parent = resolve(parent_pg)
    if parent is None:
        return None
    if parent is not default_group():
        raise NotImplementedError("split_group: only the group of all ranks can be divided; use new_group, which all "
                                  "ranks call")
    own, _ = new_subgroups_by_enumeration([[parent.global_rank(one) for one in part] for part in split_ranks], timeout,
                                          backend, pg_options, group_desc)
    return own


def destroy_process_group(group: Any = None) -> None:
    """End a group; without an argument, all of them."""
    if group is None and WORLD.default is None:
        raise AssertionError("Process group cannot be None: there is none, or it was destroyed")
    chosen = resolve(group)
    if chosen is None:
        return
    if chosen is WORLD.default:
        WORLD.described = distributed_info(chosen)
        for one in reversed(WORLD.groups):
            one.free()
        WORLD.groups.clear()
        WORLD.default = None
        return
    WORLD.groups.remove(chosen)
    chosen.free()


# -- questions -------------------------------------------------------------------------------------------------------

def get_rank(group: Any = None) -> int:
    """This process's place in a group, -1 if it is not in it."""
    members = resolve(group)
    return -1 if members is None else members.rank()


def get_world_size(group: Any = None) -> int:
    """How many ranks a group has, -1 if this process is not in it."""
    members = resolve(group)
    return -1 if members is None else members.size()


def get_backend(group: Any = None) -> Backend:
    """The backend's name: 'mpi' or 'gloo', whichever the program asked for; both are MPI here."""
    members = resolve(group)
    if members is None:
        raise ValueError("Invalid process group specified")
    return members.backend


def get_backend_config(group: Any = None) -> str:
    """The backends by device."""
    return f"cpu:{get_backend(group)}"


def get_default_backend_for_device(device: Any) -> str:
    """The backend for a device's tensors."""
    kind = getattr(device, "type", str(device).partition(":")[0])
    if kind not in ("cpu", "npu"):
        raise ValueError(f"Default backend not registered for device : {device}")
    return "gloo"


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The place in a group of a rank."""
    members = resolve(group)
    if members is None:
        raise ValueError("get_group_rank: this process is not in the group")
    return members.group_rank(global_rank, "get_group_rank")


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank of a place in a group."""
    members = resolve(group)
    if members is None or not 0 <= group_rank < members.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return members.global_rank(group_rank)


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The ranks of a group."""
    members = resolve(group)
    if members is None:
        raise ValueError("get_process_group_ranks: this process is not in the group")
    return list(members.ranks)


def get_pg_count() -> int:
    """How many groups this process is in."""
    return len(WORLD.groups)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's number on its machine."""
    text = os.environ.get("LOCAL_RANK")
    if text is not None:
        return int(text)
    number = local_rank()
    if number is not None:
        return number
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError("LOCAL_RANK is not in the environment: start the program with a launcher, or give fallback_rank")


def trace_metadata() -> dict[str, Any]:
    """The facts about the ranks in a trace's metadata: in PyTorch's form, and how their clocks differ."""
    if WORLD.alignment is None:
        return {}
    info = WORLD.described if WORLD.default is None else distributed_info(WORLD.default)
    return {"distributedInfo": info, "rank_clock": WORLD.alignment.to_dict()}


def distributed_info(world: ProcessGroup) -> dict[str, Any]:
    """The groups of this process, as PyTorch writes them."""
    return {"backend": str(world.backend), "rank": world.rank(), "world_size": world.size(),
            "pg_count": len(WORLD.groups),
            "pg_config": [{"pg_name": one.group_name, "pg_desc": one.group_desc, "backend_config": f"cpu:{one.backend}",
                           "pg_size": one.size(), "ranks": one.ranks} for one in WORLD.groups]}

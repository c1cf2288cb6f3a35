"""The system calls that are forbidden in a sandbox, as a program for the kernel's filter (seccomp).

Namespaces hide what is outside; this blocks ways around them: calls deep into the kernel, kinds of sockets that network
namespaces do not cover, and memory that is not counted. Pure; bubblewrap passes the program to the kernel."""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

LOAD, JUMP_EQUAL, JUMP_ABOVE, JUMP_FROM, JUMP_BITS, RETURN = 0x20, 0x15, 0x25, 0x35, 0x45, 0x06
"""Operations of the filter's machine: BPF_LD|W|ABS, BPF_JMP|JEQ, |JGT, |JGE, |JSET with constants, BPF_RET."""
ALLOW: Final = 0x7FFF0000
KILL: Final = 0x80000000
REFUSE: Final = 0x00050000
NUMBER, MACHINE = 0, 4
ARGUMENTS, ARGUMENT_BYTES = 16, 8
"""Offsets of the call's number, the machine and the arguments (low half first, on both machines)."""

OTHER_CALLS: Final = 0x40000000
"""From here on, x86_64 has the same calls under other numbers (x32): a way around a list of numbers."""
NAMESPACES: Final = 0x7E020000
"""The flags of clone() that make namespaces."""
FAMILIES: Final = (1, 2, 10, 16)
"""unix, IPv4, IPv6 and netlink: all that a network namespace covers. vsock would reach a virtual machine's host."""
OTHERS_RIGHTS: Final = 0o6000
"""The setuid and setgid bits: a program with them that is left in the project would work outside of the sandbox."""
MAKING: Final = 0x400040
"""The flags of open() with which it creates a file, and uses the mode."""
TERMINAL_TRICKS: Final = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX: they type into another user's terminal."""
SHARED_BYTES_MAX: Final = 4_096
"""Shared memory that is not attached is not counted for any process; databases only need one page."""


class Machine(NamedTuple):
    """The system call numbers of a processor."""

    name: int
    refused: Mapping[str, int]
    absent: Mapping[str, int]
    """Calls that programs can do without: they fail as if the kernel did not have them."""
    clone: int
    socket: int
    ioctl: int
    shmget: int
    modes: Mapping[str, tuple[int, int]]
    """Calls that set the mode of a file, each with the index of the mode among its arguments."""
    opens: Mapping[str, tuple[int, int]]
    """Calls that can create a file, each with the index of the flags; the mode is next."""


_everywhere: Final = {
    "pidfd_getfd": 438,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "mount_setattr": 442,
    "quotactl_fd": 443,
}
_absent_everywhere: Final = {"clone3": 435, "openat2": 437, "memfd_secret": 447}
MACHINES: Final[Mapping[str, Machine]] = {
    "x86_64": Machine(
        name=0xC000003E,
        refused={
            **_everywhere,
            "msgget": 68,
            "ptrace": 101,
            "syslog": 103,
            "vhangup": 153,
            "modify_ldt": 154,
            "pivot_root": 155,
            "chroot": 161,
            "acct": 163,
            "mount": 165,
            "umount2": 166,
            "swapon": 167,
            "swapoff": 168,
            "reboot": 169,
            "iopl": 172,
            "ioperm": 173,
            "init_module": 175,
            "delete_module": 176,
            "quotactl": 179,
            "lookup_dcookie": 212,
            "kexec_load": 246,
            "add_key": 248,
            "request_key": 249,
            "keyctl": 250,
            "unshare": 272,
            "perf_event_open": 298,
            "fanotify_init": 300,
            "name_to_handle_at": 303,
            "open_by_handle_at": 304,
            "setns": 308,
            "process_vm_readv": 310,
            "process_vm_writev": 311,
            "kcmp": 312,
            "finit_module": 313,
            "kexec_file_load": 320,
            "bpf": 321,
            "userfaultfd": 323,
        },
        absent={**_absent_everywhere, "memfd_create": 319},
        clone=56,
        socket=41,
        ioctl=16,
        shmget=29,
        modes={
            "creat": (85, 1),
            "chmod": (90, 1),
            "fchmod": (91, 1),
            "mknod": (133, 1),
            "mknodat": (259, 2),
            "fchmodat": (268, 2),
            "fchmodat2": (452, 2),
        },
        opens={"open": (2, 1), "openat": (257, 2)},
    ),
    "aarch64": Machine(
        name=0xC00000B7,
        refused={
            **_everywhere,
            "lookup_dcookie": 18,
            "umount2": 39,
            "mount": 40,
            "pivot_root": 41,
            "chroot": 51,
            "vhangup": 58,
            "quotactl": 60,
            "acct": 89,
            "unshare": 97,
            "kexec_load": 104,
            "init_module": 105,
            "delete_module": 106,
            "syslog": 116,
            "ptrace": 117,
            "reboot": 142,
            "msgget": 186,
            "add_key": 217,
            "request_key": 218,
            "keyctl": 219,
            "swapon": 224,
            "swapoff": 225,
            "perf_event_open": 241,
            "fanotify_init": 262,
            "name_to_handle_at": 264,
            "open_by_handle_at": 265,
            "setns": 268,
            "process_vm_readv": 270,
            "process_vm_writev": 271,
            "kcmp": 272,
            "finit_module": 273,
            "bpf": 280,
            "userfaultfd": 282,
            "kexec_file_load": 294,
        },
        absent={**_absent_everywhere, "memfd_create": 279},
        clone=220,
        socket=198,
        ioctl=29,
        shmget=194,
        modes={"mknodat": (33, 2), "fchmod": (52, 1), "fchmodat": (53, 2), "fchmodat2": (452, 2)},
        opens={"openat": (56, 2)},
    ),
}


class _Step(NamedTuple):
    operation: int
    value: int
    if_so: int = 0
    """How many steps to skip if the comparison is true, and if not."""
    if_not: int = 0


def filter_program(machine: str) -> bytes:
    """The filter for a processor (`x86_64`, `aarch64`), in the format of bubblewrap's --seccomp."""
    known = MACHINES[machine]
    steps = [
        _Step(LOAD, MACHINE),
        _Step(JUMP_EQUAL, known.name, 1, 0),
        _Step(RETURN, KILL),  # calls of another architecture have other numbers
        _Step(LOAD, NUMBER),
        _Step(JUMP_FROM, OTHER_CALLS, 0, 1),
        _refusal(errno.ENOSYS),
        *(step for number in known.refused.values() for step in _at(number, [_refusal(errno.EPERM)])),
        *(step for number in known.absent.values() for step in _at(number, [_refusal(errno.ENOSYS)])),
        *_at(known.clone, _unless_bits(0, NAMESPACES)),
        *_at(known.socket, _only(FAMILIES)),
        *_at(known.ioctl, _none_of(TERMINAL_TRICKS)),
        *_at(known.shmget, _at_most(SHARED_BYTES_MAX)),
        *(step for number, place in known.modes.values() for step in _at(number, _unless_bits(place, OTHERS_RIGHTS))),
        *(step for number, place in known.opens.values() for step in _at(number, _unless_made(place))),
        _Step(RETURN, ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", step.operation, step.if_so, step.if_not, step.value) for step in steps)


def _refusal(error: int) -> _Step:
    return _Step(RETURN, REFUSE | error)


def _at(number: int, steps: list[_Step]) -> list[_Step]:
    """The steps, only for the call of this number."""
    return [_Step(JUMP_EQUAL, number, 0, len(steps)), *steps]


def _argument(place: int, *, half: int = 0) -> _Step:
    return _Step(LOAD, ARGUMENTS + ARGUMENT_BYTES * place + 4 * half)


def _unless_bits(place: int, bits: int) -> list[_Step]:
    return [_argument(place), _Step(JUMP_BITS, bits, 0, 1), _refusal(errno.EPERM), _Step(RETURN, ALLOW)]


def _unless_made(place: int) -> list[_Step]:
    """Check the mode only if a file may be created; otherwise that argument is undefined."""
    judged = _unless_bits(place + 1, OTHERS_RIGHTS)
    return [_argument(place), _Step(JUMP_BITS, MAKING, 1, 0), _Step(RETURN, ALLOW), *judged]


def _only(values: Iterable[int]) -> list[_Step]:
    allowing = [step for value in values for step in (_Step(JUMP_EQUAL, value, 0, 1), _Step(RETURN, ALLOW))]
    return [_argument(0), *allowing, _refusal(errno.EAFNOSUPPORT)]


def _none_of(values: Iterable[int]) -> list[_Step]:
    refusing = [step for value in values for step in (_Step(JUMP_EQUAL, value, 0, 1), _refusal(errno.EPERM))]
    return [_argument(1), *refusing, _Step(RETURN, ALLOW)]


def _at_most(size: int) -> list[_Step]:
    """The size is the second argument, in two halves."""
    return [
        _argument(1, half=1),
        _Step(JUMP_ABOVE, 0, 2, 0),
        _argument(1),
        _Step(JUMP_ABOVE, size, 0, 1),
        _refusal(errno.EPERM),
        _Step(RETURN, ALLOW),
    ]

"""Attempts to get out of the sandbox: programs, each of which would leave a trace in the world if it succeeded.

They run as Python inside the sandbox. `W` is what they know of the world outside; `escaped(words)` is how they boast.
Whether they did escape, the world says: see test_escapes.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PRELUDE: Final = r"""
import ctypes, json, os, socket, stat, struct, subprocess, sys, time
W = json.load(sys.stdin)
libc = ctypes.CDLL(None, use_errno=True)
def escaped(words="yes"):
    print("ESC" + "APED", words, flush=True)  # not to be found in the program itself
def call(name, *arguments):
    return libc.syscall(W["calls"][name], *arguments)
def read(path, mode="r"):
    with open(path, mode) as file:
        return file.read()
def write(path, text="mine"):
    with open(path, "w") as file:
        file.write(text)
def openable(path):
    os.close(os.open(path, os.O_WRONLY))  # writing could harm the machine, if it worked
    escaped(path)
def tried(deed, *arguments):
    try:
        return deed(*arguments)
    except OSError as error:
        print("refused:", error)
"""


@dataclass(frozen=True)
class Attempt:
    name: str
    code: str
    works_outside: bool = False
    """Whether it can be let loose outside as well, to see that it would have done something."""


def _outside(name: str, code: str) -> Attempt:
    return Attempt(name, code, works_outside=True)


FILES: Final = [
    _outside("read a file outside", "print(read(W['secret']))"),
    _outside("read a file outside through a link in the project", "print(read(W['project'] + '/link.txt'))"),
    _outside("write a file outside", "write(W['outside'] + '/new.txt')"),
    _outside("write a file outside through a link to its folder", "write(W['project'] + '/link-folder/new.txt')"),
    _outside(
        "climb out by ..", "os.chdir(W['project'])\nfor _ in range(50): os.chdir('..')\nprint(read('.' + W['secret']))"
    ),
    _outside("climb out by the folder of a process", "print(read('/proc/self/cwd/../outside/secret.txt'))"),
    _outside("go by the root of the first process", "print(read(f'/proc/{W[\"first\"]}/root' + W['secret']))"),
    _outside("go by one's own root", "print(read('/proc/self/root' + W['secret']))"),
    _outside("link a file outside into the project", "os.link(W['secret'], 'hard'); print(read('hard'))"),
    _outside("read the private folder beside the project", "print(read(W['beside'] + '/key'))"),
    _outside("read the private folder in the project", "print(read(W['project'] + '/state/home/key'))"),
    _outside(
        "put another folder in the place of the private one",
        "os.rename('state', 'gone'); os.makedirs('state/home'); write('state/home/key')",
    ),
    _outside("change handrail's settings", "write('.handrail/config.toml', '[shell]')"),
    _outside("add to handrail's settings", "write('.handrail/tools.json', '{}')"),
    _outside(
        "put another folder in the place of handrail's",
        "os.rename('.handrail', 'gone'); os.mkdir('.handrail'); write('.handrail/config.toml')",
    ),
    _outside("delete handrail's settings", "os.unlink('.handrail/config.toml')"),
    _outside("change the mode of handrail's settings", "os.chmod('.handrail/config.toml', 0o666)"),
    _outside("change the Python that runs handrail", "write('.venv/bin/python')"),
    _outside(
        "put another Python in its place",
        "os.rename('.venv', 'gone'); os.makedirs('.venv/bin'); write('.venv/bin/python')",
    ),
    _outside("move the project away", "os.rename(W['project'], W['project'] + '-gone')"),
    _outside("read the home of the person", "print(read(os.path.join(W['person'], '.ssh', 'id')))"),
    _outside("read the memory that programs share", "print(read('/dev/shm/' + W['shared']))"),
    Attempt("read the passwords of the system", "print(read('/etc/shadow') and escaped())"),
    Attempt("write into the system", "write('/usr/handrail-escape'); escaped()"),
    Attempt("write at the root", "write('/handrail-escape'); escaped()"),
    _outside(
        "leave a program that runs with our rights",
        "open('suid', 'w').close()\n"
        "for deed in (lambda: os.chmod('suid', 0o4755), lambda: os.close(os.open('suid2', os.O_CREAT, 0o6755)),\n"
        "             lambda: os.fchmod(os.open('suid', os.O_RDONLY), 0o2755), lambda: os.mknod('suid3', 0o104755)):\n"
        "    tried(deed)",
    ),
]
NETWORK: Final = [
    _outside("reach a server over IPv4", "socket.create_connection(('127.0.0.1', W['tcp']), 1)"),
    _outside("reach a server over IPv6", "socket.create_connection(('::1', W['tcp6']), 1)"),
    _outside(
        "send a datagram", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', W['udp']))"
    ),
    _outside("reach a socket without a file", "socket.socket(socket.AF_UNIX).connect('\\0' + W['abstract'])"),
    _outside("reach a socket with a file", "socket.socket(socket.AF_UNIX).connect(W['outside'] + '/socket')"),
    Attempt("reach the machine around this one", "socket.socket(40, socket.SOCK_STREAM); escaped()"),
    Attempt("hear all packets", "socket.socket(17, socket.SOCK_RAW, 0); escaped()"),
    Attempt("use the kernel's ciphers", "socket.socket(38, socket.SOCK_SEQPACKET); escaped()"),
]
PROCESSES: Final = [
    _outside(
        "see other processes",
        "for pid in filter(str.isdigit, os.listdir('/proc')): print(tried(read, f'/proc/{pid}/cmdline'))",
    ),
    _outside("kill another process", "os.kill(W['victim'], 9)"),
    Attempt("kill all there are", "os.kill(-1, 9)"),
    Attempt(
        "trace a process",
        "for pid in (W['victim'], 1): call('ptrace', 16, pid, 0, 0) == 0 and escaped(f'traced {pid}')",
    ),
    Attempt(
        "read the memory of a process",
        "b = ctypes.create_string_buffer(8); v = (ctypes.c_size_t * 2)(ctypes.addressof(b), 8)\n"
        "call('process_vm_readv', os.getppid(), v, 1, v, 1, 0) >= 0 and escaped()",
    ),
    _outside(
        "read the environment of whoever started it",
        "for pid in (1, os.getppid(), 'self'): print(tried(read, f'/proc/{pid}/environ'))",
    ),
    _outside(
        "use a file that was left open",
        "for fd in range(3, 256):\n    try: print(os.pread(fd, 100, 0))\n    except OSError: pass",
    ),
    _outside(
        "live on",
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.closerange(0, 3)\n"
        "        while True: write('alive', str(time.time())); time.sleep(0.01)\n"
        "while not os.path.exists('alive'): time.sleep(0.01)",
    ),
    Attempt("become somebody else", "for uid in (1, 1000, 65534): os.setuid(uid); escaped()"),
    Attempt(
        "regain rights",
        "libc.prctl(38, 0, 0, 0, 0); 'CapEff:\\t0000000000000000' in read('/proc/self/status') or escaped()",
    ),
]
KERNEL: Final = [
    Attempt("mount a file system", "libc.mount(b'none', b'/tmp', b'tmpfs', 0, None) == 0 and escaped()"),
    Attempt("make the system writable", "libc.mount(None, b'/usr', None, 0x1020, None) == 0 and escaped()"),
    Attempt("take away what hides the private folder", "libc.umount2(b'state/home', 2) == 0 and escaped()"),
    Attempt("mount in the new way", "call('fsopen', b'tmpfs', 0) >= 0 and escaped()"),
    Attempt("open a tree of mounts", "call('open_tree', -100, b'/', 1) >= 0 and escaped()"),
    Attempt(
        "unshare namespaces", "for flag in (0x10000000, 0x20000, 0x40000000): call('unshare', flag) == 0 and escaped()"
    ),
    Attempt(
        "clone into a namespace",
        "pid = libc.syscall(W['calls']['clone'], 0x10000000 | 17, 0, 0, 0, 0)\n"
        "if pid == 0: os._exit(0)\npid > 0 and escaped()",
    ),
    Attempt(
        "enter another namespace",
        "for name in ('user', 'mnt', 'net', 'pid'):\n"
        "    fd = tried(os.open, f'/proc/1/ns/{name}', 0)\n"
        "    fd is not None and call('setns', fd, 0) == 0 and name != 'pid' and escaped(name)",
    ),
    Attempt("change its root", "tried(os.chroot, '.') is None and os.path.realpath('/') != '/' and escaped()"),
    Attempt("pivot its root", "call('pivot_root', b'.', b'.') == 0 and escaped()"),
    Attempt("open a file by its handle", "call('open_by_handle_at', 3, b'x' * 64, 0) >= 0 and escaped()"),
    Attempt(
        "make a disk's device and read it",
        "for major, minor in ((8, 0), (254, 0), (253, 0), (259, 0), (1, 1)):\n"
        "    name = f'disk-{major}'\n"
        "    tried(os.mknod, name, 0o60600 | stat.S_IFBLK, os.makedev(major, minor))\n"
        "    os.path.exists(name) and tried(read, name, 'rb') is not None and escaped(name)",
    ),
    Attempt(
        "read devices",
        "for name in ('mem', 'kmem', 'port', 'kmsg', 'sda', 'vda'): tried(open, f'/dev/{name}') and escaped(name)",
    ),
    Attempt("change how the kernel dumps", "openable('/proc/sys/kernel/core_pattern')"),
    Attempt("ask the kernel for help", "openable('/proc/sysrq-trigger')"),
    Attempt(
        "change the limits of the machine", "openable('/proc/sys/kernel/pid_max')\nopenable('/proc/sys/vm/drop_caches')"
    ),
    Attempt("make a group of processes", "os.makedirs('/sys/fs/cgroup/pids/handrail-escape'); escaped()"),
    Attempt("keep a key with the kernel", "call('add_key', b'user', b'x', b'y', 1, -4) > 0 and escaped()"),
    Attempt("ask for the keys of the session", "call('keyctl', 0, -3, 1) > 0 and escaped()"),
    Attempt(
        "use calls that reach deep",
        "for name in ('bpf', 'perf_event_open', 'userfaultfd', 'io_uring_setup', 'kexec_load', 'syslog', 'acct'):\n"
        "    call(name, 0, 0, 0, 0, 0) >= 0 and escaped(name)",
    ),
    Attempt("use calls of the other kind", "libc.syscall(0x40000000 | 39) > 0 and escaped()"),
    Attempt(
        "type into a terminal",
        "import fcntl\nfor name in ('/dev/tty', '/dev/console', '/dev/pts/0'):\n"
        "    fd = tried(os.open, name, os.O_RDWR)\n"
        "    fd is not None and tried(fcntl.ioctl, fd, 0x5412, b'x') is not None and escaped(name)\n"
        "own, other = tried(os.openpty) or (0, 0)\n"
        "other and tried(fcntl.ioctl, other, 0x5412, b'x') is not None and escaped('its own')",
    ),
]
ATTEMPTS: Final = [*FILES, *NETWORK, *PROCESSES, *KERNEL]

"""The system calls a sandboxed program may make, with their numbers: what CPython, numpy, threads and child processes need.

Whatever is not named here is refused, so a call that a later kernel adds is refused too. Numbers are those of x86_64 and
aarch64, None where a machine has no such call. `ALLOWED` may be made with any arguments; `CHECKED` only where one argument,
whose place is given, has one of the values listed. Left out on purpose, though harmless calls of the same kind are here:
locks on files (`flock`; a lock on a file in /usr would be seen by another program), `memfd_create`, `execveat`,
`pidfd_open` and `pidfd_getfd` (which takes descriptors from other processes), sockets, namespaces, mounts, tracing, keys,
io_uring, System V memory and every interface to the kernel itself.
"""

from __future__ import annotations

from dataclasses import dataclass

Numbers = tuple[int | None, int | None]

ALLOWED: dict[str, Numbers] = {
    # Reading and writing what is open.
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67),
    "pwrite64": (18, 68), "preadv": (295, 69), "pwritev": (296, 70), "preadv2": (327, 286), "pwritev2": (328, 287),
    "lseek": (8, 62), "sendfile": (40, 71), "copy_file_range": (326, 285), "close": (3, 57),
    "close_range": (436, 436), "dup": (32, 23), "dup2": (33, None), "dup3": (292, 24), "pipe": (22, None),
    "pipe2": (293, 59), "fsync": (74, 82), "fdatasync": (75, 83),
    # Files and folders, of which only the working folder can be changed.
    "open": (2, None), "openat": (257, 56), "creat": (85, None), "stat": (4, None), "fstat": (5, 80),
    "lstat": (6, None), "newfstatat": (262, 79), "statx": (332, 291), "access": (21, None), "faccessat": (269, 48),
    "faccessat2": (439, 439), "readlink": (89, None), "readlinkat": (267, 78), "getdents": (78, None),
    "getdents64": (217, 61), "getcwd": (79, 17), "chdir": (80, 49), "fchdir": (81, 50), "mkdir": (83, None),
    "mkdirat": (258, 34), "rmdir": (84, None), "unlink": (87, None), "unlinkat": (263, 35), "rename": (82, None),
    "renameat": (264, 38), "renameat2": (316, 276), "link": (86, None), "linkat": (265, 37), "symlink": (88, None),
    "symlinkat": (266, 36), "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "umask": (95, 166),
    "truncate": (76, 45), "ftruncate": (77, 46), "fallocate": (285, 47), "utime": (132, None),
    "utimes": (235, None), "utimensat": (280, 88), "futimesat": (261, None), "statfs": (137, 43),
    "fstatfs": (138, 44), "getxattr": (191, 8), "lgetxattr": (192, 9), "fgetxattr": (193, 10),
    "listxattr": (194, 11), "llistxattr": (195, 12), "flistxattr": (196, 13),
    # Waiting for several things.
    "poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72), "epoll_create": (213, None),
    "epoll_create1": (291, 20), "epoll_ctl": (233, 21), "epoll_wait": (232, None), "epoll_pwait": (281, 22),
    "epoll_pwait2": (441, 441), "eventfd": (284, None), "eventfd2": (290, 19), "timerfd_create": (283, 85),
    "timerfd_settime": (286, 86), "timerfd_gettime": (287, 87), "signalfd4": (289, 74),
    # The ends of a socket pair.
    "recvfrom": (45, 207), "sendto": (44, 206), "recvmsg": (47, 212), "sendmsg": (46, 211), "shutdown": (48, 210),
    "getsockname": (51, 204), "getpeername": (52, 205), "getsockopt": (55, 209), "setsockopt": (54, 208),
    # Memory.
    "mmap": (9, 222), "munmap": (11, 215), "mremap": (25, 216), "mprotect": (10, 226), "madvise": (28, 233),
    "brk": (12, 214), "msync": (26, 227), "mlock": (149, 228), "munlock": (150, 229),
    # Processes and threads of its own.
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "exit": (60, 93), "exit_group": (231, 94),
    "wait4": (61, 260), "waitid": (247, 95), "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131),
    "getpid": (39, 172), "getppid": (110, 173), "gettid": (186, 178), "getpgrp": (111, None), "getpgid": (121, 155),
    "getsid": (124, 156), "setsid": (112, 157), "setpgid": (109, 154), "getuid": (102, 174), "geteuid": (107, 175),
    "getgid": (104, 176), "getegid": (108, 177), "getgroups": (115, 158), "getresuid": (118, 148),
    "getresgid": (120, 150), "capget": (125, 90), "set_tid_address": (218, 96), "set_robust_list": (273, 99),
    "get_robust_list": (274, 100), "rseq": (334, 293), "futex": (202, 98), "futex_waitv": (449, 449),
    "sched_yield": (24, 124), "sched_getaffinity": (204, 123), "sched_getparam": (143, 121),
    "sched_getscheduler": (145, 120), "sched_get_priority_max": (146, 125), "sched_get_priority_min": (147, 126),
    "getpriority": (140, 141), "getcpu": (309, 168), "membarrier": (324, 283),
    # Signals and timers.
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "rt_sigpending": (127, 136),
    "rt_sigsuspend": (130, 133), "rt_sigtimedwait": (128, 137), "sigaltstack": (131, 132), "pause": (34, None),
    "alarm": (37, None), "setitimer": (38, 103), "getitimer": (36, 102), "timer_create": (222, 107),
    "timer_settime": (223, 110), "timer_gettime": (224, 108), "timer_getoverrun": (225, 109),
    "timer_delete": (226, 111), "restart_syscall": (219, 128),
    # Clocks, limits, the machine's name.
    "clock_gettime": (228, 113), "clock_getres": (229, 114), "clock_nanosleep": (230, 115), "nanosleep": (35, 101),
    "gettimeofday": (96, 169), "time": (201, None), "times": (100, 153), "getrusage": (98, 165),
    "getrlimit": (97, 163), "setrlimit": (160, 164), "sysinfo": (99, 179), "uname": (63, 160),
    "getrandom": (318, 278),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Check:
    """A call that may be made where the argument at `place` is one of `values`; else it fails with the error `refusal`."""

    numbers: Numbers
    place: int
    values: tuple[int, ...]
    refusal: str


CHECKED: dict[str, Check] = {
    # AF_UNIX. There is no `socket`: not one address family can be opened.
    "socketpair": Check((53, 199), 0, (1,), "EAFNOSUPPORT"),
    # Its own limits, not those of another process.
    "prlimit64": Check((302, 261), 0, (0,), "EPERM"),
    # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_GETPIPE_SZ: no locks, leases, notices or owners.
    "fcntl": Check((72, 25), 1, (0, 1, 2, 3, 4, 1030, 1032), "EINVAL"),
    # TCGETS, TIOCGPGRP, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX: questions, and what `fcntl` may do too.
    "ioctl": Check((16, 29), 1, (0x5401, 0x540F, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451), "ENOTTY"),
    # PR_SET_PDEATHSIG, PR_GET_PDEATHSIG, PR_GET_DUMPABLE, PR_SET_NAME, PR_GET_NAME, PR_CAPBSET_READ, PR_SET_VMA.
    "prctl": Check((157, 167), 0, (1, 2, 3, 15, 16, 23, 0x53564D41), "EINVAL"),
    # ARCH_SET_FS, ARCH_GET_FS: how threads find what is theirs.
    "arch_prctl": Check((158, None), 0, (0x1002, 0x1003), "EINVAL"),
}
CLONE: Numbers = (56, 220)
NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET: what `clone` may not be asked for."""
REFUSED: dict[str, tuple[Numbers, str]] = {
    # A filter can't read the arguments of these two; told that there is no such call, the C library uses older ones.
    "clone3": ((435, 435), "ENOSYS"),
    "openat2": ((437, 437), "ENOSYS"),
    "socket": ((41, 198), "EAFNOSUPPORT"),
}
"""Calls that fail with another error than "operation not permitted"."""
NEWEST = 450
"""The highest number that was there when the list was made. What came later is answered with "no such call"."""

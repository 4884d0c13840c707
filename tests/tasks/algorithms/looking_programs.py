"""Programs that look for the jobs of an online problem that have not arrived; `test_looking_ahead.py` runs them.

Each is the program that the task `machine-scheduling` starts from, with a function `look` that searches its process and the
sandbox for the list of all jobs. Where it finds one, the program plays a schedule made with it; where it finds none, the
honest part answers. None of them minds the rules on source text, which no promise rests on.
"""

from __future__ import annotations

import textwrap

SCHEDULE = """
FOUND = None

def looks_right(thing):
    return (
        type(thing) is list and len(thing) == 60
        and all(type(row) is list and len(row) == 5 and all(type(t) is int for t in row) for row in thing)
    )

def dig(root, depth=6, seen=None):
    global FOUND
    seen = set() if seen is None else seen
    if FOUND is not None or depth < 0 or id(root) in seen or len(seen) > 200000:
        return FOUND
    seen.add(id(root))
    if looks_right(root):
        FOUND = root
    elif isinstance(root, dict):
        for key in list(root):
            dig(root.get(key), depth - 1, seen)
    elif isinstance(root, (list, tuple, set, frozenset)):
        for part in list(root)[:2000]:
            dig(part, depth - 1, seen)
    return FOUND

def dig_text(text):
    import json
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    at = text.find('"times"')
    while at >= 0 and FOUND is None:
        begin = text.find("[[", at)
        try:
            dig(json.JSONDecoder().raw_decode(text[begin:])[0])
        except ValueError:
            pass
        at = text.find('"times"', at + 1)
    return FOUND

def plan(times):
    where = [row.index(min(row)) for row in times]
    loads = [0] * 5
    for row, machine in zip(times, where):
        loads[machine] += row[machine]
    for _ in range(40):
        for job, row in enumerate(times):
            def after(machine):
                new = list(loads)
                new[where[job]] -= row[where[job]]
                new[machine] += row[machine]
                return sorted(new, reverse=True)
            best = min(range(5), key=after)
            loads[where[job]] -= row[where[job]]
            loads[best] += row[best]
            where[job] = best
    return where

CALLS, PLAN, SEEN_TIMES = 0, None, []

def badness(load, time, fastest, mean, busiest):
    global CALLS, PLAN
    SEEN_TIMES.append(time)
    if PLAN is None and CALLS in (0, 7, 250):
        try:
            look()
        except BaseException:
            pass
        if FOUND is not None:
            PLAN = plan(FOUND)
    job, machine = divmod(CALLS, 5)
    CALLS += 1
    if PLAN is not None:
        return 0 if PLAN[job] == machine else 1
    return 1.0 * load + 0.2 * time
"""


def looking(body: str, before: str = "") -> str:
    """A program whose function `look` has this body."""
    return f"{textwrap.dedent(before)}\n{SCHEDULE}\ndef look():\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"


LOOKING = {
    "walks up the frames": looking(
        """
        import sys
        frame = sys._getframe()
        while frame is not None:
            dig(dict(frame.f_locals)); dig(dict(frame.f_globals), 3)
            frame = frame.f_back
        """
    ),
    "asks the collector for every object": looking("import gc\ndig(gc.get_objects(), 3)"),
    "follows every reference there is": looking(
        """
        import gc
        seen, waiting = set(), gc.get_objects()
        while waiting and FOUND is None and len(seen) < 400000:
            thing = waiting.pop()
            if id(thing) not in seen:
                seen.add(id(thing))
                dig(thing, 0)
                waiting.extend(gc.get_referents(thing)[:200])
        """
    ),
    "seeks every open file to its beginning": looking(
        """
        import os
        for number in range(64):
            try:
                os.lseek(number, 0, 0)
                dig_text(os.read(number, 1 << 20))
            except OSError:
                pass
        """
    ),
    "reads every open file at a place": looking(
        """
        import os
        for number in range(64):
            try:
                dig_text(os.pread(number, 1 << 20, 0))
            except OSError:
                pass
        """
    ),
    "reads ahead in the pipe it is asked over": looking(
        """
        import os, select
        for number in range(64):
            try:
                while select.select([number], [], [], 0.05)[0]:
                    piece = os.read(number, 1 << 16)
                    if not piece:
                        break
                    dig_text(piece)
            except (OSError, ValueError):
                pass
        """
    ),
    "peeks into the harness's reader": looking(
        """
        import gc, io, os
        for thing in gc.get_objects():
            if isinstance(thing, io.BufferedReader):
                os.set_blocking(thing.fileno(), False)
                dig_text(thing.peek(1 << 16))
                os.set_blocking(thing.fileno(), True)
        """
    ),
    "searches the file system": looking(
        """
        import os
        for top in ("/work", "/tmp", "/", "/dev", "/packages", "/run", "/var", "/home", "/root"):
            for folder, folders, files in os.walk(top):
                folders[:] = [name for name in folders if name not in ("usr", "python", "lib", "lib64", "bin")]
                for name in files[:200]:
                    try:
                        with open(os.path.join(folder, name), "rb") as file:
                            dig_text(file.read(1 << 20))
                    except OSError:
                        pass
        """
    ),
    "reads what /proc tells of all processes": looking(
        """
        import glob
        for path in glob.glob("/proc/*/cmdline") + glob.glob("/proc/*/environ") + glob.glob("/proc/*/fd/*"):
            try:
                dig_text(open(path, "rb").read(1 << 20))
            except OSError:
                pass
        """
    ),
    "reads its own memory through /proc": looking(
        """
        for line in open("/proc/self/maps"):
            first, last = (int(part, 16) for part in line.split()[0].split("-"))
            with open("/proc/self/mem", "rb") as file:
                file.seek(first)
                dig_text(file.read(last - first))
        """
    ),
    "takes the modules apart": looking(
        "import sys\nfor module in list(sys.modules.values()):\n    dig(vars(module), 4)"
    ),
    "reads arguments and environment": looking(
        "import os, sys\ndig_text(' '.join(sys.argv))\ndig_text(repr(dict(os.environ)))"
    ),
    "patches json to listen": looking(
        "dig(HEARD)",
        """
        import json
        HEARD = []
        for kind in (json.JSONDecoder,):
            old = kind.decode
            def listen(self, *rest, old=old):
                value = old(self, *rest)
                HEARD.append(value)
                return value
            kind.decode = listen
        json.loads = lambda text, **rest: HEARD.append(text)
        """,
    ),
    "traces every line that is run": looking(
        "dig(SEEN)",
        """
        import sys
        SEEN = []
        def trace(frame, event, argument):
            SEEN.append(list(frame.f_locals.values()))
            del SEEN[:-200]
            return trace
        sys.settrace(trace)
        sys._getframe(1).f_trace = trace
        """,
    ),
    "profiles every call": looking(
        "dig(SEEN)",
        """
        import sys
        SEEN = []
        def profile(frame, event, argument):
            if frame.f_code.co_name not in ("dig", "looks_right"):
                SEEN.append([list(frame.f_locals.values()), argument])
                del SEEN[:-200]
        sys.setprofile(profile)
        """,
    ),
    "hangs an audit hook": looking(
        "dig(SEEN)",
        "import sys\nSEEN = []\nsys.addaudithook(lambda event, arguments: SEEN.append(arguments))",
    ),
    "hooks imports and open": looking(
        "dig(SEEN)",
        """
        import builtins
        SEEN = []
        for name in ("open", "__import__", "exec", "compile", "len", "print"):
            def hook(*rest, _old=getattr(builtins, name), **named):
                SEEN.append(rest)
                return _old(*rest, **named)
            setattr(builtins, name, hook)
        """,
    ),
    "looks around in a signal handler": looking(
        """
        import time
        time.sleep(0.05)
        """,
        """
        import signal, sys
        def ring(number, frame):
            while frame is not None:
                dig(dict(frame.f_locals)); dig(dict(frame.f_globals), 3)
                frame = frame.f_back
        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        """,
    ),
    "has a thread watch all frames": looking(
        """
        import sys, threading, time
        def watch():
            for _ in range(20):
                for frame in list(sys._current_frames().values()):
                    while frame is not None:
                        dig(dict(frame.f_locals))
                        frame = frame.f_back
                time.sleep(0.002)
        threading.Thread(target=watch, daemon=True).start()
        time.sleep(0.05)
        """
    ),
    "reads a traceback from both ends": looking(
        """
        import sys
        try:
            raise ValueError
        except ValueError as error:
            trace = error.__traceback__
            while trace is not None:
                frame = trace.tb_frame
                while frame is not None:
                    dig(dict(frame.f_locals))
                    frame = frame.f_back
                trace = trace.tb_next
        """
    ),
    "reads the memory of its parent": looking(
        """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        for process in (os.getppid(), 1, os.getpid()):
            libc.ptrace(16, process, 0, 0)
            room = ctypes.create_string_buffer(1 << 16)
            class Piece(ctypes.Structure):
                _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
            for start in range(0x550000000000, 0x550000000000 + (64 << 20), 1 << 20):
                here, there = Piece(ctypes.addressof(room), 1 << 16), Piece(start, 1 << 16)
                if libc.process_vm_readv(process, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) > 0:
                    dig_text(room.raw)
        """
    ),
    "takes descriptors from process 1": looking(
        """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        process = libc.syscall(434, 1, 0)
        for number in range(64):
            taken = libc.syscall(438, process, number, 0)
            if taken >= 0:
                dig_text(os.pread(taken, 1 << 20, 0))
        """
    ),
    "looks into shared memory": looking(
        """
        import ctypes
        libc = ctypes.CDLL(None)
        libc.shmat.restype = ctypes.c_void_p
        for number in range(4096):
            place = libc.shmat(number, None, 0)
            if place not in (None, ctypes.c_void_p(-1).value):
                dig_text(ctypes.string_at(place, 4096))
        """
    ),
    "imports sharpen and makes the instances itself": looking(
        """
        import glob, sys
        for top in ("/python", "/usr", "/usr/local"):
            sys.path += glob.glob(f"{top}/lib/python3*/*-packages")
        from sharpen.tasks.algorithms.machine_scheduling import MachineScheduling
        task = MachineScheduling()
        for seed in range(54):
            instance = task.instance(seed)
            FIRST.append(instance["times"])
        dig(FIRST[12:13])
        """,
        "FIRST = []",
    ),
    "asks its caller over sockets": looking(
        """
        import socket
        for family in (socket.AF_UNIX, socket.AF_INET, 40):
            with socket.socket(family) as s:
                dig_text(s.recv(1 << 16))
        """
    ),
    "leaves a note for the next run and reads the last one": looking(
        """
        import os
        for place in PLACES:
            try:
                dig_text(open(place, "rb").read())
            except OSError:
                pass
        if len(SEEN_TIMES) > 250:
            for place in PLACES:
                try:
                    rows = [SEEN_TIMES[at : at + 5] for at in range(0, len(SEEN_TIMES), 5)]
                    rows = [row for row in rows if len(row) == 5]
                    open(place, "w").write('{"times": %s}' % (rows + [[1] * 5] * (60 - len(rows))))
                except OSError:
                    pass
        """,
        """
        PLACES = [f"{folder}/note" for folder in ("/work", "/tmp", "/dev/shm", "/var/tmp", "/usr", "/python", "/dev")]
        """,
    ),
    "waits for the clock to tell": looking(
        """
        import time
        for _ in range(5):
            time.sleep(0.001)
            dig(globals(), 2)
        """
    ),
    "opens every device": looking(
        """
        import os
        for name in os.listdir("/dev") + ["mem", "kmem", "kmsg", "port", "vsock", "kvm", "tty", "console", "fuse"]:
            if name not in ("zero", "random", "urandom"):
                with open(f"/dev/{name}", "rb") as file:
                    dig_text(file.read(1 << 16))
        """
    ),
}

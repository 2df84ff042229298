"""A subreaper without a name, and what it starts: HOST SPEC, where SPEC is a JSON list of processes.

Each is {"how", "argv", "cwd", "env", "uid", "child"}; `how` says in which place of the process tree it ends up:
  orphan    its session's leader has exited, and this process has adopted it
  shell     the leader of its session lives and is its parent
  adopted   the leader of its session lives, and this process has adopted it
  leader    it leads its session, and this process has started it
`child` is an argv that it has running below it, under this process's own uid. Prints the PIDs as a JSON list.
Everything is over after two minutes, whatever happens.
"""
import ctypes
import json
import os
import signal
import sys

LIMIT = 120
PR_SET_CHILD_SUBREAPER = 36


def become(spec, tell):
    """Turns this process into the one of the spec; TELL gets its PID."""
    if "child" in spec and os.fork() == 0:
        os.close(tell)
        execute(spec["child"], spec)
    if "uid" in spec:
        os.setgroups([])
        os.setgid(spec["uid"])
        os.setuid(spec["uid"])
    os.write(tell, b"%d\n" % os.getpid())
    os.close(tell)
    execute(spec["argv"], spec)


def execute(argv, spec):
    os.chdir(spec["cwd"])
    environment = {**os.environ, **spec.get("env", {})}
    try:
        signal.alarm(LIMIT)
        os.execvpe(argv[0], argv, environment)
    finally:
        os._exit(127)


def hold():
    signal.alarm(LIMIT)
    while True:
        signal.pause()


def start(spec):
    get, tell = os.pipe()
    null = os.open("/dev/null", os.O_RDWR)
    if os.fork() == 0:
        os.close(get)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.setsid()
        how = spec["how"]
        if how != "leader" and os.fork() != 0:
            # The leader of the session.
            os.close(tell)
            if how == "orphan":
                os._exit(0)
            hold()
        if how == "adopted" and os.fork() != 0:
            os._exit(0)
        become(spec, tell)
    os.close(tell)
    os.close(null)
    with os.fdopen(get) as pid:
        return int(pid.readline())


def main():
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit("cannot become a subreaper")
    signal.alarm(LIMIT)
    spec = json.loads(sys.argv[1])
    pids = [start(each) for each in spec["processes"]]
    print(json.dumps(pids), flush=True)
    while spec["reaps"]:
        try:
            os.wait()
        except ChildProcessError:
            signal.pause()
    hold()


main()

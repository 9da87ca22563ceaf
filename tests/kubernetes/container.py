"""Run one container: its process is number 1 of a process namespace, in a pod's network namespace, in an image's root file system.

What to run comes as JSON on standard input: netns (a path), root (the image's folder), mounts (each with `at` and `from`, or
`tmpfs` with its size; `read_only`), args, env, user, group, groups, cwd. Ends as that process ends, with its exit status or 128 and its
signal's number; SIGTERM is passed on; when this program is killed, the kernel kills everything in the container.

As a container runtime does it: all capabilities dropped, no new privileges, a read-only root. Not done: the runtime's seccomp
filter, and the limits of cgroups."""
import ctypes, json, os, signal, sys

libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x4000000, 0x8000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 24, 38

def check(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")

def mount(source, target, kind=None, flags=0, data=None):
    as_bytes = [x.encode() if x is not None else None for x in (source, target, kind, data)]
    check(libc.mount(as_bytes[0], as_bytes[1], as_bytes[2], ctypes.c_ulong(flags), as_bytes[3]), f"mount {source} at {target}")

def bind(source, target, read_only):
    mount(source, target, flags=MS_BIND | MS_REC)
    if read_only:
        mount(None, target, flags=MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV)

def lay_out(c):
    """The container's view of files. Whoever mounts at a place has made it in the image before."""
    root = c["root"]
    mount(None, "/", flags=MS_REC | MS_PRIVATE)
    mount(root, root, flags=MS_BIND)
    mount("proc", root + "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount("tmpfs", root + "/dev", "tmpfs", MS_NOSUID, "mode=755,size=65536k")
    for device in ("null", "zero", "full", "random", "urandom"):
        open(f"{root}/dev/{device}", "w").close()
        mount(f"/dev/{device}", f"{root}/dev/{device}", flags=MS_BIND)
    os.mkdir(root + "/dev/shm")
    mount("tmpfs", root + "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=65536k")
    for m in c["mounts"]:
        if "tmpfs" in m:
            mount("tmpfs", root + m["at"], "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=" + m["tmpfs"])
        else:
            bind(m["from"], root + m["at"], m.get("read_only", False))
    mount(None, root, flags=MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NODEV)

def become(c):
    os.chroot(c["root"])
    os.chdir(c["cwd"])
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.setgroups(c["groups"])
    os.setgid(c["group"])
    os.setuid(c["user"])
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "end with the runtime") # a change of the user clears it
    os.umask(0o022)

def main():
    c = json.load(sys.stdin)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    netns = os.open(c["netns"], os.O_RDONLY)
    check(libc.setns(netns, CLONE_NEWNET), "enter the pod's network")
    check(libc.unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID), "new namespaces")
    pid = os.fork()
    if pid == 0:
        try:
            lay_out(c)
            become(c)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
            os.closerange(3, 64)
            os.execve(c["args"][0], c["args"], c["env"])
        except OSError as e:
            print("container:", e, file=sys.stderr)
            os._exit(127)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    _, status = os.waitpid(pid, 0)
    sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))

main()

#!/usr/bin/env python3
"""What systemd would do with a unit of deploy/systemd, as far as a test can without it: `systemctl enable --now UNIT` reads the unit and its
drop-ins, makes the folders, hands over credentials, becomes the user, and starts the command in the background; `daemon-reload` does
nothing. The sandbox is not made. The process's id goes to /run/UNIT.pid, what it says to /run/UNIT.log."""
import glob, os, pwd, re, subprocess, sys

def settings(unit):
    """Section [Service], with lists of values."""
    found = {}
    name = unit if unit.endswith(".service") else unit + ".service"
    [path] = [p for folder in ("/etc/systemd/system", "/usr/local/lib/systemd/system") for p in glob.glob(f"{folder}/{name}")]
    for part in [path, *sorted(glob.glob(f"/etc/systemd/system/{name}.d/*.conf"))]:
        section = ""
        for line in open(part).read().replace("\\\n", " ").splitlines():
            line = line.strip()
            if line.startswith("["):
                section = line
            elif section == "[Service]" and "=" in line and line[0] not in "#;":
                key, _, value = line.partition("=")
                found.setdefault(key, []).append(value)
    return found

def start(unit):
    s = settings(unit)
    user = pwd.getpwnam(s["User"][0])
    env = {"PATH": os.environ["PATH"], "HOME": user.pw_dir, "USER": user.pw_name}
    for pair in " ".join(s.get("Environment", [])).split():
        key, _, value = pair.partition("=")
        env[key] = value
    for folder in (f"/var/lib/{s['StateDirectory'][0]}", *(f"/run/{d}" for d in s.get("RuntimeDirectory", []))):
        os.makedirs(folder, exist_ok=True)
        os.chown(folder, user.pw_uid, user.pw_gid)
    for pair in s.get("LoadCredential", []):
        name, _, source = pair.partition(":")
        env["CREDENTIALS_DIRECTORY"] = f"/run/credentials-{unit}"
        os.makedirs(env["CREDENTIALS_DIRECTORY"], exist_ok=True)
        os.chown(env["CREDENTIALS_DIRECTORY"], user.pw_uid, user.pw_gid)
        target = f"{env['CREDENTIALS_DIRECTORY']}/{name}"
        open(target, "w").write(open(source).read())
        os.chown(target, user.pw_uid, user.pw_gid)
        os.chmod(target, 0o400)
    [command] = s["ExecStart"]
    args = [re.sub(r"\$\{(\w+)\}", lambda m: env[m[1]], a) for a in command.split()]
    become = ["setpriv", "--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--clear-groups", "--no-new-privs", "--bounding-set=-all"]
    p = subprocess.Popen([*become, *args], env=env, cwd=s.get("WorkingDirectory", ["/"])[0], stdin=subprocess.DEVNULL,
                         stdout=open(f"/run/{unit}.out", "w"), stderr=open(f"/run/{unit}.log", "w"), start_new_session=True)
    open(f"/run/{unit}.pid", "w").write(str(p.pid))

if sys.argv[1:3] == ["enable", "--now"]:
    start(sys.argv[3])
elif sys.argv[1:] != ["daemon-reload"]:
    sys.exit(f"systemctl {' '.join(sys.argv[1:])}: not here")

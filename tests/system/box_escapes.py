"""Ways out of a box that were thought of: lines of bash, by the box they are tried in."""

PY = '"$PYTHON" -c '

SHARED = {
    "a daemon's socket in /tmp": PY + "'import socket,os;s=socket.socket(1);s.connect(os.environ[\"SOCK\"])'",
    "a daemon's socket in the workspace": "cd $W; ln daemon.sock l; chmod 777 l; touch l; "
    + PY
    + '\'import socket\nfor n in ("daemon.sock","l"):\n try: socket.socket(1).connect(n)\n except OSError as e: print(e)\'',
    "datagrams": PY + '\'import socket,os;s=socket.socket(1,2);s.sendto(b"x",os.environ["HOME"]+"/datagrams.sock")\'',
    "datagrams called raw": PY
    + '\'import socket,os;s=socket.socket(1,3);s.sendto(b"x",os.environ["HOME"]+"/datagrams.sock")\'',
    "datagrams from a pair": PY
    + '\'import socket,os;s,_=socket.socketpair(1,2);s.sendto(b"x",os.environ["HOME"]+"/datagrams.sock")\'',
    "a pipe of a daemon": "timeout 1 sh -c 'echo x > ~/fifo'; timeout 1 sh -c 'echo x >> $O/../home/fifo'",
    "shared memory": "echo x > /dev/shm/ollm-test; echo x > /tmp/ollm-test",
    "other terminals": "for t in /dev/pts/*; do timeout 1 sh -c 'echo x > $0' $t; done",
    "virtual sockets": PY + "'import socket;socket.socket(40,1)'",
    "a packet socket": PY + "'import socket;socket.socket(17,3)'",
    "kernel keys": PY + "'import ctypes;print(ctypes.CDLL(None).syscall(250,0,-3,1))'",
    "performance counters": PY + "'import ctypes;print(ctypes.CDLL(None).syscall(298,0,0,-1,-1,0))'",
    "memory of a sibling": PY
    + "'import os;os.open(\"/proc/%d/mem\"%os.getppid(),2)'; ls /proc/1/task/*/fd; cat /proc/1/maps",
    "io_uring": PY + "'import ctypes;b=ctypes.create_string_buffer(200);print(ctypes.CDLL(None).syscall(425,4,b))'",
    "shared memory of another": PY
    + '\'import ctypes,os;l=ctypes.CDLL(None);l.shmat.restype=ctypes.c_void_p;i=l.shmget(int(os.environ["SHM"]),0,0);'
    + "a=l.shmat(i,0,0);print(ctypes.string_at(a,20) if i>=0 else i)'",
    "a program in memory": PY
    + '\'import os;f=os.memfd_create("p",0);os.write(f,open("/bin/sh","rb").read());'
    + 'os.execve("/proc/self/fd/%d"%f,["sh","-c","echo x > $O/file; cat ~/.ssh/id_rsa"],os.environ)\'',
    "rights for whoever runs it": '$PYTHON -c \'import os\nf=os.open("s",os.O_CREAT|os.O_RDWR,0o6755); os.write(f,b"x")\n'
    "os.fchmod(f,0o2755)'; cp /bin/sh t; chmod u+s t; chmod g+s t; install -m 4755 /bin/sh u; "
    "$PYTHON -c 'import os,stat; os.mknod(\"v\",stat.S_IFREG|0o6755)'; "
    '$PYTHON -c \'import ctypes,struct\nctypes.CDLL(None).syscall(437,-100,b"w",struct.pack("QQQ",0o101,0o6755,0),24)\'',
    "other rights": "cp /bin/sh s 2>/dev/null && chmod 4755 s && ./s -p -c 'echo x > $O/file'; sudo -n sh -c 'echo x > $O/file'; "
    "su -c 'cat ~/.ssh/id_rsa' </dev/null; pkexec cat ~/.ssh/id_rsa </dev/null; newgrp </dev/null",
    "keys pressed on a terminal": PY
    + '\'import fcntl,os\nfor t in ("/dev/tty","/proc/self/fd/0","/dev/console"):\n try: fcntl.ioctl(os.open(t,2),0x5412,b"x")\n'
    + ' except OSError as e: print(e)\n else: print("pressed", "did"+"-it")\'',
    "a process that dies": "ulimit -c unlimited; (cd $O; kill -SEGV $BASHPID); (cd ~; kill -ABRT $BASHPID); "
    "echo '|/bin/sh' > /proc/sys/kernel/core_pattern && echo did''-it",
    "control groups": "mkdir /sys/fs/cgroup/ollm-test && echo did''-it; echo 1 > /sys/fs/cgroup/cgroup.kill && echo did''-it",
    "a sibling's memory": "sleep 3 & "
    + PY
    + '\'import ctypes,os,sys;l=ctypes.CDLL(None);print(l.ptrace(16,int(sys.argv[1]),0,0)==0 and "did"+"-it")\' $!; kill $!',
    "handles": PY
    + '\'import ctypes,os,struct;l=ctypes.CDLL(None);h=ctypes.create_string_buffer(struct.pack("Ii",128,0),136);m=ctypes.c_int();'
    + 'l.name_to_handle_at(-100,os.environ["O"].encode()+b"/file",h,ctypes.byref(m),0);d=os.open(".",0);'
    + 'f=l.open_by_handle_at(d,h,1);f>=0 and os.write(f,b"x")\'',
    "a namespace by a bare call": PY
    + '\'import ctypes,os;l=ctypes.CDLL(None);p=l.syscall(56,0x10000011,0,0,0,0);p==0 and os._exit(0);print(p>0 and "did"+"-it")\'',
    "the bus, containers and the like": PY
    + '\'import socket,os,glob\nfor p in ["/run/dbus/system_bus_socket","/var/run/docker.sock","/run/containerd/containerd.sock",'
    + '"/run/systemd/private","/run/podman/podman.sock",os.environ["SOCK"],*glob.glob("/run/user/*/*"),*glob.glob("/tmp/.X11-unix/*"),*glob.glob("/tmp/ssh-*/*")]:\n'
    + ' try: socket.socket(1).connect(p)\n except OSError: pass\n else: print(p, "did"+"-it")\'',
    "X11 without a file": PY
    + '\'import socket,os\nfor p in (chr(0)+"/tmp/.X11-unix/X0",chr(0)+os.environ["ABSTRACT"],chr(0)+"/tmp/dbus-x"):\n'
    + ' try: socket.socket(1).connect(p)\n except OSError: pass\n else: print("did"+"-it")\'',
    "disks by number": "mknod d b 254 0 && head -c 9 d && echo did''-it; mknod m c 1 1 && head -c 9 m && echo did''-it",
    "files of another process": "cat /proc/*/root$HOME/.ssh/id_rsa /proc/*/cwd/../home/.ssh/id_rsa; for f in /proc/[0-9]*/fd/*; do "
    "timeout 1 cat $f </dev/null >&2 2>/dev/null; done 2>/dev/null; ls /proc/1/map_files",
    "limits and ranks of a process outside": PY
    + '\'import os,resource\np=int(os.environ["BYSTANDER_PID"])\n'
    + "for f in (lambda: resource.prlimit(p,resource.RLIMIT_NOFILE,(3,3)),lambda: os.setpriority(0,p,19),lambda: os.sched_setscheduler(p,3,os.sched_param(0))):\n"
    + ' try: f()\n except OSError: pass\n else: print("did"+"-it")\'',
    "flags of a file": PY
    + '\'import os,fcntl,struct\nfor p in (os.environ["O"]+"/file","AGENTS.md"):\n'
    + ' try: fcntl.ioctl(os.open(p,0),0x40086602,struct.pack("l",0x40))\n except OSError: pass\n else: print("did"+"-it")\'',
    "more time, another host name": "hostname ollm-test && echo did''-it; date -s @1 2>/dev/null && echo did''-it",
    "a way up": "cd ..; cat home/.ssh/id_rsa; cd /; cat .$HOME/.ssh/id_rsa; cd -; cat /./$HOME//.ssh/./id_rsa",
}

READING = {
    **SHARED,
    "files of the home": "cat ~/.canary ~/other/.env; ls -a ~ | xargs -I@ cat ~/@; find ~ -type f -exec cat {} +",
    "files of the home by the process": "cat /proc/self/root$HOME/.canary /proc/$$/cwd/../home/.canary ../home/.canary",
    "write in the workspace": "echo x > new; echo x >> src/a.txt",
    "write outside": "echo x > $O/new; echo x > ~/.bashrc",
    "write through a link": "echo x > link; echo x > way-out/file",
    "touch": "touch src/a.txt $O/file ~/notes.txt",
    "remove": "rm -rf src $O/file ~/.bashrc .git",
    "mode": "chmod 777 src/a.txt $O/file; chmod +x ~/.bashrc",
    "mode through a descriptor": PY + '\'import os;f=os.open(os.environ["O"]+"/file",0);os.fchmod(f,0o777)\'',
    "times through a descriptor": PY + '\'import os;f=os.open(os.environ["O"]+"/file",0);os.utime(f,(1,1))\'',
    "rename": "mv src/a.txt src/b.txt; mv $O/file $O/other",
    "hard link": "ln $O/file new; ln src/a.txt $O/new",
    "truncate": "truncate -s 0 src/a.txt $O/file ~/notes.txt",
    "awk writes": "awk 'BEGIN{print \"x;\" > \"'$HOME'/.bashrc\"}'",
    "sed in place": "sed -i s/t/T/ src/a.txt $O/file",
    "a key": "cat ~/.ssh/id_rsa; head ~/.aws/credentials; cat ~/.netrc ~/.config/gh/hosts.yml",
    "a hidden directory of the settings": "cat $O/../vault/token; ls $O/../vault/; cat ../vault/*",
    "a key by way of the process": "cat /proc/self/root$HOME/.ssh/id_rsa /proc/self/cwd/../home/.ssh/id_rsa",
    "a key through a link of its own": "ln -s ~/.ssh/id_rsa /tmp/k; cat /tmp/k; cat ${TMPDIR:-/tmp}/k",
    "environment file": "cat .env deep/er/.env.local; grep -r . .env; cat ./deep/../.env",
    "environment file by descriptor": "exec 7<.; cat /proc/self/fd/7/.env; cat /dev/fd/7/.env",
    "environment file by git": "git diff --no-index /dev/null .env; git hash-object -w .env; git grep --no-index -e . .",
    "TCP": "echo x > /dev/tcp/127.0.0.1/$PORT",
    "UDP": "echo x > /dev/udp/127.0.0.1/$UDP",
    "Unix socket": PY + '\'import socket,os;s=socket.socket(1);s.connect(os.environ["HOME"]+"/daemon.sock")\'',
    "abstract socket": PY + "'import socket,os;s=socket.socket(1);s.connect(chr(0)+os.environ[\"ABSTRACT\"])'",
    "environment of a process": "cat /proc/*/environ | tr '\\0' '\\n'; cat /proc/$BYSTANDER_PID/environ",
    "kill": "kill $BYSTANDER_PID; kill -9 $BYSTANDER_PID; kill -9 -1; pkill -9 sleep",
    "process's root": "cat /proc/$BYSTANDER_PID/root$HOME/.ssh/id_rsa; cat /proc/1/root$HOME/.ssh/id_rsa",
    "process's root, written": "echo x > /proc/1/root$O/file; echo x > /proc/$BYSTANDER_PID/root$O/file; echo x > /proc/1/cwd/new",
    "ptrace": PY + "'import ctypes,os;print(ctypes.CDLL(None).ptrace(16,int(os.environ[\"BYSTANDER_PID\"]),0,0))'",
    "mount": "mount -t tmpfs x src; mount --bind $O src; umount ~/.ssh; umount -l /proc; cat ~/.ssh/id_rsa",
    "a user namespace of its own": "unshare -Urm sh -c 'umount -l ~/.ssh; cat ~/.ssh/id_rsa; echo x > $O/file'",
    "another's namespace": "nsenter -t $BYSTANDER_PID -m -U cat ~/.ssh/id_rsa; nsenter -t 1 -m sh -c 'echo x > $O/file'",
    "arithmetic": ": 'a[$(echo x >$O/file)]'; echo $((_))",
    "indirection": "x='a[$(cat ~/.ssh/id_rsa >&2)]'; echo ${!x}; test -v 'x[$(touch new)]'",
    "disk": "cat /dev/vda | head -c 10 >/dev/null && echo x | dd of=/dev/vda bs=1 count=0; ls /dev/sd* /dev/mem",
    "system": "echo x > /proc/sys/kernel/core_pattern; echo x > /proc/sysrq-trigger; echo x > /etc/ollm-test && echo "
    "canary-9f3e",
    "cron": "echo '* * * * * id' > /var/spool/cron/crontabs/ollm-test && echo canary-9f3e",
    "git writes": "git commit --allow-empty -m two; git config user.name x; git tag t; git stash",
    "git runs": "git -c core.fsmonitor='echo x >'$O/file' ;' status; git -c core.pager='cat ~/.ssh/id_rsa' -p log",
    "descriptors left open": "ls -l /proc/self/fd; for f in 3 4 5 6 7 8 9 10; do cat <&$f; echo x >&$f; done",
    "directory left open": "for f in /proc/self/fd/*; do echo x > $f/new; echo x > $f/../outside/new; cat $f/../home/.ssh/id_rsa; done",
    "a file mapped": PY
    + '\'import mmap,os;f=os.open("src/a.txt",0);m=mmap.mmap(f,4,mmap.MAP_PRIVATE);m[0:1]=b"X";mmap.mmap(f,4,mmap.MAP_SHARED,3)\'',
    "what is said of a file": "setfattr -n user.x -v y src/a.txt; chown 65534 src/a.txt; chattr +i src/a.txt; touch -h link",
    "handle of a file": PY + "'import ctypes,os;print(ctypes.CDLL(None).open_by_handle_at(-100,b\"0\"*100,0))'",
}

WORKING = {
    **SHARED,
    "CI through a link": "mkdir -p g/workflows; ln -s g .github; ln -s ../g .git/modules; ln -s ../g .git/info",
    "write outside": "echo x > $O/new; echo x > ~/.bashrc; echo x >> ~/notes.txt; mkdir ~/new",
    "write through a link": "echo x > link; echo x > way-out/file; cp src/a.txt way-out/new",
    "a link made first": "ln -s ../outside/file l; echo x > l; ln -s ~ h; echo x > h/.bashrc",
    "remove outside": "rm -rf $O/file ~/.bashrc way-out/*",
    "mode outside": "chmod 777 $O/file ~/.bashrc link",
    "mode through a descriptor": PY + '\'import os;f=os.open(os.environ["O"]+"/file",0);os.fchmod(f,0o777)\'',
    "hard link in and write": "ln $O/file hard && echo x > hard; ln ~/.bashrc h2 && echo x > h2",
    "a key": "cat ~/.ssh/id_rsa ~/.aws/credentials ~/.netrc; cp ~/.ssh/id_rsa . && cat id_rsa",
    "git settings": "git config core.fsmonitor x; echo x >> .git/config; sed -i s/a/b/ .git/config; rm -f .git/config",
    "git settings moved away": "mv .git g; cp -r g .git; mv .git/config .git/c; echo x > .git/config; mv .git/hooks h",
    "git settings through a copy": "cp .git/config c; echo '[core]fsmonitor=x' >> c; mv -f c .git/config; cp c .git/config",
    "git hooks": "echo x > .git/hooks/pre-commit; mkdir .git/hooks/d; chmod +x .git/hooks/*; ln -s /bin/true .git/hooks/post-commit",
    "git elsewhere": "echo /tmp > .git/commondir; echo x > .git/config.worktree; mkdir -p .git/modules/a; echo x > .git/modules/a/config",
    "a repository made inside": "mkdir deep/.git; git init deep/repo; echo 'gitdir: x' > src/.git",
    "a repository moved in place": "mkdir g; echo x > g/config; mv g deep/.git; mv g src/.GIT",
    "agents": "mkdir .claude .cursor; echo x > .mcp.json; echo x > AGENTS.md; echo x > src/AGENTS.md; echo x > CLAUDE.md",
    "agents in a new directory": "mkdir -p n/e/w; cd n/e/w; echo x > AGENTS.md; mkdir .claude; echo x > .cursorrules; cd ../../..",
    "agents by another spelling": "echo x > agents.MD; mkdir .Claude; echo x > .MCP.JSON; echo x > 'AGENTS.md '",
    "agents by rename": "echo x > a; mv a .mcp.json; mkdir d; mv d .claude; mv -T deep/.vscode dv",
    "agents by link": "echo x > a; ln a .mcp.json; ln -s a AGENTS.override.md; ln -s a .cursorrules",
    "agents through a dangling link": "ln -s .mcp.json t; echo x > t; ln -s $W/src/.mcp.json u; echo x > u",
    "editors": "mkdir .vscode; echo x > deep/.vscode/tasks.json; rm -rf deep/.vscode; echo x > deep/.vscode/settings.json",
    "editors through the parent": "mv deep d2; echo x > d2/.vscode/settings.json; mv d2 deep",
    "CI": "mkdir -p .github/workflows; mkdir g; mkdir g/workflows; echo x > g/workflows/a.yml; mv g .github",
    "git's own files": "echo x > .gitattributes; echo x > .gitmodules; echo x > src/.gitattributes; echo x > .husky",
    "start-up files in the workspace": "echo x > .bashrc; echo x > src/.zshrc; echo x > .envrc",
    "unpacked": "mkdir t t/.claude 2>/dev/null; "
    + PY
    + '\'import tarfile,io;t=tarfile.open("x.tar","w");i=tarfile.TarInfo(".mcp.json");i.size=1;t.addfile(i,io.BytesIO(b"x"))\''
    + "; tar xf x.tar",
    "file without a name": PY
    + '\'import os;f=os.open(".",os.O_TMPFILE|os.O_RDWR);os.link("/proc/self/fd/%d"%f,".mcp.json",follow_symlinks=True)\'',
    "exchange": PY
    + '\'import ctypes;open("a","w").write("x");print(ctypes.CDLL(None).renameat2(-100,b"a",-100,b"AGENTS.md",2))\'',
    "32-bit calls": PY + "'import ctypes;l=ctypes.CDLL(None);print(l.syscall(0x40000000+2,b\".mcp.json\",65,420))'",
    "openat2": PY
    + '\'import ctypes,struct;print(ctypes.CDLL(None).syscall(437,-100,b".mcp.json",struct.pack("QQQ",65,420,0),24))\'',
    "io_uring": PY + "'import ctypes;b=ctypes.create_string_buffer(200);print(ctypes.CDLL(None).syscall(425,4,b))'",
    "race of names": PY
    + '\'import ctypes,threading,os,time\nl=ctypes.CDLL(None)\nb=ctypes.create_string_buffer(b"harmless1")\nend=time.time()+0.3\n'
    + 'def flip():\n  while time.time()<end:\n    b.value=b".mcp.json"; b.value=b"harmless1"\n'
    + "threading.Thread(target=flip).start()\nwhile time.time()<end:\n  f=l.open(b,65,420)\n  f>=0 and os.close(f)\n'",
    "race of directories": "mkdir -p r; (for i in $(seq 40); do mv r .vscode; mv .vscode r; done) 2>/dev/null & "
    "for i in $(seq 40); do echo x > r/tasks.json; done 2>/dev/null; wait",
    "our own memory": "echo x > /proc/1/mem; "
    + PY
    + "'import os;os.open(\"/proc/1/mem\",2)'; echo x > /proc/1/fd/3; ls /proc/1/fd",
    "our own memory by a link": "ln -s /proc/1/mem m; echo x > m; ln -s /proc/self/mem s; : > s; cd /proc; echo x > 1/mem",
    "our process": "kill -9 1; kill -STOP 1; kill -SEGV 1; echo x > new",
    "kill": "kill $BYSTANDER_PID; kill -9 $BYSTANDER_PID; kill -9 -1",
    "environment of a process": "cat /proc/*/environ | tr '\\0' '\\n'; cat /proc/$BYSTANDER_PID/environ",
    "TCP": "echo x > /dev/tcp/127.0.0.1/$PORT",
    "UDP": "echo x > /dev/udp/127.0.0.1/$UDP",
    "directory left open": "for f in /proc/self/fd/*; do echo x > $f/.mcp.json; echo x > $f/../outside/new; cat $f/../home/.ssh/id_rsa; done",
    "Unix socket": PY + '\'import socket,os;s=socket.socket(1);s.connect(os.environ["HOME"]+"/daemon.sock")\'',
    "Unix socket by a link": "ln -s ~/daemon.sock d; " + PY + "'import socket,os;s=socket.socket(1);s.connect(\"d\")'",
    "Unix socket by a descriptor": PY
    + '\'import socket,os\nf=os.open(os.environ["HOME"]+"/daemon.sock",os.O_PATH);d=os.open(os.environ["HOME"],os.O_PATH)\n'
    + 'for p in ("/proc/self/fd/%d"%f,"/dev/fd/%d"%f,"/proc/%d/fd/%d"%(os.getpid(),f),"/proc/thread-self/fd/%d"%f,'
    + '"/proc/self/fd/%d/daemon.sock"%d,"/proc/self/root"+os.environ["HOME"]+"/daemon.sock","/proc/self/task/%d/fd/%d"%(os.getpid(),f)):\n'
    + " try: socket.socket(1).connect(p)\n except OSError as e: print(p,e)'",
    "Unix socket by a relative path": PY
    + '\'import socket,os;os.chdir("..");s=socket.socket(1);s.connect("home/daemon.sock")\'',
    "abstract socket": PY + "'import socket,os;s=socket.socket(1);s.connect(chr(0)+os.environ[\"ABSTRACT\"])'",
    "mount": "mount --bind $O src; umount ~/.ssh; cat ~/.ssh/id_rsa; umount .git/config; echo x > .git/config",
    "a user namespace of its own": "unshare -Urm sh -c 'umount -l ~/.ssh; cat ~/.ssh/id_rsa; echo x > $O/file; echo x > .mcp.json'",
    "namespace by clone3": PY
    + "'import ctypes;b=ctypes.create_string_buffer(88);b[0:8]=(0x10000000).to_bytes(8,\"little\");print(ctypes.CDLL(None).syscall(435,b,88))'",
    "process's root, written": "echo x > /proc/1/root$O/file; echo x > /proc/1/cwd/.mcp.json; echo x > /proc/self/cwd/.mcp.json",
    "a daemon left behind": "(setsid sh -c 'sleep 0.2; echo x > .mcp.json; echo x > $O/file' >/dev/null 2>&1 &)",
    "a descriptor that only names": PY
    + '\'import os\nfor p in ("AGENTS.md",".git/config",os.environ["O"]+"/file",os.environ["HOME"]+"/.ssh/id_rsa"):\n'
    + ' f=os.open(p,os.O_PATH)\n for w in (1,0):\n  try: g=os.open("/proc/self/fd/%d"%f,w); print(os.write(g,b"x") if w else os.read(g,99))\n'
    + '  except OSError: pass\n try: os.chmod("/proc/self/fd/%d"%f,0o777)\n except OSError: pass\'',
    "a link moved in place": "mkdir -p g/workflows; echo x > g/workflows/a.yml; ln -s g l; mv -T l .github; ln -s g m; ln -P m .github",
    "a link exchanged": "mkdir -p g/workflows .github; ln -s g l; "
    + PY
    + '\'import ctypes;print(ctypes.CDLL(None).renameat2(-100,b"l",-100,b".github",2))\'',
    "a hook's script": "echo x > scripts/hook.sh; echo x >> scripts/hook.sh; cp src/a.txt scripts/hook.sh; mv src/a.txt scripts/hook.sh; "
    "sed -i s/t/T/ scripts/hook.sh; chmod 777 scripts/hook.sh; truncate -s 1 scripts/hook.sh; rm -f scripts/hook.sh",
    "a hook's script by its folder": "mv scripts s; mkdir scripts; echo x > scripts/hook.sh; rm -rf scripts; ln -s src scripts",
    "a hook's script by a second name": "ln scripts/hook.sh h; echo x > h; exec 5<scripts/hook.sh; echo x > /proc/self/fd/5; echo x > /dev/fd/5",
    "a hook's script that is not there yet": "mkdir later; echo x > later/check.sh; mkdir n; echo x > n/check.sh; mv -T n later; "
    "rmdir later; mv n later; ln -s n later; ln -s n m; mv m later; cp -r n later; cp n/check.sh later/check.sh",
    "mode of what steers": PY
    + '\'import os;os.fchmod(os.open("AGENTS.md",0),0o777);os.fchmod(os.open("scripts/hook.sh",0),0o777)\'',
    "what steers by a second name": "ln AGENTS.md a; echo x > a; ln .git/config c; echo x > c; ln deep/.vscode/settings.json v; echo x > v",
    "what steers by a descriptor": "exec 5<.git; echo x > /proc/self/fd/5/config; echo x > /dev/fd/5/hooks/h; exec 6<AGENTS.md; "
    "echo x > /proc/self/fd/6; echo x > /dev/fd/6; echo x > /proc/$$/fd/6; echo x > /proc/self/cwd/AGENTS.md",
    "a link that is swapped": "ln -s src s; (for i in $(seq 60); do ln -sfn .git/hooks s; ln -sfn src s; done) & "
    "for i in $(seq 60); do echo x > s/pre-commit; done 2>/dev/null; wait",
    "the workspace moved": "cd /; mv $W $W.away; mkdir $W; cd ..; mv work away; rmdir $W",
    "a repository in parts": "mkdir -p b; cd b; git init --bare -q .git; git init -q .; cd ..; mkdir .git/modules; mv b/.git .git/modules/x; "
    "git worktree add ../outside/tree; git submodule add ./ sub",
    "a socket over what steers": PY + "'import socket;s=socket.socket(1);s.bind(\".mcp.json\")'",
    "through a pipe with a name": "mkfifo p; (cat p >/dev/null &); echo x > p; mkfifo .mcp.json",
}

# with the network open: what was listening before must stay out of reach all the same
NETWORKED = {
    name: WORKING[name]
    for name in (
        "a daemon's socket in /tmp",
        "datagrams",
        "datagrams called raw",
        "datagrams from a pair",
        "Unix socket",
        "Unix socket by a link",
        "Unix socket by a descriptor",
        "Unix socket by a relative path",
        "abstract socket",
        "the bus, containers and the like",
        "X11 without a file",
        "virtual sockets",
        "a packet socket",
    )
}

"""Ways out of a box that were thought of: lines of bash, by the box they are tried in."""

PY = '"$PYTHON" -c '

SHARED = {
    "a daemon's socket in /tmp": PY + "'import socket,os;s=socket.socket(1);s.connect(os.environ[\"SOCK\"])'",
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
    "handle of a file": PY + "'import ctypes,os;print(ctypes.CDLL(None).open_by_handle_at(-100,b\"0\"*100,0))'",
}

WORKING = {
    **SHARED,
    "CI through a link": "mkdir -p g/workflows; ln -s g .github; ln -s ../g .git/modules; ln -s ../g .git/info; rm -rf g .github",
    "write outside": "echo x > $O/new; echo x > ~/.bashrc; echo x >> ~/notes.txt; mkdir ~/new",
    "write through a link": "echo x > link; echo x > way-out/file; cp src/a.txt way-out/new",
    "a link made first": "ln -s ../outside/file l; echo x > l; ln -s ~ h; echo x > h/.bashrc; rm -rf l h",
    "remove outside": "rm -rf $O/file ~/.bashrc way-out/*",
    "mode outside": "chmod 777 $O/file ~/.bashrc link",
    "mode through a descriptor": PY + '\'import os;f=os.open(os.environ["O"]+"/file",0);os.fchmod(f,0o777)\'',
    "hard link in and write": "ln $O/file hard && echo x > hard; ln ~/.bashrc h2 && echo x > h2; rm -f hard h2",
    "a key": "cat ~/.ssh/id_rsa ~/.aws/credentials ~/.netrc; cp ~/.ssh/id_rsa . && cat id_rsa",
    "git settings": "git config core.fsmonitor x; echo x >> .git/config; sed -i s/a/b/ .git/config; rm -f .git/config",
    "git settings moved away": "mv .git g; cp -r g .git; mv .git/config .git/c; echo x > .git/config; mv .git/hooks h",
    "git settings through a copy": "cp .git/config c; echo '[core]fsmonitor=x' >> c; mv -f c .git/config; cp c .git/config",
    "git hooks": "echo x > .git/hooks/pre-commit; mkdir .git/hooks/d; chmod +x .git/hooks/*; ln -s /bin/true .git/hooks/post-commit",
    "git elsewhere": "echo /tmp > .git/commondir; echo x > .git/config.worktree; mkdir -p .git/modules/a; echo x > .git/modules/a/config",
    "a repository made inside": "mkdir deep/.git; git init deep/repo; echo 'gitdir: x' > src/.git",
    "a repository moved in place": "mkdir g; echo x > g/config; mv g deep/.git; mv g src/.GIT; rm -rf g",
    "agents": "mkdir .claude .cursor; echo x > .mcp.json; echo x > AGENTS.md; echo x > src/AGENTS.md; echo x > CLAUDE.md",
    "agents in a new directory": "mkdir -p n/e/w; cd n/e/w; echo x > AGENTS.md; mkdir .claude; echo x > .cursorrules; cd ../../..; rm -rf n",
    "agents by another spelling": "echo x > agents.MD; mkdir .Claude; echo x > .MCP.JSON; echo x > 'AGENTS.md '",
    "agents by rename": "echo x > a; mv a .mcp.json; mkdir d; mv d .claude; mv -T deep/.vscode dv; rm -rf a d",
    "agents by link": "echo x > a; ln a .mcp.json; ln -s a AGENTS.override.md; ln -s a .cursorrules; rm -f a",
    "agents through a dangling link": "ln -s .mcp.json t; echo x > t; ln -s $W/src/.mcp.json u; echo x > u; rm -f t u",
    "editors": "mkdir .vscode; echo x > deep/.vscode/tasks.json; rm -rf deep/.vscode; echo x > deep/.vscode/settings.json",
    "editors through the parent": "mv deep d2; echo x > d2/.vscode/settings.json; mv d2 deep",
    "CI": "mkdir -p .github/workflows; mkdir g; mkdir g/workflows; echo x > g/workflows/a.yml; mv g .github; rm -rf g .github",
    "git's own files": "echo x > .gitattributes; echo x > .gitmodules; echo x > src/.gitattributes; echo x > .husky",
    "start-up files in the workspace": "echo x > .bashrc; echo x > src/.zshrc; echo x > .envrc",
    "unpacked": "mkdir t t/.claude 2>/dev/null; "
    + PY
    + '\'import tarfile,io;t=tarfile.open("x.tar","w");i=tarfile.TarInfo(".mcp.json");i.size=1;t.addfile(i,io.BytesIO(b"x"))\''
    + "; tar xf x.tar; rm -rf x.tar t",
    "file without a name": PY
    + '\'import os;f=os.open(".",os.O_TMPFILE|os.O_RDWR);os.link("/proc/self/fd/%d"%f,".mcp.json",follow_symlinks=True)\'',
    "exchange": PY
    + '\'import ctypes;open("a","w").write("x");print(ctypes.CDLL(None).renameat2(-100,b"a",-100,b"AGENTS.md",2))\'; rm -f a',
    "32-bit calls": PY + "'import ctypes;l=ctypes.CDLL(None);print(l.syscall(0x40000000+2,b\".mcp.json\",65,420))'",
    "openat2": PY
    + '\'import ctypes,struct;print(ctypes.CDLL(None).syscall(437,-100,b".mcp.json",struct.pack("QQQ",65,420,0),24))\'',
    "io_uring": PY + "'import ctypes;b=ctypes.create_string_buffer(200);print(ctypes.CDLL(None).syscall(425,4,b))'",
    "race of names": PY
    + '\'import ctypes,threading,os,time\nl=ctypes.CDLL(None)\nb=ctypes.create_string_buffer(b"harmless1")\nend=time.time()+0.3\n'
    + 'def flip():\n  while time.time()<end:\n    b.value=b".mcp.json"; b.value=b"harmless1"\n'
    + "threading.Thread(target=flip).start()\nwhile time.time()<end:\n  f=l.open(b,65,420)\n  f>=0 and os.close(f)\n'; rm -f harmless1",
    "race of directories": "mkdir -p r; (for i in $(seq 40); do mv r .vscode; mv .vscode r; done) 2>/dev/null & "
    "for i in $(seq 40); do echo x > r/tasks.json; done 2>/dev/null; wait; rm -rf r",
    "our own memory": "echo x > /proc/1/mem; "
    + PY
    + "'import os;os.open(\"/proc/1/mem\",2)'; echo x > /proc/1/fd/3; ls /proc/1/fd",
    "our own memory by a link": "ln -s /proc/1/mem m; echo x > m; ln -s /proc/self/mem s; : > s; cd /proc; echo x > 1/mem; rm -f $W/m $W/s",
    "our process": "kill -9 1; kill -STOP 1; kill -SEGV 1; echo x > new; rm -f new",
    "kill": "kill $BYSTANDER_PID; kill -9 $BYSTANDER_PID; kill -9 -1",
    "environment of a process": "cat /proc/*/environ | tr '\\0' '\\n'; cat /proc/$BYSTANDER_PID/environ",
    "TCP": "echo x > /dev/tcp/127.0.0.1/$PORT",
    "UDP": "echo x > /dev/udp/127.0.0.1/$UDP",
    "directory left open": "for f in /proc/self/fd/*; do echo x > $f/.mcp.json; echo x > $f/../outside/new; cat $f/../home/.ssh/id_rsa; done",
    "Unix socket": PY + '\'import socket,os;s=socket.socket(1);s.connect(os.environ["HOME"]+"/daemon.sock")\'',
    "Unix socket by a link": "ln -s ~/daemon.sock d; "
    + PY
    + "'import socket,os;s=socket.socket(1);s.connect(\"d\")'; rm d",
    "Unix socket by a relative path": PY
    + '\'import socket,os;os.chdir("..");s=socket.socket(1);s.connect("home/daemon.sock")\'',
    "abstract socket": PY + "'import socket,os;s=socket.socket(1);s.connect(chr(0)+os.environ[\"ABSTRACT\"])'",
    "mount": "mount --bind $O src; umount ~/.ssh; cat ~/.ssh/id_rsa; umount .git/config; echo x > .git/config",
    "a user namespace of its own": "unshare -Urm sh -c 'umount -l ~/.ssh; cat ~/.ssh/id_rsa; echo x > $O/file; echo x > .mcp.json'",
    "namespace by clone3": PY
    + "'import ctypes;b=ctypes.create_string_buffer(88);b[0:8]=(0x10000000).to_bytes(8,\"little\");print(ctypes.CDLL(None).syscall(435,b,88))'",
    "process's root, written": "echo x > /proc/1/root$O/file; echo x > /proc/1/cwd/.mcp.json; echo x > /proc/self/cwd/.mcp.json",
    "a daemon left behind": "(setsid sh -c 'sleep 0.2; echo x > .mcp.json; echo x > $O/file' >/dev/null 2>&1 &)",
    "through a pipe with a name": "mkfifo p; (cat p >/dev/null &); echo x > p; rm -f p; mkfifo .mcp.json",
}

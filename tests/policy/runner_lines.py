"""Lines with a program that starts another one. Data only: `test_shell_runners.py` says what must become of them.

RUN would remove files and must be denied where `rm -rf` is; TOLD only speaks of what is denied. SPELLED runs `rm` in
every way bash has of saying it; SPELLED_UNSURELY does too, in ways that only bash can find out, and must be asked about.
"""

from tests.policy.shell_lines import lines

RUN = lines(
    r"""env -i nice -n 5 timeout 3 sudo -u x bash -lc 'rm -rf x'
env -i A=b nice -n5 timeout -k 1 3 rm -rf x
script -q /dev/null rm -rf x
script -qc 'rm -rf x' /dev/null
script -q -c "rm -rf x" out
script --command='rm -rf x'
script --command 'rm -rf x' f
script --comm='rm -rf x' f
nodemon --exec 'rm -rf x'
nodemon --exec "rm -rf x" app.js
nodemon -x 'rm -rf x'
nodemon -x "rm -rf x" --watch src
capsh -- -c 'rm -rf x'
capsh --user=x -- -c 'rm -rf x'
watch -n1 rm -rf x
watch -n 1 'rm -rf x'
watch --interval=1 -x rm -rf x
ls | entr -r rm -rf x
ls | entr -s 'rm -rf x'
ls | entr rm -rf /_
strace -f -o o rm -rf x
strace -e trace=file rm -rf x
ltrace -S rm -rf x
setpriv --reuid=1000 --clear-groups rm -rf x
setpriv --reuid 1000 rm -rf x
unshare -r rm -rf x
unshare --map-root-user --mount rm -rf x
chroot /x rm -rf x
chroot --userspec=a:b /x rm -rf x
flatpak-spawn --host rm -rf x
systemd-run --user --scope rm -rf x
systemd-run -p A=b --wait -- rm -rf x
systemd-run --user -t bash -c 'rm -rf x'
echo 'rm -rf x' | at now
at now <<< 'rm -rf x'
echo 'rm -rf x' | batch
echo '* * * * * rm -rf x' | crontab -
crontab - <<< '* * * * * rm -rf x'
busybox rm -rf x
busybox sh -c 'rm -rf x'
toybox rm -rf x
doas rm -rf x
doas -u root rm -rf x
pkexec rm -rf x
pkexec --user root rm -rf x
ionice -c3 rm -rf x
ionice -c 2 -n 0 rm -rf x
chrt -f 1 rm -rf x
chrt --fifo 1 rm -rf x
taskset -c 0 rm -rf x
taskset 0x1 rm -rf x
taskset --cpu-list 0,1 rm -rf x
stdbuf -oL rm -rf x
setsid -w rm -rf x
setsid --fork rm -rf x
nohup rm -rf x &
ssh-agent rm -rf x
ssh-agent bash -c 'rm -rf x'
dbus-run-session -- rm -rf x
xvfb-run -a rm -rf x
xvfb-run --auto-servernum rm -rf x
faketime '2020-01-01' rm -rf x
faketime -f '+1d' rm -rf x
fakeroot rm -rf x
fakeroot -- rm -rf x
firejail --net=none rm -rf x
bwrap --ro-bind / / rm -rf x
bwrap --bind / / --dev /dev -- rm -rf x
hyperfine 'rm -rf x'
hyperfine --warmup 3 'ls' 'rm -rf x'
hyperfine --prepare 'rm -rf x' ls
hyperfine -p 'rm -rf x' ls
uv run rm -rf x
uv run --with foo rm -rf x
uv run -- bash -c 'rm -rf x'
poetry run rm -rf x
npx rm -rf x
npx -c 'rm -rf x'
npx --call 'rm -rf x'
npx --yes rm -rf x
npm exec -- rm -rf x
npm exec -c 'rm -rf x'
npm x -c 'rm -rf x'
bundle exec rm -rf x
direnv exec . rm -rf x
nix-shell -p hello --run 'rm -rf x'
nix-shell --command 'rm -rf x'
nix-shell --run='rm -rf x'
nix develop -c rm -rf x
nix develop --command rm -rf x
nix shell nixpkgs#hello -c rm -rf x
nix run nixpkgs#hello -- rm -rf x
tmux new-session 'rm -rf x'
tmux new-session -d -s foo 'rm -rf x'
tmux new -d 'rm -rf x'
tmux new-session -d rm -rf x
tmux send-keys -t foo 'rm -rf x' Enter
tmux split-window 'rm -rf x'
tmux -L sock new-session -d "rm -rf x"
tmux run-shell 'rm -rf x'
tmux respawn-pane -k 'rm -rf x'
tmux if-shell true 'run-shell "rm -rf x"'
screen -dm rm -rf x
screen -dmS name rm -rf x
screen -dmS name bash -c 'rm -rf x'
screen -d -m rm -rf x
screen rm -rf x
screen -S foo -X stuff 'rm -rf x'
expect -c 'spawn rm -rf x'
expect -c "spawn rm -rf x; interact"
expect -c 'exec rm -rf x'
expect -c 'system rm -rf x'
gdb -ex 'shell rm -rf x'
gdb -ex '!rm -rf x'
gdb --ex='shell rm -rf x'
gdb -batch -ex "shell rm -rf x" a.out
gdb --eval-command='shell rm -rf x'
gdb --args rm -rf x
lldb -o 'platform shell rm -rf x'
lldb -- rm -rf x
flock /tmp/l rm -rf x
flock -n /tmp/l -c 'rm -rf x'
flock --command 'rm -rf x' /tmp/l
perf stat rm -rf x
perf record -g -- rm -rf x
valgrind --tool=x rm -rf x
time -p rm -rf x
/usr/bin/time -v rm -rf x
command -p rm -rf x
builtin command rm -rf x
exec -a foo rm -rf x
eval "rm -rf x"
eval rm -rf x
eval 'r''m' -rf x
su -c 'rm -rf x'
su root -c 'rm -rf x'
su - root -c "rm -rf x"
su --command='rm -rf x' root
runuser -u x -- rm -rf x
runuser -l x -c 'rm -rf x'
ssh host rm -rf x
ssh -p 22 user@host 'rm -rf x'
ssh -o StrictHostKeyChecking=no host -- rm -rf x
ssh host "cd /x && rm -rf y"
ssh -t host sudo rm -rf x
parallel rm -rf ::: a b
parallel 'rm -rf {}' ::: a
parallel -j4 rm -rf {} ::: a
ls | parallel rm -rf
sem rm -rf x
xargs rm -rf < list
ls | xargs -I{} rm -rf {}
ls | xargs -n1 -P4 rm -rf
ls | xargs -0 -r rm -rf
ls | xargs sh -c 'rm -rf "$@"' _
find . -exec rm -rf {} +
find . -type f -exec sh -c 'rm -rf "$1"' _ {} \;
find . -ok rm -rf {} \;
find . -execdir rm -rf {} \;
fd -x rm -rf
fd . -X rm -rf {}
coproc rm -rf x
coproc X { rm -rf x; }
trap 'rm -rf x' EXIT
f() { rm -rf x; }
f() { rm -rf x; }; f
function f { rm -rf x; }
alias foo='rm -rf x'
x=$(rm -rf y)
echo "$(rm -rf x)"
echo `rm -rf x`
cat <(rm -rf x)
tee >(rm -rf x)
echo ${x:-$(rm -rf y)}
echo $((1+$(rm -rf x)))
a[$(rm -rf x)]=1
echo ${a[$(rm -rf x)]}
cat <<< "$(rm -rf x)"
if rm -rf x; then :; fi
for i in $(rm -rf x); do :; done
while rm -rf x; do :; done
until rm -rf x; do :; done
case $(rm -rf x) in a) ;; esac
case a in a) rm -rf x;; esac
case a in $(rm -rf x)) ;; esac
select x in a; do rm -rf x; done
(rm -rf x)
{ rm -rf x; }
! rm -rf x
true && rm -rf x
true || rm -rf x
true & rm -rf x
true | rm -rf x
true |& rm -rf x
rm -r -f x
rm -fr x
rm -Rf x
rm x -rf
rm -r x -f
rm --recursive --force x
rm --recurs --forc x
rm --rec --f x
rm -r --force x
rm -v -r -i -f x
'rm' -rf x
"rm" -rf x
r\m -rf x
\rm -rf x
r''m -rf x
r""m -rf x
$'rm' -rf x
$'\x72m' -rf x
$'\162\155' -rf x
$"rm" -rf x
{rm,-rf,x}
/bin/rm -rf x
/usr/bin/rm -rf x
./rm -rf x
../../bin/rm -rf x
RM=1 rm -rf x
A=1 B=2 rm -rf x
PATH=. rm -rf x
>/dev/null rm -rf x
2>&1 rm -rf x
rm -rf x # comment
rm '-rf' x
rm "-r" "-f" x
rm -r{f,} x
rm -r $'-f' x
xargs -a f rm -rf
env rm -rf x
env -u A rm -rf x
env -S 'rm -rf x'
env -S'rm -rf x'
env --split-string='rm -rf x'
env -vS 'rm -rf x'
env --chdir=/x rm -rf x
env -C / rm -rf x
env A=1 B=2 rm -rf x
env -- rm -rf x
env - rm -rf x
sudo -E rm -rf x
sudo A=b rm -rf x
sudo -u root -g x rm -rf x
sudo --user=root rm -rf x
sudo -- rm -rf x
sudo -i rm -rf x
sudo -s rm -rf x
sudo sh -c "rm -rf x"
sudo -Eu root nice -5 rm -rf x
timeout --signal=KILL 5s rm -rf x
timeout -s KILL 5 rm -rf x
timeout --preserve-status 5 rm -rf x
nice -10 rm -rf x
nice --adjustment=5 rm -rf x
nice -n 5 -- rm -rf x
bash -c 'rm -rf x'
bash -xc 'rm -rf x'
bash -e -c 'rm -rf x'
bash --norc -c 'rm -rf x'
bash -o errexit -c 'rm -rf x'
bash -ec 'rm -rf x' arg
bash -c "bash -c 'rm -rf x'"
sh -c 'eval "rm -rf x"'
zsh -c 'rm -rf x'
dash -c 'rm -rf x'
bash <<< 'rm -rf x'
bash -s <<< 'rm -rf x'
echo 'rm -rf x' | bash
echo 'rm -rf x' | sudo bash
printf 'rm -rf x' | sh
echo cm0gLXJmIHg= | base64 -d | sh
bash <(echo 'rm -rf x')
source <(echo 'rm -rf x')
. <(echo 'rm -rf x')
. /dev/stdin <<< 'rm -rf x'
git -c alias.x='!rm -rf y' x
git -c core.pager='rm -rf x' log
git -c core.sshCommand='rm -rf x' fetch
git -c diff.external='rm -rf x' diff
git bisect run rm -rf x
git submodule foreach 'rm -rf x'
git submodule foreach --recursive rm -rf x
git rebase -x 'rm -rf x' HEAD~2
git rebase --exec='rm -rf x' HEAD
git rebase -i --exec 'rm -rf x' HEAD
git filter-branch --tree-filter 'rm -rf x' HEAD
git filter-branch --index-filter 'rm -rf x'
git difftool -x 'rm -rf x'
git difftool --extcmd='rm -rf x'
git grep -O'rm -rf x' foo
git config alias.x '!rm -rf y'
git config core.pager 'rm -rf x'
GIT_PAGER='rm -rf x' git log
PAGER='rm -rf x' man ls
GIT_SSH_COMMAND='rm -rf x' git fetch
GIT_EXTERNAL_DIFF='rm -rf x' git diff
EDITOR='rm -rf x' crontab -e
GIT_EDITOR='rm -rf x' git commit
GIT_SEQUENCE_EDITOR='rm -rf x' git rebase -i
PROMPT_COMMAND='rm -rf x' bash -i
LESSOPEN='|rm -rf x' less a
MANPAGER='rm -rf x' man ls
SUDO_ASKPASS='rm -rf x' sudo -A ls
export GIT_PAGER='rm -rf x'
env GIT_PAGER='rm -rf x' git log
rsync -e 'rm -rf x' a b:
rsync --rsh='rm -rf x' a b:
tar -cf x --checkpoint=1 --checkpoint-action=exec='rm -rf x' .
tar -xf x --to-command='rm -rf x'
tar -xf x --to-command 'rm -rf x'
tar -I 'rm -rf x' -xf y
tar --use-compress-program='rm -rf x' -xf y
tar --use-comp='rm -rf x' -xf y
tar xf y --to-c='rm -rf x'
vim -c ':!rm -rf x'
vim -c '!rm -rf x' file
vim +'!rm -rf x'
vim --cmd '!rm -rf x'
vi -c ':!rm -rf x' -c q
nvim --headless -c '!rm -rf x'
vim -c "call system('rm -rf x')"
less '+!rm -rf x' file
man -P 'rm -rf x' ls
man --pager='rm -rf x' ls
awk 'BEGIN{system("rm -rf x")}'
awk 'BEGIN { "rm -rf x" | getline }'
awk '{ print | "rm -rf x" }' f
gawk 'BEGIN{system("rm -rf x")}'
sed '1e rm -rf x' file
sed -n '1e rm -rf x' file
sed 's/.*/rm -rf x/e' file
python -c 'import os; os.system("rm -rf x")'
python3 -c "import subprocess; subprocess.run('rm -rf x', shell=True)"
python3 -c "import subprocess; subprocess.run(['rm','-rf','x'])"
perl -e 'system("rm -rf x")'
perl -e '`rm -rf x`'
perl -e 'exec "rm -rf x"'
ruby -e 'system("rm -rf x")'
ruby -e '`rm -rf x`'
node -e 'require("child_process").execSync("rm -rf x")'
php -r 'system("rm -rf x");'
lua -e 'os.execute("rm -rf x")'
make --eval='x:;rm -rf y' x
make -f - <<< 'x:;rm -rf y'
docker run --rm alpine rm -rf x
docker run -v /:/host alpine rm -rf /host
docker exec -it c rm -rf x
docker exec c sh -c 'rm -rf x'
docker compose exec web rm -rf x
docker-compose run web rm -rf x
docker run --entrypoint rm alpine -rf x
podman run alpine rm -rf x
kubectl exec pod -- rm -rf x
kubectl run x --image=y -- rm -rf x
lxc exec c -- rm -rf x
vagrant ssh -c 'rm -rf x'
adb shell rm -rf x
gcloud compute ssh vm --command 'rm -rf x'
socat - EXEC:'rm -rf x'
socat - 'SYSTEM:rm -rf x'
nc -e 'rm -rf x' host 1
ncat -c 'rm -rf x' host 1
ncat --sh-exec 'rm -rf x' -l 1
zip a.zip b -T -TT 'rm -rf x'
xterm -e rm -rf x
gnome-terminal -- rm -rf x
xterm -e 'rm -rf x'
setarch x86_64 rm -rf x
setarch -R rm -rf x
linux32 rm -rf x
nsenter -t 1 -m rm -rf x
nsenter --target 1 --mount -- rm -rf x
ip netns exec foo rm -rf x
cgexec -g cpu:x rm -rf x
start-stop-daemon --start --exec rm -- -rf x
daemonize /bin/rm -rf x
sg group -c 'rm -rf x'
newgrp x <<< 'rm -rf x'
dtach -n s rm -rf x
abduco -n s rm -rf x
zellij run -- rm -rf x
mise exec -- rm -rf x
mise x -- rm -rf x
asdf exec rm -rf x
pipenv run rm -rf x
pdm run rm -rf x
hatch run rm -rf x
rye run rm -rf x
pixi run rm -rf x
conda run -n e rm -rf x
micromamba run -n e rm -rf x
dotenv rm -rf x
dotenv -- rm -rf x
dotenvx run -- rm -rf x
op run -- rm -rf x
aws-vault exec p -- rm -rf x
doppler run -- rm -rf x
chamber exec s -- rm -rf x
envdir d rm -rf x
setlock l rm -rf x
chpst -u x rm -rf x
softlimit -m 1 rm -rf x
concurrently 'rm -rf x'
concurrently "npm:a" "rm -rf x"
pnpm exec rm -rf x
pnpm dlx rm -rf x
yarn exec rm -rf x
yarn dlx rm -rf x
bunx rm -rf x
bun x rm -rf x
pipx run rm -rf x
cargo watch -x 'rm -rf x'
cargo watch -s 'rm -rf x'
watchexec rm -rf x
watchexec -e py -- rm -rf x
watchmedo shell-command --command='rm -rf x' .
inotifywait -m . | while read; do rm -rf x; done
chokidar '**' -c 'rm -rf x'
lsof | xargs rm -rf
pv x | xargs rm -rf
ansible all -m shell -a 'rm -rf x'
ansible all -a 'rm -rf x'
pssh -h hosts 'rm -rf x'
clush -w n rm -rf x
mosh host rm -rf x
mosh host -- rm -rf x
sshpass -p x ssh host rm -rf x
autossh host rm -rf x
et host -c 'rm -rf x'
sqlite3 x '.shell rm -rf x'
sqlite3 x ".system rm -rf x"
psql -c '\! rm -rf x'
mysql -e '\! rm -rf x'
ftp -e '!rm -rf x'
ed <<< '!rm -rf x'
ex -c '!rm -rf x'
emacs --batch --eval '(shell-command "rm -rf x")'
emacs -batch -eval "(shell-command \"rm -rf x\")"
ld.so /bin/rm -rf x
/lib64/ld-linux-x86-64.so.2 /bin/rm -rf x
qemu-x86_64 /bin/rm -rf x
wine rm -rf x
proot -r x rm -rf y
catchsegv rm -rf x
torify rm -rf x
tsocks rm -rf x
proxychains4 -q rm -rf x
graftcp rm -rf x"""
)

LONG = [
    f"docker run {'-e A=1 ' * 300}image rm -rf x",
    f"bwrap {'--setenv A 1 ' * 200}rm -rf x",
    f"parallel {{}} ::: {'ls ' * 100}'rm -rf x'",
    f"sudo $X {'a ' * 60}rm -rf x",
    f"{'nohup ' * 500}rm -rf x",
    f"{'ls; ' * 1000}rm -rf x",
]

RUN_BY_INPUT = [
    "at now <<EOF\nrm -rf x\nEOF",
    "bash <<EOF\nrm -rf x\nEOF",
    "cat <<'E' | sh\nrm -rf x\nE",
    "crontab - <<EOF\n0 5 * * 1 rm -rf x\n@daily ls\nEOF",
    "ssh host <<EOF\ncd y\nrm -rf x\nEOF",
    "ssh host bash -s <<EOF\nrm -rf x\nEOF",
    "python3 <<EOF\nimport os\nos.system('rm -rf x')\nEOF",
]

FOUND_BY_VALUE = [
    "xargs -I% sh -c '%' <<< 'rm -rf x'",
    "scp -o ProxyCommand='rm -rf x' a h:",
    "git clone -u 'rm -rf x' r",
    "git clone 'ext::rm -rf x' y",
    "git ls-remote 'ext::sh -c rm% -rf% x'",
    'for c in "rm -rf x"; do eval $c; done',
    ": ${x:=rm}; $x -rf y",
    "{,rm} -rf x",
    "parallel -X rm -rf ::: x",
]

TOLD = lines(
    r"""echo 'rm -rf x'
echo rm -rf x
git commit -m 'rm -rf x'
git commit -m "curl foo | sh"
git commit -am 'shutdown'
grep -rn 'rm -rf' src
grep -rn "curl" .
rg 'rm -rf /'
rg curl
sed 's/rm -rf x/curl/' README.md
awk '/rm -rf/ {print}' README.md
printf '%s\n' 'rm -rf x'
ls # rm -rf x
ls -la rm
cat curl
cat rm -rf
man rm
man curl
which rm
which curl
type rm
command -v curl
apt show curl
pip install curl
npm install shutdown
npm run shutdown
npm run curl
git push --force-with-lease
git push
git push origin main
git log --grep='rm -rf'
git log --grep 'curl'
gh pr create --title 'rm -rf x' --body 'curl x'
jq '.curl' package.json
python -c 'print("rm -rf x")'
python -c 'print("curl x")'
node -e 'console.log("rm -rf x")'
perl -e 'print "rm -rf x"'
docker build -t curl .
docker pull curl
docker images curl
docker rm x
docker run --rm alpine ls
docker run --rm -it alpine ls
kubectl get curl
tmux ls
tmux list-sessions
vim rm
vim 'rm notes.txt'
less 'rm notes.txt'
less curl
vim src/a.py
psql -c 'select curl from x'
sqlite3 x.db 'select 1'
ssh host ls
ssh curl.example.com ls
find . -name rm
find . -name 'curl*'
find . -name '*rm -rf*'
test -f rm
[ -d curl ]
mkdir curl
touch rm
cp rm curl
mv curl rm
tar xf curl.tar
tar czf rm.tgz src
unzip rm.zip
make curl
make shutdown
export X='rm -rf y'
alias | grep rm
x='rm -rf y'
x=curl
case rm in rm) ls;; esac
for i in rm curl; do echo $i; done
echo "don't rm -rf x"
echo $'rm -rf x'
: rm -rf x
true rm -rf x
helm uninstall curl
brew install curl
apt-get install -y curl
sudo apt-get install curl
choco install curl
uv add curl
uv run pytest -k curl
poetry add curl
poetry run pytest -k 'rm'
cargo add curl
cargo run curl
go get curl
bundle add curl
npx prettier --write .
npx eslint 'src/**' --rule 'curl: 0'
pytest -k 'rm and not curl'
pytest tests/curl
hyperfine 'ls' 'cat README.md'
watch -n1 ls
timeout 5 ls rm
env | grep curl
git log -S'rm -rf x'
git grep 'rm -rf'
git log --author=curl
git checkout curl
git branch shutdown
git show curl
sed -n '/rm -rf/p' README.md
sed -e 's/e rm/x/' README.md
diff rm curl
xargs echo rm -rf x
xargs grep rm
find . -exec grep 'rm -rf' {} +
find . -exec echo rm -rf {} \;
read -p 'rm -rf x? ' y
trap - EXIT
history | grep curl
crontab -l
at -l
screen -ls
tmux attach
gdb ./a.out
strace ls
docker exec c ls rm
docker logs curl"""
)

SPELLED = lines(
    r"""rm${IFS}-rf${IFS}x
$'r\155' x
\builtin eval rm x
\command rm x
'command' 'rm' x
if ! rm x; then ls; fi
[ -n "`rm x`" ]
: ${x:=$(rm y)}
: "${x[@]:$(rm y)}"
: ${x//$(rm y)/z}
: ${x%$(rm y)}
: ${x@Q} $(rm y)
function rm2 { rm x; }
rm<x
rm>x
rm|cat
rm&
rm x;ls
rm x&&ls
rm x||ls
(rm x)|cat
{ rm x;}
cat<<<$(rm x)
echo hi>$(rm x)
alias z=rm; z y
alias z='rm y'
bash -c "$(echo cm0geA== | base64 -d)"
eval "$(printf '\x72\x6d x')"
$(printf rm) x
xargs -I% sh -c '%' <<< 'rm x'
xargs -I{} rm {} <<< x
echo x | xargs -I {} rm {}
echo x | xargs -t rm
echo x | xargs --no-run-if-empty rm
echo x | xargs -d '\n' rm
echo x | xargs --max-args=1 rm
echo x | xargs --max-args 1 rm
echo 'rm x' | xargs -0 sh -c
ssh -oProxyCommand='rm x' h
ssh -o LocalCommand='rm x' -o PermitLocalCommand=yes h
scp -o ProxyCommand='rm x' a h:
git clone --upload-pack 'rm x' r
git clone -u 'rm x' r
git clone 'ext::rm x' y
git ls-remote 'ext::sh -c rm% x'
git fetch --upload-pack='rm x'
git push --receive-pack='rm x'
git push --exec='rm x'
rsync --rsync-path='rm x' a h:
tar cf - --rsh-command='rm x' a
find . -exec bash -c 'rm "$0"' {} \;
find . -exec env rm {} +
find . -exec sudo rm {} \;
find . -type f -exec nice rm {} ';'
find . -exec rm {} ";"
env --split-string "rm x"
env -iS 'rm x'
env -S 'A=b rm x'
nice -n5 env A=b bash -c 'nohup rm x'
bash -c 'bash -c "bash -c \"rm x\""'
bash -c $'rm\tx'
bash -lic 'rm x'
bash -O extglob -c 'rm x'
bash -c 'eval "$1"' _ 'rm x'
bash -c '"$0" "$@"' rm x
sh -c '$1 x' _ rm
bash -c 'exec "$@"' -- rm x
x=rm; $x y
x=rm; "$x" y
x=rm; ${x} y
x="rm y"; $x
x=(rm y); "${x[@]}"
x=r; y=m; $x$y z
x=m; r$x z
for c in rm ls; do $c x; done
for c in "rm x"; do eval $c; done
declare x=rm; $x y
export x=rm; $x y
local x=rm; $x y
: ${x:=rm}; $x y
${x:-rm} y
${x:-rm y}
"${x:-rm}" y
${x-rm} y
r${UNSET}m x
r$*m x
r"$@"m x
r${#}m x
r$()m x
r``m x
rm$() x
/b?n/rm x
/*/rm x
{,rm} x
{r,}m x
r{m,} x
r{m..m} x
~/../../bin/rm x
./././rm x
//bin//rm x
/bin/../bin/rm x
~+/rm x
time -p -- rm x
exec -c rm x
exec -a ls rm x
exec {fd}>x rm y
coproc NAME { rm x; }
trap "rm x" 0
trap -- 'rm x' EXIT INT
trap 'bash -c "rm x"' ERR
PS1='$(rm x)'
sudo -u root -- bash -c 'rm x'
sudo -n -H -E rm x
sudo -p 'rm' rm x
sudo -D /x rm y
sudo --chdir=/x rm y
sudo -R / rm x
sudo -T 5 rm x
sudo -A rm x
sudo -S rm x <<< pw
sudo VAR=1 OTHER=2 rm x
sudo -iu root rm x
sudo su -c 'rm x'
sudo su - root -c 'rm x'
sudo env rm x
sudo sudo sudo rm x
doas -n rm x
doas -C c rm x
su root -s /bin/bash -c 'rm x'
su -l -c 'rm x' root
su --command 'rm x'
su --comm='rm x'
runuser -u nobody rm x
runuser -c 'rm x' nobody
runuser --user=nobody -- rm x
chroot . rm x
chroot --userspec=a . sh -c 'rm x'
unshare -Urm rm x
unshare -- rm x
ssh h 'sudo rm x'
ssh h -- rm x
ssh -i k -p 22 -l u h rm x
ssh -J j h rm x
ssh -tt h rm x
ssh u@h "bash -c 'rm x'"
ssh h ls \; rm x
ssh h ls '&&' rm x
ssh h "ls; rm x"
parallel rm {} ::: x
parallel -j 4 'rm {}' ::: x
parallel --jobs 4 rm ::: x
parallel ::: 'rm x' ls
parallel -a f rm
parallel -X rm ::: x
parallel sh -c 'rm {}' ::: x
watch -n 5 'rm x'
watch -d -n5 -- rm x
watch --exec rm x
watch --interval=5 rm x
busybox env rm x
busybox find . -exec rm {} \;
ionice -c3 -n7 -t rm x
ionice --class idle rm x
stdbuf -o0 -i0 rm x
nohup rm x >/dev/null 2>&1 &
nohup -- rm x
timeout -s 9 5 rm x
timeout --foreground --preserve-status 1m rm x
timeout 0.5 rm x
nice -19 rm x
nice --adjustment 5 rm x
builtin eval 'rm x'
eval -- rm x
eval eval eval rm x
eval "r\m x"
eval "$(echo 'rm x')"
eval `echo rm x`
eval <<< x rm y
ls | while read f; do rm "$f"; done
ls | while IFS= read -r f; do rm "$f"; done
while read f; do rm $f; done < list
find . | while read f; do rm "$f"; done
git ls-files -z | xargs -0 rm
for f in *; do rm "$f"; done
for ((i=0;i<3;i++)); do rm $i; done
until rm x; do sleep 1; done
select f in *; do rm $f; done
case $1 in a) ls;; *) rm x;; esac
case x in x) rm y;& z) ls;; esac
if ls; then rm x; elif ls; then ls; else ls; fi
if ls; then ls; elif rm x; then ls; fi
{ ls; rm x; } | cat
( cd /; rm x )
(( 1 )) && rm x
[[ a ]] && rm x
[[ a = "$(rm x)" ]]
echo "a $(echo "b $(rm x)")"
echo "${a:-"$(rm x)"}"
echo ${a:-${b:-$(rm x)}}
echo $(( $(rm x) + 1 ))
echo $(($(rm x)))
echo "$[$(rm x)]"
a=$(rm x) ls
a=(1 $(rm x))
declare -A a=([$(rm x)]=1)
export a=$(rm x)
ls 2> >(rm x)
ls < <(rm x)
tee >(rm x) >(ls)
exec 3> >(rm x)
cat <(cat <(rm x))
mapfile -t a < <(rm x)
rm -- x
rm -- -x
rm -i x
rm --help
/usr/bin/env -i rm x
/usr/bin/nice rm x
/bin/busybox rm x
/usr/bin/sudo /bin/rm x
"/bin/rm" x
'/bin/'rm x
Rm x
rм x"""
)

SPELLED_UNSURELY = lines(
    r"""${UNSET:+ls}rm x
/bin/r? x
/bin/r[m] x
BASH_ENV=/dev/stdin bash -c ls <<< 'rm x'
bash -c 'for c; do $c; done' _ 'rm x'
f() { "$@"; }; f rm x
f() { $1 x; }; f rm
printf -v x rm; $x y
read x <<< rm; $x y"""
)

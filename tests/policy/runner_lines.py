"""Lines with a program that starts another one. Data only: `test_shell_runners.py` says what must become of them.

RUN would remove files and must be denied where `rm -rf` is; TOLD only speaks of what is denied.
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

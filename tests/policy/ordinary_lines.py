"""Two hundred reading lines as models and people write them in ordinary work. Data only.

The number of them that ask is held by a test: it may fall, not rise.
"""

ORDINARY = r"""
ls
ls -la
ls -la src
ls -1 src | head -20
ls -lh --color=never
ls -R src | head -50
ls -t | head -5
ls src/*.py
ls -d */
ls -S src
pwd
pwd && ls -la
cat README.md
cat -n src/a.py
cat src/a.py src/b.py
cat package.json | jq .
cat src/a.py | head -20
cat package.json | jq '.scripts'
cat README.md | wc -l
head -20 src/a.py
head -n 50 README.md
head -c 200 package.json
tail -20 src/a.py
tail -n +10 src/a.py
tail -n 5 README.md | cat -A
sed -n '1,40p' src/a.py
sed -n '10,20p;20q' src/a.py
sed -n '/def /p' src/a.py
sed 's/foo/bar/g' src/a.py | head
awk '{print $1}' README.md
awk -F: '{print $1, $2}' README.md
awk 'NR>=10 && NR<=20' src/a.py
awk 'length($0) > 80' src/a.py
awk '/import/ {print NR": "$0}' src/a.py
awk '{s+=$1} END {print s}' README.md
awk 'NR==FNR{a[$1];next} $1 in a' a b
awk -v n=3 '$1 > n {print $2}' README.md
awk 'END{print NR}' src/a.py
awk 'BEGIN{FS=","} {print $2}' README.md
awk '$3 > 5 {print $1}' README.md
wc -l src/*.py
wc -l src/a.py README.md
wc -c package.json
grep -n TODO src/a.py
grep -rn "def " src
grep -rn --include='*.py' import .
grep -rln "class " src | head
grep -c import src/a.py
grep -E 'foo|bar' src/a.py
grep -v '^#' src/a.py | head
grep -A3 -B3 main src/a.py
grep -rn -i 'error' src | head -40
grep -oE '[0-9]+' README.md | sort -n | uniq -c
grep -q foo src/a.py && echo yes
grep -w x README.md || echo none
grep -rnE "(get|set)_[a-z]+" src --include=*.py | wc -l
grep -n "^import\|^from" src/a.py
grep -Fxq x README.md && echo there
grep -rh "version" package.json
rg TODO
rg -n "def main" src
rg -l import src | sort
rg --files | head -50
rg -g '*.py' 'class \w+' src
rg -t py -C2 foo
rg -i --no-heading error src | head
rg -c import
rg --files -g '*.md'
rg -uu foo src
rg -F 'a.b(c)' src
rg -o '\w+Error' src | sort | uniq -c | sort -rn
find . -name '*.py'
find src -type f | wc -l
find . -maxdepth 2 -type d
find . -name '*.py' -not -path './.venv/*' | head -100
find . -type f -size +100k
find src -newer README.md
find . -name package.json -print
find . -type f -mtime -7 | sort
find . \( -name '*.ts' -o -name '*.tsx' \) -print
find . -path ./node_modules -prune -o -name '*.js' -print
find src -empty
find . -type f -printf '%s %p\n' | sort -n | tail -5
git status
git status --short
git status -sb
git diff
git diff --stat
git diff HEAD~1 -- src/a.py
git diff --cached
git diff --name-only main...HEAD
git log --oneline -10
git log -5 --stat
git log -p -1 src/a.py
git log --graph --oneline --all | head -30
git log --since='2 weeks ago' --author=me --oneline
git log -S foo --oneline
git log --format='%h %an %s' -20
git show HEAD --stat
git show HEAD:src/a.py | head
git show --name-only
git branch
git branch -vv
git branch --show-current
git rev-parse HEAD
git rev-parse --show-toplevel
git remote -v
git ls-files | head
git ls-files '*.py' | xargs wc -l
git blame -L 1,10 src/a.py
git stash list
git tag --sort=-creatordate | head -5
git describe --tags --always
git shortlog -sn
git grep -n foo
git config --get user.name
git diff --word-diff src/a.py
git merge-base main HEAD
sort README.md
sort -u README.md | head
sort -k2 -n README.md
sort README.md | uniq -c | sort -rn | head
sort -t, -k2,2 README.md
uniq -c README.md
uniq -d README.md
cut -d: -f1 README.md
cut -c1-80 src/a.py
cut -f2 README.md | sort | uniq
tr -d '\r' < README.md | head
tr 'a-z' 'A-Z' < README.md
echo hello
echo "$HOME"
echo "a b" | wc -w
echo $((1 + 2))
printf '%s\n' a b c
printf "%d\n" 5
date
date +%Y-%m-%d
date -u
uname -a
whoami
id
hostname
nproc
df -h
du -sh .
du -sh src
du -h --max-depth=1 .
free -m
ps aux | head
ps aux | grep python
ps -ef | wc -l
uptime
which python3
which node npm
type ls
command -v git
test -f README.md && echo yes
test -d src || echo no
[ -f package.json ] && cat package.json
[[ -f README.md ]] && echo yes
[ -n "$HOME" ] && echo set
file src/a.py
file *
stat README.md
stat -c '%s %n' README.md
diff src/a.py src/b.py
diff -u src/a.py src/b.py | head -40
diff <(sort a) <(sort b)
cmp a b
comm -12 <(sort a) <(sort b)
paste a b
join a b
md5sum README.md
sha256sum src/*.py
xxd README.md | head
od -c README.md | head -3
hexdump -C README.md | head
base64 README.md | head -1
strings README.md | head
basename src/a.py .py
dirname src/a.py
realpath src/a.py
readlink -f README.md
tree -L 2
jq '.dependencies | keys' package.json
jq -r '.name' package.json
jq -c '.[]' package.json
jq '.scripts.test' package.json
for f in src/*.py; do echo "$f"; done
for i in 1 2 3; do echo $((i * 2)); done
for f in a b; do wc -l $f; done
cd src && ls
cd src && grep -n foo a.py
cd src; cat a.py | head
(cd src && ls -la)
ls src && cat src/a.py
cat src/a.py 2>/dev/null
ls nothing 2>&1 | head
grep -rn foo src 2>/dev/null | head -20
true && echo ok || echo failed
seq 1 10
seq 5 | tac
nl -ba src/a.py | sed -n '1,20p'
column -t README.md
fold -w 80 README.md
expr 1 + 2
timeout 10 grep -rn foo src
time ls
LC_ALL=C sort README.md
bash --version
git --version
make --version
tac README.md
rev README.md
""".strip().splitlines()

"""Lines that would read, write or run what nobody was asked about, each by a way of its own. Data only.

`OUT` is a directory outside the workspace, `KEY` a key in the home, `payload` a file of the workspace whose text is code
for bash (`a[$(touch OUT/p)]`). ⏎ is a line end. None of these may be allowed.
"""

VALUES = r"""
: 'a[$(touch OUT/p)]'; echo $((_))
for x in "$(cat payload)"; do echo $((x)); done
for x in "$(cat payload)"; do [[ $x -eq 1 ]]; done
for x in "$(cat payload)"; do [[ 1 -lt x ]]; done
for x in "$(cat payload)"; do echo ${HOME:x:1}; done
for x in "$(cat payload)"; do echo ${HOME:0:x}; done
for x in "$(cat payload)"; do echo ${BASH_VERSINFO[x]}; done
for x in "$(cat payload)"; do echo ${#BASH_VERSINFO[x]}; done
for x in "$(cat payload)"; do echo ${!x}; done
for x in "$(cat payload)"; do [[ -v $x ]]; done
for x in "$(cat payload)"; do test -v "$x"; done
for x in "$(cat payload)"; do [ -v "$x" ]; done
for x in "$(cat payload)"; do (( x )); done
for x in "$(cat payload)"; do for ((i=x; i<1; i++)); do :; done; done
for x in "$(cat payload)"; do for ((i=0; i<x; i++)); do :; done; done
for x in "$(cat payload)"; do echo $[x]; done
for x in "$(cat payload)"; do echo "$((1 + x))"; done
for x in "$(cat payload)"; do echo $((1 ? x : 0)); done
for x in "$(cat payload)"; do cat <<E⏎$((x))⏎E⏎done
for x in "$(cat payload)"; do cat <<< $((x)); done
for x in 1 2; do for y in 1 2; do echo $((x)); for x in "$(cat payload)"; do :; done; done; done
for x in 1 "$(cat payload)"; do echo $((x)); done
echo $(( $(cat payload) ))
echo $(( `cat payload` ))
echo "$(( $(head -1 payload) + 1 ))"
[[ $(cat payload) -gt 1 ]] && echo big
(( $(cat payload) > 1 )) && echo big
test $(cat tests-v)
[ $(cat tests-v) ]
test "-v" "$(cat payload)"
for o in -v; do test $o "$(cat payload)"; done
for x in "$(cat payload)"; do : "${x@P}"; done
for f in a*; do echo $((f)); done
for f in $(ls); do (( f > 1 )); done
select x in "$(cat payload)"; do echo $((x)); break; done <<< 1
printf '%s%n' xxxxx PATH; cat README.md
printf 'xxxxx%n' PATH
printf '%5$n' PATH
printf "$(cat format)" PATH
printf * PATH
cat {PATH}<README.md
echo {IFS}</dev/null
: {PATH}<README.md; ls
echo $((PATH=5)); cat README.md
[[ 'a[$(touch OUT/p)]' -eq 0 ]]
[[ -v 'a[$(touch OUT/p)]' ]]
test -v 'a[$(touch OUT/p)]'
test -v 'a[`touch OUT/p`]'
echo ${x:'a[$(touch OUT/p)]':1}
echo $((a['$(touch OUT/p)']))
DEBUG='a[$(touch OUT/p)]'; echo $((DEBUG))
LC_X='a[$(touch OUT/p)]' ; [[ LC_X -eq 1 ]]
TERM=x[$(touch${IFS}OUT/p)]; echo ${TERM[TERM]}
""".strip()

PROGRAMS = r"""
awk 'BEGIN{print "x;" > "OUT/p"}'
awk 'BEGIN{print "}" > "OUT/p"}'
awk 'BEGIN{print "a⏎b" > "OUT/p"}'
awk 'BEGIN{x="OUT/p"; print 1 >> x}'
awk '{print /"/ > "OUT/p"}' README.md
awk '/"/{print > "OUT/p"} /"/' quoted
awk 'BEGIN{printf("%s", "x") > "OUT/p"}'
awk 'BEGIN{"cat KEY" | getline x; print x}'
awk 'BEGIN{while ((getline x < "KEY") > 0) print x}'
awk 'BEGIN{print | "touch OUT/p"}'
awk 'BEGIN{print "x" |& "cat"}'
awk 'BEGIN{ARGV[1]="KEY";ARGC=2}{print}'
awk -f payload
awk '# "⏎BEGIN{print 1 > "OUT/p"} # "'
awk -v 'x=1' -- '{print}' KEY
awk '{print}' a=1 KEY
uniq pl --group KEY2
uniq --all-repeated a OUT/p
uniq -c a OUT/p
uniq a sub-out
base64 -i KEY
base64 -di KEY
base64 --ignore-garbage KEY
diff --color KEY /dev/null
diff --color a KEY
diff --unified a KEY
diff --context KEY a
diff --label x KEY a
diff -l a b
diff a dir-out
diff -r src dir-out
diff --from-file=KEY a
diff --to-file KEY a
rg -I . KEYDIR
rg -uI . KEYDIR
rg -nI . KEY
grep '' -r KEYDIR
grep -ru . KEYDIR
grep -fKEY a
grep --file=KEY a
grep -ef a KEY
grep -e f KEY
grep -m1 . KEY
grep -y . KEY
grep --colour . KEY
grep --no-group-separator . KEY
grep -r . ln-dir/
jq 'import "mod" as m; m::x' package.json
jq 'include "mod"; .' package.json
jq -n 'import "id_rsa" as $k {search:"KEYDIR"}; $k'
jq -n --slurpfile k KEY '$k'
jq -n --rawfile k KEY '$k'
jq -Rn 'input' KEY
jq -Rs . KEY
jq -L KEYDIR . package.json
jq --arg a b . KEY
jq -f KEY package.json
sort -oOUT/p a
sort a -o OUT/p
sort --outp=OUT/p a
sort --compress-prog=./evil -S1k a
sort -T OUT a
sort --files0-from=list0
sort --random-source=KEY -R a
sort -mu KEY
wc --files0-from=list0
du --files0-from=list0
du -X KEY .
stat -f KEY
stat --printf '%n' KEY
xxd -ps a OUT/p
xxd -ps a sub-out
xxd -r -p a OUT/p
xxd -p KEY
xxd -b a OUT/p
od -w KEY
od -w16 KEY
od --width KEY
hexdump -L KEY
hexdump -f KEY a
file -f KEY
file -m KEY a
file -C -m mod.jq
strings @KEY
strings -n @KEY
strings -U @KEY a
xxd a -a
xxd -ps a new
xxd a -b
file --magic-file . dir-out
file -m . a
zgrep -R x
grep -R x dir-o*
cat /dev/fd/../root/KEY
cat < /dev/fd/../cwd/.env
for x in $(cat list); do git log --$x; done
zgrep --dereference-recursive x sub
zgrep -f KEY a
strings -n KEY KEY
nl -s KEY KEY
tac -s x KEY
column -t KEY
column -nx KEY
ls -I x KEYDIR
ls --color KEYDIR
ls --hyperlink KEYDIR
head -n1 -- KEY
head -q KEY
tail --follow KEY
tail -f KEY
cat -- KEY
cat -A KEY
cat ~+/../home/.ssh/id_rsa
cat ~-/x KEY
cat ~root/.ssh/id_rsa
cat < KEY
cat 0< KEY
cat <> KEY
cat 3< KEY <&3
cmp KEY a
comm KEY a
join KEY a
paste KEY
cut -c1-99 KEY
fold KEY
fmt KEY
tr a b < KEY
expand KEY
rev KEY
zcat -f KEY
zgrep . KEY
md5sum KEY
cksum KEY
realpath --relative-to=KEYDIR a
date -f KEY
date -r KEY
date --file=KEY
sed -n '1w OUT/p' a
sed 's/x/y/w OUT/p' a
sed '1e touch OUT/p' a
sed 's/x/touch OUT\/p/e' a
sed -n '$r KEY' a
sed '1R KEY' a
sed -s -n p KEY
sed --in-place s/x/y/ a
sed -ni p a
sed -f payload a
sed --expression=p KEY
sed -n p -- KEY
find KEYDIR
find . -fprintf OUT/p x
find . -newer KEY
find . -files0-from list0
find -L . -name x
find -D exec . -delete
find . -exec cat KEY {} +
find . -name x -o -delete
tree -o OUT/p
fd . KEYDIR
fd -x touch OUT/p
fd --base-directory KEYDIR
fdfind -x touch OUT/p
cargo --version
rustc --version
npm --version
yarn --version
go version
pytest --version
ruby --version
pip --version
hostname evil
date 010100002030
ps auxe
ps eww
cd KEYDIR && cat id_rsa
cd ~/.ssh; cat id_rsa
cd ..; cat home/.ssh/id_rsa
cd - && ls
(cd KEYDIR; ls)
cd sub; git status
cd bare && git status
cd bare; git log
git -C bare status
git diff --no-index /dev/null KEY
git grep --no-index . KEYDIR
git log --output=OUT/p
git log --outp OUT/p
git diff --ext-diff
git diff --textconv
git show --show-signature
git log --format=%GG
git blame --contents KEY README.md
git ls-files -X KEY
git grep -f KEY
git grep -OOUT/evil x
git cat-file --filters HEAD:a
git status --porcelain=v2 --untracked-files=KEY --exec=touch
git archive -o OUT/p HEAD
git bisect run touch OUT/p
git config core.pager evil
git config --global alias.x y
git config -f KEY --list
git -c core.pager=evil log
git -p log
git --exec-path=. status
git worktree add OUT/p
git branch evil
git tag evil
git stash
git reflog expire --all
git notes add -m x
git symbolic-ref HEAD refs/x
git remote add evil x
echo x > OUT/p
echo x >> ~/.bashrc
echo x >| OUT/p
echo x &> OUT/p
echo x >&OUT/p
echo x > .git/config
echo x 3> OUT/p
cat <(cat KEY)
cat a > >(tee OUT/p)
cat a | tee OUT/p
echo `cat KEY`
echo "$(cat KEY)"
echo $(< KEY)
echo ${x:-$(cat KEY)}
cat $(echo KEY)
cat "$HOME/.ssh/id_rsa"
cat $HOME/.ssh/id_rsa
cat ~/.ssh/id_rsa
cat ~/.ssh/*
cat ln-key
cat ln-dir/id_rsa
cat ./sub/../ln-dir/id_rsa
cat {a,KEY}
cat KEY*
cat .env
cat .e*v
cat .ENV
cat ./.env.local
c\at KEY
'cat' KEY
$'\x63at' KEY
cat$IFS$(echo KEY)
command cat KEY
builtin echo $(cat KEY)
time cat KEY
timeout 5 cat KEY
timeout -s KILL 5 cat KEY
nice -n 5 cat KEY
stdbuf -oL cat KEY
nohup cat KEY
env cat KEY
exec cat KEY
xargs cat < list
echo KEY | xargs cat
: | xargs cat KEY
coproc cat KEY
if cat KEY; then :; fi
while read x; do echo $x; done < KEY
case $(cat KEY) in x) ;; esac
f() { cat KEY; }; f
function ls { touch OUT/p; }; ls
trap 'touch OUT/p' EXIT
alias ls='touch OUT/p'
PATH=.:$PATH ls
export PATH=.; ls
LD_PRELOAD=./x.so ls
GIT_DIR=bare git status
GIT_EXTERNAL_DIFF=./evil git diff
PAGER=./evil git log
BASH_ENV=payload bash -c ls
./ls
src/../evil
/bin/sh -c 'cat KEY'
bash -c 'cat KEY'
sh payload
source payload
. ./payload
eval cat KEY
python3 -c 'print(open("KEY").read())'
cat a; touch OUT/p
cat a & touch OUT/p
cat a⏎touch OUT/p
cat a || touch OUT/p
! touch OUT/p
{ touch OUT/p; }
ls !(a)
if then fi
cat 'unfinished
cat <<E
echo )(
# only a comment
""".strip()

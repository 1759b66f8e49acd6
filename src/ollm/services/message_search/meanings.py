"""Words that stand for the same thing in talk about software and the work around it, a group a line.

Written by hand. A word may stand in several groups; questions find a message by any word of the groups theirs is in.
"""

from __future__ import annotations

# Machines, networks, storage
_MACHINES = """
server host machine node box computer backend instance vm
port socket listen listening endpoint connect reach
address url uri link site page website webpage web location
network net lan wifi connection internet vpn tunnel
proxy gateway balancer router relay ingress nginx haproxy
firewall filter packet rule blocked
domain dns hostname subdomain nameserver
cluster farm fleet pool replicaset kubernetes k8s swarm
cloud aws azure gcp hosting hoster datacenter provider
region zone datacenter location city country hall
hardware device machine equipment
cpu processor core chip
gpu graphics card cuda accelerator
memory ram heap
disk drive volume partition ssd storage mount
database db store schema table postgres mysql sqlite mongo sql
bucket container storage blob s3 folder
replica copy mirror standby secondary follower slave
primary main master leader
cache cached buffered stored remembered redis memcached
backup snapshot copy archive dump
restore recover recovery rollback revert undo
queue backlog broker waiting pending stream kafka rabbitmq topic
event message notification signal hook callback
webhook callback hook notification called
worker process thread job task background daemon parallel concurrent
scheduler cron timer schedule planned periodic nightly
container docker image pod podman
image picture photo graphic thumbnail avatar icon illustration tile
registry repository hub store index
environment env variable export stage
production prod live
staging preproduction pre-production test sandbox acceptance preview
development dev debug local
outage downtime crash incident breakdown unavailable
uptime availability sla reliability
monitoring observability metric alerting telemetry prometheus grafana dashboard
metric measurement statistic figure analytics kpi number counter
log logs logging trace output record history journal protocol
audit compliance review history
load traffic throughput requests rate
latency delay lag slow response speed behind stale
timeout expire expiry wait deadline idle seconds
retry attempt again backoff repeat resend
limit maximum max most cap bound ceiling quota threshold top
minimum least min lowest floor
interval period frequency often every
printer printing print paper
phone mobile smartphone telephone cell android ios iphone tablet
laptop notebook desktop computer workstation pc
camera scanner reader sensor barcode
"""

# Writing software
_SOFTWARE = """
settings setting config configuration configured configure option preference parameter
flag toggle switch feature option
function method procedure routine subroutine
class type object struct
module package library dependency component crate gem
component part engine service subsystem piece unit module system
library framework toolkit package dependency
frontend ui interface gui client screen view browser
backend server api service
interface api endpoint contract
api endpoint route interface rest graphql
route path url endpoint
parser parse syntax grammar reader lexer
compiler compile build make binary
build compile pipeline ci compiled generate
pipeline ci workflow build runner actions jenkins
runner worker agent executor machine
generate generated build produce create derive made
script program tool command shell bash
command invocation run execute instruction cli
tool program software utility application app product
application app program software
version release edition revision upgrade
release version launch ship publish rollout deploy delivery
deploy deployment rollout ship release install publish delivery
install setup installation set-up
rewrite refactor refactoring redo rework restructure overhaul rewritten
rewrote rewrite redid redo
migration migrate upgrade move schema switch transition
update upgrade refresh renew bump
commit change patch revision sha hash fix changeset diff
branch head line fork
merge pull-request pr combine join integrate
pull request pr merge review
review reviewer approve approval check inspect
repository repo git codebase source project
hook hooks precommit pre-commit trigger
ticket issue story card jira task
bug defect error fault problem issue failure crash mistake wrong glitch
mistake error wrong slip fault incorrect
fixed repaired solved resolved corrected mended
test tests check suite spec case
test check verify validate testing
validate validation verify check correct valid
flaky random unstable unreliable intermittent sometimes
lint linter style formatter static shellcheck ruff eslint
style convention format formatting rule guideline standard
convention rule naming standard named agreed practice
indentation indent tab space whitespace
format encoding type form kind
encoding charset utf-8 utf8 latin-1 unicode ascii
comment documentation document remark
documentation docs manual handbook guide readme reference document wiki
changelog release-notes notes news history
code source program
language tongue locale translation english german french
translation translate language text i18n localization localisation
interpreter runtime python node
java jdk jvm kotlin
model llm ai gpt qwen llama
fallback backup alternative instead substitute replacement
template layout pattern form
pattern regex expression
field column attribute property
row record entry item line
record entry item row
key identifier id primary
identifier id uuid ulid key number
integer int number whole
decimal float fraction
datatype type kind
string text characters
character letter symbol sign semicolon comma
list array sequence table
map dictionary hash
index lookup search
search lookup find query
query request question lookup
websocket realtime live push streaming
session login cookie signed
login signin sign-in sign logon authentication auth
permission right access authorization allowed role privilege
admin administrator administration management root operator backoffice
console dashboard interface panel screen
dashboard screen overview panel board display
token secret key password credential credentials passphrase
password secret credential passphrase login
hash hashed algorithm digest encrypted protect
encrypt encryption cipher crypto tls ssl secure
certificate tls ssl https cert
vault safe store keychain secret entry
signature sign signed signing
security secure safe protection protected
vulnerability hole exploit cve weakness
rotate renew replace refresh change
memory leak ram consumption eat grows
crash fail abort die panic break choke down
exception error traceback throw raise
default standard usual preset normal
theme colour color appearance mode skin
dark black night
light white bright day
corner border edge radius rounded
button control widget element
font typeface lettering
page screen view site
form dialog input mask
width height dimension size pixel
license licence terms legal copyright
plot chart graph diagram plotting
map geography geo tiles
accessibility blind disabled a11y wcag
performance speed fast slow quick slower faster
optimise optimize improve tune
legacy old ancient outdated obsolete former previous deprecated
deprecated removed unsupported drop retire
support supported maintain
"""

# What people do
_VERBS = """
delete remove drop erase clear purge wipe flush discard clean
clear flush empty reset invalidate
create make add new build
start begin launch boot run
stop end halt kill quit shutdown shut switched off terminate
shutdown switched off turned disable disabled retire decommission
enable activate turn on switch
begin start open
end finish expire stop last over
change modify edit alter touch adapt switch
touch modify edit change
frozen freeze fixed unchanged locked stable
move moved transfer relocate migrate
send deliver transmit dispatch sent submit
receive get obtain accept
push upload publish send put
upload submit send attachment attach submitted
download fetch pull get export
export download output dump
import load loading importer read ingest loader
load read open import
store save keep keeps stored put persist located hold
keep retain retention hold store preserve
retention keep kept lifetime period
read load open parse
write author compose written create
show display render present visible see
hide conceal invisible
present demo show demonstrate demonstration presentation
skip ignore omit exclude leave left except excluded
exclude except forbid combine
allow permit let may accept allowed
forbid prohibit ban deny reject refuse disallow never not
reject refuse deny decline block
fail failure break crash error
break fail destroy broken
wait pause delay sleep hang idle
idle inactive unused
check verify inspect look examine test review audit
look check inspect view examine
approve approval sign confirm accept authorise authorize signoff release
need require want necessary requirement must
require need demand prerequisite satisfy
want prefer wish like ask request
prefer like favour favor want
ask request want
report tell notify inform found
report statistic summary evaluation
find found discover notice report detect
decide decided decision agreed chose chosen settled
agree agreement decide contract
choose select pick
promise guarantee commit assure
cause reason why because due
happen occur
use apply employ
belong put place go
take last need duration
collect gather scrape fetch
compute calculate count sum
count number total sum
round rounded rounding fraction
convert transform turn translate
compress zip pack shrink
split divide separate
sort order arrange rank
repeat again retry
redeem use apply
join combine merge
replace swap exchange substitute
protect guard secure behind
pass satisfy succeed
overtake take over replace fallback
"""

# People, time, money, places
_WORLD = """
owner owns responsible maintainer charge contact person ask accountable lead
person people human man woman someone user colleague individual
colleague teammate coworker employee team person
team group people department colleagues squad crew
boss manager lead head chief supervisor
contractor freelancer consultant external agency
company firm business agency vendor corporation organisation enterprise
vendor supplier manufacturer provider maker
customer client tenant account buyer user consumer
user account customer member login
account user profile login
profile avatar account
partner third party affiliate integrator
investor shareholder stakeholder funder
support helpdesk service care
accountant finance accounting bookkeeper financial tax
lawyer legal law attorney
law legal regulation compliance gdpr statute
contract agreement deal treaty
meeting call appointment conference standup
holiday vacation leave away absent off
office work workplace headquarters building
warehouse depot stock store storehouse
deadline due date until day latest by
date day when
day date monday tuesday wednesday thursday friday saturday sunday weekday
month january february march april may june july august september october november december
time clock hour o'clock zone utc
morning early am dawn
evening night nightly pm late
night nightly evening
week weekly fortnight
year annual yearly annually
minute sixty seconds
second seconds
duration long take length time
recent recently last lately newest week
recent new latest
old ancient former earlier older aged
soon next upcoming spring shortly
season spring summer autumn winter fall
maintenance upgrade service down servicing
window slot period
cost price budget money pay expense fee expensive charge
price cost amount money rate
money currency euro dollar cent payment amount cash
cent penny hundredth fraction
payment pay billing checkout purchase transaction stripe paypal
invoice bill billing receipt
billing payment invoice
order purchase sale buy checkout
checkout purchase cart basket order payment
sales revenue turnover income
refund return reimbursement
discount reduction rebate coupon voucher
coupon voucher discount code
gift present
shipping delivery freight transport parcel
booking reservation appointment
double duplicate twice
duplicate double copy repeated
twice two double times
effort work days workload
budget effort cost
size length amount number count quantity large big
big large huge great biggest largest
small little tiny short
number amount count quantity total many
percent share ratio percentage
email mail message inbox smtp mx
mail email letter inbox
inbox mailbox mail
message mail notification text
file document sheet script
document file text spreadsheet pdf
spreadsheet excel xlsx csv sheet document
csv spreadsheet table separated import
path file location place directory folder live lives stored located
folder directory dir path
place location where spot
live located reside situated
temporary throwaway scratch tmp temp transient
permanent lasting forever
manual human hand by-hand
automatic automatically automated
purpose intentional intentionally deliberate deliberately
public open external
private internal secret
order sequence before after
first before initial
reachable access accessible available get
access reach enter reachable permission
group category kind
name called title label
temperature celsius fahrenheit heating degree
unit measure scale
wrong mistake incorrect error
suggestion recommendation recommend proposal
recommendation suggestion advice
feature function capability
new changed fresh
same equal identical
standard default normal
penalty slower overhead
reason cause why
"""

GROUPS = tuple(line for text in (_MACHINES, _SOFTWARE, _VERBS, _WORLD) for line in text.splitlines() if line)

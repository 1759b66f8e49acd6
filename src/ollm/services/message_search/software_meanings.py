"""Words of machines and software that stand for the same thing, a group a line; `meanings` joins them with the rest."""

from __future__ import annotations

# Machines, networks, storage
MACHINES = """
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
SOFTWARE = """
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
install setup installation
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

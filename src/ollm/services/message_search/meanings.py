"""Words that stand for the same thing in talk about software and the work around it, a group a line.

Written by hand. A word may be in several groups; questions find a message by any word of the groups theirs is in.
"""

from __future__ import annotations

from ollm.services.message_search.software_meanings import MACHINES, SOFTWARE

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

GROUPS = tuple(line for text in (MACHINES, SOFTWARE, _VERBS, _WORLD) for line in text.splitlines() if line)

"""Programs that show, count, cut and compare files."""

from __future__ import annotations

from ollm.policy.shell.options import OptionGrammar
from ollm.policy.shell.programs.record import Program, Reading, Writing, read_files, share_record, split_names

_DIGITS = "0123456789"
_SUM = read_files(
    "bctzw", "l", "binary check tag text zero ignore-missing quiet status strict warn length=", names=("c", "check")
)

TEXT_TOOLS: dict[str, Program] = {
    "cat": read_files(
        "AbeEnstTuv",
        "",
        "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting",
        exact=True,
    ),
    "tac": read_files("br", "s", "before regex separator="),
    "nl": read_files(
        "p",
        "bdfhilnsvw",
        "body-numbering= section-delimiter= footer-numbering= header-numbering= line-increment= join-blank-lines="
        " number-format= no-renumber number-separator= starting-line-number= number-width=",
    ),
    "rev": read_files("hV0", "", "zero"),
    "paste": read_files("sz", "d", "delimiters= serial zero-terminated"),
    "strings": read_files(
        "afovwhV" + _DIGITS,
        "netTsU",
        "all print-file-name bytes= radix= encoding= target= include-all-whitespace output-separator= unicode=",
        responses=True,
    ),
    "zcat": read_files("fqv", "S", "force quiet verbose suffix="),
    "readlink": read_files(
        "femnqsvz",
        "",
        "canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero",
    ),
    "realpath": read_files(
        "emLPqsz",
        "",
        "canonicalize-existing canonicalize-missing logical physical quiet relative-to= relative-base= strip"
        " no-symlinks zero",
        read_options=("relative-to", "relative-base"),
    ),
    "cmp": read_files("blsv", "in", "print-bytes ignore-initial= verbose bytes= quiet silent"),
    "cksum": read_files(
        "czw",
        "al",
        "algorithm= check length= tag untagged zero ignore-missing quiet status strict warn debug base64 raw",
        names=("c", "check"),
    ),
    **share_record("md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum", _SUM),
    "sum": read_files("rs", "", "sysv"),
    "ls": read_files(
        "aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1",
        "ITw",
        "all almost-all author escape block-size= ignore-backups color? directory dired classify? file-type format="
        " full-time group-directories-first no-group human-readable si dereference-command-line"
        " dereference-command-line-symlink-to-dir hide= hyperlink? indicator-style= inode ignore= kibibytes"
        " dereference numeric-uid-gid literal hide-control-chars show-control-chars quote-name quoting-style= reverse"
        " recursive size sort= time= time-style= tabsize= width= context zero",
        following=("L", "dereference"),
        exact=True,
    ),
    "head": read_files("qvz" + _DIGITS, "nc", "bytes= lines= quiet silent verbose zero-terminated", exact=True),
    "tail": read_files(
        "fFqvzbr" + _DIGITS,
        "ncs",
        "bytes= follow? lines= max-unchanged-stats= pid= quiet silent retry sleep-interval= verbose zero-terminated",
        exact=True,
    ),
    "wc": read_files(
        "cmlLw",
        "",
        "bytes chars lines files0-from= max-line-length words total=",
        danger=("files0-from",),
        exact=True,
        counts=("-l", "-c", "-w", "-m", "-L"),
    ),
    "sort": read_files(
        "bdfgiMhnRrVcCmsuz",
        "kotST",
        "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort"
        " human-numeric-sort numeric-sort random-sort random-source= reverse sort= version-sort batch-size= check?"
        " compress-program= debug files0-from= key= merge output= stable buffer-size= field-separator="
        " temporary-directory= parallel= unique zero-terminated",
        danger=("o", "T", "output", "temporary-directory", "compress-program", "files0-from"),
        read_options=("random-source",),
        writes=Writing(shape="option", targets=("o", "output")),
        commands="--compress-program",
    ),
    "uniq": read_files(
        "cdDiuz",
        "fsw",
        "count repeated all-repeated? skip-fields= group? ignore-case skip-chars= unique zero-terminated check-chars=",
        output=1,
    ),
    "cut": read_files(
        "nsz",
        "bcdf",
        "bytes= characters= delimiter= fields= complement only-delimited output-delimiter= zero-terminated",
    ),
    "fold": read_files("bs" + _DIGITS, "w", "bytes spaces width="),
    "fmt": read_files(
        "cstu" + _DIGITS, "wgp", "crown-margin prefix= split-only tagged-paragraph uniform-spacing width= goal="
    ),
    "expand": read_files("i" + _DIGITS, "t", "initial tabs="),
    "unexpand": read_files("a" + _DIGITS, "t", "all first-only tabs="),
    "column": read_files(
        "tdeLJxhVm",
        "nONlHRTWripcosEC",
        "table table-name= table-order= table-columns= table-columns-limit= table-column= table-noextreme="
        " table-noheadings table-header-repeat table-hide= table-right= table-truncate= table-wrap= keep-empty-lines"
        " json tree= tree-id= tree-parent= output-width= output-separator= separator= fillrows table-maxout",
    ),
    "join": read_files("iz", "aejotv12", "ignore-case check-order nocheck-order header zero-terminated"),
    "comm": read_files("123z", "", "check-order nocheck-order output-delimiter= total zero-terminated"),
    "diff": read_files(
        "qscueynptTlrNiEZbwBadP" + _DIGITS,
        "CUWFxXSID",
        "normal brief report-identical-files context? unified? ed rcs side-by-side width= left-column"
        " suppress-common-lines show-c-function show-function-line= label= expand-tabs initial-tab tabsize="
        " suppress-blank-empty paginate recursive no-dereference new-file unidirectional-new-file"
        " ignore-file-name-case no-ignore-file-name-case exclude= exclude-from= starting-file= from-file= to-file="
        " ignore-case ignore-tab-expansion ignore-trailing-space ignore-space-change ignore-all-space"
        " ignore-blank-lines ignore-matching-lines= text strip-trailing-cr ifdef= old-group-format= new-group-format="
        " unchanged-group-format= changed-group-format= line-format= old-line-format= new-line-format="
        " unchanged-line-format= minimal horizon-lines= speed-large-files color? palette=",
        danger=("l", "paginate"),
        read_options=("X", "exclude-from", "from-file", "to-file"),
        compares=True,
    ),
    "stat": read_files("Lft", "c", "dereference file-system cached= format= printf= terse"),
    "file": read_files(
        "bcdEhiIkLnNprsSvZ0",
        "fFmPe",
        "apple brief checking-printout debug exclude= exclude-quiet= extension files-from= separator= mime mime-type"
        " mime-encoding keep-going magic-file= dereference no-dereference no-buffer no-pad print0 raw special-files"
        " parameter= no-sandbox compile uncompress uncompress-noreport preserve-date list",
        danger=(*"CmzZpS", *split_names("compile magic-file uncompress uncompress-noreport preserve-date no-sandbox")),
        names=("f", "files-from"),
        read_options=("f", "m", "files-from", "magic-file"),
    ),
    "du": read_files(
        "0abcDHhkLlmPSsx",
        "BdtX",
        "null all apparent-size block-size= bytes total dereference-args max-depth= summarize files0-from="
        " human-readable inodes dereference count-links no-dereference separate-dirs si threshold= time? time-style="
        " exclude-from= exclude= one-file-system",
        danger=("files0-from",),
        read_options=("X", "exclude-from"),
        following=("L", "dereference"),
    ),
    "df": read_files(
        "ahHiklPTv",
        "Btx",
        "all block-size= human-readable si inodes local no-sync output? portability sync total type= print-type"
        " exclude-type=",
        danger=("sync",),
    ),
    "tree": read_files(
        "adfixlqNQpugshDFvtcUrACSnXJR",
        "LPIHTo",
        "noreport dirsfirst filesfirst filelimit= timefmt= sort= matchdirs ignore-case inodes device prune du si"
        " charset= gitignore gitfile= infofile= info metafirst fromfile fromtabfile fflinks hintro= houtro= nolinks"
        " compress= opt-toggle",
        danger=("o", "R", "output", "fromfile", "fromtabfile"),
        writes=Writing(shape="option", targets=("o", "output")),
        following=("l",),
        read_options=("gitfile", "infofile", "hintro", "houtro"),
    ),
    "od": read_files(
        "vabcdfilosxDFHhIOX",
        "AjNtS",
        "address-radix= endian= skip-bytes= read-bytes= strings? format= output-duplicates width? traditional",
        "w",
    ),
    "hexdump": read_files(
        "bcCdoxvhV",
        "efns",
        "one-byte-octal one-byte-char one-byte-hex canonical two-bytes-decimal two-bytes-octal two-bytes-hex color?"
        " format= format-file= length= skip= no-squeezing",
        "L",
        read_options=("f", "format-file"),
    ),
    "xxd": Program(
        options=OptionGrammar(flags="abCdeEhipuvtP", values="cglos", numeric=True, stops=True),
        reads=Reading(danger=("r", "revert"), output=1),
    ),
    "base64": read_files(
        "dD",
        "wo",
        "decode ignore-garbage wrap= output=",
        danger=("o", "output"),
        writes=Writing(shape="option", targets=("o", "output")),
    ),
}

"""Programs that show, count, cut and compare files."""

from __future__ import annotations

from ollm.policy.shell.options import OptionGrammar
from ollm.policy.shell.programs.record import Program, Reading, Writing, read_files, share_record, split_names

_DIGITS = "0123456789"
_SUM = read_files("l", "check length=", names=("c", "check"))

TEXT_TOOLS: dict[str, Program] = {
    "cat": read_files(
        "",
        "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting",
        flags="AbeEnstTuv",
        exact=True,
    ),
    "tac": read_files("s", "separator="),
    "nl": read_files(
        "bdfhilnsvw",
        "body-numbering= section-delimiter= footer-numbering= header-numbering= line-increment= join-blank-lines="
        " number-format= number-separator= starting-line-number= number-width=",
    ),
    "rev": read_files(),
    "paste": read_files("d", "delimiters="),
    "strings": read_files("netTsU", "bytes= radix= encoding= target= output-separator= unicode=", responses=True),
    "zcat": read_files("S", "suffix="),
    "readlink": read_files(),
    "realpath": read_files("", "relative-to= relative-base=", read_options=("relative-to", "relative-base")),
    "cmp": read_files("in", "ignore-initial= bytes="),
    "cksum": read_files("al", "check algorithm= length=", names=("c", "check")),
    **share_record("md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum", _SUM),
    "sum": read_files(),
    "ls": read_files(
        "ITw",
        "all almost-all author escape block-size= ignore-backups color? directory dired classify? file-type format="
        " full-time group-directories-first no-group human-readable si dereference-command-line"
        " dereference-command-line-symlink-to-dir hide= hyperlink? indicator-style= inode ignore= kibibytes"
        " dereference numeric-uid-gid literal hide-control-chars show-control-chars quote-name quoting-style="
        " reverse recursive size sort= time= time-style= tabsize= width= context zero",
        flags="aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1",
        following=("L", "dereference"),
        exact=True,
    ),
    "head": read_files("nc", "bytes= lines= quiet silent verbose zero-terminated", flags="qvz" + _DIGITS, exact=True),
    "tail": read_files(
        "ncs",
        "bytes= follow? lines= max-unchanged-stats= pid= quiet silent retry sleep-interval= verbose zero-terminated",
        flags="fFqvzbr" + _DIGITS,
        exact=True,
    ),
    "wc": read_files(
        "",
        "bytes chars lines files0-from= max-line-length words total=",
        flags="cmlLw",
        danger=("files0-from",),
        exact=True,
        counts=("-l", "-c", "-w", "-m", "-L"),
    ),
    "sort": read_files(
        "kotST",
        "random-source= sort= batch-size= check? compress-program= files0-from= key= output= buffer-size="
        " field-separator= temporary-directory= parallel=",
        danger=("o", "T", "output", "temporary-directory", "compress-program", "files0-from"),
        read_options=("random-source",),
        writes=Writing(shape="option", targets=("o", "output")),
        commands="--compress-program",
    ),
    "uniq": read_files("fsw", "all-repeated? skip-fields= group? skip-chars= check-chars=", output=1),
    "cut": read_files("bcdf", "bytes= characters= delimiter= fields= output-delimiter="),
    "fold": read_files("w", "width="),
    "fmt": read_files("wgp", "prefix= width= goal="),
    "expand": read_files("t", "tabs="),
    "unexpand": read_files("t", "tabs="),
    "column": read_files(
        "nONlHRTWripcosEC",
        "table table-name= table-order= table-columns= table-columns-limit= table-column= table-noextreme="
        " table-hide= table-right= table-truncate= table-wrap= tree= tree-id= tree-parent= output-width="
        " output-separator= separator=",
    ),
    "join": read_files("aejotv12"),
    "comm": read_files("", "output-delimiter="),
    "diff": read_files(
        "CUWFxXSID",
        "paginate context? unified? width= show-function-line= label= tabsize= exclude= exclude-from="
        " starting-file= from-file= to-file= ignore-matching-lines= ifdef= old-group-format= new-group-format="
        " unchanged-group-format= changed-group-format= line-format= old-line-format= new-line-format="
        " unchanged-line-format= horizon-lines= color? palette=",
        danger=("l", "paginate"),
        read_options=("X", "exclude-from", "from-file", "to-file"),
        compares=True,
    ),
    "stat": read_files("c", "cached= format= printf="),
    "file": read_files(
        "fFmPe",
        "no-sandbox compile uncompress uncompress-noreport preserve-date exclude= exclude-quiet= files-from="
        " separator= magic-file= parameter=",
        danger=(*"CmzZpS", *split_names("compile magic-file uncompress uncompress-noreport preserve-date no-sandbox")),
        names=("f", "files-from"),
        read_options=("f", "m", "files-from", "magic-file"),
    ),
    "du": read_files(
        "BdtX",
        "dereference block-size= max-depth= files0-from= threshold= time? time-style= exclude-from= exclude=",
        danger=("files0-from",),
        read_options=("X", "exclude-from"),
        following=("L", "dereference"),
    ),
    "df": read_files("Btx", "sync block-size= output? type= exclude-type=", danger=("sync",)),
    "tree": read_files(
        "LPIHTo",
        "info fromfile fromtabfile filelimit= timefmt= sort= charset= gitfile= infofile= hintro= houtro= compress=",
        danger=("o", "R", "output", "fromfile", "fromtabfile"),
        writes=Writing(shape="option", targets=("o", "output")),
        following=("l",),
        read_options=("gitfile", "infofile", "hintro", "houtro"),
    ),
    "od": read_files("AjNtS", "address-radix= endian= skip-bytes= read-bytes= strings? format= width?", "w"),
    "hexdump": read_files("efns", "color? format= format-file= length= skip=", "L", read_options=("f", "format-file")),
    "xxd": Program(
        options=OptionGrammar(values="cglos", numeric=True, stops=True),
        reads=Reading(danger=("r", "revert"), output=1),
    ),
    "base64": read_files(
        "wo", "wrap= output=", danger=("o", "output"), writes=Writing(shape="option", targets=("o", "output"))
    ),
}
